"""Figures of samples of which some are lower bounds, against every way they may be."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import partial
from itertools import product

import pytest

from dutperf.stats import Statistic, estimate, median, median_interval, percentile


def lower_end(values: Sequence[float]) -> float:
    interval = median_interval(values)
    assert interval is not None
    return interval.lower


def upper_end(values: Sequence[float]) -> float:
    interval = median_interval(values)
    assert interval is not None
    return interval.upper


STATISTICS: dict[str, Statistic] = {
    "median": median,
    "p1": partial(percentile, numerator=1),
    "p25": partial(percentile, numerator=25),
    "p99": partial(percentile, numerator=99),
    "lower end": lower_end,
    "upper end": upper_end,
    "minimum": min,
    "maximum": max,
}


def all_that_it_may_be(
    statistic: Statistic, values: Sequence[float], at_least: Sequence[bool]
) -> set[float]:
    """The obvious twin: every bound is tried at its value and at all above it."""
    above = [*sorted(set(values)), max(values) + 1, math.inf]
    ways = [
        [v for v in above if v >= value] if bound else [value]
        for value, bound in zip(values, at_least, strict=True)
    ]
    return {statistic(way) for way in product(*ways)}


@pytest.mark.parametrize("name", STATISTICS)
def test_it_is_exact_if_it_is_the_same_whatever_the_bounds_are(name: str) -> None:
    rng = random.Random(11)  # noqa: S311 - repeatable
    statistic, seen = STATISTICS[name], set()
    for _ in range(250):
        values = [float(rng.randrange(4)) for _ in range(rng.randrange(6, 8))]
        at_least = [rng.random() < 0.4 for _ in values]
        found = estimate(statistic, values, at_least)
        possible = all_that_it_may_be(statistic, values, at_least)
        assert found == (min(possible), len(possible) > 1)
        seen.add(found.at_least)
    assert seen == {True, False}


def test_bounds_above_the_median_leave_it_exact() -> None:
    values = [100, 101, 102, 150, 150]
    assert estimate(median, values, [False] * 3 + [True] * 2) == (102, False)
    assert estimate(median, values, [False] * 2 + [True] * 3) == (102, True)


def test_of_an_even_number_both_in_the_middle_count() -> None:
    assert estimate(median, [1, 2, 3, 4], [False, False, True, True]) == (2.5, True)
    assert estimate(median, [1, 2, 3, 4], [False, False, False, True]) == (2.5, False)


def test_without_bounds_all_is_exact_infinite_values_too() -> None:
    assert estimate(median, [1, 2, 3]) == (2, False)
    assert estimate(max, [1, math.inf]) == (math.inf, False)


def test_a_mark_for_each_sample_or_none() -> None:
    with pytest.raises(ValueError, match="shorter"):
        estimate(median, [1, 2, 3], [True])
