"""What speaks against one value: found where it is, and hardly ever where it is not."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
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
    assert found.numbers == {"gap": 28_000, "widest": 3_000}


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
    found = one(values)
    main, stray = found.groups
    assert stray == Group((17,), 185_800, 185_800)
    assert len(main.repeats) == 19
    assert found.numbers == {
        "gap": main.lowest - 185_800,
        "widest": main.highest - main.lowest,
    }


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


@settings(derandomize=True, deadline=None, database=None)
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


# --- where groups begin ---------------------------------------------------------------


def two_groups(low: int, high: int, ratio: float) -> list[float]:
    """So many in 1000 to 1010, so many above a gap of ``ratio`` times that."""
    from_fps = 1010 + 10 * ratio
    return shuffled(
        [
            *[1000 + 10 * n / (low - 1) for n in range(low)],
            *[from_fps + 10 * n / (high - 1) for n in range(high)],
        ],
        seed=2,
    )


def kinds(values: Sequence[float | None]) -> list[str]:
    lenient = Limits(middle=1, all_of_them=1)  # only groups are asked for
    return [found.kind for found in examine(values, 1, lenient)]


@pytest.mark.parametrize(
    ("count", "ratio"), [(10, 3.0), (20, 1.5), (30, 1.0), (40, 1.0)]
)
def test_a_gap_of_30_groups_widths_by_the_repeats_separates_modes(
    count: int, ratio: float
) -> None:
    """And never less than one width."""
    half = count // 2
    assert kinds(two_groups(half, half, ratio)) == ["modes"]
    assert kinds(two_groups(half, half, ratio - 0.02)) == []


@pytest.mark.parametrize(("count", "ratio"), [(10, 3.0), (12, 2.5), (20, 2.0)])
def test_outliers_are_farther_off_than_modes_must_be(count: int, ratio: float) -> None:
    """At least two widths."""
    assert kinds(two_groups(count - 2, 2, ratio)) == ["outliers"]
    assert kinds(two_groups(count - 2, 2, ratio - 0.02)) == []


@pytest.mark.parametrize(("count", "fewest"), [(8, 3), (20, 3), (40, 6), (64, 10)])
def test_a_mode_has_fifteen_percent_and_three_of_the_repeats(
    count: int, fewest: int
) -> None:
    assert kinds(two_groups(count - fewest, fewest, 9)) == ["modes"]
    assert kinds(two_groups(count - fewest + 1, fewest - 1, 9)) == ["outliers"]


def test_eight_repeats_may_be_in_three_groups() -> None:
    values = [100.0, 200, 300, 101, 201, 301, 100, 200]
    (found,) = examine(values, 0.1, Limits(middle=9, all_of_them=9))
    assert found.kind == "modes"
    assert [group.lowest for group in found.groups] == [100, 200]


# --- where drifts begin ---------------------------------------------------------------


def test_eight_repeats_are_enough_for_a_drift_and_seven_are_not() -> None:
    assert kinds([400_000.0 - 2_000 * n for n in range(8)]) == ["drift"]
    assert kinds([400_000.0 - 2_000 * n for n in range(7)]) == []


def test_a_drift_tells_its_rate_and_the_medians_of_both_ends() -> None:
    """The rate is Theil and Sen's: one repeat that is off does not change it."""
    values = [400_000.0 - 500 * n for n in range(12)]
    values[5] += 700
    found = one(values, 1)
    assert found.groups == ()
    assert found.numbers == {
        "p": kendall_p(values),
        "each": -500,
        "first": 399_250,
        "last": 395_250,
    }


def test_what_is_no_more_apart_than_twice_the_resolution_does_not_drift() -> None:
    values = [400_000.0 - 500 * n for n in range(12)]
    assert examine(values, 2_001) == []
    assert examine(values, 2_000) == []
    assert one(values, 1_999).kind == "drift"


# --- where no value begins ------------------------------------------------------------


@pytest.mark.parametrize("middle", [100, -100])
def test_five_percent_apart_is_one_value_and_more_is_none(middle: int) -> None:
    assert examine([middle - 2.5, middle, middle + 2.5], 0) == []
    assert one([middle - 2.5, middle, middle + 2.6], 0).kind == "unstable"


def test_only_a_tenth_at_either_end_is_left_out_and_not_for_long() -> None:
    """Two of 20 at either end may be farther off, but all within a tenth."""
    middle = [99.0 + 2 * n / 15 for n in range(16)]
    within = [95.5, 97.5, *middle, 102.5, 105.5]
    assert examine(shuffled(within), 0) == []
    found = one(shuffled([95, 97.5, *middle, 102.5, 105.5]), 0)
    assert found == Finding(
        "unstable",
        (),
        {
            "apart": 10.5 / 100,
            "limit": 0.10,
            "lowest": 95,
            "highest": 105.5,
            "count": 20,
            "left_out": 0,
        },
    )


def test_what_is_known_no_better_may_look_that_much_apart() -> None:
    assert examine([100.0, 110, 120], 10) == []
    assert one([100.0, 110, 120], 9).kind == "unstable"
    assert examine([100.0, 110, 120], 1, apart=10) == []


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


def orders_by_falls(count: int) -> list[int]:
    """In how many orders of different values so many pairs fall: one value more may
    stand before 0, 1, 2, ... of those before it."""
    orders = [1]
    for more in range(1, count):
        longer = [0] * (len(orders) + more)
        for falls, number in enumerate(orders):
            for further in range(more + 1):
                longer[falls + further] += number
        orders = longer
    return orders


@pytest.mark.parametrize("seed", range(4))
def test_up_to_64_values_are_counted(seed: int) -> None:
    values = shuffled([float(n) for n in range(64)], seed)
    orders = orders_by_falls(64)
    falls = sum(a > b for a, b in combinations(values, 2))
    as_clear = sum(orders[: min(falls, len(orders) - 1 - falls) + 1])
    exact = float(2 * Fraction(as_clear, sum(orders)))
    assert kendall_p(values) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("ties", [1, 3])
def test_the_normal_distribution_is_close_even_for_a_few(
    ties: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is used there are more than 64, and it is closer."""
    values = [float(n // ties) for n in range(15)]
    for seed in range(20):
        order = shuffled(values, seed)
        monkeypatch.setattr(stability, "EXACT_UP_TO", 64)
        exact = kendall_p(order)
        monkeypatch.setattr(stability, "EXACT_UP_TO", 0)
        if exact > 0.02:
            assert kendall_p(order) == pytest.approx(exact, rel=0.05)


def test_what_rises_as_often_as_it_falls_is_chance() -> None:
    there_and_back = [*range(50), *reversed(range(50))]
    assert kendall_s(there_and_back) == 0
    assert kendall_p(there_and_back) == 1


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
