"""Delays of one trial in figures: what a table holds and what its charts mark.

Percentiles are those of RFC 2330, of histogram buckets their upper ends: a delay is
never told as shorter than it was. Tagged frames have exact delays; lost ones among
them rank as infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from dutperf.charts.text import delay_ns
from dutperf.protocol.result_messages import (
    DirectionResult,
    Histogram,
    StreamResult,
    TagResult,
    TrialResult,
)
from dutperf.results.words import rare_share_ns
from dutperf.stats import histogram_median, histogram_percentile, median, percentile


@dataclass(frozen=True)
class Spread:
    """N values in nanoseconds; infinite where so many were lost, None if N is 0."""

    count: int
    min_ns: float | None
    median_ns: float | None
    p99_ns: float | None
    p999_ns: float | None
    max_ns: float | None


@dataclass(frozen=True)
class SpreadRow:
    """One line of a table of delays."""

    direction: str
    stream: str
    spread: Spread


@dataclass(frozen=True)
class ErrorRow:
    """What the tester itself adds to the delays of one direction, and its defects."""

    direction: str
    floor_ns: int
    bound_ns: int
    usual_bound_ns: int | None
    negative: int


@dataclass(frozen=True)
class Mark:
    """A delay worth a line of its own in a chart."""

    label: str
    ns: float
    kind: Literal["tester", "delay", "limit"]

    @property
    def text(self) -> str:
        """The value, as its label says it."""
        return delay_ns(self.ns)


def spread_of(histogram: Histogram) -> Spread:
    """Order statistics of a histogram."""
    if histogram.min is None or histogram.max is None:
        return Spread(0, None, None, None, None, None)
    buckets = histogram.buckets
    return Spread(
        count=histogram.count,
        min_ns=histogram.min,
        median_ns=histogram_median(buckets),
        p99_ns=histogram_percentile(buckets, 99),
        p999_ns=histogram_percentile(buckets, 999, 1000),
        max_ns=histogram.max,
    )


def spread_of_tags(tags: TagResult) -> Spread:
    """Order statistics of tagged frames: RFC 8219 7.2 with lost ones as infinite."""
    delays = [math.inf if delay is None else delay for delay in tags.delays_ns]
    if not delays:
        return Spread(0, None, None, None, None, None)
    return Spread(
        count=len(delays),
        min_ns=min(delays),
        median_ns=median(delays),
        p99_ns=percentile(delays, 99),
        p999_ns=percentile(delays, 999, 1000),
        max_ns=max(delays),
    )


def stream_delays(result: TrialResult) -> list[SpreadRow]:
    """Delays of every stream."""
    return [
        SpreadRow(direction.name, stream.name, spread_of(stream.delay_ns))
        for direction, stream in streams_of(result)
    ]


def delay_rows(result: TrialResult) -> list[SpreadRow]:
    """Delays of every stream, those of its tagged frames in a row of their own."""
    rows = []
    for direction, stream in streams_of(result):
        rows.append(SpreadRow(direction.name, stream.name, spread_of(stream.delay_ns)))
        if stream.tags:
            name = f"{stream.name}, tagged"
            rows.append(SpreadRow(direction.name, name, spread_of_tags(stream.tags)))
    return rows


def variation_rows(result: TrialResult) -> list[SpreadRow]:
    """IPDV of every stream for which it was recorded."""
    return [
        SpreadRow(direction.name, stream.name, spread_of(stream.ipdv_ns))
        for direction, stream in streams_of(result)
        if stream.ipdv_ns
    ]


def error_rows(result: TrialResult) -> list[ErrorRow]:
    """The tester's share in the delays of each direction."""
    return [
        ErrorRow(
            direction=direction.name,
            floor_ns=direction.delay_floor_ns,
            bound_ns=direction.delay_bound_ns,
            usual_bound_ns=round(rare_share_ns(direction)) or None,
            negative=sum(stream.negative_delays for stream in direction.streams),
        )
        for direction in result.directions
    ]


