"""Histograms as curves with few points: the tail of a distribution, and its shape.

A fine histogram has tens of thousands of buckets, a screen a thousand columns. Points
that a reader could not tell apart are left out; those of the percentiles that tables
hold, and the last ones of the tail, never are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate

from dutperf.protocol import Histogram

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
