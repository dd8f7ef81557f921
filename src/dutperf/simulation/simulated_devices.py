"""Simulated devices: which frames they forward, how long each takes, what one sees.

A device is two functions: how many of a direction's frames it forwards (the first
ones: it loses the last), and how long the frames of a stream take. Delays repeat after
some frames, so that every count of a trial of any length follows from arithmetic and
no frame is ever looked at. Frames take less than the trial's residual wait.

A trial with ``stop_when_lost`` ends when the engine would end it, if the losses are
spread evenly over the trial. In what such a trial records, too, the last are lost.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from dutperf.protocol.result_messages import (
    Connections,
    Damage,
    Histogram,
    Inspected,
    LossRun,
    NamedConnection,
    Series,
    SlowerThan,
    StreamResult,
    TagResult,
)
from dutperf.protocol.stream_messages import DirectionRequest, StreamRequest
from dutperf.protocol.stream_parts import MAX_LOST_RANGES, Survival
from dutperf.protocol.trial_messages import Record, TagPlan, TrialRequest, tagged_frames
from dutperf.simulation.loads_over_time import Schedule

Dut = Callable[[float, int], int]
"""(rate in frames per second, frames sent) -> frames forwarded, one direction."""

COARSE_BITS = 5
"""Leading bits of a value after the first that choose its bucket: 3.2 % wide."""
FINE_BITS = 10

CHECK_NS = 100_000_000
"""How often it is looked whether a trial is lost."""
PATIENCE_NS = 500_000_000
"""A frame that takes longer seems lost."""

_DRAWS = 997
"""After so many frames random delays repeat: a prime, so in step with nothing."""


WHOLE = Damage()


@dataclass(frozen=True)
class Pattern:
    """Frame i of a stream takes ``delays_ns[i % len]``; the second half, more."""

    delays_ns: tuple[int, ...]
    jump_ns: int = 0

    def delay_ns(self, frame: int, frames: int) -> int:
        """How long frame number ``frame`` of ``frames`` takes."""
        jump_ns = self.jump_ns if frame >= frames // 2 else 0
        return self.delays_ns[frame % len(self.delays_ns)] + jump_ns

    def counts(self, received: int, frames: int) -> Counter[int]:
        """Delay -> how many of the first ``received`` frames take it."""
        found: Counter[int] = Counter()
        for first, end, jump_ns in self._parts(received, frames):
            for place, delay_ns in enumerate(self.delays_ns):
                found[delay_ns + jump_ns] += self._times(place, first, end)
        return +found

    def changes(self, received: int, frames: int) -> Counter[int]:
        """Delay less the one of the frame before -> how many times, from frame 1 on."""
        found: Counter[int] = Counter()
        for first, end, _ in self._parts(received, frames):
            for place, delay_ns in enumerate(self.delays_ns):
                change_ns = delay_ns - self.delays_ns[place - 1]
                found[change_ns] += self._times(place, first + 1, end)
        half = frames // 2
        if 0 < half < received:
            before_ns = self.delay_ns(half - 1, frames)
            found[self.delay_ns(half, frames) - before_ns] += 1
        return +found

    def _parts(self, received: int, frames: int) -> Iterator[tuple[int, int, int]]:
        half = min(frames // 2, received)
        yield 0, half, 0
        yield half, received, self.jump_ns

    def _times(self, place: int, first: int, end: int) -> int:
        """How many i from ``first`` to before ``end`` have i % len == ``place``."""
        if end <= first:
            return 0
        period = len(self.delays_ns)
        return (end - 1 - place) // period - (first - 1 - place) // period


Damages = Callable[[int], Damage]
"""How many of so many forwarded frames are damaged on the way."""
Delays = Callable[[int], Pattern]
"""Number of the trial, from 1 -> how long the frames of each stream take."""


# --- devices --------------------------------------------------------------------------


def perfect() -> Dut:
    """A wire: forwards everything."""
    return lambda _rate_fps, frames: frames


def step(limit_fps: float) -> Dut:
    """Forwards everything up to ``limit_fps`` and that many above."""

    def forward(rate_fps: float, frames: int) -> int:
        return frames if rate_fps <= limit_fps else int(frames * limit_fps / rate_fps)

    return forward


def buffered(queue: int, service_fps: int) -> Dut:
    """One frame in service, ``queue`` that wait: what else comes is lost."""

    def forward(rate_fps: float, frames: int) -> int:
        if service_fps >= rate_fps:
            return frames
        last_s = (frames - 1) / rate_fps
        return min(frames, queue + 1 + int(last_s * service_fps))

    return forward


def noisy(limit_fps: float, *, one_in: int, seed: int = 1) -> Dut:
    """Like ``step``, but loses a single frame in about one of ``one_in`` trials."""
    draw = random.Random(seed)  # noqa: S311 - simulated noise, not a secret
    forward = step(limit_fps)

    def forward_most(rate_fps: float, frames: int) -> int:
        lost = 1 if draw.randrange(one_in) == 0 else 0
        return max(forward(rate_fps, frames) - lost, 0)

    return forward_most


def lossy(ppm: float, *, seed: int = 1) -> Dut:
    """Loses frames at random, ``ppm`` of a million on average, at any rate."""
    draw = random.Random(seed)  # noqa: S311

    def forward_some(_rate_fps: float, frames: int) -> int:
        mean = frames * ppm / 1e6
        # The gaps between lost frames are exponential; many losses are near normal.
        if mean > 1000:
            lost = round(draw.gauss(mean, mean**0.5))
        else:
            lost, passed = 0, draw.expovariate(ppm / 1e6)
            while passed < frames:
                lost, passed = lost + 1, passed + 1 + draw.expovariate(ppm / 1e6)
        return max(frames - lost, 0)

    return forward_some


def without_checksum(one_in: int) -> Damages:
    """One of ``one_in`` frames leaves with UDP checksum 0."""
    return lambda frames: Damage(checksum_zero=frames // one_in)


def fixed(delay_ns: int) -> Delays:
    """Every frame takes as long."""
    return lambda _trial: Pattern((delay_ns,))


def jitter(least_ns: int, most_ns: int, *, seed: int = 1) -> Delays:
    """Evenly random delays, others in each trial."""

    def draw(trial: int) -> Pattern:
        source = random.Random(f"{seed} {trial}")  # noqa: S311
        return Pattern(tuple(source.randint(least_ns, most_ns) for _ in range(_DRAWS)))

    return draw


def every(nth: int, more_ns: int, *, delay_ns: int = 20_000) -> Delays:
    """Every ``nth`` frame takes ``more_ns`` longer than the others."""
    pattern = Pattern((delay_ns,) * (nth - 1) + (delay_ns + more_ns,))
    return lambda _trial: pattern


def sometimes(
    one_in: int, more_ns: int, *, delay_ns: int = 20_000, seed: int = 1
) -> Delays:
    """About one of ``one_in`` frames takes ``more_ns`` longer, others in each trial."""

    def draw(trial: int) -> Pattern:
        source = random.Random(f"{seed} {trial}")  # noqa: S311
        slow = (source.randrange(one_in) == 0 for _ in range(_DRAWS))
        return Pattern(tuple(delay_ns + more_ns * is_slow for is_slow in slow))

    return draw


def rising(more_ns: float, *, delay_ns: int = 20_000, spread_ns: int = 0) -> Delays:
    """Frames take longer from trial to trial, and are evenly spread in each."""

    def draw(trial: int) -> Pattern:
        source = random.Random(trial)  # noqa: S311
        level_ns = delay_ns + round(more_ns * trial)
        spread = (source.randint(0, spread_ns) for _ in range(_DRAWS))
        return Pattern(tuple(level_ns + each for each in spread))

    return draw


def jump(more_ns: int, *, delay_ns: int = 20_000) -> Delays:
    """The second half of a stream's frames takes ``more_ns`` longer."""
    return lambda _trial: Pattern((delay_ns,), jump_ns=more_ns)


