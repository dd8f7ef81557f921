"""A simulated tester and devices with a limit: seeded, no time passes.

A search is run on them as on a real device: the dry run's estimate does, and tests.
A device is anything with ``forward``.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Protocol

from dutperf.search import Outcome

_PROGRESS_S = 0.5


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
class SimulatedTester:
    """A tester with a limit of its own that wanders by ``noise``, and bad moments.

    ``flaky`` is the probability that a trial is invalid for no reason of the DUT's.
    With ``stops_at_loss`` a trial ends when the first loss is seen. ``waits_s`` is what
    RFC 2544 23 adds to each trial: 2 s after learning, 2 s for late frames, 5 s to
    restabilise. Others have the device's CPU for ``taken_s`` of each trial: it costs
    no frame, but a loss of no more than come in that time is explained by it, and the
    trial repeated: ``attempts`` in all (``procedures.taken_cpu``).
    """

    limit_fps: float = math.inf
    noise: float = 0.0
    flaky: float = 0.0
    stops_at_loss: bool = False
    waits_s: float = 9.0
    taken_s: float = 0.0
    attempts: int = 3

    def bench(self, device: Device, seed: int | str = 1) -> Bench:
        """This tester connected to ``device``: what a search calls."""
        rng = random.Random(seed)  # noqa: S311 - repeatable noise, not secrets
        return Bench(self, device, rng)


@dataclass
class Bench:
    """A tester at work; counts ``trials`` and the time they would have taken."""

    tester: SimulatedTester
    device: Device
    rng: random.Random
    trials: int = 0
    elapsed_s: float = 0.0
    explained: int = 0
    """Losses in a row that did not count."""

    def __call__(self, rate_fps: int, duration_s: float) -> Outcome:
        """One trial: a ``Measure``."""
        self.trials += 1
        tester, rng = self.tester, self.rng
        limit_fps = tester.limit_fps * (1 + tester.noise * rng.uniform(-1, 1))
        self.elapsed_s += tester.waits_s + duration_s
        if rate_fps > limit_fps:
            return Outcome("invalid", offered_fps=limit_fps)
        if rng.random() < tester.flaky:
            return Outcome("invalid")
        frames = max(1, round(rate_fps * duration_s))
        lost = frames - self.device.forward(rate_fps, frames, rng)
        if lost and tester.stops_at_loss:
            self.elapsed_s -= duration_s - _first_loss_seen_s(duration_s, lost)
        if 0 < lost <= tester.taken_s * rate_fps:
            self.explained += 1
            if self.explained < tester.attempts:
                return Outcome("invalid")
        self.explained = 0
        return Outcome("fail" if lost else "pass", loss_ratio=lost / frames)


def _first_loss_seen_s(duration_s: float, lost: int) -> float:
    """When the engine, twice a second, tells of losses spread over the trial."""
    first_s = duration_s / (lost + 1)
    return min(duration_s, math.ceil(first_s / _PROGRESS_S) * _PROGRESS_S)
