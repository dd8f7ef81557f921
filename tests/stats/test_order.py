"""Order statistics against slow twins that follow RFC 2330's words literally."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dutperf.stats import (
    histogram_median,
    histogram_percentile,
    mean,
    median,
    median_bounds,
    percentile,
    percentile_bounds,
)

DERANDOMIZED = settings(derandomize=True, database=None, deadline=None)
samples = st.lists(st.integers(0, 1000), min_size=1, max_size=120)
signed = st.lists(st.integers(-1000, 1000), min_size=1, max_size=120)
fractions = st.integers(1, 1000).flatmap(
    lambda d: st.tuples(st.integers(1, d), st.just(d))
)


def edf(values: list[int], x: int) -> Fraction:
    return Fraction(sum(1 for value in values if value <= x), len(values))


def slow_percentile(values: list[int], numerator: int, denominator: int) -> int:
    wanted = Fraction(numerator, denominator)
    return min(x for x in values if edf(values, x) >= wanted)


def slow_median(values: list[int]) -> float:
    rest = list(values)
    while len(rest) > 2:
        rest.remove(min(rest))
        rest.remove(max(rest))
    return sum(rest) / len(rest)


def slow_histogram_percentile(
    buckets: list[tuple[int, int, int]], numerator: int, denominator: int
) -> int:
    every_sample = [high for _, high, count in buckets for _ in range(count)]
    return slow_percentile(every_sample, numerator, denominator)


@DERANDOMIZED
@given(samples, fractions)
def test_percentile_is_the_smallest_sample_that_the_edf_allows(
    values: list[int], fraction: tuple[int, int]
) -> None:
    assert percentile(values, *fraction) == slow_percentile(values, *fraction)


@DERANDOMIZED
@given(samples)
def test_median_is_what_remains_when_the_ends_are_taken_away(values: list[int]) -> None:
    assert median(values) == slow_median(values)


@DERANDOMIZED
@given(samples, fractions, st.integers(1, 50))
def test_histogram_percentile_is_that_of_the_bucket_ends(
    values: list[int], fraction: tuple[int, int], width: int
) -> None:
    counts = Counter(value // width for value in values)
    buckets = [(b * width, b * width + width - 1, counts[b]) for b in sorted(counts)]
    expected = slow_histogram_percentile(buckets, *fraction)
    assert histogram_percentile(buckets, *fraction) == expected
    low, high = percentile_bounds(buckets, *fraction)
    assert low <= slow_percentile(values, *fraction) <= high == expected


@DERANDOMIZED
@given(samples, fractions)
def test_histogram_with_exact_buckets_agrees_with_the_samples(
    values: list[int], fraction: tuple[int, int]
) -> None:
    buckets = [(v, v, n) for v, n in sorted(Counter(values).items())]
    assert histogram_percentile(buckets, *fraction) == percentile(values, *fraction)


@DERANDOMIZED
@given(signed, st.integers(1, 50))
def test_histogram_median_is_that_of_the_bucket_ends(
    values: list[int], width: int
) -> None:
    counts = Counter(value // width for value in values)
    buckets = [(b * width, b * width + width - 1, counts[b]) for b in sorted(counts)]
    every_end = [high for _, high, count in buckets for _ in range(count)]
    assert histogram_median(buckets) == slow_median(every_end)
    low, high = median_bounds(buckets)
    assert low <= slow_median(values) <= high == slow_median(every_end)


@DERANDOMIZED
@given(signed)
def test_a_mean_is_the_nearest_number_to_the_exact_one(values: list[int]) -> None:
    assert mean(values) == float(Fraction(sum(values), len(values)))


@DERANDOMIZED
@given(samples, st.integers(0, 120), fractions)
def test_infinite_samples_rank_behind_all_others(
    values: list[int], lost: int, fraction: tuple[int, int]
) -> None:
    """As a number that is larger than any other would."""
    lost = min(lost, len(values))
    huge = 10**6
    ranked = [float(v) for v in values[lost:]] + [math.inf] * lost
    found = percentile(ranked, *fraction)
    twin = slow_percentile([*values[lost:], *[huge] * lost], *fraction)
    assert (huge if found == math.inf else found) == twin


def test_a_median_with_an_infinite_middle_is_infinite() -> None:
    assert median([1, 2, math.inf]) == 2
    assert median([1, 2, math.inf, math.inf]) == math.inf


def test_median_of_the_example_in_rfc_2330() -> None:
    assert median([-2, 7, 7, 4, 18, -5]) == 5.5


@pytest.mark.parametrize(
    ("numerator", "expected"), [(25, -2), (50, 4), (90, 18), (100, 18)]
)
def test_percentiles_of_the_example_in_rfc_2330(numerator: int, expected: int) -> None:
    assert percentile([-2, 7, 7, 4, 18, -5], numerator) == expected


def test_999_of_1000_needs_no_floating_point() -> None:
    assert percentile(range(1, 1001), 999, 1000) == 999


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 100), (101, 100), (-1, 1)])
def test_a_fraction_outside_0_to_1_is_refused(numerator: int, denominator: int) -> None:
    with pytest.raises(ValueError, match=r"is not in \(0, 1\]"):
        percentile([1], numerator, denominator)


def test_no_samples_have_no_median() -> None:
    with pytest.raises(ValueError, match="at least one sample"):
        median([])


def test_no_samples_have_no_mean() -> None:
    with pytest.raises(ValueError, match="at least one sample"):
        mean([])


def test_an_empty_histogram_has_no_median() -> None:
    with pytest.raises(ValueError, match="at least one sample"):
        histogram_median([])


def test_no_samples_have_no_percentile() -> None:
    with pytest.raises(ValueError, match="at least one sample"):
        percentile([], 50)


def test_an_empty_histogram_has_no_percentile() -> None:
    with pytest.raises(ValueError, match="at least one sample"):
        histogram_percentile([], 50)


def test_a_percentile_is_of_a_hundred_unless_told_otherwise() -> None:
    buckets = [(value, value, 1) for value in range(1, 1001)]
    assert percentile(range(1, 1001), 90) == 900
    assert histogram_percentile(buckets, 90) == 900
    assert percentile_bounds(buckets, 90) == (900, 900)
