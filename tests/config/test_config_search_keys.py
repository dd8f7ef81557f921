"""Keys about the search: defaults that depend on each other, goals, contradictions."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from config_samples import make_campaign, make_testbed
from ruamel.yaml import YAML

from dutperf.config import deviations, expand, resolved, spec_from
from dutperf.config.loader import load_campaign
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.fields import GoalSpec
from dutperf.model.rate_specs import ThroughputSpec

THROUGHPUT: dict[str, Any] = {"procedure": "throughput", "ip": [4]}
MLR = {**THROUGHPUT, "search": "mlrsearch"}
VERIFIED = {**THROUGHPUT, "search": "verified"}


def only_cell(spec: dict[str, Any]) -> Cell:
    (cell,) = expand(make_campaign(spec), make_testbed())
    return cell


def refusal(spec: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        spec_from(spec, "here")
    return caught.value.message


def test_by_default_a_search_is_narrowed_and_ends_hopeless_trials() -> None:
    cell = only_cell(THROUGHPUT)
    spec = cell.spec_of(ThroughputSpec)
    assert (spec.search, spec.early_stop, cell.auto) == ("narrowed", True, False)
    assert cell.id == "throughput-ip4-64-both"


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        (
            VERIFIED,
            {
                "verify_trials": 2,
                "early_stop": False,
                "max_verify_loss_percent": 0.5,
            },
        ),
        (
            {**VERIFIED, "max_verify_loss_percent": None, "early_stop": True},
            {"early_stop": True},
        ),
        ({**VERIFIED, "verify_trials": 3}, {"verify_trials": 3}),
        ({**VERIFIED, "max_verify_loss_percent": 5}, {"early_stop": False}),
        (MLR, {"early_stop": False}),
        (
            {**THROUGHPUT, "repeats": "auto"},
            {"interval_width": "1%", "max_repeats": 64, "most_repeats": 64},
        ),
        (
            {**THROUGHPUT, "repeats": "auto", "max_repeats": 16, "interval_width": 100},
            {"interval_width": "100", "most_repeats": 16},
        ),
        (
            {**THROUGHPUT, "repeats": "auto", "resolution": "2.5%"},
            {"interval_width": "2.5%"},
        ),
        (
            {**THROUGHPUT, "repeats": "auto", "resolution": "0.5%"},
            {"interval_width": "1%"},
        ),
        (
            {**THROUGHPUT, "repeats": "auto", "resolution": 5000},
            {"interval_width": "1%"},
        ),
    ],
)
def test_defaults_follow_from_other_keys(
    spec: dict[str, Any], found: dict[str, Any]
) -> None:
    cell = only_cell(spec)
    assert {key: getattr(cell.spec, key) for key in found} == found


@pytest.mark.parametrize(
    ("given", "duration_s", "goal"),
    [
        ("0", 60, (0, 0, 60)),
        ("0%", 60, (0, 0, 60)),
        ("0.5%", 1, (0.5, 0, 1)),
        ("0.5%:50%", 60, (0.5, 50, 120)),
        ("0:50", 60, (0, 50, 120)),
        ("0.005:33.3", 60, (0.005, 33.3, 240)),
        ({"loss_percent": 0.5}, 60, (0.5, 0, 60)),
        ({"exceed_percent": 50, "duration_sum_s": 21}, 1, (0, 50, 21)),
    ],
)
def test_a_goal_is_a_text_or_a_block_and_has_a_duration(
    given: object, duration_s: float, goal: tuple[float, float, float]
) -> None:
    cell = only_cell({**MLR, "goals": [given], "trial_duration_s": duration_s})
    (found,) = cell.spec.loss_criterion.goals
    told = (found.loss_percent, found.exceed_percent, found.duration_sum_s)
    assert told == goal


def test_mlrsearch_has_rfc_2544s_goal_unless_told_otherwise() -> None:
    assert only_cell(MLR).spec.loss_criterion.goals == (GoalSpec(duration_sum_s=60),)


@pytest.mark.parametrize("text", ["", "x", "-1", "100", "0.5%:100%", "1:2:3", "0,5"])
def test_what_is_no_goal_is_refused(text: str) -> None:
    assert "must be the loss that is tolerated" in refusal({**MLR, "goals": [text]})


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            {**THROUGHPUT, "goals": ["0"]},
            "goals: belongs to search mlrsearch, not to narrowed",
        ),
        (
            {**MLR, "verify_trials": 2},
            "verify_trials: belongs to search verified, not to mlrsearch",
        ),
        (
            {**THROUGHPUT, "search": "classic", "max_verify_loss_percent": 5},
            "max_verify_loss_percent: belongs to search verified, not to classic",
        ),
        (
            {**VERIFIED, "max_verify_loss_percent": 5, "early_stop": True},
            "early_stop: must be false with search verified",
        ),
        (
            {**THROUGHPUT, "interval_width": "1%"},
            "interval_width: belongs to repeats auto",
        ),
        (
            {
                **THROUGHPUT,
                "repeats": "auto",
                "resolution": "0.2%",
                "interval_width": "0.1%",
            },
            "interval_width: must not be narrower than the resolution, 0.2%",
        ),
        (
            {
                **THROUGHPUT,
                "repeats": "auto",
                "resolution": 100,
                "interval_width": 99,
            },
            "interval_width: must not be narrower than the resolution, 100",
        ),
        (
            {**THROUGHPUT, "repeats": 8, "max_repeats": 8},
            "max_repeats: belongs to repeats auto",
        ),
        (
            {**THROUGHPUT, "repeats": "auto", "max_repeats": 20},
            "must be one of 8, 16, 32, 64, not 20",
        ),
        (
            {**THROUGHPUT, "repeats": "often"},
            "must be a whole number from 1 to 1000, or auto, not 'often'",
        ),
        ({**THROUGHPUT, "repeats": 0}, "from 1 to 1000, or auto, not 0"),
        ({**THROUGHPUT, "repeats": True}, "from 1 to 1000, or auto, not True"),
        ({**THROUGHPUT, "repeats": 1.5}, "from 1 to 1000, or auto, not 1.5"),
        ({**MLR, "repeats": 2}, "repeats: must be 1 with mlrsearch"),
        ({**MLR, "repeats": "auto"}, "repeats: must be 1 with mlrsearch"),
        ({**MLR, "early_stop": True}, "early_stop: must be false with mlrsearch"),
        (
            {**MLR, "resolution": "1000"},
            "resolution: must be a percentage with mlrsearch",
        ),
        (
            {**MLR, "loss_tolerance_percent": 1},
            "loss_tolerance_percent: must be left out with mlrsearch",
        ),
        ({**MLR, "goals": []}, "goals: must have at least 1 entry"),
        ({**MLR, "goals": ["0", "0%"]}, "goals: must not list 0% twice"),
        (
            {**MLR, "goals": [{"duration_sum_s": 10}]},
            "goals: duration_sum_s 10 is less than one trial, 60 s",
        ),
        (
            {"procedure": "frame-loss", "search": "classic"},
            "search: unknown key: it is of throughput",
        ),
        (
            {"procedure": "pdv", "rate_fps": 1, "repeats": "auto"},
            "repeats: must be a whole number, not 'auto'",
        ),
    ],
)
def test_contradictions_are_refused(spec: dict[str, Any], told: str) -> None:
    assert told in refusal(spec)


def test_searches_of_the_same_frames_are_cells_of_their_own() -> None:
    cells = expand(
        make_campaign(THROUGHPUT, VERIFIED, MLR, {**THROUGHPUT, "search": "classic"}),
        make_testbed(),
    )
    assert [cell.id.removeprefix("throughput-ip4-64-both") for cell in cells] == [
        "",
        "-verified",
        "-mlrsearch",
        "-classic",
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {**THROUGHPUT, "repeats": "auto", "interval_width": "2%"},
        {**VERIFIED, "max_verify_loss_percent": 5, "repeats": 3},
        {**MLR, "goals": ["0", "0.5%:50%", {"loss_percent": 1}]},
        {"procedure": "pdv", "rate_fps": 1000, "ip": [4]},
    ],
)
def test_the_resolved_campaign_gives_the_same_cells(
    tmp_path: Path, spec: dict[str, Any]
) -> None:
    campaign = make_campaign(spec)
    stored = io.StringIO()
    YAML().dump(resolved(campaign, make_testbed()), stored)
    path = tmp_path / "campaign.yaml"
    path.write_text(stored.getvalue())
    again = load_campaign(path)
    assert expand(again, make_testbed()) == expand(campaign, make_testbed())
    assert resolved(again, make_testbed()) == resolved(campaign, make_testbed())


def test_keys_of_searches_are_not_stored_with_other_procedures() -> None:
    pdv = {"procedure": "pdv", "rate_fps": 1000, "ip": [4]}
    (stored,) = resolved(make_campaign(pdv), make_testbed())["procedures"]
    assert not {"search", "goals", "early_stop"} & set(stored)


@pytest.mark.parametrize(
    ("spec", "actual"),
    [
        (
            VERIFIED,
            (
                "a rate is lowered only when 2 trials at it lost frames, or one lost "
                "more than 0.5 %"
            ),
        ),
        (
            {**MLR, "goals": ["0", "0.5%:50%"]},
            "a goal lets 0.5 % be lost, and more in 50 % of the time",
        ),
        ({**MLR, "goals": ["0.1"]}, "a goal lets 0.1 % be lost"),
    ],
)
def test_what_tolerates_a_loss_is_a_deviation(
    spec: dict[str, Any], actual: str
) -> None:
    found = [d for d in deviations(only_cell(spec)) if d.rfc == "RFC 2544 26.1"]
    assert [deviation.actual for deviation in found] == [actual]


@pytest.mark.parametrize("spec", [THROUGHPUT, MLR, {**THROUGHPUT, "repeats": "auto"}])
def test_a_search_without_tolerance_is_by_the_book(spec: dict[str, Any]) -> None:
    assert deviations(only_cell(spec)) == []
