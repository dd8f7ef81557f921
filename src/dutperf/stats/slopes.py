"""Does a series of a long run drift: how fast, how surely, and where does it jump?

Values in a row are alike, so they are no independent evidence. The series is cut into
up to 24 parts of as many values; a part counts by its median (or mean) at its mean
time, and a straight line is laid through the parts. The interval of its slope is
Student's; where what the parts differ from the line is correlated from part to part,
there are fewer of them: n (1 - r) / (1 + r), as of a mean of values each of which
depends on the one before. r is without its bias (of n values about a line it is found
too low by (2 + 4 r) / n) and at least 0. What a value is rounded by widens the interval
by as much as it may turn the line.

Where steps fit the parts better than the line, by Schwarz's criterion, they are told.
How often that tells a drift where there is none is in docs/soak.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from dutperf.stats.levels import level_starts
from dutperf.stats.order import median, student

PARTS = 24
FEWEST = 10
"""Values: a line through fewer has an interval that says nothing."""
_MOST_CORRELATION = 0.9
_FEWEST_FREE = 2
_MOSTLY = 0.7
"""Of Student's t beside the interval: by simulation 4 of 5 such runs tell the slope, in
which intervals are not as wide as in this one."""
_EQUAL = 1e-12


@dataclass(frozen=True)
class Step:
    """A new level from ``at`` on; the medians before and after it."""

    at: float
    before: float
    after: float


@dataclass(frozen=True)
class Drift:
    """The slope in units of values per unit of time, and its interval.

    Attributes:
        seen_from: a slope so large would be told in four of five such series.
        steps: of a series that is steps rather than a line.
    """

    slope: float
    lower: float
    upper: float
    seen_from: float
    steps: tuple[Step, ...] = ()


def drift(
    times: Sequence[float],
    values: Sequence[float],
    confidence: float,
    *,
    roundings: Sequence[float] = (),
    middle: Callable[[Sequence[float]], float] = median,
) -> Drift | None:
    """The drift of ``values``; None: there are too few of them.

    Args:
        times: rising.
        values: finite, at these times.
        confidence: of the interval, below 1.
        roundings: how much too large each value is at most; empty: they are exact.
        middle: what a part counts by: its median, or of rare events their mean.
    """
    number = len(values)
    if number < FEWEST:
        return None
    count = min(PARTS, number)
    ends = [number * part // count for part in range(count + 1)]
    parts = list(pairwise(ends))
    x = [fmean(times[a:b]) for a, b in parts]
    y = [middle(values[a:b]) for a, b in parts]
    rounded = [median(roundings[a:b]) for a, b in parts] if roundings else []
    about = fmean(x)
    away = [each - about for each in x]
    squares = math.fsum(each * each for each in away)
    level = y[0] if min(y) == max(y) else fmean(y)  # which may round
    slope = math.fsum(a * (b - level) for a, b in zip(away, y, strict=True)) / squares
    rest = [b - level - slope * a for a, b in zip(away, y, strict=True)]
    error = math.fsum(each * each for each in rest)
    free = max(_FEWEST_FREE, math.floor(count / _inflation(rest, error)) - 2)
    sure = math.sqrt(error / free / squares)
    turned = (
        math.fsum(abs(a) * r for a, r in zip(away, rounded, strict=False)) / 2 / squares
    )
    wide = student(free, confidence) * sure + turned
    steps = _steps(y, error, [times[a] for a, _ in parts])
    seen_from = wide + student(free, _MOSTLY) * sure
    return Drift(slope, slope - wide, slope + wide, seen_from, tuple(steps))


def _inflation(rest: Sequence[float], error: float) -> float:
    """How many parts in a row say as much as one; 1 or more."""
    if not error:
        return 1.0
    count = len(rest)
    found = math.fsum(a * b for a, b in pairwise(rest)) / error
    r = min(max(0.0, (found + 2 / count) / (1 - 4 / count)), _MOST_CORRELATION)
    return (1 + r) / (1 - r)


def _steps(y: Sequence[float], error: float, begins: Sequence[float]) -> list[Step]:
    """Those of ``y``, if they fit it better than a line with this squared ``error``."""
    starts = level_starts(y)
    if not starts:
        return []
    levels = list(pairwise([0, *starts, len(y)]))
    left = math.fsum((v - fmean(y[a:b])) ** 2 for a, b in levels for v in y[a:b])
    if _criterion(left, y, 2 * len(levels)) >= _criterion(error, y, 3):
        return []
    medians = [median(y[a:b]) for a, b in levels]
    told = zip(starts, pairwise(medians), strict=True)
    return [Step(begins[start], *ends) for start, ends in told]


def _criterion(error: float, y: Sequence[float], parameters: int) -> float:
    """Schwarz's, of a model with so many; the less the better."""
    least = _EQUAL * max(map(abs, y)) ** 2 * len(y)
    return len(y) * math.log(max(error, least, 5e-324)) + parameters * math.log(len(y))
