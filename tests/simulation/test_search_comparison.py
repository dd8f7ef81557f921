"""What the laboratory shows: the shortcuts save time and do not change the result."""

from __future__ import annotations

import pytest

from tools.searches import (
    AUTO,
    AUTO_WIDTH,
    DEVICES,
    METHODS,
    NOT_RFC_2544,
    REMEMBER,
    RESOLUTION,
    Row,
    campaign_medians,
    compare,
)

RUNS = 40
FORGET = [device for device in DEVICES if device not in REMEMBER]
PROMISED = [method for method in METHODS if method not in NOT_RFC_2544]


@pytest.fixture(scope="session")
def table() -> dict[tuple[str, str], Row]:
    """Once in a process: xdist may come back to this module later."""
    return {(row.device, row.method): row for row in compare(runs=RUNS)}


def test_the_table_has_every_search_on_every_device(
    table: dict[tuple[str, str], Row],
) -> None:
    assert set(table) == {(d, m) for d in DEVICES for m in METHODS}
    assert len(DEVICES) == 13


@pytest.mark.parametrize("device", FORGET)
@pytest.mark.parametrize("method", PROMISED)
def test_the_interval_holds_the_classic_median_and_the_median_is_that_one(
    table: dict[tuple[str, str], Row], device: str, method: str
) -> None:
    row = table[device, method]
    assert (row.held_percent or 0) >= 90
    assert abs(row.apart_percent) <= row.allowed_percent
    assert (row.holds, row.agrees, row.kept) == (True, True, True)


def test_with_rare_loss_narrowed_repeats_read_what_classic_ones_do(
    table: dict[tuple[str, str], Row],
) -> None:
    """Repeats that start where others passed keep their luck: 397,920 it was."""
    medians = {m: table["loss-3e-8", m].median_fps for m in PROMISED}
    assert all(350_000 < median < 390_000 for median in medians.values())


@pytest.mark.parametrize("device", FORGET)
def test_what_is_allowed_is_the_resolution_or_what_other_seeds_are_apart(
    table: dict[tuple[str, str], Row], device: str
) -> None:
    allowed = table[device, "classic"].allowed_percent
    assert allowed >= 0.1 - 1e-9
    if device in ("step", "duplicating"):
        assert allowed == pytest.approx(0.1)
    if device in ("loss-1e-7", "loss-1e-6"):
        assert 1 < allowed < 30


@pytest.mark.parametrize("method", ["narrowed", "auto"])
def test_on_a_step_they_take_less_than_half_of_the_time(
    table: dict[tuple[str, str], Row], method: str
) -> None:
    row = table["step", method]
    assert row.time_percent <= 20
    assert row.is_fast is True
    assert table["slope-0.5%", method].is_fast is None


def test_of_other_searches_and_of_devices_that_remember_nothing_is_promised(
    table: dict[tuple[str, str], Row],
) -> None:
    nothing = {key for key, row in table.items() if row.kept is None}
    assert nothing == {
        (d, m) for d in DEVICES for m in METHODS if d in REMEMBER or m in NOT_RFC_2544
    }


@pytest.mark.parametrize("device", ["step", "duplicating"])
@pytest.mark.parametrize("method", METHODS)
def test_a_sharp_limit_is_found_within_the_resolution(
    table: dict[tuple[str, str], Row], device: str, method: str
) -> None:
    row = table[device, method]
    assert -0.11 <= row.bias_percent <= 0
    assert row.spread_percent <= 0.1


def test_a_campaign_is_the_same_at_each_run_of_the_laboratory() -> None:
    first = campaign_medians("slope-0.5%", "narrowed", 2)
    assert campaign_medians("slope-0.5%", "narrowed", 3)[:2] == first
    assert first[0] != first[1]


def test_the_classic_procedure_takes_its_trials_times_69_seconds(
    table: dict[tuple[str, str], Row],
) -> None:
    row = table["step", "classic"]
    assert row.hours == pytest.approx(row.trials * 69 / 3600)
    assert row.time_percent == 100


def test_auto_repeats_less_on_a_device_without_noise(
    table: dict[tuple[str, str], Row],
) -> None:
    assert table["step", "auto"].trials < table["step", "narrowed"].trials
    assert table["unstable", "auto"].trials > table["unstable", "narrowed"].trials


def test_one_search_has_no_interval(table: dict[tuple[str, str], Row]) -> None:
    assert table["step", "MLRsearch"].held_percent is None


def test_auto_never_claims_less_than_the_resolution() -> None:
    interval = AUTO.interval([399_996] * 8)
    assert interval is not None
    assert interval.lower == 399_996
    assert interval.upper - interval.lower >= RESOLUTION.width_fps(399_996)
    assert interval.upper - interval.lower <= AUTO_WIDTH.width_fps(399_996)


@pytest.mark.parametrize(
    ("promises", "kept"),
    [
        ((True, True, None), True),
        ((True, True, True), True),
        ((False, True, None), False),
        ((True, False, None), False),
        ((True, True, False), False),
        ((None, None, None), None),
    ],
)
def test_a_row_keeps_its_promises_or_not(
    promises: tuple[bool | None, bool | None, bool | None], kept: bool | None
) -> None:
    row = Row("device", "method", 0, 0, 0, 0, 0, 0, 0, 0, None, *promises)
    assert row.kept is kept
