"""When simulated frames are due, and devices that look at each of them.

Slow and obvious: a list has when every frame of a direction is due, and a device says
of each whether it arrives. For trials of some thousand frames.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dutperf.protocol.result_messages import Silence
from dutperf.protocol.stream_messages import MAX_FRAMES, DirectionRequest, RateStep

# When frames are due: evenly, or by the steps of a load over time.


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


# What becomes of a load over time.


Arrivals = Callable[[Sequence[int]], bytearray]
"""When each frame of a direction is due, in ns -> 1 for each that arrives."""


def queueing(queue: int, service_fps: int) -> Arrivals:
    """Serves a frame after the other; ``queue`` wait, what comes then is lost."""

    def forward(due_ns: Sequence[int]) -> bytearray:
        arrived, leaves_ns, waiting = bytearray(), 0, deque[int]()
        for at_ns in due_ns:
            while waiting and waiting[0] <= at_ns:
                waiting.popleft()
            if len(waiting) <= queue:
                leaves_ns = max(leaves_ns, at_ns) + 10**9 // service_fps
                waiting.append(leaves_ns)
                arrived.append(1)
            else:
                arrived.append(0)
        return arrived

    return forward


def absent(*spans_ns: tuple[int, int], device: Arrivals | None = None) -> Arrivals:
    """Loses what is due in one of the spans; of the rest what ``device`` loses."""

    def forward(due_ns: Sequence[int]) -> bytearray:
        arrived = device(due_ns) if device else bytearray(b"\1" * len(due_ns))
        for place, at_ns in enumerate(due_ns):
            if any(begin_ns <= at_ns < end_ns for begin_ns, end_ns in spans_ns):
                arrived[place] = 0
        return arrived

    return forward


def each_step(
    dut: Callable[[float, int], int], direction: DirectionRequest, frames: int
) -> bytearray:
    """What arrives of the first ``frames`` of a load whose steps ``dut`` knows not."""
    arrived = bytearray()
    for step in rounds(direction):
        sent = min(step.frames, frames - len(arrived))
        forwarded = dut(float(step.rate_fps), sent) if sent else 0
        arrived += b"\1" * forwarded + bytes(sent - forwarded)
        if len(arrived) == frames:
            break
    return arrived


def due_times(direction: DirectionRequest, frames: int) -> list[int]:
    """Of the first ``frames`` of a direction, whatever their stream, in ns."""
    due_ns: list[int] = []
    begin_ns = 0
    for step in rounds(direction):
        count = min(step.frames, frames - len(due_ns))
        due_ns += [begin_ns + k * 10**9 // step.rate_fps for k in range(count)]
        begin_ns += step.duration_ns
        if len(due_ns) == frames:
            break
    return due_ns


def of_stream(
    direction: DirectionRequest, stream: int, arrived: bytearray
) -> bytearray:
    """Which of the stream's frames arrive, by those of the direction."""
    if len(direction.streams) == 1:
        return bytearray(arrived)
    counts = (direction.frames_of(stream, n) for n in range(len(arrived) + 1))
    pairs = zip(arrived, pairwise(counts), strict=True)
    return bytearray(each for each, (before, after) in pairs if after > before)


def is_of(direction: DirectionRequest, stream: int, frame: int) -> bool:
    """Whether frame number ``frame`` of the direction is one of the stream's."""
    return direction.frames_of(stream, frame + 1) > direction.frames_of(stream, frame)


def longest_silence(arrived_ns: Sequence[int], end_ns: int) -> Silence:
    """Between frames that arrived at these times; ``end_ns``: of the trial."""
    times_ns = [0, *sorted(arrived_ns), end_ns]
    begin_ns, until_ns = max(pairwise(times_ns), key=lambda pair: pair[1] - pair[0])
    last = begin_ns == times_ns[-2]
    return Silence(begin_ns=begin_ns, end_ns=None if last else until_ns)
