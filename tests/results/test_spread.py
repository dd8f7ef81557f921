from __future__ import annotations

import math

import pytest

from dutperf.results import RepeatResult, Spread, overall, spread_of
from dutperf.results.bounds import averaged
from dutperf.results.rate_results import BoundCause
from dutperf.stats import interval_at_look


def spread(*values: float) -> Spread:
    found = spread_of(values)
    assert found is not None
    return found


def test_twenty_repeats_have_all_figures() -> None:
    found = spread(*range(101, 121))
    assert (found.count, found.median) == (20, 110.5)
    assert (found.percentile_1, found.percentile_99) == (101, 120)
    assert (found.minimum, found.maximum) == (101, 120)
    assert found.dispersion_percent == pytest.approx(1900 / 110.5)
    assert (found.interval_lower, found.interval_upper) == (106, 115)
    assert found.interval_percent == pytest.approx(95.86, abs=0.01)


def test_the_ends_of_the_dispersion_are_percentiles_not_extremes() -> None:
    found = spread(*[100] * 300, 1)
    assert (found.minimum, found.percentile_1) == (1, 100)
    assert found.dispersion_percent == 0


def test_of_two_hundred_repeats_two_lie_at_and_below_the_first_percentile() -> None:
    found = spread(*range(1, 201))
    assert (found.percentile_1, found.percentile_99) == (2, 198)


def test_five_repeats_are_too_few_for_an_interval() -> None:
    found = spread(1, 2, 3, 4, 5)
    assert (found.interval_lower, found.interval_percent) == (None, None)
    assert found.median == 3


def test_who_stopped_at_a_look_keeps_its_interval() -> None:
    values = [*range(16)]
    found = spread_of(values, interval_at_look)
    assert found is not None
    assert (found.interval_lower, found.interval_upper) == (2, 13)
    assert found.interval_percent == pytest.approx(99.58, abs=0.01)
    whole = overall(
        [RepeatResult(value=v, verdict="pass", trials=1) for v in values],
        interval_at_look,
    )
    assert whole.spread == found


def test_who_was_not_at_a_look_has_the_interval_of_all_repeats() -> None:
    found = spread_of([*range(20)], interval_at_look)
    assert found == spread(*range(20))
    assert found is not None
    assert (found.interval_lower, found.interval_upper) == (5, 14)


def test_nothing_measured_has_no_spread() -> None:
    assert spread_of([]) is None


def test_infinite_delays_leave_the_figures_that_are_finite() -> None:
    found = spread(1, 2, math.inf)
    assert (found.median, found.minimum) == (2, 1)
    assert (found.maximum, found.dispersion_percent) == (None, None)


def test_of_a_median_of_zero_there_is_no_share() -> None:
    assert spread(0, 0, 1).dispersion_percent is None


def test_a_negative_median_does_not_turn_the_dispersion_around() -> None:
    assert spread(-110, -100, -90).dispersion_percent == pytest.approx(20)


def test_figures_that_rest_on_a_bound_are_lower_bounds() -> None:
    at_least = [False] * 18 + [True] * 2
    found = spread_of(range(101, 121), at_least=at_least)
    assert found is not None
    assert found.lower_bounds == ["percentile_99", "maximum"]
    assert (found.median, found.percentile_99) == (110.5, 120)
    assert found.dispersion_percent is None


def test_bounds_that_do_not_matter_are_not_told() -> None:
    """The lowest of three is one that may be anything from there on."""
    found = spread_of([1, 2, 2], at_least=[True, False, False])
    assert found is not None
    assert found.lower_bounds == ["percentile_1", "percentile_99", "minimum", "maximum"]
    assert found.median == 2


def repeat(value: float, *cause: BoundCause) -> RepeatResult:
    """One that is a lower bound if there is a cause."""
    made = RepeatResult(value=value, verdict="pass", trials=1)
    bound = {"bound": "lower", "bound_cause": cause[0]} if cause else {}
    return made.model_copy(update=bound)


def test_a_median_is_bounded_by_what_bounds_the_repeats_below_it() -> None:
    exact = repeat(200)
    found = overall([repeat(500, "tester"), repeat(300, "disturbed"), exact])
    assert (found.median, found.bound, found.bound_cause) == (300, "lower", "disturbed")
    assert found.spread is not None
    assert "median" in found.spread.lower_bounds
    above = overall([repeat(500, "tester"), repeat(300, None), exact])
    assert (above.bound, above.bound_cause) == ("lower", None)


@pytest.mark.parametrize(
    ("bounds", "cause"),
    [
        # The one nearest to the middle, which is the upper of two.
        ([(200, "tester"), (300, "disturbed"), (400, "set")], "disturbed"),
        # Of equal ones the one that has a cause.
        ([(300, None), (300, "set"), (400, None)], "set"),
        ([(300, "set"), (300, None), (400, None)], "set"),
    ],
)
def test_what_bounds_a_median_is_nearest_to_it_and_has_a_cause(
    bounds: list[tuple[float, BoundCause]], cause: BoundCause
) -> None:
    repeats = [repeat(100), *(repeat(*bound) for bound in bounds)]
    assert overall(repeats).bound_cause == cause


def found(*values: float, bound: int | None = None) -> list[RepeatResult]:
    return [
        RepeatResult(
            value=value,
            verdict="pass",
            trials=1,
            bound="lower" if number == bound else None,
        )
        for number, value in enumerate(values)
    ]


def test_an_average_has_its_own_interval_which_is_as_wide_as_a_repeat_is_known() -> (
    None
):
    """Nine bursts of 1,000 and eleven of 1,364: 1,200, and no median of them."""
    told = averaged(found(*[1000] * 9, *[1364] * 11), 50)
    assert told.median == pytest.approx(1200.2)
    assert told.spread is not None
    assert told.spread.interval_lower == pytest.approx(1113, abs=1)
    assert told.spread.interval_upper == pytest.approx(1287 + 50, abs=1)
    same = averaged(found(*[1000] * 20), 50).spread
    assert same is not None
    assert (same.interval_lower, same.interval_upper) == (1000, 1050)


def test_no_average_of_times_and_bursts_is_below_0() -> None:
    spread = averaged(found(*[0] * 19, 1000), 0).spread
    assert spread is not None
    assert spread.interval_lower == 0


def test_an_average_with_a_lower_bound_or_of_few_repeats_has_no_interval() -> None:
    for repeats in (found(*range(20), bound=3), found(*range(5))):
        spread = averaged(repeats, 1).spread
        assert spread is not None
        assert spread.interval_lower is None
        assert not [n for n in spread.lower_bounds if n.startswith("interval")]
