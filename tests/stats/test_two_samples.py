"""Two samples compared: against the obvious, and against what is true of both."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import pytest

from dutperf import stats
from dutperf.stats.two_samples import Sample, Scale

FIVE = Fraction(5, 100)


def exact(*values: float) -> list[Sample]:
    return [Sample(value, value, value) for value in values]


@cache
def _rank_twin(before: int, after: int, alpha: Fraction) -> int:
    """Every order of all samples, with its U counted pair by pair."""
    found: Counter[int] = Counter()
    for first in itertools.combinations(range(before + after), before):
        others = set(range(before + after)) - set(first)
        found[sum(other < one for one in first for other in others)] += 1
    k = 0
    while 2 * sum(found[u] for u in range(k + 1)) <= alpha * found.total():
        k += 1
    return min(k, before * after // 2)


@pytest.mark.parametrize("alpha", [FIVE, FIVE / 3, FIVE / 20])
def test_the_rank_is_that_of_all_orders_of_the_samples(alpha: Fraction) -> None:
    for before, after in itertools.product(range(1, 8), range(1, 7)):
        assert stats.rank(before, after, alpha) == _rank_twin(before, after, alpha)


def test_the_rank_is_that_of_printed_tables() -> None:
    # Critical values of U, two-sided 5 % (Mann, Whitney 1947; any textbook): one less.
    known = {(4, 4): 0, (5, 5): 2, (6, 8): 8, (10, 10): 23, (20, 20): 127}
    assert {pair: stats.rank(*pair, FIVE) - 1 for pair in known} == known
    assert stats.rank(3, 3, FIVE) == stats.rank(1, 38, FIVE) == 0


def test_many_samples_have_no_narrower_interval_than_the_exact_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alphas = [FIVE / comparisons for comparisons in (1, 10, 300)]
    exact_ranks = [stats.rank(90, 110, alpha) for alpha in alphas]
    monkeypatch.setattr("dutperf.stats.two_samples._MOST_EXACT", 0)
    for alpha, known in zip(alphas, exact_ranks, strict=True):
        assert known - 20 <= stats.rank(90, 110, alpha) <= known


def test_how_many_samples_it_takes_is_told() -> None:
    needed = {
        comparisons: stats.least_each(FIVE / comparisons)
        for comparisons in (1, 2, 6, 7, 23, 24, 4618, 4619)
    }
    assert needed == {1: 4, 2: 5, 6: 5, 7: 6, 23: 6, 24: 7, 4618: 10, 4619: 11}


def _shift_twin(
    before: Sequence[float], after: Sequence[float], alpha: Fraction, scale: Scale
) -> tuple[float, float, float]:
    """All values that a test of Mann and Whitney does not refuse, one by one."""
    pairs = sorted(b / a if scale == "ratio" else b - a for a in before for b in after)
    k = _rank_twin(len(before), len(after), alpha)
    kept = [
        candidate
        for candidate in pairs
        if sum(pair < candidate for pair in pairs) < len(pairs) - k + 1
        and sum(pair <= candidate for pair in pairs) >= k
    ]
    middle = (pairs[(len(pairs) - 1) // 2], pairs[len(pairs) // 2])
    mean = math.sqrt(middle[0] * middle[1]) if scale == "ratio" else sum(middle) / 2
    return kept[0], mean, kept[-1]


@pytest.mark.parametrize("scale", ["ratio", "difference"])
def test_a_shift_is_what_no_test_refuses(scale: Scale) -> None:
    draw = random.Random(1)  # noqa: S311 - repeatable
    for _ in range(60):
        before = [draw.choice([90, 95, 100, 101, 102, 110]) for _ in range(5)]
        after = [draw.uniform(90, 120) for _ in range(draw.choice([4, 5, 6]))]
        found = stats.shift(exact(*before), exact(*after), FIVE, scale)
        low, middle, high = _shift_twin(before, after, FIVE, scale)
        assert found.bound is None
        assert (found.lower, found.upper) == (low, high)
        assert found.estimate == pytest.approx(middle, rel=1e-12)


def test_the_interval_misses_the_truth_no_more_often_than_allowed() -> None:
    draw = random.Random(2)  # noqa: S311 - repeatable
    missed, shifts = 0, 2000
    for _ in range(shifts):
        before = exact(*(draw.lognormvariate(0, 0.1) for _ in range(6)))
        after = exact(*(1.07 * draw.lognormvariate(0, 0.1) for _ in range(5)))
        found = stats.shift(before, after, FIVE, "ratio")
        assert found.lower is not None
        assert found.upper is not None
        missed += not found.lower <= 1.07 <= found.upper
    assert 0.02 * shifts < missed < 0.05 * shifts  # exact: 4.1 %


def test_too_few_samples_have_an_estimate_and_no_interval() -> None:
    found = stats.shift(exact(100), exact(90), FIVE, "ratio")
    assert found == (0.9, None, None, None)


def test_values_that_are_not_resolved_are_no_difference() -> None:
    before = [Sample(1000, 1000, 1010)] * 8
    after = [Sample(1009, 1009, 1019)] * 8
    found = stats.shift(before, after, FIVE, "ratio")
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower < 1 < found.upper
    assert stats.shift(exact(*[1000] * 8), exact(*[1009] * 8), FIVE, "ratio").lower == (
        1.009
    )


def test_whatever_is_between_the_ends_is_in_the_interval() -> None:
    draw = random.Random(3)  # noqa: S311 - repeatable
    for _ in range(100):
        truth = [[draw.uniform(50, 150) for _ in range(5)] for _ in range(2)]
        known = [
            [
                Sample(v, v - draw.uniform(0, 9), draw.choice([v, v + 9, math.inf]))
                for v in side
            ]
            for side in truth
        ]
        wide = stats.shift(known[0], known[1], FIVE, "difference")
        narrow = stats.shift(exact(*truth[0]), exact(*truth[1]), FIVE, "difference")
        assert wide.lower is not None
        assert narrow.lower is not None
        assert wide.upper is not None
        assert narrow.upper is not None
        assert wide.lower <= narrow.lower <= narrow.upper <= wide.upper


def test_a_bound_tells_one_side_only() -> None:
    exactly = exact(*[100.0] * 5)
    at_least = [Sample(150, 150, math.inf, "lower")] * 5
    more = stats.shift(exactly, at_least, FIVE, "ratio")
    assert more == (1.5, "lower", 1.5, math.inf)
    less = stats.shift(at_least, exactly, FIVE, "ratio")
    assert less == (100 / 150, "upper", 0, 100 / 150)
    assert stats.shift(at_least, at_least, FIVE, "ratio") == (None, None, 0, math.inf)
    at_most = [Sample(20, 0, 20, "upper")] * 5
    assert stats.shift(exactly, at_most, FIVE, "ratio") == (0.2, "upper", 0, 0.2)


def test_a_bound_that_the_median_does_not_rest_on_leaves_it_exact() -> None:
    before = exact(*range(96, 106))
    after = [*exact(*range(96, 105)), Sample(200, 200, math.inf, "lower")]
    found = stats.shift(before, after, FIVE, "difference")
    assert (found.estimate, found.bound) == (0, None)
    assert found.upper is not None
    assert math.isfinite(found.upper)


def test_nothing_and_infinite_have_no_ratio_that_would_be_claimed() -> None:
    zero, some, lost = (exact(*[value] * 5) for value in (0.0, 3.0, math.inf))
    assert stats.shift(zero, zero, FIVE, "ratio") == (1, None, 0, math.inf)
    assert stats.shift(lost, lost, FIVE, "ratio") == (1, None, 0, math.inf)
    assert stats.shift(zero, some, FIVE, "ratio")[2:] == (math.inf, math.inf)
    assert stats.shift(some, zero, FIVE, "ratio") == (0, None, 0, 0)
    assert stats.shift(some, lost, FIVE, "ratio")[2:] == (math.inf, math.inf)
    assert stats.shift(lost, some, FIVE, "ratio")[2:] == (0, 0)
    half = exact(0.0, 0.0, math.inf, math.inf)
    assert stats.shift(exact(*[1.0] * 4), half, FIVE, "ratio").estimate is None


def test_samples_that_depend_on_those_before_inflate_the_variance() -> None:
    rising, scattered = exact(*range(20)), exact(*(7 * n % 20 for n in range(20)))
    assert stats.inflation(rising, rising) == pytest.approx(39)
    assert stats.inflation(scattered, scattered) == 1
    assert 1 < stats.inflation(rising, scattered) < 39
    assert stats.inflation(rising, scattered) == stats.inflation(scattered, rising)


def test_samples_that_are_all_equal_say_nothing_of_their_order() -> None:
    assert stats.inflation(exact(5, 5, 5), exact(5, 5)) == 1
    assert stats.inflation(exact(math.inf), exact(math.inf)) == 1


def test_the_inflation_is_that_of_ranks() -> None:
    rising = [float(n) for n in (3, 1, 2, 5, 4, 6, 9, 7, 8)]
    cubed = [value**3 for value in rising]
    of = [stats.inflation(exact(*each), exact(*each)) for each in (rising, cubed)]
    assert of[0] == of[1] > 1


@pytest.mark.parametrize("correlation", [0.2, 0.4, 0.6])
def test_the_inflation_is_seldom_less_than_the_true_one(correlation: float) -> None:
    draw = random.Random(7)  # noqa: S311 - repeatable
    found = []
    for _ in range(300):
        values = [draw.gauss(0, 1)]
        for _ in range(39):
            fresh = math.sqrt(1 - correlation**2) * draw.gauss(0, 1)
            values.append(correlation * values[-1] + fresh)
        found.append(stats.inflation(exact(*values[:20]), exact(*values[20:])))
    true = (1 + correlation) / (1 - correlation)
    assert sum(each >= true for each in found) > 0.75 * len(found)
    assert stats.median(found) < 3 * true


def test_more_variance_widens_the_interval_to_the_outermost_pairs() -> None:
    draw = random.Random(8)  # noqa: S311 - repeatable
    before, after = (exact(*(draw.gauss(100, 1) for _ in range(20))) for _ in range(2))
    found = [
        stats.shift(before, after, FIVE, "difference", inflation)
        for inflation in (1.0, 2.0, 4.0, 1000.0)
    ]
    ends = [(each.lower or 0, each.upper or 0) for each in found]
    assert all(a[0] > b[0] and a[1] < b[1] for a, b in itertools.pairwise(ends))
    pairs = [new.value - old.value for old in before for new in after]
    assert ends[-1] == (min(pairs), max(pairs))
    assert len({each.estimate for each in found}) == 1
    three = stats.shift(before[:3], after[:3], FIVE, "difference", 4.0)
    assert three.lower is None


@pytest.mark.parametrize("alpha", [FIVE, FIVE / 3, FIVE / 20])
def test_as_few_samples_beside_others_as_have_a_rank(alpha: Fraction) -> None:
    for others in (1, 2, 3, 5, 30):
        least = stats.least_beside(others, alpha)
        assert stats.rank(least, others, alpha) > 0
        assert stats.rank(least - 1, others, alpha) == 0
    assert stats.least_beside(1, FIVE) == 39
