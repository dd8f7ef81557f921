"""What the laboratory shows: the shortcuts save time and do not change the result."""

from __future__ import annotations

import pytest

from dutperf.search import Bracket, SearchResult
from dutperf.search.comparison import (
    CAPACITY_FPS,
    DEVICES,
    METHODS,
    RESOLUTION,
    Row,
    campaign_medians,
    compare,
)
from dutperf.search.narrowing import Narrowing

RUNS = 100


@pytest.fixture(scope="module")
def table() -> dict[tuple[str, str], Row]:
    return {(row.device, row.method): row for row in compare(runs=RUNS)}


def test_the_table_has_every_search_on_every_device(
    table: dict[tuple[str, str], Row],
) -> None:
    assert set(table) == {(d, m) for d in DEVICES for m in METHODS}
    assert len(DEVICES) == 9


@pytest.mark.parametrize("device", ["step", "slope"])
def test_narrowing_takes_a_quarter_of_the_time_at_most_and_finds_the_same(
    table: dict[tuple[str, str], Row], device: str
) -> None:
    classic, narrowed = table[device, "classic"], table[device, "narrowed"]
    assert narrowed.time_percent <= 25
    apart_fps = abs(classic.median_fps - narrowed.median_fps)
    assert apart_fps <= RESOLUTION.value * CAPACITY_FPS


@pytest.mark.parametrize("device", ["step", "duplicating"])
@pytest.mark.parametrize("method", METHODS)
def test_a_sharp_limit_is_found_within_the_resolution(
    table: dict[tuple[str, str], Row], device: str, method: str
) -> None:
    row = table[device, method]
    assert -0.11 <= row.bias_percent <= 0
    assert row.spread_percent <= 0.1


def test_a_campaign_is_the_same_at_each_run_of_the_laboratory() -> None:
    first = campaign_medians("slope", "narrowed", 2)
    assert campaign_medians("slope", "narrowed", 3)[:2] == first
    assert first[0] != first[1]


def test_the_classic_procedure_takes_its_trials_times_69_seconds(
    table: dict[tuple[str, str], Row],
) -> None:
    row = table["step", "classic"]
    assert row.hours == pytest.approx(row.trials * 69 / 3600)
    assert row.time_percent == 100


@pytest.mark.parametrize("device", sorted(set(DEVICES) - {"unstable"}))
@pytest.mark.parametrize("method", ["classic", "narrowed", "auto", "verified"])
def test_the_interval_holds_the_median_to_within_the_resolution(
    table: dict[tuple[str, str], Row], device: str, method: str
) -> None:
    coverage_percent = table[device, method].coverage_percent
    assert coverage_percent is not None
    assert coverage_percent >= 95


def test_repeats_share_the_state_of_an_unstable_device_if_they_are_fast(
    table: dict[tuple[str, str], Row],
) -> None:
    """Named in docs/repeats.md, and in the report by what is found in the repeats."""
    found = {m: table["unstable", m].coverage_percent or 0 for m in METHODS}
    assert found["classic"] >= 90
    assert found["narrowed"] <= 90


def test_most_misses_of_narrowed_repeats_are_below_the_resolution(
    table: dict[tuple[str, str], Row],
) -> None:
    row = table["rare-loss", "narrowed"]
    assert (row.strict_coverage_percent or 0) < 85 < (row.coverage_percent or 0)


def test_auto_repeats_less_on_a_device_without_noise(
    table: dict[tuple[str, str], Row],
) -> None:
    assert table["step", "auto"].trials < table["step", "narrowed"].trials
    assert table["unstable", "auto"].trials > table["unstable", "narrowed"].trials


def test_one_search_has_no_interval(table: dict[tuple[str, str], Row]) -> None:
    assert table["step", "MLRsearch"].coverage_percent is None


# --- where a repeat starts ------------------------------------------------------------


def found(lower_fps: int, upper_fps: int) -> SearchResult:
    return SearchResult(lower_fps, upper_fps, "found", [])


def test_nothing_is_expected_before_anything_was_found() -> None:
    assert Narrowing(1000).expected is None


def test_equal_results_are_expected_again() -> None:
    narrowing = Narrowing(1000)
    for _ in range(3):
        narrowing.add_short(found(400, 401))
    assert narrowing.expected == Bracket(400, 401)


def test_the_region_reaches_three_quarters_of_the_range_beyond_the_results() -> None:
    narrowing = Narrowing(1000)
    narrowing.add(found(400, 401))
    narrowing.add(found(420, 421))
    assert narrowing.expected == Bracket(385, 436)


def test_short_searches_count_while_full_repeats_agree_with_them() -> None:
    narrowing = Narrowing(1000)
    narrowing.add_short(found(400, 401))
    narrowing.add_short(found(420, 421))
    narrowing.add(found(410, 411))
    assert narrowing.expected == Bracket(385, 436)


def test_full_repeats_replace_short_ones_but_not_how_far_those_wandered() -> None:
    narrowing = Narrowing(1000)
    narrowing.add_short(found(600, 601))
    narrowing.add_short(found(620, 621))
    narrowing.add(found(400, 401))
    assert narrowing.expected == Bracket(385, 416)


def test_a_maximum_that_passed_and_a_device_that_forwards_nothing() -> None:
    narrowing = Narrowing(1000)
    narrowing.add(SearchResult(1000, None, "max_rate_passed", []))
    assert narrowing.expected == Bracket(999, 1000)
    narrowing.add(SearchResult(None, 1, "nothing_passed", []))
    assert narrowing.expected == Bracket(0, 1000)
