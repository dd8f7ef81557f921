"""Simulated devices that are difficult to search: noisy, dying, with a memory.

Each is a ``Device`` of ``dutperf.simulation.simulated_tester``, whose tester meets it.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from dutperf.simulation.simulated_tester import Device, StepDevice


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
class BurstDevice:
    """Stops ``burst_s`` long now and then: ``every_s`` apart in the mean (Poisson)."""

    device: Device
    every_s: float
    burst_s: float

    def forward(self, rate_fps: float, frames: int, rng: random.Random) -> int:
        """What ``device`` forwards, less the frames of the bursts in the trial."""
        received = self.device.forward(rate_fps, frames, rng)
        left_s = frames / rate_fps
        while (left_s := left_s - rng.expovariate(1 / self.every_s)) > 0:
            received -= math.ceil(rate_fps * min(left_s, self.burst_s))
        return max(0, received)


@dataclass
class HysteresisDevice:
    """Overloaded once, it forwards ``share`` of its capacity until it got less."""

    capacity_fps: float
    share: float
    overloaded: bool = False

    def forward(self, rate_fps: float, frames: int, rng: random.Random) -> int:
        """As a StepDevice with the capacity that this state has."""
        capacity_fps = self.capacity_fps * (self.share if self.overloaded else 1)
        self.overloaded = rate_fps > capacity_fps
        return StepDevice(capacity_fps).forward(rate_fps, frames, rng)


@dataclass
class WarmupDevice:
    """Begins ``cold`` (0.2: 20 %) below its capacity; that fades in ``warm_s``."""

    capacity_fps: float
    cold: float
    warm_s: float
    worked_s: float = 0.0

    def forward(self, rate_fps: float, frames: int, rng: random.Random) -> int:
        """As a StepDevice with the capacity at the begin of the trial."""
        missing = self.cold * math.exp(-self.worked_s / self.warm_s)
        self.worked_s += frames / rate_fps
        return StepDevice(self.capacity_fps * (1 - missing)).forward(
            rate_fps, frames, rng
        )


@dataclass
class UnstableDevice:
    """Has another capacity (normal, deviation ``noise``) after ``hold_s`` of work."""

    capacity_fps: float
    noise: float
    hold_s: float
    left_s: float = 0.0
    now: float = 1.0

    def forward(self, rate_fps: float, frames: int, rng: random.Random) -> int:
        """As a StepDevice with the capacity of the moment."""
        if self.left_s <= 0:
            self.now, self.left_s = max(0.0, rng.gauss(1, self.noise)), self.hold_s
        self.left_s -= frames / rate_fps
        return StepDevice(self.capacity_fps * self.now).forward(rate_fps, frames, rng)


@dataclass(frozen=True)
class DuplicatingDevice:
    """Sends a ``share`` of the frames twice, which ``device`` must forward too.

    The tester counts first copies: a duplicate never stands for a lost frame.
    """

    device: Device
    share: float

    def forward(self, rate_fps: float, frames: int, rng: random.Random) -> int:
        """What of the originals ``device`` forwards beside the copies."""
        copies = int(frames * self.share)
        rate_fps *= 1 + self.share
        lost = frames + copies - self.device.forward(rate_fps, frames + copies, rng)
        return frames - math.ceil(lost * frames / (frames + copies))
