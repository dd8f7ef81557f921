"""When repeats are enough: what bounds among them do to the interval."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from dutperf.search import Repeats, Resolution

AUTO = Repeats(64, Resolution(Fraction(1, 100), relative=True))
SAME = [100_000.0] * 64


def marked(count: int, *bounds: int) -> list[bool]:
    return [n in bounds for n in range(count)]


def test_equal_exact_values_are_settled_at_the_first_look() -> None:
    assert AUTO.reaches_width(SAME[:8])
    assert AUTO.reaches_width(SAME[:8], marked(8))
    assert not AUTO.reaches_width(SAME[:9])


@pytest.mark.parametrize("bounds", [1, 2, 4, 7])
def test_bounds_at_the_same_value_do_not_settle_what_may_be_higher(bounds: int) -> None:
    """At 8 the interval ends at the highest value: one bound is enough."""
    assert not AUTO.reaches_width(SAME[:8], marked(8, *range(bounds)))
    assert not AUTO.enough(SAME[:8], marked(8, *range(bounds)))


def test_an_interval_that_bounds_cannot_change_is_settled() -> None:
    assert AUTO.reaches_width(SAME[:16], marked(16, 3, 4))
    assert not AUTO.reaches_width(SAME[:16], marked(16, 3, 4, 5, 6))


def test_only_bounds_are_enough_at_a_look_and_not_settled() -> None:
    for count in (8, 16, 32):
        assert AUTO.enough(SAME[:count], [True] * count)
        assert not AUTO.reaches_width(SAME[:count], [True] * count)
    assert not AUTO.enough(SAME[:9], [True] * 9)


def test_a_number_that_was_given_is_kept_whatever_they_are() -> None:
    assert not Repeats(20).enough(SAME[:8], [True] * 8)
    assert Repeats(20).enough(SAME[:20], [True] * 20)


def test_nothing_is_settled_that_higher_values_in_place_of_bounds_unsettle() -> None:
    rng = random.Random(11)  # noqa: S311 - repeatable
    settled = 0
    for _ in range(500):
        count = rng.choice((8, 16, 32))
        values = [100_000 * (1 + rng.gauss(0, 0.003)) for _ in range(count)]
        bounds = [rng.random() < 0.1 for _ in values]
        if not AUTO.reaches_width(values, bounds):
            continue
        settled += 1
        for _ in range(5):
            real = [
                v * (1 + rng.expovariate(1)) if b else v
                for v, b in zip(values, bounds, strict=True)
            ]
            assert AUTO.reaches_width(real)
    assert settled > 50


# --- no interval is narrower than the resolution

TENTH = Resolution.parse("0.1%")


def test_results_that_are_the_same_are_known_to_the_resolution() -> None:
    for repeats in (Repeats(20, None, TENTH), Repeats(64, AUTO.width, TENTH)):
        interval = repeats.interval(SAME[:8])
        assert interval is not None
        assert (interval.lower, interval.upper) == (100_000, 100_100)


def test_a_wider_interval_is_left_as_it_is() -> None:
    values = [100_000.0] * 4 + [100_150.0] * 4
    interval = Repeats(20, None, TENTH).interval(values)
    assert interval is not None
    assert (interval.lower, interval.upper) == (100_000, 100_150)


def test_nothing_above_the_highest_rate_is_claimed() -> None:
    interval = Repeats(20, None, TENTH, 100_040).interval(SAME[:8])
    assert interval is not None
    assert (interval.lower, interval.upper) == (100_000, 100_040)


def test_an_absolute_resolution_counts_too() -> None:
    interval = Repeats(20, None, Resolution.parse("7")).interval(SAME[:8])
    assert interval is not None
    assert (interval.lower, interval.upper) == (100_000, 100_007)


@pytest.mark.parametrize(("width", "settled"), [("0.1%", True), ("0.09%", False)])
def test_what_is_asked_for_must_not_be_closer_than_the_resolution(
    width: str, settled: bool
) -> None:
    repeats = Repeats(64, Resolution.parse(width), TENTH)
    assert repeats.reaches_width(SAME[:8]) is settled


def test_bounds_stay_unknown_whatever_the_resolution() -> None:
    repeats = Repeats(64, Resolution.parse("1%"), TENTH)
    interval = repeats.interval([math.inf] * 8)
    assert interval is not None
    assert (interval.lower, interval.upper) == (math.inf, math.inf)
    assert repeats.enough(SAME[:8], [True] * 8)
    assert not repeats.reaches_width(SAME[:8], [True] * 8)
