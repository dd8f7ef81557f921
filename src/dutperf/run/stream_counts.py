"""What a stream did, added up piece by piece for each direction.

A piece that was aborted has no result and is not counted. Delays are merged by the
buckets of their histograms; the least and the greatest one are exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dutperf.procedures.loss_criterion import own_drops
from dutperf.protocol.base import DirectionName
from dutperf.protocol.result_messages import DirectionResult, TrialResult
from dutperf.results.device_words import icmp_counts
from dutperf.results.trial_record import TrialRecord
from dutperf.stats.order import merged_histogram, percentile_bounds

_LOST_IN_A_ROW = 2
"""Frames: what ends a piece is an interruption only if it is more than this."""

Bucket = tuple[int, int, int]


@dataclass(frozen=True)
class Delays:
    """Of received frames, in nanoseconds; median and 99.9 % to within their buckets."""

    min_ns: int
    median_ns: int
    p999_ns: int
    max_ns: int

    @property
    def each(self) -> tuple[int, int, int, int]:
        """In rising order."""
        return (self.min_ns, self.median_ns, self.p999_ns, self.max_ns)


@dataclass
class DirectionCounts:
    """One direction, of a piece or of several.

    late: received, but slower than a frame timeout.
    tester_dropped: that the tester may have dropped itself, of those lost.
    damaged: arrived damaged, of those lost.
    foreign: not this tester's frames, at the ports that receive the direction.
    icmp: of these, ICMP messages, by what they say.
    stale: arrived after the wait for late frames of their piece, of those lost.
    lag_ns: the sender's largest.
    """

    name: DirectionName
    intended_fps: int = 0
    offered_fps: float = 0.0
    sent: int = 0
    received: int = 0
    lost: int = 0
    late: int = 0
    tester_dropped: int = 0
    damaged: int = 0
    foreign: int = 0
    icmp: Counter[str] = field(default_factory=Counter)
    stale: int = 0
    reordered: int = 0
    duplicate: int = 0
    lag_ns: int = 0
    _buckets: list[Bucket] = field(default_factory=list)
    _min_ns: int | None = None
    _max_ns: int | None = None

    @classmethod
    def of(cls, result: TrialResult, direction: DirectionResult) -> DirectionCounts:
        """Those of one piece."""
        streams = direction.streams
        side = "right" if direction.name == "forward" else "left"
        ports = [port for port in result.ports if port.name == side]
        lost = sum(s.lost for s in streams)
        delays = [s.delay_ns for s in streams if s.delay_ns.count]
        return cls(
            name=direction.name,
            intended_fps=direction.intended_rate_fps,
            offered_fps=direction.offered_rate_fps,
            sent=sum(s.sent for s in streams),
            received=sum(s.received for s in streams),
            lost=lost,
            late=sum(s.late for s in streams),
            tester_dropped=min(lost, own_drops(result, direction)),
            damaged=sum(s.corrupt for s in streams),
            foreign=sum(port.foreign for port in ports),
            icmp=Counter(icmp_counts(each for port in ports for each in port.icmp)),
            stale=sum(port.stale for port in ports),
            reordered=sum(s.reordered for s in streams),
            duplicate=sum(s.duplicate for s in streams),
            lag_ns=direction.lag_ns.max or 0,
            _buckets=merged_histogram(d.buckets for d in delays),
            _min_ns=_least(d.min for d in delays),
            _max_ns=_greatest(d.max for d in delays),
        )

    def add(self, piece: DirectionCounts) -> None:
        """Another piece; the rates are those of the last one."""
        self.intended_fps, self.offered_fps = piece.intended_fps, piece.offered_fps
        for key in _SUMS:
            setattr(self, key, getattr(self, key) + getattr(piece, key))
        self.icmp.update(piece.icmp)
        self.lag_ns = max(self.lag_ns, piece.lag_ns)
        self._buckets = merged_histogram([self._buckets, piece._buckets])
        self._min_ns = _least((self._min_ns, piece._min_ns))
        self._max_ns = _greatest((self._max_ns, piece._max_ns))

    @property
    def by_device(self) -> int:
        """Lost, and not by the tester."""
        return self.lost - self.tester_dropped

    @property
    def delays(self) -> Delays | None:
        """None: nothing arrived, or nothing that had a delay."""
        if not self._buckets or self._min_ns is None or self._max_ns is None:
            return None
        # The upper end of the last bucket may lie above the greatest delay.
        median_ns, p999_ns = (
            min(percentile_bounds(self._buckets, *share)[1], self._max_ns)
            for share in ((1, 2), (999, 1000))
        )
        return Delays(self._min_ns, median_ns, p999_ns, self._max_ns)


_SUMS = (
    *("sent", "received", "lost", "late", "tester_dropped", "damaged", "foreign"),
    *("stale", "reordered", "duplicate"),
)


@dataclass
class LongestSilence:
    """The longest time in which nothing arrived though frames were due.

    One that lasts from piece to piece has what is between them in it. ``open``: it had
    not ended when the stream did, or was paused: it is that long, or longer.
    """

    longest_ns: int = 0
    open: bool = False
    _since_ns: int | None = None
    _until_ns: int = 0

    def add(self, result: TrialResult, direction: DirectionResult) -> None:
        """Another piece."""
        begin_ns, found = result.begin_unix_ns, direction.longest_silence
        if begin_ns is None or found is None:
            self.interrupt()
            return
        each_ns = 10**9 // max(direction.intended_rate_fps, 1)
        since_ns, self._since_ns = self._since_ns, None
        starts_ns = begin_ns + found.begin_ns
        # The first frames of the two directions are not due at the same time.
        from_first = found.begin_ns < each_ns and _begins_lost(direction)
        if since_ns is not None and from_first:
            starts_ns = since_ns
        elif since_ns is not None:
            self._note(self._until_ns - since_ns, still=False)
        if found.end_ns is not None:
            self._note(begin_ns + found.end_ns - starts_ns, still=False)
            return
        self._until_ns = begin_ns + direction.sending_ns
        self._note(self._until_ns - starts_ns, still=True)
        if self._until_ns - starts_ns > _LOST_IN_A_ROW * each_ns:
            self._since_ns = starts_ns

    def interrupt(self) -> None:
        """Nothing is sent from now on: nobody knows when the silence would end."""
        self._since_ns = None

    def _note(self, length_ns: int, *, still: bool) -> None:
        if length_ns >= self.longest_ns:
            self.longest_ns, self.open = length_ns, still


def _begins_lost(direction: DirectionResult) -> bool:
    """Whether its first frame is among those that were lost in a row for longest."""
    if not sum(s.received for s in direction.streams):
        return True
    runs = [s.longest_loss for s in direction.streams if s.longest_loss]
    return any(run.first == 0 for run in runs)


@dataclass
class RateUsed:
    """Pieces in a row at one rate: for how long they sent, and how much was lost."""

    rate_fps: int
    sending_s: float = 0.0
    sent: int = 0
    lost: int = 0
    invalid: int = 0
    pieces: int = 0

    def add(self, record: TrialRecord) -> None:
        """Another one."""
        streams = [s for d in record.result.directions for s in d.streams]
        self.sending_s += sending_s(record)
        self.sent += sum(s.sent for s in streams)
        self.lost += sum(s.lost for s in streams)
        self.invalid += record.result.verdict.kind == "invalid"
        self.pieces += 1


class StreamCounts:
    """A stream from its begin on, the last piece alone, and since it was cleared."""

    def __init__(self) -> None:
        self.pieces = 0
        self.invalid = 0
        self.sending_s = 0.0
        self.rates: list[RateUsed] = []
        self.reasons: dict[str, int] = {}
        """Why pieces were invalid -> how many."""
        self.last: TrialRecord | None = None
        self.of_last: list[DirectionCounts] = []
        self.shown: dict[DirectionName, DirectionCounts] = {}
        """Since ``clear``."""
        self.all: dict[DirectionName, DirectionCounts] = {}
        self.silences: dict[DirectionName, LongestSilence] = {}

    def add(self, record: TrialRecord) -> None:
        """A piece that has ended."""
        result = record.result
        self.last = record
        self.of_last = [DirectionCounts.of(result, d) for d in result.directions]
        for counts in self.of_last:
            for held in (self.shown, self.all):
                held.setdefault(counts.name, DirectionCounts(counts.name)).add(counts)
        for direction in result.directions:
            silence = self.silences.setdefault(direction.name, LongestSilence())
            silence.add(result, direction)
        self.pieces += 1
        self.sending_s += sending_s(record)
        if result.verdict.kind == "invalid":
            self.invalid += 1
            for code in dict.fromkeys(r.code for r in result.verdict.reasons[:1]):
                self.reasons[code] = self.reasons.get(code, 0) + 1
        if not self.rates or self.rates[-1].rate_fps != record.load_fps:
            self.rates.append(RateUsed(record.load_fps))
        self.rates[-1].add(record)

    def clear(self) -> None:
        """Begin to count anew what is shown; the summary has all."""
        self.shown = {}

    def interrupt(self) -> None:
        """The stream was paused."""
        for silence in self.silences.values():
            silence.interrupt()

    def summary(self) -> dict[str, Any]:
        """For programs: see docs/json.md."""
        return {
            "pieces": self.pieces,
            "invalid_pieces": self.invalid,
            "invalid_because": self.reasons,
            "sending_s": round(self.sending_s, 6),
            "rates": [
                {
                    "rate_fps": used.rate_fps,
                    "pieces": used.pieces,
                    "invalid_pieces": used.invalid,
                    "sending_s": round(used.sending_s, 6),
                    "sent": used.sent,
                    "lost": used.lost,
                }
                for used in self.rates
            ],
            "directions": [self._direction(counts) for counts in self.all.values()],
        }

    def _direction(self, counts: DirectionCounts) -> dict[str, Any]:
        silence, delays = self.silences[counts.name], counts.delays
        keys = ("min_ns", "median_ns", "p999_ns", "max_ns")
        return {
            "name": counts.name,
            **{key: getattr(counts, key) for key in _SUMS},
            "lag_ns": counts.lag_ns,
            "delay": dict(zip(keys, delays.each, strict=True)) if delays else None,
            "longest_silence_ns": silence.longest_ns,
            "longest_silence_bound": "lower" if silence.open else None,
        }


def sending_s(record: TrialRecord) -> float:
    """As long as was planned, unless the sender gave up, or nothing was sent."""
    longest_ns = max(d.sending_ns for d in record.result.directions)
    planned_ns = record.request.duration_ns
    gave_up = any(
        s.sent < s.intended for d in record.result.directions for s in d.streams
    )
    return (longest_ns if gave_up else planned_ns) / 1e9


def _least(values: Iterable[int | None]) -> int | None:
    return _pick(min, values)


def _greatest(values: Iterable[int | None]) -> int | None:
    return _pick(max, values)


def _pick(
    pick: Callable[[Sequence[int]], int], values: Iterable[int | None]
) -> int | None:
    known = [value for value in values if value is not None]
    return pick(known) if known else None
