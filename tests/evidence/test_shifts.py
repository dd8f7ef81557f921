"""Both implementations of what a value lies within, on random repeats."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from dutperf import stats
from oracle import formulas, shifts

FIVE = Fraction(5, 100)


@pytest.mark.parametrize("seed", range(40))
def test_the_interval_of_an_average_is_the_same(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - test data
    values = [draw.gauss(1000, 20) for _ in range(draw.randint(1, 60))]
    sure = 1 - FIVE / draw.choice([1, 2, 7, 400])
    found = stats.mean_interval(values, sure)
    told = formulas.mean_interval(values, sure)
    if found is None:
        assert told is None
    else:
        assert told == pytest.approx((found.lower, found.upper), rel=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_a_median_lies_within_the_same_samples(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - test data
    lows = [draw.uniform(0, 9) for _ in range(draw.randint(1, 30))]
    highs = [draw.choice([low, low + 1, math.inf]) for low in lows]
    told = shifts.within(
        [shifts.Known(*ends) for ends in zip(lows, highs, strict=True)],
        averaged=False,
        alpha=FIVE,
    )
    low, high = (stats.median_interval(ends, 1 - FIVE / 2) for ends in (lows, highs))
    if low is None or high is None:
        assert told is None
    else:
        assert told == (low.lower, high.upper)
