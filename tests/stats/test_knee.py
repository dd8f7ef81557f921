"""Where a curve reaches its plateau: known curves, known knees, and the rule's bias."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from statistics import mean

import pytest

from dutperf.stats import CurvePoint, Knee, knee, median, next_number

PLATEAU = 40_000.0
WITHIN, CLOSE = 0.05, 0.1
GRID = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536]
Curve = Callable[[float], float]


def straight(ends_at: float) -> Curve:
    """Rises in proportion up to ``ends_at``, and stays: its knee is well known."""
    return lambda n: PLATEAU * min(1.0, n / ends_at)


def slow(half_at: float) -> Curve:
    """A hyperbola: never quite there."""
    return lambda n: PLATEAU * n / (n + half_at)


def exact(curve: Curve, numbers: Sequence[int]) -> list[CurvePoint]:
    return [CurvePoint(n, curve(n), curve(n), curve(n)) for n in numbers]


def measured(curve: Curve, number: int, noise: float, rng: random.Random) -> CurvePoint:
    """The median of seven repeats; all of them are its range."""
    repeats = [curve(number) * rng.gauss(1, noise) for _ in range(7)]
    return CurvePoint(number, median(repeats), min(repeats), max(repeats))


def refined(
    point: Callable[[int], CurvePoint], refine: int, numbers: Sequence[int] = GRID
) -> tuple[Knee, list[int]]:
    points = [point(n) for n in numbers]
    tried = list(numbers)
    for _ in range(refine):
        number = next_number(points, tried, WITHIN, CLOSE)
        if number is None:
            break
        tried.append(number)
        points = sorted([*points, point(number)])
    return knee(points, WITHIN), tried[len(numbers) :]


def slow_knee(values: Sequence[float], within: float) -> int | None:
    """By looking at every suffix."""
    plateau = sorted(values[-3:])[1]
    ends: Iterator[int] = (
        n
        for n in range(len(values))
        if all(abs(v - plateau) <= within * plateau for v in values[n:])
    )
    first = next(ends, None)
    return first if first and first <= len(values) - 3 else None


def test_the_knee_is_the_first_of_all_that_stay_near_the_plateau() -> None:
    rng = random.Random(1)  # noqa: S311 - not a secret
    for _ in range(500):
        values = [
            rng.choice([50, 90, 96, 100, 103, 110]) for _ in range(rng.randint(4, 9))
        ]
        points = [CurvePoint(n, v, v, v) for n, v in enumerate(values, 1)]
        first = slow_knee(values, WITHIN)
        assert knee(points, WITHIN).number == (None if first is None else first + 1)


def test_of_a_grid_the_knee_is_between_two_neighbours() -> None:
    found = knee(exact(straight(100), GRID), WITHIN)
    assert (found.above, found.number, found.until) == (64, 256, 256)
    assert found.plateau == PLATEAU


def test_refinement_closes_in_on_it_and_ends_when_it_is_close() -> None:
    found, added = refined(lambda n: exact(straight(100), [n])[0], 50)
    assert found.above is not None
    assert found.until is not None
    assert found.above < 95 <= found.until <= found.above * (1 + CLOSE)
    assert len(added) == 4


def test_a_falling_curve_has_one_too() -> None:
    curve: Curve = lambda n: 100 + 900 / n  # noqa: E731
    found = knee(exact(curve, GRID), WITHIN)
    assert (found.above, found.number, found.until) == (64, 256, 256)


def test_results_that_may_be_on_either_side_widen_the_interval() -> None:
    points = exact(straight(100), GRID)
    points[3] = CurvePoint(64, 25_600, 20_000, 39_000)
    points[4] = CurvePoint(256, 39_000, 30_000, 41_000)
    found = knee(points, WITHIN)
    assert (found.above, found.number, found.until) == (16, 256, 1024)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([10, 20, 40, 80, 160], "still rising at the largest number"),
        ([160, 80, 40, 20, 10], "still falling at the largest number"),
        ([100, 101, 99, 100, 102], "all results are on the plateau"),
        ([10, 20, 0, 0, 0], "the results at the largest numbers are 0"),
        ([10, 100, 100], "fewer than 4 results"),
    ],
)
def test_where_there_is_none_it_says_why(values: Sequence[float], why: str) -> None:
    points = [CurvePoint(n, v, v, v) for n, v in enumerate(values, 1)]
    found = knee(points, WITHIN)
    assert (found.number, found.why) == (None, why)


def test_a_plateau_of_lower_bounds_is_the_testers() -> None:
    points = exact(straight(100), GRID)
    points[-1] = points[-1]._replace(high=math.inf)
    assert "lower bounds" in knee(points, WITHIN).why


def test_without_a_plateau_more_is_measured_where_most_changes() -> None:
    curve: Curve = lambda n: 10 if n < 5000 else n  # noqa: E731
    assert next_number(exact(curve, GRID), GRID, WITHIN, CLOSE) == 32768
    flat: Curve = lambda _n: 10  # noqa: E731
    assert next_number(exact(flat, GRID), GRID, WITHIN, CLOSE) is None


def test_two_results_alike_at_the_largest_numbers_get_a_third() -> None:
    points = exact(straight(100), [1, 4, 16, 64, 256, 1024])
    assert knee(points, WITHIN).why == "still rising at the largest number"
    assert next_number(points, [p.number for p in points], WITHIN, CLOSE) == 128


def test_numbers_without_a_result_are_not_tried_again() -> None:
    points = exact(straight(100), GRID)
    assert next_number(points, GRID, WITHIN, CLOSE) == 128
    assert next_number(points, [*GRID, 128], WITHIN, CLOSE) in (91, 181)


QUEUES = 4


def spread_by_hash(n: float) -> float:
    """Four queues and n addresses of equal load: the fullest queue ends the rate."""
    draw = random.Random(int(n))  # noqa: S311 - not a secret
    loads = [0] * QUEUES
    for _ in range(int(n)):
        loads[draw.randrange(QUEUES)] += 1
    return PLATEAU / QUEUES * n / max(loads)


RULES = [
    # curve, where it is near its plateau, noise of a repeat, found / true, and how
    # often the interval has the true one
    (straight(100), 95.0, 0.0, 1.04, 1.0),
    (straight(100), 95.0, 0.01, 1.04, 0.99),
    (straight(100), 95.0, 0.02, 1.07, 0.99),
    (slow(20), 380.0, 0.0, 1.04, 1.0),
    (slow(20), 380.0, 0.01, 1.04, 1.0),
    (slow(20), 380.0, 0.02, 1.16, 0.99),
]


@pytest.mark.parametrize(("curve", "true", "noise", "ratio", "holds"), RULES)
def test_what_is_found_of_known_curves(
    curve: Curve, true: float, noise: float, ratio: float, holds: float
) -> None:
    """A knee is found high: it is one of the numbers tried, and noise withdraws some.

    Of ``straight`` it is 5 % below the end of the rise, by the rule that forgives.
    """
    assert curve(true) == pytest.approx((1 - WITHIN) * PLATEAU)
    rng = random.Random(7)  # noqa: S311 - not a secret
    found, held = [], []
    for _ in range(100 if noise else 1):
        each, _ = refined(lambda n: measured(curve, n, noise, rng), 8)
        if each.number is not None and each.until is not None:
            found.append(each.number / true)
            held.append((each.above or 0) < true <= each.until)
    assert len(found) == (100 if noise else 1)
    assert mean(found) == pytest.approx(ratio, abs=0.03)
    assert mean(held) >= holds - 0.02


def test_of_hashed_addresses_it_is_where_the_fullest_queue_is_near_the_others() -> None:
    """One draw of a hash may be near by chance, but not all that follow it."""
    found, _ = refined(lambda n: exact(spread_by_hash, [n])[0], 8)
    assert found.number is not None
    assert found.above is not None
    after = [n for n in GRID if n >= found.number]
    assert all(spread_by_hash(n) >= (1 - WITHIN) * PLATEAU * 0.97 for n in after)
    assert 100 < found.above < found.number < 4096
