"""Two samples compared, no distribution assumed (Hodges, Lehmann 1963; Mann-Whitney).

How much larger samples are than those before is the median of all pairs of one of each:
of their ratios, or of their differences. If both samples came from one distribution but
for such a shift, the number of pairs below the true shift has the null distribution of
Mann and Whitney's U, which only depends on how many samples there are. So the k-th
smallest and the k-th largest pair enclose the shift with a probability that needs no
assumption; samples that are equal only make it larger.

Samples that depend on those before are worth fewer. What that makes of the variance of
U is estimated from the lag-1 correlation of their ranks (``inflation``), and the
interval is that of a U with so much more variance.

A sample may be known to lie between two values only: a search tells a rate to within
its resolution, a bound one side of it. Each end of the interval is then that of the
least favourable values, so what is not known never looks like a difference.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import Literal, NamedTuple

from dutperf.stats.order import Statistic, median

_MOST_EXACT = 40_000
"""Pairs up to which the null distribution is counted out, in a second at most."""
_LEAST_SLOPE = 0.2
"""Of what is found by what there is: of 5 values and fewer it says nothing."""
_MOST_CORRELATION = 0.95
Scale = Literal["ratio", "difference"]
Bound = Literal["lower", "upper"]


class Sample(NamedTuple):
    """``value`` as it was found, and between which values the truth lies.

    ``bound``: it is a bound: ``high`` or ``low`` is all that is known beyond it.
    """

    value: float
    low: float
    high: float
    bound: Bound | None = None

    @classmethod
    def of(cls, samples: Sequence[Sample], statistic: Statistic) -> Sample:
        """One of several, such as their median, and between what that lies.

        Args:
            samples: not empty.
            statistic: must not fall when a sample rises.
        """
        value = statistic([each.value for each in samples])
        bound: Bound | None = None
        if statistic([each.most for each in samples]) != value:
            bound = "lower"
        elif statistic([each.least for each in samples]) != value:
            bound = "upper"
        low = statistic([each.low for each in samples])
        return cls(value, low, statistic([each.high for each in samples]), bound)

    @property
    def least(self) -> float:
        """But for what was not resolved."""
        return self.low if self.bound == "upper" else self.value

    @property
    def most(self) -> float:
        """But for what was not resolved."""
        return self.high if self.bound == "lower" else self.value


class Shift(NamedTuple):
    """How the samples after stand to those before: a ratio, or a difference.

    ``estimate``: null if bounds leave it open; ``bound``: which side of it they tell.
    ``lower`` and ``upper``: of the interval, null if there are too few samples.
    """

    estimate: float | None
    bound: Bound | None
    lower: float | None
    upper: float | None


def shift(
    before: Sequence[Sample],
    after: Sequence[Sample],
    alpha: Fraction,
    scale: Scale,
    inflation: float = 1.0,
) -> Shift:
    """Hodges and Lehmann's estimate and its interval, which misses it in ``alpha``.

    Args:
        before: not empty; for ratios none is below 0.
        after: the same.
        alpha: of both sides together.
        scale: what each pair is; of ratios 0 to 0 may be any.
        inflation: of the variance of U; the interval ends at the outermost pairs at
            the widest.
    """
    scaled = _SCALES[scale]
    pairs = [(old, new) for old in before for new in after]
    estimate, bound = _estimate(
        scaled,
        [scaled.middle(new.least, old.most) for old, new in pairs],
        [scaled.middle(new.value, old.value) for old, new in pairs],
        [scaled.middle(new.most, old.least) for old, new in pairs],
    )
    k = rank(len(before), len(after), alpha)
    if k == 0:
        return Shift(estimate, bound, None, None)
    if inflation > 1:
        k = max(1, min(k, _normal_rank(len(before), len(after), alpha, inflation)))
    lows = sorted(scaled.least(new.low, old.high) for old, new in pairs)
    highs = sorted(scaled.most(new.high, old.low) for old, new in pairs)
    return Shift(estimate, bound, lows[k - 1], highs[-k])


def rank(before: int, after: int, alpha: Fraction) -> int:
    """Which pair ends the interval, counted from its side; 0: too few samples for one.

    Above ``_MOST_EXACT`` pairs by the normal distribution, whose tails are the heavier.

    Args:
        before: how many samples.
        after: the same of the others.
        alpha: how often both ends together may miss.
    """
    if before * after > _MOST_EXACT:
        return max(0, _normal_rank(before, after, alpha))
    allowed = alpha / 2 * math.comb(before + after, before)
    outside = 0
    for k, arrangements in enumerate(_arrangements(before, after)):
        outside += arrangements
        if outside > allowed:
            return k
    return before * after // 2


def _normal_rank(
    before: int, after: int, alpha: Fraction, inflation: float = 1.0
) -> int:
    variance = inflation * before * after * (before + after + 1) / 12
    z = NormalDist().inv_cdf(float(alpha / 2))
    return math.floor(before * after / 2 + z * math.sqrt(variance) + 0.5)


def inflation(before: Sequence[Sample], after: Sequence[Sample]) -> float:
    """How many times as large the variance of U is as without correlation; 1 or more.

    (1 + r) / (1 - r), as of a mean of values of which each depends on the one before.
    r is the lag-1 correlation of ranks in both samples, without its bias (of n values
    it is found too low by (1 + 4 r) / n: Marriott and Pope 1954), and a standard error
    more: what is too small to be seen in so few samples may still be there.
    """
    ranks = [_centred_ranks([each.value for each in of]) for of in (before, after)]
    squares = sum(rank * rank for of in ranks for rank in of)
    if not squares:
        return 1.0
    found = sum(a * b for of in ranks for a, b in pairwise(of)) / squares
    both = len(before) + len(after)
    unbiased = (found + 2 / both) / max(_LEAST_SLOPE, 1 - 8 / both)
    r = min(max(0.0, unbiased + 1 / math.sqrt(both)), _MOST_CORRELATION)
    return (1 + r) / (1 - r)


def _centred_ranks(values: Sequence[float]) -> list[float]:
    """How many are lower less how many are higher, of each."""
    ordered = sorted(values)
    return [
        float(bisect_left(ordered, v) + bisect_right(ordered, v) - len(ordered))
        for v in values
    ]


def least_each(alpha: Fraction) -> int:
    """As many samples before and after there is an interval for."""
    return next(n for n in itertools.count(1) if rank(n, n, alpha))


def least_beside(others: int, alpha: Fraction) -> int:
    """As many samples there is an interval for beside so many others."""
    # Two orders of all have no pair on one side.
    return next(
        n for n in itertools.count(1) if alpha * math.comb(n + others, others) >= 2
    )


@lru_cache(maxsize=64)
def _arrangements(before: int, after: int) -> list[int]:
    """In how many orders of all samples U is 0, 1, ... up to its middle.

    The coefficients of the Gaussian binomial of both numbers.
    """
    few, many = sorted((before, after))
    found = [1] + [0] * (few * many // 2)
    for n in range(1, few + 1):
        for u in range(len(found) - 1, many + n - 1, -1):
            found[u] -= found[u - many - n]
        for u in range(n, len(found)):
            found[u] += found[u - n]
    return found


class _Scale(NamedTuple):
    """``of`` a value and the one before; what may be any is ``lowest`` to ``highest``.

    It is where both are 0, or infinite; ``none``: what no change is.
    """

    of: Callable[[float, float], float | None]
    between: Callable[[float, float], float]
    lowest: float
    none: float

    def least(self, new: float, old: float) -> float:
        found = self.of(new, old)
        return self.lowest if found is None else found

    def middle(self, new: float, old: float) -> float:
        found = self.of(new, old)
        return self.none if found is None else found

    def most(self, new: float, old: float) -> float:
        found = self.of(new, old)
        return math.inf if found is None else found


def _ratio(new: float, old: float) -> float | None:
    if new == old and new in (0, math.inf):
        return None
    return new / old if old else math.inf


def _difference(new: float, old: float) -> float | None:
    return None if new == old and math.isinf(new) else new - old


_SCALES: dict[Scale, _Scale] = {
    "ratio": _Scale(_ratio, lambda a, b: math.sqrt(a) * math.sqrt(b), 0.0, 1.0),
    "difference": _Scale(_difference, lambda a, b: (a + b) / 2, -math.inf, 0.0),
}


def _estimate(
    scale: _Scale, least: list[float], values: list[float], most: list[float]
) -> tuple[float | None, Bound | None]:
    """The median of the pairs, and whether it depends on how far bounds reach."""
    low, middle, high = (_median(scale, each) for each in (least, values, most))
    if math.isnan(middle) or low != middle != high:
        return None, None
    if low == high:
        return middle, None
    return middle, "lower" if low == middle else "upper"


def _median(scale: _Scale, pairs: list[float]) -> float:
    """Between the middle two, as the scale has it; of 0 and infinite it is none."""
    ordered = sorted(pairs)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if low == high else scale.between(low, high)


# The knee of a curve: the smallest number from which on results are on its plateau.
#
# The plateau is the median of the results at the three largest numbers, if these are
# near each other. Results near it count as on it, so a curve that rises slowly has its
# knee where it comes that near, below where it ends to rise
# (``tests/stats/test_knee.py`` has by how much).


_OF_PLATEAU = 3


class CurvePoint(NamedTuple):
    """A result at ``number``; the truth is from ``low`` to ``high``, so far as known.

    ``high`` is infinite if the result is a lower bound.
    """

    number: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Knee:
    """Where a curve reaches its plateau.

    plateau: None: it has none.
    number: the smallest one from which on all results are on it; None: no knee.
    above: the largest one whose result is surely not on it; None: there is none.
    until: the smallest one from which on all results are surely on it.
    why: there is no knee, in words.
    """

    plateau: float | None = None
    number: int | None = None
    above: int | None = None
    until: int | None = None
    why: str = ""


def knee(points: Sequence[CurvePoint], within: float) -> Knee:
    """Where the curve reaches its plateau.

    Args:
        points: of rising numbers.
        within: as a part of the plateau: so near it a result is on it.
    """
    top = points[-_OF_PLATEAU:]
    if len(points) <= _OF_PLATEAU:
        return Knee(why=f"fewer than {_OF_PLATEAU + 1} results")
    if any(math.isinf(each.high) for each in top):
        return Knee(why="results at the largest numbers are lower bounds")
    plateau = median([each.value for each in top])
    if plateau <= 0:
        return Knee(why="the results at the largest numbers are 0")
    near = within * plateau
    if any(abs(each.value - plateau) > near for each in top):
        way = "rising" if top[-1].value > top[0].value else "falling"
        return Knee(why=f"still {way} at the largest number")
    on = [abs(each.value - plateau) <= near for each in points]
    first = _last_false(on) + 1
    if first == 0:
        return Knee(plateau, why="all results are on the plateau")
    from_below = points[0].value < plateau
    sure = [
        is_on
        and (each.low >= plateau - near if from_below else each.high <= plateau + near)
        for is_on, each in zip(on, points, strict=True)
    ]
    sure[-_OF_PLATEAU:] = [True] * _OF_PLATEAU
    off = [
        each.number
        for each in points[:first]
        if each.high < plateau - near or each.low > plateau + near
    ]
    return Knee(
        plateau,
        points[first].number,
        off[-1] if off else None,
        points[_last_false(sure) + 1].number,
    )


def _last_false(values: Sequence[bool]) -> int:
    return max((n for n, value in enumerate(values) if not value), default=-1)


def next_number(
    points: Sequence[CurvePoint], tried: Iterable[int], within: float, close: float
) -> int | None:
    """Where one more result tells most of the knee; None: nowhere.

    In the widest gap of the knee's interval, until its ends are ``close``, a part of
    the lower one; of a curve without a plateau below two results that may be one, or
    else between the neighbours that differ most.

    Args:
        points: of rising numbers.
        tried: these numbers, and those that gave no result.
        within: see ``knee``.
        close: how near each other is near enough.
    """
    found, known = knee(points, within), sorted(tried)
    if found.number is not None and found.until is not None:
        low = points[0].number if found.above is None else found.above
        if found.until <= low * (1 + close):
            return None
        ends = [n for n in known if low <= n <= found.until]
        return _middle(max(pairwise(ends), key=_ratio_of, default=(1, 1)))
    if found.plateau is not None or len(points) <= _OF_PLATEAU:
        return None
    *_, before, last, largest = points
    if abs(largest.value - last.value) <= within * largest.value:
        return _middle((before.number, last.number))  # a plateau has three
    changes = [(abs(b.value - a.value), a, b) for a, b in pairwise(points)]
    for change, a, b in sorted(changes, reverse=True):
        if change > within * max(a.value, b.value):
            ends = [n for n in known if a.number <= n <= b.number]
            middle = _middle(max(pairwise(ends), key=_ratio_of))
            if middle is not None:
                return middle
    return None


def _ratio_of(ends: tuple[int, int]) -> float:
    return ends[1] / ends[0] if ends[1] - ends[0] > 1 else 1


def _middle(ends: tuple[int, int]) -> int | None:
    low, high = ends
    if high - low < 2:
        return None
    return min(max(round(math.sqrt(low * high)), low + 1), high - 1)
