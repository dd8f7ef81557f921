"""What speaks against one value: found where it is, and hardly ever where it is not."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf.stats import stability
from dutperf.stats.stability import Finding, Group, Limits, examine, kendall_p

RESOLUTION = 400.0
Draw = Callable[[random.Random], float]


def one(values: Sequence[float | None], resolution: float = RESOLUTION) -> Finding:
    (found,) = examine(values, resolution)
    return found


def around(centre: float, noise: float, count: int, seed: str) -> list[float]:
    rng = random.Random(seed)  # noqa: S311 - repeatable
    return [rng.gauss(centre, noise) for _ in range(count)]


def shuffled(values: Sequence[float], seed: int = 1) -> list[float]:
    rng = random.Random(seed)  # noqa: S311 - repeatable
    return rng.sample(values, len(values))


# --- what is there --------------------------------------------------------------------

LOW = [381_000 + 250 * n for n in range(13)]
HIGH = [412_000 + 500 * n for n in range(7)]


def test_two_modes_are_named_with_their_repeats_and_the_gap_between_them() -> None:
    values = shuffled([*LOW, *HIGH])
    found = one(values)
    low, high = found.groups
    assert found.kind == "modes"
    assert (len(low.repeats), low.lowest, low.highest) == (13, 381_000, 384_000)
    assert (len(high.repeats), high.lowest, high.highest) == (7, 412_000, 415_000)
    assert all(values[repeat - 1] <= 384_000 for repeat in low.repeats)
    assert (found.numbers["gap"], found.numbers["widest"]) == (28_000, 3_000)
    assert found.numbers["changes"] > 1


def test_three_modes_and_a_stray_between_them_are_told_apart() -> None:
    values = [300_000.0] * 6 + [350_000.0] * 6 + [400_000.0] * 7 + [325_000.0]
    found = one(shuffled(values))
    assert found.kind == "modes"
    assert [group.lowest for group in found.groups] == [300_000, 350_000, 400_000]


def test_a_device_that_changed_once_has_shifted() -> None:
    found = one([*HIGH, *LOW])
    assert found.kind == "shift"
    assert [group.repeats for group in found.groups] == [
        tuple(range(1, 8)),
        tuple(range(8, 21)),
    ]


def test_a_slow_fall_is_a_drift_with_its_rate() -> None:
    falling = [v - 400 * n for n, v in enumerate(around(400_000, 600, 20, "falling"))]
    found = one(falling)
    assert found.kind == "drift"
    assert found.numbers["p"] <= 0.001
    assert found.numbers["each"] == pytest.approx(-400, rel=0.2)
    assert found.numbers["first"] > found.numbers["last"] + 4_000


def test_a_drift_below_the_resolution_is_not_known() -> None:
    falling = [400_000.0 - 30 * n for n in range(20)]
    assert examine(falling, RESOLUTION) == []
    assert one(falling, 1).kind == "drift"


def test_an_outlier_is_named_and_the_others_with_it() -> None:
    values = around(400_000, 500, 20, "outlier")
    values[16] = 185_800
    main, stray = one(values).groups
    assert stray == Group((17,), 185_800, 185_800)
    assert len(main.repeats) == 19


def test_what_is_left_of_outliers_is_looked_at_again() -> None:
    values = [v - 400 * n for n, v in enumerate(around(400_000, 600, 20, "again"))]
    values[3] = 100_000
    assert [found.kind for found in examine(values, RESOLUTION)] == [
        "outliers",
        "drift",
    ]


def test_a_wide_scatter_is_no_value() -> None:
    found = one(around(400_000, 20_000, 20, "wide"))
    assert found.kind == "unstable"
    assert found.numbers["apart"] > found.numbers["limit"] == 0.05
    assert found.numbers["left_out"] == 4


def test_two_repeats_far_apart_are_enough_to_be_unstable() -> None:
    assert one([400_000, 380_000]).kind == "unstable"


def test_limits_are_what_the_quantity_allows() -> None:
    values = around(400_000, 20_000, 20, "wide")
    assert examine(values, RESOLUTION, Limits(middle=0.5, all_of_them=1)) == []


def test_repeats_without_a_value_keep_their_numbers() -> None:
    values: list[float | None] = [*around(400_000, 500, 20, "holes")]
    values[2], values[5], values[16] = None, math.inf, 185_800
    _, stray = one(values).groups
    assert stray.repeats == (17,)


@given(
    st.lists(st.floats(1, 1e9), min_size=2, max_size=40),
    st.floats(0, 1e6),
)
def test_no_dispersion_above_ten_percent_stays_without_an_explanation(
    values: list[float], resolution: float
) -> None:
    ordered = sorted(values)
    middle = (ordered[(len(values) - 1) // 2] + ordered[len(values) // 2]) / 2
    apart = ordered[-1] - ordered[0]
    if apart > max(0.1 * middle * 1.000001, 2 * resolution):
        assert examine(values, resolution)


# --- what is not there ----------------------------------------------------------------


@pytest.mark.parametrize("values", [[], [1.0], [5.0] * 20, [0.0] * 20, [None] * 9])
def test_equal_repeats_and_none_at_all_have_nothing(
    values: list[float | None],
) -> None:
    assert examine(values, RESOLUTION) == []


def test_neighbours_on_the_grid_of_a_search_are_no_modes() -> None:
    values = [400_000.0, 400_400.0, 400_800.0] * 7
    assert examine(values, RESOLUTION) == []


SHAPES: dict[str, tuple[Draw, float, float]] = {
    "even": (lambda rng: rng.uniform(-2, 2), 1.0, 0.5),
    "normal": (lambda rng: rng.gauss(0, 1), 1.0, 0.5),
    "skewed": (lambda rng: -rng.expovariate(1), 2.0, 4.0),
    "grid": (lambda rng: float(round(rng.gauss(0, 1))), 1.0, 0.5),
}
"""Draws around 0, and how often in percent at most: anything but outliers; outliers."""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [8, 12, 20, 64])
def test_a_steady_device_is_hardly_ever_accused(shape: str, count: int) -> None:
    draw, allowed, allowed_outliers = SHAPES[shape]
    rng = random.Random(f"{shape} {count}")  # noqa: S311 - repeatable
    cases = 1000
    kinds: Counter[str] = Counter()
    for _ in range(cases):
        values = [400_000 + 500 * draw(rng) for _ in range(count)]
        resolution = 500 if shape == "grid" else 1
        kinds.update({found.kind for found in examine(values, resolution)})
    outliers = kinds.pop("outliers", 0)
    assert 100 * sum(kinds.values()) / cases <= allowed
    assert 100 * outliers / cases <= allowed_outliers


# --- the test against time ------------------------------------------------------------


@pytest.mark.parametrize(
    "values", [(1, 2, 3, 4, 5, 6), (1, 1, 2, 2, 2, 3), (1, 1, 1, 2, 3, 3), (7, 7, 7, 7)]
)
def test_p_is_counted_over_all_orders(values: tuple[int, ...]) -> None:
    """The obvious way: put them in every order, and count."""
    orders = list(permutations(values))
    for order in orders[:: max(1, len(orders) // 40)]:
        clear = sum(abs(kendall_s(o)) >= abs(kendall_s(order)) for o in orders)
        assert kendall_p(order) == pytest.approx(clear / len(orders))


def kendall_s(values: Sequence[float]) -> int:
    return sum((a < b) - (a > b) for a, b in combinations(values, 2))


@pytest.mark.parametrize("slope", [0.2, 0.4, 0.6])
def test_many_samples_have_nearly_the_exact_p(
    slope: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = around(0, 20, 64, "many")
    values = [float(round(v + slope * n)) for n, v in enumerate(noise)]
    exact = kendall_p(values)
    monkeypatch.setattr(stability, "EXACT_UP_TO", 0)
    assert kendall_p(values) == pytest.approx(exact, rel=0.4)


def test_more_samples_than_are_counted_still_have_a_p() -> None:
    assert kendall_p(range(100)) < 1e-6
    assert kendall_p([5.0] * 100) == 1
    assert kendall_p(shuffled([float(n) for n in range(100)])) > 0.01
