"""Both implementations of the interval of two samples, on random ones."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from dutperf import stats
from dutperf.evidence.rederive import shifts
from dutperf.stats.two_samples import Sample

FIVE = Fraction(5, 100)


@pytest.mark.parametrize("alpha", [FIVE, FIVE / 7, FIVE / 400])
def test_the_rank_is_the_same(alpha: Fraction) -> None:
    for before in range(13):
        for after in range(13):
            known = stats.rank(before, after, alpha)
            assert shifts.end_of_interval(before, after, alpha) == known
    assert shifts.end_of_interval(64, 50, alpha) == stats.rank(64, 50, alpha)


def test_so_it_is_of_more_than_are_counted() -> None:
    for before, after in ((201, 200), (400, 1000)):
        known = stats.rank(before, after, FIVE)
        assert shifts.end_of_interval(before, after, FIVE) == known


@pytest.mark.parametrize("seed", range(40))
def test_the_ends_are_the_same(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - test data

    def known() -> Sample:
        value = float(draw.choice([0, 5, draw.randint(1, 1000), draw.uniform(0, 9)]))
        high = draw.choice([value, value + 1, math.inf])
        return Sample(value, draw.choice([0.0, value]), high)

    before, after = ([known() for _ in range(draw.randint(1, 12))] for _ in range(2))
    found = stats.shift(before, after, FIVE, "ratio")
    old, new = (
        [shifts.Known(each.low, each.high) for each in of] for of in (before, after)
    )
    told = shifts.shift_percent(old, new, FIVE)
    if found.lower is None or found.upper is None:
        assert told is None
    else:
        assert told == ((found.lower - 1) * 100, (found.upper - 1) * 100)