# --- the end of a trial ---------------------------------------------------------------


@dataclass(frozen=True)
class Fate:
    """What becomes of the frames that a direction sends, evenly, in ``sending_ns``.

    Damaged ones are not among those received. ``arrived``: which, where that is known.
    """

    rate_fps: float
    sent: int
    received: int
    sending_ns: int
    damaged: Damage = WHOLE
    arrived: bytearray | None = None

    def until(self, end_ns: int) -> Fate:
        """The same, of the frames that are due before ``end_ns``."""
        lost = self.sent - self.received
        sent = min(self.sent, -(-end_ns * self.sent // self.sending_ns))

        def of_sent(count: int) -> int:
            """The middle one of three stands at half of the time, the only one too."""
            return (2 * count * sent + self.sent) // max(1, 2 * self.sent)

        arrived = None if self.arrived is None else self.arrived[:sent]
        return replace(
            self,
            sent=sent,
            received=sent - of_sent(lost) if arrived is None else arrived.count(1),
            arrived=arrived,
            sending_ns=end_ns,
            damaged=self.damaged.each(of_sent),
        )


def end_of_hopeless(
    trial: TrialRequest, fates: Sequence[Fate], pattern: Pattern
) -> int | None:
    """When a trial with these fates ends before its time, in ns; None: it does not."""
    patience_ns = max(PATIENCE_NS, trial.frame_timeout_ns or 0)
    interval_ns = trial.record.series_interval_ns

    def hopeless(check: int) -> bool:
        settled_ns = max(0, check * CHECK_NS - patience_ns)
        settled_ns -= settled_ns % interval_ns
        return any(
            exceeds_tolerance(
                trial, direction, _missing(trial, direction, fate, pattern, settled_ns)
            )
            for direction, fate in zip(trial.directions, fates, strict=True)
        )

    last = trial.duration_ns // CHECK_NS - 1  # later, the trial is about to end anyway
    end_ns = CHECK_NS * bisect_left(range(last), x=True, key=hopeless)
    goes_on = any(fate.until(end_ns).sent < fate.sent for fate in fates)
    return end_ns if end_ns < last * CHECK_NS and goes_on else None


def exceeds_tolerance(
    trial: TrialRequest, direction: DirectionRequest, missing: int
) -> bool:
    """Whether so many lost and late frames fail the direction, whatever follows."""
    expected = direction.expected_among(trial.frames(direction))
    return missing * 10**9 > trial.loss_tolerance_ppb * expected


def _missing(
    trial: TrialRequest,
    direction: DirectionRequest,
    fate: Fate,
    pattern: Pattern,
    end_ns: int,
) -> int:
    """Expected frames due before ``end_ns`` that are lost, late or seem so."""
    some = fate.until(end_ns)
    slow_ns = trial.frame_timeout_ns or PATIENCE_NS
    lost = direction.expected_among(some.sent) - direction.expected_among(some.received)
    slow = 0
    for stream in range(len(direction.expected)):
        received = direction.frames_of(stream, some.received)
        planned = direction.frames_of(stream, fate.sent)
        slow += _slower(pattern.counts(received, planned), slow_ns)
    return lost + slow


# --- what a trial shows of them -------------------------------------------------------


@dataclass(frozen=True)
class Counts:
    """Frames of one stream: the first ``received`` of those ``sent`` arrive.

    Or others, as many: frame k of those sent arrives when ``arrived[k]`` is 1.
    """

    intended: int
    sent: int
    received: int
    arrived: bytes | bytearray | None = None
    damaged: Damage = WHOLE

    def which(self, arrived: bytearray) -> Counts:
        """The same with those arrived, of the first frames; the rest are lost."""
        rest = bytes(self.sent - len(arrived))
        return replace(self, received=arrived.count(1), arrived=arrived + rest)

    def has(self, frame: int) -> bool:
        """Whether it arrives."""
        if self.arrived is None:
            return frame < self.received
        return frame < self.sent and self.arrived[frame] == 1

    def received_of(self, first: int, end: int) -> int:
        """How many frames from ``first`` to before ``end`` arrive."""
        if self.arrived is None:
            return max(min(end, self.received) - first, 0)
        return self.arrived.count(1, first, end)

    def lost_ranges(self) -> list[tuple[int, int]]:
        """First frame and length of each run of lost ones."""
        if self.arrived is None:
            lost = self.sent - self.received
            return [(self.received, lost)] if lost else []
        runs = re.finditer(b"\0+", bytes(self.arrived[: self.sent]))
        return [(run.start(), run.end() - run.start()) for run in runs]


def stream_result(
    trial: TrialRequest,
    stream: StreamRequest,
    counts: Counts,
    pattern: Pattern,
    tags: TagPlan | None,
    schedule: Schedule,
) -> StreamResult:
    """Everything that is recorded of one stream; its parts agree with each other."""
    record = trial.record
    bits = FINE_BITS if record.fine_delays else COARSE_BITS
    intended, received = counts.intended, counts.received
    delays = pattern.counts(received, intended)
    lost = counts.sent - received
    ranges = counts.lost_ranges()
    longest = max(ranges, key=lambda run: run[1], default=None)
    return StreamResult(
        id=stream.id,
        name="background" if stream.name == "background" else "foreground",
        intended=intended,
        sent=counts.sent,
        received=received,
        lost=lost,
        duplicate=0,
        reordered=0,
        late=_slower(delays, trial.frame_timeout_ns) if trial.frame_timeout_ns else 0,
        slower=[
            SlowerThan(timeout_ns=timeout_ns, frames=_slower(delays, timeout_ns))
            for timeout_ns in record.frame_timeouts_ns
        ],
        corrupt=counts.damaged.total,
        damaged=counts.damaged,
        inspected=_inspected(trial, stream, received),
        negative_delays=0,
        window_frames=None,
        unplaced=0,
        delay_ns=histogram(delays.items(), bits, around_least=True),
        ipdv_ns=histogram(pattern.changes(received, intended).items(), bits)
        if record.ipdv
        else None,
        tags=_tags(trial, stream.id, counts, pattern, tags) if tags else None,
        series=_series(trial.duration_ns, record, counts, schedule),
        longest_loss=_loss_run(longest, counts.sent, schedule) if longest else None,
        last_loss=_loss_run(ranges[-1], counts.sent, schedule) if ranges else None,
        loss_runs=histogram(Counter(n for _, n in ranges).items(), COARSE_BITS),
        survival=_survival(record.survival_blocks, counts, ranges)
        if record.survival_blocks
        else None,
        connections=_connections(stream.tuples.count, record.connection_blocks, counts)
        if record.connection_blocks and stream.tuples
        else None,
    )


def _inspected(trial: TrialRequest, stream: StreamRequest, received: int) -> Inspected:
    """Simulated devices alter nothing."""
    if not received or not trial.inspect_every:
        return Inspected(frames=0)
    frames = -(-received // trial.inspect_every)
    ttl = stream.received_ttl or stream.ttl
    return Inspected(frames=frames, least_ttl=ttl, most_ttl=ttl)


def histogram(
    counts: Iterable[tuple[int, int]], bits: int, *, around_least: bool = False
) -> Histogram:
    """A histogram of ``(value, times)`` as the engine makes it; the ends are exact.

    ``around_least``: wide by the distance from the smallest, as delays are whose
    smallest is among the first.
    """
    present = {value: times for value, times in counts if times}
    if not present:
        return Histogram(count=0, min=None, max=None, buckets=[])
    least, most = min(present), max(present)
    origin = least if around_least else 0
    buckets: Counter[tuple[int, int]] = Counter()
    for value, times in present.items():
        lowest, highest = bucket(value - origin, bits)
        buckets[origin + lowest, origin + highest] += times
    return Histogram(
        count=sum(present.values()),
        min=least,
        max=most,
        buckets=[
            (max(lowest, least), min(highest, most), times)
            for (lowest, highest), times in sorted(buckets.items())
        ],
    )


def bucket(value: int, bits: int) -> tuple[int, int]:
    """Ends of the bucket that ``value`` is in, whose width is 2^-bits of it at most."""
    if value < 0:
        lowest, highest = bucket(-value, bits)
        return -highest, -lowest
    shift = max(value.bit_length() - 1 - bits, 0)
    lowest = value >> shift << shift
    return lowest, lowest + (1 << shift) - 1


def _slower(delays: Counter[int], timeout_ns: int) -> int:
    return sum(times for delay_ns, times in delays.items() if delay_ns > timeout_ns)


def _tags(
    trial: TrialRequest, stream: int, counts: Counts, pattern: Pattern, tags: TagPlan
) -> TagResult:
    delays_ns = [
        pattern.delay_ns(frame, counts.intended) if counts.has(frame) else None
        for frame in tagged_frames(
            tags,
            frames=counts.intended,
            duration_ns=trial.duration_ns,
            seed=trial.seed,
            stream=stream,
        )
        if frame < counts.sent
    ]
    return TagResult(lost=delays_ns.count(None), delays_ns=delays_ns)


def _loss_run(run: tuple[int, int], sent: int, schedule: Schedule) -> LossRun:
    first, frames = run
    end = first + frames
    return LossRun(
        first=first,
        frames=frames,
        begin_ns=schedule.due_ns(first),
        last_ns=schedule.due_ns(end - 1),
        end_ns=schedule.due_ns(end) if end < sent else None,
    )


def _series(
    duration_ns: int, record: Record, counts: Counts, schedule: Schedule
) -> Series:
    interval_ns = record.series_interval_ns
    until = [
        min(counts.sent, schedule.before(j * interval_ns))
        for j in range(-(-duration_ns // interval_ns) + 1)
    ]
    return Series(
        interval_ns=interval_ns,
        sent=[b - a for a, b in pairwise(until)],
        received=[counts.received_of(a, b) for a, b in pairwise(until)],
    )


def _survival(blocks: int, counts: Counts, ranges: list[tuple[int, int]]) -> Survival:
    size = max(-(-counts.intended // blocks), 1)
    firsts = range(0, counts.intended, size)
    return Survival(
        block_frames=size,
        received=[counts.received_of(a, min(a + size, counts.sent)) for a in firsts],
        lost_ranges=ranges[:MAX_LOST_RANGES],
        more_ranges=max(len(ranges) - MAX_LOST_RANGES, 0),
    )


_TENTHS = 10
_MOST_NAMED = 64


def _connections(number: int, blocks: int, counts: Counts) -> Connections:
    """What became of each of ``number``; nothing says whose four-tuples they are."""
    size = max(-(-counts.intended // blocks), 1)
    begins = range(0, counts.intended, size)
    asked = min(number, counts.sent)
    tenths = [[0, 0, 0] for _ in range(min(_TENTHS, number))]
    out = [0] * len(begins)
    back_lost: Counter[int] = Counter()
    open_lost: Counter[int] = Counter()
    named: list[NamedConnection] = []
    last_back = 0
    for connection in range(asked):
        run = longest = 0
        frames = range(connection, counts.sent, number)
        for frame in frames:
            if not counts.has(frame):
                run += 1
                continue
            if run:
                last_back = max(last_back, frame)
                _add_out(out, frame - run * number, frame, size)
            longest, run = max(longest, run), 0
        tenth = tenths[connection * len(tenths) // asked]
        tenth[0] += 1
        if run:
            tenth[2] += 1
            open_lost[run] += 1
            _add_out(out, frames[-1] - (run - 1) * number, counts.intended, size)
            named.append(NamedConnection(connection=connection, lost=run, ends=None))
        elif longest:
            tenth[1] += 1
            back_lost[longest] += 1
    return Connections(
        tenths=[(whole, back, still) for whole, back, still in tenths],
        back_lost=histogram(back_lost.items(), FINE_BITS),
        open_lost=histogram(open_lost.items(), FINE_BITS),
        last_back=last_back or None,
        named=named[:_MOST_NAMED],
        block_frames=size,
        out=out,
    )


def _add_out(out: list[int], first: int, end: int, size: int) -> None:
    """Count a connection out at each block that begins from ``first`` to ``end``."""
    for block in range(-(-first // size), min(-(-end // size), len(out))):
        out[block] += 1