def marks_of(direction: DirectionResult, timeout_ns: int | None) -> list[Mark]:
    """Floor, least, typical and worst delay of the foreground, by rising delay."""
    foreground = direction.streams[0]
    tags = foreground.tags
    spread = spread_of_tags(tags) if tags else spread_of(foreground.delay_ns)
    typical, worst = ("TL", "WCL") if tags else ("median", "99.9\u00a0%")
    least = spread_of(foreground.delay_ns).min_ns
    found = [
        ("floor", direction.delay_floor_ns, "tester"),
        ("min", least, "delay"),
        (typical, spread.median_ns, "delay"),
        (worst, spread.p999_ns, "delay"),
        ("timeout", timeout_ns, "limit"),
    ]
    marks = [
        Mark(label, ns, kind)  # type: ignore[arg-type]
        for label, ns, kind in found
        if ns is not None and math.isfinite(ns)
    ]
    return sorted(marks, key=lambda mark: mark.ns)


def streams_of(
    result: TrialResult,
) -> Iterator[tuple[DirectionResult, StreamResult]]:
    """Every stream with its direction."""
    return (
        (direction, stream)
        for direction in result.directions
        for stream in direction.streams
    )


def several_streams(results: Sequence[TrialResult]) -> bool:
    """Whether some direction had foreground and background frames."""
    return any(len(d.streams) > 1 for result in results for d in result.directions)


# Histograms as curves with few points: the tail of a distribution, and its shape.
#
# A fine histogram has tens of thousands of buckets, a screen a thousand columns. Points
# that a reader could not tell apart are left out; those of the percentiles that tables
# hold, and the last ones of the tail, never are.


MAX_POINTS = 400
_TAIL_POINTS = 40
_LAST_FRAMES = 40
_STEPS = 320
"""Length of a curve, in steps that can be told apart."""
_KEPT = ((1, 2), (99, 100), (999, 1_000), (9_999, 10_000), (99_999, 100_000))


def slower_shares(histogram: Histogram) -> list[tuple[int, float]]:
    """``(delay, share of frames that took longer)``, at most ``MAX_POINTS``.

    From the least delay, which all but its own frames exceed, to the largest, which
    none does. Between two points the share is at most that of the first.
    """
    if histogram.min is None or histogram.max is None:
        return []
    total = histogram.count
    ends = [min(high, histogram.max) for _, high, _ in histogram.buckets]
    within = list(accumulate(count for _, _, count in histogram.buckets))
    left = [total - frames for frames in within]
    kept = _kept_always(within, total)
    width = math.log10(max(histogram.max, 2) / max(histogram.min, 1)) or 1.0
    height = math.log10(max(total, 10))
    points = [(histogram.min, 1.0)]
    at = (math.log10(max(histogram.min, 1)), 0.0)
    for index, (end, frames) in enumerate(zip(ends, left, strict=True)):
        here = (math.log10(max(end, 1)), math.log10(max(frames, 0.5) / total))
        moved = abs(here[0] - at[0]) / width + abs(here[1] - at[1]) / height
        if index in kept or moved >= 2 / _STEPS:
            points.append((end, frames / total))
            at = here
    return points


def _kept_always(within: Sequence[int], total: int) -> set[int]:
    """Buckets of the percentiles that matter, and of the last few frames."""
    last = len(within) - 1
    tail = [i for i in range(len(within)) if total - within[i] <= _LAST_FRAMES]
    kept = {last, *tail[-_TAIL_POINTS:]}
    for numerator, denominator in _KEPT:
        rank = -(-numerator * total // denominator)
        kept.add(next(i for i, frames in enumerate(within) if frames >= rank))
    return kept


def shares(
    histogram: Histogram, edges: Sequence[float], scale: Callable[[float], float]
) -> list[float]:
    """Share of frames between each two of ``edges``, which are in units of ``scale``.

    A bucket that several bins touch is shared out evenly, so that wide buckets make no
    comb of high and low bins.
    """
    found = [0.0] * (len(edges) - 1)
    first, width = edges[0], edges[1] - edges[0]
    for lowest, highest, count in histogram.buckets:
        low = max((scale(lowest) - first) / width, 0.0)
        high = min((scale(highest + 1) - first) / width, float(len(found)))
        if int(low) == int(high):
            found[int(low)] += count
            continue
        for index in range(int(low), math.ceil(high)):
            part = min(high, index + 1) - max(low, index)
            found[index] += count * part / (high - low)
    return [count / histogram.count for count in found]


def even_edges(low: float, high: float, bins: int) -> list[float]:
    """``bins`` + 1 numbers from ``low`` to ``high``."""
    return [low + (high - low) * index / bins for index in range(bins + 1)]
