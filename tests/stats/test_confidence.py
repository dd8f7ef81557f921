"""The interval of the median: by definition, by known tables, and by its coverage."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import pytest

from dutperf.stats import (
    LOOKS,
    Interval,
    interval_at_look,
    mean_interval,
    median,
    median_interval,
)

Draw = Callable[[random.Random], float]
CASES = 2000


@pytest.mark.parametrize(
    ("samples", "k"),
    [(6, 1), (8, 1), (9, 2), (10, 2), (15, 4), (20, 6), (30, 10), (50, 18)],
)
def test_the_ranks_are_those_of_the_tables_of_the_sign_test(
    samples: int, k: int
) -> None:
    interval = median_interval(range(1, samples + 1))
    assert interval is not None
    assert (interval.lower, interval.upper) == (k, samples + 1 - k)


@pytest.mark.parametrize("samples", range(6))
def test_five_samples_are_too_few_for_95_percent(samples: int) -> None:
    assert median_interval(range(samples)) is None


@pytest.mark.parametrize("samples", range(2, 11))
def test_the_coverage_is_counted_over_all_ways_to_fall(samples: int) -> None:
    """Each sample is below or above the median, like a coin: try all."""
    interval = median_interval(range(samples), Fraction(1, 2))
    assert interval is not None
    k = int(interval.lower) + 1
    below = [sum(coins) for coins in product((0, 1), repeat=samples)]
    inside = sum(k <= count <= samples - k for count in below)
    assert interval.coverage == Fraction(inside, 2**samples)


def test_the_order_of_the_samples_does_not_matter() -> None:
    assert median_interval([5, 3, 1, 6, 4, 2]) == Interval(1, 6, Fraction(31, 32))


@pytest.mark.parametrize("confidence", [Fraction(-1, 2), Fraction(1)])
def test_what_is_no_confidence_is_refused(confidence: Fraction) -> None:
    with pytest.raises(ValueError, match="confidence"):
        median_interval(range(10), confidence)


@pytest.mark.parametrize(("samples", "upper"), [(2, 1), (3, 2), (4, 2)])
def test_without_confidence_it_is_the_narrowest_there_is(
    samples: int, upper: int
) -> None:
    """Two different samples: one alone encloses nothing."""
    interval = median_interval(range(samples), Fraction(0))
    assert interval is not None
    assert (interval.lower, interval.upper) == (samples - 1 - upper, upper)


@pytest.mark.parametrize("look", LOOKS)
def test_each_look_has_its_share_of_the_five_percent(look: int) -> None:
    interval = interval_at_look(range(look))
    assert interval is not None
    assert 1 - interval.coverage <= Fraction(5, 100) / len(LOOKS)


def test_there_is_no_look_between_looks() -> None:
    for samples in range(1, 70):
        assert (interval_at_look(range(samples)) is None) == (samples not in LOOKS)


def bimodal(rng: random.Random) -> float:
    return rng.choice([90, 100, 100]) + rng.gauss(0, 1)


def grid(rng: random.Random) -> float:
    return float(round(rng.gauss(100, 1)))


DISTRIBUTIONS: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng: rng.gauss(100, 1), 100),
    "skewed": (lambda rng: 100 - rng.paretovariate(1.5), 100 - 2 ** (1 / 1.5)),
    "bimodal": (bimodal, 99.325),  # where its distribution function is 1/2
    "grid": (grid, 100),
    "constant": (lambda _rng: 7.0, 7),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("samples", [6, 20, 50])
def test_the_interval_holds_the_median_as_often_as_it_says(
    name: str, samples: int
) -> None:
    draw, truth = DISTRIBUTIONS[name]
    rng = random.Random(f"{name} {samples}")  # noqa: S311 - repeatable
    held = 0
    for _ in range(CASES):
        interval = median_interval([draw(rng) for _ in range(samples)])
        assert interval is not None
        held += interval.lower <= truth <= interval.upper
    assert held / CASES >= 0.945  # 95 % less the noise of 2000 cases


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("width", [0.005, 0.02])
def test_stopping_at_a_narrow_interval_does_not_cost_the_coverage(
    name: str, width: float
) -> None:
    draw, truth = DISTRIBUTIONS[name]
    rng = random.Random(f"{name} {width}")  # noqa: S311 - repeatable
    held = 0
    for _ in range(CASES):
        interval = stopped(draw, rng, width)
        held += interval.lower <= truth <= interval.upper
    assert held / CASES >= 0.945


def stopped(draw: Draw, rng: random.Random, width: float) -> Interval:
    """Repeat until the interval is ``width`` of the median, or looks are used up."""
    values: list[float] = []
    last = None
    for look in LOOKS:
        values += [draw(rng) for _ in range(look - len(values))]
        last = interval_at_look(values)
        assert last is not None
        if last.upper - last.lower <= width * median(values):
            break
    assert last is not None
    return last


@pytest.mark.parametrize(
    ("samples", "t"),
    [(6, 2.5706), (10, 2.2622), (11, 2.2281), (20, 2.0930), (50, 2.0096)],
)
def test_an_average_has_the_interval_of_printed_tables_of_t(
    samples: int, t: float
) -> None:
    """Half of them a unit below 0, half above: a spread of sqrt(n / (n - 1))."""
    values = [(-1.0) ** n for n in range(samples)]
    interval = mean_interval(values)
    assert interval is not None
    middle = sum(values) / samples
    squares = sum((value - middle) ** 2 for value in values)
    wide = t * (squares / (samples - 1) / samples) ** 0.5
    assert interval.upper == pytest.approx(middle + wide, rel=1e-4)
    assert interval.lower == pytest.approx(middle - wide, rel=1e-4)


def test_no_average_has_one_of_few_repeats_or_of_infinite_ones() -> None:
    assert mean_interval([1.0] * 5) is None
    assert mean_interval([1.0] * 9 + [float("inf")]) is None


def test_the_interval_of_an_average_misses_it_in_a_twentieth_of_the_cases() -> None:
    draw = random.Random(5)  # noqa: S311 - test data
    missed = 0
    for _ in range(CASES):
        interval = mean_interval([draw.gauss(7, 2) for _ in range(10)])
        assert interval is not None
        missed += not interval.lower <= 7 <= interval.upper
    assert 0.035 < missed / CASES < 0.065
