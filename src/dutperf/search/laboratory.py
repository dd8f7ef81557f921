"""Simulated devices under test and a simulated tester: seeded, no time passes.

For tests of searches and procedures, and for everybody who wants to see how a search
behaves on a device with a known limit. A device is anything with ``forward``.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Protocol

from dutperf.search.model import Measure, Outcome


class Device(Protocol):
    """A device under test, seen from outside."""

    def forward(self, rate_fps: float, frames: int, rng: random.Random) -> int:
        """How many of ``frames`` frames, offered at ``rate_fps``, come out."""
        ...


@dataclass(frozen=True)
class StepDevice:
    """Forwards ``capacity_fps`` at most, without any noise."""

    capacity_fps: float

    def forward(self, rate_fps: float, frames: int, rng: random.Random) -> int:
        """All frames up to the capacity, the share that fits above it."""
        del rng
        if rate_fps <= self.capacity_fps:
            return frames
        fits = int(frames * self.capacity_fps / rate_fps)
        return max(0, min(frames - 1, fits))


@dataclass(frozen=True)
class SlopeDevice:
    """A capacity that wanders: normal, deviation ``noise`` (0.05: 5 %), per trial."""

    capacity_fps: float
    noise: float

    def forward(self, rate_fps: float, frames: int, rng: random.Random) -> int:
        """As a StepDevice with this trial's capacity."""
        capacity_fps = max(0.0, rng.gauss(1, self.noise)) * self.capacity_fps
        return StepDevice(capacity_fps).forward(rate_fps, frames, rng)


@dataclass(frozen=True)
class RandomLossDevice:
    """Loses each frame with ``probability`` (0 < p < 1), at any rate."""

    device: Device
    probability: float

    def forward(self, rate_fps: float, frames: int, rng: random.Random) -> int:
        """What ``device`` forwards, less random losses."""
        received = self.device.forward(rate_fps, frames, rng)
        return received - self._losses(received, rng)

    def _losses(self, frames: int, rng: random.Random) -> int:
        # Gaps between losses are geometric: the effort is per loss, not per frame.
        per_frame = math.log1p(-self.probability)
        losses = 0
        position = int(math.log(1 - rng.random()) / per_frame)
        while position < frames:
            losses += 1
            position += 1 + int(math.log(1 - rng.random()) / per_frame)
        return losses


@dataclass
class DyingDevice:
    """Works as ``device`` for ``trials_left`` trials, then forwards nothing."""

    device: Device
    trials_left: int

    def forward(self, rate_fps: float, frames: int, rng: random.Random) -> int:
        """What ``device`` forwards while it lives."""
        if self.trials_left <= 0:
            return 0
        self.trials_left -= 1
        return self.device.forward(rate_fps, frames, rng)


@dataclass(frozen=True)
class SimulatedTester:
    """A tester with a limit of its own that wanders by ``noise``, and bad moments.

    ``flaky`` is the probability that a trial is invalid for no reason of the DUT's.
    """

    limit_fps: float = math.inf
    noise: float = 0.0
    flaky: float = 0.0

    def bench(self, device: Device, seed: int = 1) -> Measure:
        """This tester connected to ``device``: what a search calls."""
        rng = random.Random(seed)  # noqa: S311 - repeatable noise, not secrets

        def measure(rate_fps: int, duration_s: float) -> Outcome:
            limit_fps = self.limit_fps * (1 + self.noise * rng.uniform(-1, 1))
            if rate_fps > limit_fps:
                return Outcome("invalid", offered_fps=limit_fps)
            if rng.random() < self.flaky:
                return Outcome("invalid")
            frames = max(1, round(rate_fps * duration_s))
            received = device.forward(rate_fps, frames, rng)
            return Outcome("pass" if received == frames else "fail")

        return measure
