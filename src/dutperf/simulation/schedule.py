"""When simulated frames are due: evenly, or by the steps of a load over time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from dutperf.protocol.stream_messages import MAX_FRAMES, DirectionRequest, RateStep


@dataclass(frozen=True)
class Schedule:
    """Of one stream that has so many ``frames`` in all."""

    direction: DirectionRequest
    stream: int
    frames: int
    duration_ns: int

    def due_ns(self, frame: int) -> int:
        """When number ``frame`` is due, since the trial's start."""
        if len(self.direction.streams) > 1:
            frame = self._number(frame)
        begin_ns = 0
        for step in rounds(self.direction):
            if frame < step.frames:
                return begin_ns + frame * 10**9 // step.rate_fps
            frame -= step.frames
            begin_ns += step.duration_ns
        raise AssertionError("steps have no end")

    def before(self, at_ns: int) -> int:
        """How many are due before a time."""
        if self.direction.steps:
            return bisect_left(range(self.frames), at_ns, key=self.due_ns)
        return min(self.frames, -(-at_ns * self.frames // self.duration_ns))

    def _number(self, frame: int) -> int:
        """Which frame of the direction it is."""
        return bisect_left(
            range(1, MAX_FRAMES + 1),
            frame + 1,
            key=lambda total: self.direction.frames_of(self.stream, total),
        )


def rounds(direction: DirectionRequest) -> Iterator[RateStep]:
    """Its steps, again and again."""
    whole = RateStep.model_construct(rate_fps=direction.rate_fps, duration_ns=2**60)
    while True:
        yield from direction.steps or [whole]
