"""Presets: defaults in a file, and more than a file on the command line."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import make_campaign, make_testbed

from dutperf.config import (
    Campaign,
    Preset,
    deviations,
    expand,
    from_data,
    resolved,
    with_preset,
)
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.procedure_keys import SearchedKeys
from dutperf.model.rate_specs import ThroughputSpec
from dutperf.model.specs import LatencySpec, TableCapacitySpec

ALL: list[dict[str, Any]] = [
    {"procedure": "throughput"},
    {"procedure": "throughput", "search": "mlrsearch", "goals": ["0", "1%:50%"]},
    {"procedure": "frame-loss"},
    {"procedure": "latency", "rate_fps": 10_000},
    {"procedure": "latency", "rate_fps": 10_000, "rfc2544_latency": True},
    {"procedure": "pdv", "rate_fps": 10_000},
    {"procedure": "ipdv", "rate_fps": 10_000},
]


def cells(campaign: Campaign) -> list[Cell]:
    return expand(campaign, make_testbed())


def cell_of(preset: Preset, spec: dict[str, Any]) -> Cell:
    (cell,) = cells(make_campaign({"ip": [4], **spec}, preset=preset))
    return cell


@pytest.mark.parametrize("spec", ALL)
def test_standard_is_by_the_book(spec: dict[str, Any]) -> None:
    cell = cell_of("standard", spec)
    told = [shortfall.actual for shortfall in deviations(cell)]
    assert [w for w in told if "a goal lets" not in w and "as given" not in w] == []
    assert cell.repeats == (1 if spec.get("search") == "mlrsearch" else 20)
    if isinstance(cell.spec, SearchedKeys):
        assert cell.spec.resolution == "0.1%"


@pytest.mark.parametrize("spec", ALL)
def test_quick_takes_seconds_and_says_what_it_lacks(spec: dict[str, Any]) -> None:
    cell = cell_of("quick", spec)
    spent = cell.spec
    waits_s = spent.settle_wait_s + spent.residual_wait_s + spent.restabilise_wait_s
    assert cell.spec.trial_duration_s == 1
    assert waits_s == pytest.approx(0.5)
    assert cell.repeats <= 3
    assert len(deviations(cell)) >= 4


@pytest.mark.parametrize(
    ("rate_fps", "legacy", "tags"),
    [(10_000, False, 500), (100, False, 50), (1, False, 1), (10_000, True, 1)],
)
def test_a_quick_look_has_tags_that_fit(rate_fps: int, legacy: bool, tags: int) -> None:
    spec = {"procedure": "latency", "rate_fps": rate_fps, "rfc2544_latency": legacy}
    assert cell_of("quick", spec).spec_of(LatencySpec).tags == tags


def test_a_quick_look_waits_for_frames_that_a_timeout_is_to_find_late() -> None:
    spec = {"procedure": "frame-loss", "timeout_sweep_ms": [1, 500]}
    assert cell_of("quick", spec).spec.residual_wait_s == 1
    strict = {"procedure": "throughput", "frame_timeout_ms": 400}
    assert cell_of("quick", strict).spec.residual_wait_s == pytest.approx(0.8)


def test_in_a_file_a_procedure_wins_over_the_preset() -> None:
    spec = {"procedure": "throughput", "trial_duration_s": 7, "repeats": "auto"}
    cell = cell_of("quick", spec)
    assert (cell.spec.trial_duration_s, cell.auto) == (7, True)
    assert cell.spec.settle_wait_s == 0.1


def test_on_the_command_line_the_preset_wins_over_the_file() -> None:
    campaign = make_campaign(
        {
            "procedure": "throughput",
            "ip": [4],
            "trial_duration_s": 7,
            "settle_wait_s": 9,
            "resolution": "1000",
            "repeats": "auto",
            "interval_width": "2%",
            "loss_tolerance_percent": 0.1,
        }
    )
    (cell,) = cells(with_preset(campaign, "quick"))
    assert (cell.spec.trial_duration_s, cell.spec.settle_wait_s) == (1, 0.1)
    assert (cell.repeats, cell.auto) == (1, False)
    assert cell.spec_of(ThroughputSpec).resolution == "5%"
    assert cell.spec.loss_criterion.tolerance_percent == 0.1
    (standard,) = cells(with_preset(campaign, "standard"))
    assert (standard.spec.trial_duration_s, standard.repeats) == (60, 20)


def test_goals_get_the_durations_of_the_preset() -> None:
    goal = {"exceed_percent": 50, "duration_sum_s": 600}
    mlr = {"procedure": "throughput", "search": "mlrsearch", "goals": [goal]}
    campaign = make_campaign({"ip": [4], **mlr})
    (quick,) = cells(with_preset(campaign, "quick"))
    assert quick.spec.loss_criterion.goals[0].duration_sum_s == 2


@pytest.mark.parametrize("preset", ["standard", "quick"])
def test_it_replaces_what_another_preset_said(preset: Preset) -> None:
    specs = [{"ip": [4], **s, "traffic": {"name": f"n{n}"}} for n, s in enumerate(ALL)]
    other: Preset = "quick" if preset == "standard" else "standard"
    asked = make_campaign(*specs, preset=preset)
    replaced = with_preset(make_campaign(*specs, preset=other), preset)
    assert cells(replaced) == cells(asked)


def test_the_resolved_campaign_has_final_values() -> None:
    campaign = make_campaign({"procedure": "throughput", "ip": [4]}, preset="quick")
    stored = resolved(campaign, make_testbed())
    assert "preset" not in stored
    assert stored["procedures"][0]["trial_duration_s"] == 1
    flagged = with_preset(
        make_campaign({"procedure": "throughput", "ip": [4]}), "quick"
    )
    assert resolved(flagged, make_testbed()) == stored


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"preset": "fast"}, "preset: must be 'standard' or 'quick', not 'fast'"),
        ({"preset": "quick", "procedures": 7}, "procedures: must be a list, not 7"),
        (
            {"preset": "quick", "procedures": ["throughput"]},
            "procedures[0]: must be a block of keys, not 'throughput'",
        ),
    ],
)
def test_wrong_files_are_refused_in_words(data: dict[str, Any], told: str) -> None:
    file = {"name": "x", "lab": "linux-router", "procedures": ALL[:1], **data}
    with pytest.raises(InputError) as caught:
        from_data(Campaign, file, "file")
    assert told in caught.value.message


CAPACITY: dict[str, Any] = {
    "procedure": "table-capacity",
    "stateful": {"connections": "1M", "first": 1000},
}


@pytest.mark.parametrize(
    ("preset", "given", "error"),
    [
        (None, {}, 1),
        ("standard", {}, 1),
        ("quick", {}, 10_000),
        ("quick", {"error": 7}, 7),
        ("quick", {"connections": [50, 200_000], "first": 10}, 1),
    ],
)
def test_quick_finds_a_capacity_to_one_percent_of_the_most(
    preset: Preset | None, given: dict[str, Any], error: int
) -> None:
    spec = {**CAPACITY, "stateful": {**CAPACITY["stateful"], **given}}
    told = make_campaign(spec, preset=preset).procedures[0]
    assert isinstance(told, TableCapacitySpec)
    assert told.stateful.error == error


def test_quick_on_the_command_line_wins_over_the_files_error() -> None:
    spec = {**CAPACITY, "stateful": {**CAPACITY["stateful"], "error": 7}}
    presets: tuple[tuple[Preset, int], ...] = (("quick", 10_000), ("standard", 7))
    for preset, error in presets:
        told = with_preset(make_campaign(spec), preset).procedures[0]
        assert isinstance(told, TableCapacitySpec)
        assert told.stateful.error == error
