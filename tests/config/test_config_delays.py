"""Keys about delays: defaults by the standard, exact amounts, refusals, deviations."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from config_samples import make_campaign, make_testbed
from hypothesis import given, settings
from hypothesis import strategies as st
from planning import spec_with
from ruamel.yaml import YAML

from dutperf.config import deviations, expand, load_campaign, resolved, spec_from
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.specs import LatencySpec

LOSS: dict[str, Any] = {"procedure": "frame-loss"}
LATENCY: dict[str, Any] = {"procedure": "latency", "rate_fps": 1000, "ip": [4]}
THROUGHPUT: dict[str, Any] = {"procedure": "throughput", "ip": [4]}


def only_cell(spec: dict[str, Any]) -> Cell:
    (cell,) = expand(make_campaign(spec), make_testbed())
    return cell


def at_throughput(spec: dict[str, Any]) -> Cell:
    """The cell at the load that the RFCs ask for, if it has a fixed one."""
    cell = only_cell(spec)
    fixed = cell.spec.given_rate_fps is not None
    return cell.with_keys(rate_fps="throughput") if fixed else cell


@pytest.mark.parametrize(
    ("procedure", "duration_s", "repeats", "tags", "first_tag_s"),
    [
        ("latency", 120, 20, 50_000, 60),
        ("pdv", 60, 20, None, None),
        ("ipdv", 60, 20, None, None),
    ],
)
def test_defaults_are_those_of_rfc_8219(
    procedure: str,
    duration_s: float,
    repeats: int,
    tags: int | None,
    first_tag_s: float | None,
) -> None:
    cell = only_cell({**LATENCY, "procedure": procedure})
    assert (cell.spec.trial_duration_s, cell.repeats) == (duration_s, repeats)
    told = None if tags is None else (tags, first_tag_s)
    assert cell.spec.tagging == told
    assert deviations(at_throughput({**LATENCY, "procedure": procedure})) == []


def test_the_old_latency_has_one_tag_and_is_by_its_book() -> None:
    cell = only_cell({**LATENCY, "rfc2544_latency": True})
    assert (cell.spec.tagging, cell.repeats) == ((1, 60), 20)
    assert deviations(at_throughput({**LATENCY, "rfc2544_latency": True})) == []


@pytest.mark.parametrize(
    ("milliseconds", "nanoseconds"),
    [(10, 10_000_000), (0.1, 100_000), (1.000001, 1_000_001), (0.000001, 1)],
)
def test_a_timeout_is_exact(milliseconds: float, nanoseconds: int) -> None:
    cell = only_cell({**THROUGHPUT, "frame_timeout_ms": milliseconds})
    assert cell.spec.frame_timeout_ns == nanoseconds


@pytest.mark.parametrize(
    ("percent", "ppb"),
    [(0, 0), (0.01, 100_000), (0.011, 110_000), (1e-7, 1), (99.9999999, 999_999_999)],
)
def test_a_tolerance_is_exact(percent: float, ppb: int) -> None:
    cell = only_cell({**THROUGHPUT, "loss_tolerance_percent": percent})
    assert cell.spec.loss_tolerance_ppb == ppb


@given(st.integers(1, 10**12))
@settings(derandomize=True, database=None, deadline=None)
def test_any_whole_number_of_nanoseconds_can_be_written(nanoseconds: int) -> None:
    spec = spec_with(
        {
            **THROUGHPUT,
            "frame_timeout_ms": nanoseconds / 1e6,
            "residual_wait_s": 86_400,
        }
    )
    assert spec.frame_timeout_ns == nanoseconds


def test_a_sweep_rises_however_it_was_written() -> None:
    cell = only_cell({**THROUGHPUT, "timeout_sweep_ms": [50, 1, 0.5]})
    assert cell.spec.timeout_sweep_ns == [500_000, 1_000_000, 50_000_000]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"procedure": "latency"}, "rate_fps: is missing"),
        ({"procedure": "pdv"}, "rate_fps: is missing"),
        ({"rate_fps": 1}, "rate_fps: unknown key: it is of frame-loss, latency,"),
        ({"tags": 5}, "tags: unknown key: it is of latency"),
        ({"rfc2544_latency": True}, "rfc2544_latency: unknown key: it is of latency"),
        (
            {**LATENCY, "frame_timeout_ms": 1},
            "frame_timeout_ms: unknown key: it is of throughput, multicast-throughput",
        ),
        (
            {"procedure": "frame-loss", "loss_tolerance_percent": 1},
            "loss_tolerance_percent: unknown key: it is of throughput",
        ),
        ({**LATENCY, "load_percent": [5]}, "load_percent: unknown key: it is of frame"),
        ({**LOSS, "load_percent": [101]}, "101 is above 100: give rate_fps: through"),
        ({**LOSS, "rate_fps": 1000}, "rate_fps: must be throughput, or left out"),
        (
            {**LOSS, "rate_fps": "throughput", "load_step_percent": 5},
            "load_step_percent is of the maximum rate",
        ),
        (
            {**LATENCY, "rfc2544_latency": True, "tags": 2},
            "tags: must be 1, or left out",
        ),
        (
            {**LATENCY, "trial_duration_s": 60, "first_tag_s": 60},
            "first_tag_s: 60 s is not before the end of the trial, 60 s",
        ),
        ({"frame_timeout_ms": 0}, "must be above 0, not"),
        ({"frame_timeout_ms": -1}, "must be above 0, not"),
        ({"frame_timeout_ms": 0.0000001}, "must be whole nanoseconds, not 1e-07"),
        ({"frame_timeout_ms": 2000}, "frame_timeout_ms: 2000 ms is not below the wait"),
        ({"frame_timeout_ms": 1, "residual_wait_s": 0}, "is not below the wait"),
        ({"timeout_sweep_ms": [1, 2001]}, "timeout_sweep_ms: 2001 ms is not below"),
        ({"timeout_sweep_ms": [1, 0]}, "must be above 0, not"),
        ({"timeout_sweep_ms": [5, 5]}, "must not list 5 twice"),
        ({"timeout_sweep_ms": list(range(1, 18))}, "must have at most 16 entries"),
        ({"loss_tolerance_percent": 100}, "must be below 100"),
        ({"loss_tolerance_percent": -1}, "must be at least 0"),
        ({"loss_tolerance_percent": 1e-8}, "must be whole parts per billion"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    spec: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as refusal:
        spec_from({"procedure": "throughput", **spec}, "here")
    assert message in refusal.value.message


def test_no_wait_for_late_frames_is_no_trouble_without_a_timeout() -> None:
    assert only_cell({**THROUGHPUT, "residual_wait_s": 0}).spec.residual_wait_s == 0


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        (
            {"rate_fps": 833},
            "tags: 50000 are more than the 49980 frames of a direction's foreground",
            "lower tags (--tags) to 49980 or less",
        ),
        (
            {"traffic": {"mix": "50/50", "background_ip": 6}},
            "tags: 50000 are more than the 30000 frames",
            "higher rate_fps",
        ),
        (
            {"max_rate_fps": 999},
            "rate_fps: 1000 is more than the maximum rate that was set, 999",
            "max_rate_fps",
        ),
    ],
)
def test_a_load_that_cannot_be_is_refused_before_the_first_frame(
    changes: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(InputError) as refusal:
        only_cell({**LATENCY, **changes})
    assert f"procedures[0].{message}" in refusal.value.message
    assert hint in refusal.value.hint


def test_exactly_as_many_tags_as_frames_are_allowed() -> None:
    assert only_cell({**LATENCY, "rate_fps": 834}).spec.tagging == (50_000, 60)
    assert only_cell({**LATENCY, "tags": 60_000}).spec.tagging == (60_000, 60)


def test_cells_that_are_judged_differently_are_told_apart() -> None:
    specs = [
        THROUGHPUT,
        {**THROUGHPUT, "frame_timeout_ms": 10},
        {**THROUGHPUT, "frame_timeout_ms": 10, "loss_tolerance_percent": 0.01},
        LATENCY,
        {**LATENCY, "rate_fps": 2000, "rfc2544_latency": True},
    ]
    cells = expand(make_campaign(*specs), make_testbed())
    assert [cell.id for cell in cells] == [
        "throughput-ip4-64-both",
        "throughput-ip4-64-both-within-10ms",
        "throughput-ip4-64-both-within-10ms-tolerating-0.01percent",
        "latency-ip4-64-both-1000fps",
        "latency-ip4-64-both-2000fps-legacy",
    ]


@pytest.mark.parametrize(
    "spec",
    [
        LATENCY,
        {**LATENCY, "rfc2544_latency": True, "repeats": 50},
        {**LATENCY, "procedure": "ipdv", "trial_duration_s": 5},
        {**THROUGHPUT, "frame_timeout_ms": 0.25, "timeout_sweep_ms": [1, 2.5]},
        {**THROUGHPUT, "loss_tolerance_percent": 0.0000001},
    ],
)
def test_the_resolved_campaign_gives_the_same_cells(
    spec: dict[str, Any], tmp_path: Path
) -> None:
    campaign = make_campaign(spec)
    text = io.StringIO()
    YAML(typ="safe", pure=True).dump(resolved(campaign, make_testbed()), text)
    (tmp_path / "c.yaml").write_text(text.getvalue())
    again = load_campaign(tmp_path / "c.yaml")
    assert expand(again, make_testbed()) == expand(campaign, make_testbed())


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {**LATENCY, "trial_duration_s": 119, "first_tag_s": 60},
            (
                "RFC 8219 7.2",
                "trial duration of at least 120 s",
                "119 s instead of at least 120 s",
            ),
        ),
        (
            {
                **LATENCY,
                "rfc2544_latency": True,
                "trial_duration_s": 119,
                "first_tag_s": 60,
            },
            (
                "RFC 2544 26.2",
                "trial duration of at least 120 s",
                "119 s instead of at least 120 s",
            ),
        ),
        (
            {**LATENCY, "tags": 499},
            (
                "RFC 8219 7.2",
                "at least 500 tagged frames",
                "499 instead of at least 500",
            ),
        ),
        (
            {**LATENCY, "first_tag_s": 59.5},
            ("RFC 8219 7.2", "first tagged frame after 60 s", "after 59.5 s"),
        ),
        (
            {**LATENCY, "rfc2544_latency": True, "first_tag_s": 59.5},
            ("RFC 2544 26.2", "first tagged frame after 60 s", "after 59.5 s"),
        ),
        (
            {**LATENCY, "repeats": 19},
            ("RFC 8219 7.2", "at least 20 repeats", "19 instead of at least 20"),
        ),
        (
            {**LATENCY, "rfc2544_latency": True, "repeats": 19},
            ("RFC 2544 26.2", "at least 20 repeats", "19 instead of at least 20"),
        ),
        (
            {**LATENCY, "procedure": "pdv", "repeats": 1},
            ("RFC 8219 7.3.1", "at least 20 repeats", "1 instead of at least 20"),
        ),
        (
            {**LATENCY, "procedure": "ipdv", "repeats": 1},
            ("RFC 8219 7.3.2", "at least 20 repeats", "1 instead of at least 20"),
        ),
        (
            {**THROUGHPUT, "frame_timeout_ms": 10},
            (
                "RFC 2544 26.1",
                "frames count as received however late they are",
                "frames slower than 10 ms count as lost",
            ),
        ),
        (
            {**THROUGHPUT, "procedure": "frame-loss", "frame_timeout_ms": 10},
            (
                "RFC 2544 26.3",
                "frames count as received however late they are",
                "frames slower than 10 ms count as lost",
            ),
        ),
        (
            {**THROUGHPUT, "loss_tolerance_percent": 0.01},
            (
                "RFC 2544 26.1",
                "no frame is lost",
                "up to 0.01 % of a direction's frames may be lost",
            ),
        ),
    ],
)
def test_what_the_standard_does_not_ask_for_is_a_deviation(
    spec: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    (found,) = deviations(at_throughput(spec))
    assert (found.rfc, found.requirement, found.actual) == expected


@pytest.mark.parametrize(
    ("spec", "point"),
    [
        ({}, ("RFC 8219 7.2", "SHOULD")),
        ({"rfc2544_latency": True}, ("RFC 2544 26.2", "text")),
        ({"procedure": "pdv"}, ("RFC 8219 7.3.1", "text")),
        ({"procedure": "ipdv"}, ("RFC 8219 7.3.2", "text")),
    ],
)
def test_another_load_than_the_throughput_has_the_level_that_its_rfc_gives_it(
    spec: dict[str, Any], point: tuple[str, str]
) -> None:
    (found,) = deviations(only_cell(LATENCY | spec))
    assert (found.rfc, found.level) == point


@pytest.mark.parametrize("spec", [{"tags": 499}, {"first_tag_s": 59}])
def test_tagged_frames_are_a_recommendation(spec: dict[str, Any]) -> None:
    (found,) = deviations(at_throughput(LATENCY | spec))
    assert (found.rfc, found.level) == ("RFC 8219 7.2", "SHOULD")


def test_five_hundred_tagged_frames_are_enough() -> None:
    assert deviations(at_throughput(LATENCY | {"tags": 500})) == []


def test_a_sweep_alone_changes_no_judgement() -> None:
    assert deviations(only_cell({**THROUGHPUT, "timeout_sweep_ms": [1, 5]})) == []


@pytest.mark.parametrize(
    ("keys", "first_tag_s", "tags"),
    [
        ({"rate_fps": 1000}, 60, 50_000),  # by the book
        ({"rate_fps": 1000, "trial_duration_s": 10}, 5, 2_500),
        ({"rate_fps": "1k", "trial_duration_s": 10}, 5, 2_500),
        ({"rate_fps": 10**6, "trial_duration_s": 10}, 5, 50_000),
        ({"rate_fps": 1000, "trial_duration_s": 10, "first_tag_s": 2}, 2, 4_000),
        ({"rate_fps": 1000, "trial_duration_s": 10, "tags": 7}, 5, 7),
        ({"rate_fps": 1, "trial_duration_s": 1}, 0.5, 1),
        ({"rate_fps": "throughput", "trial_duration_s": 10}, 5, 50_000),
        ({"rate_fps": 1, "trial_duration_s": 10, "rfc2544_latency": True}, 5, 1),
    ],
)
def test_a_short_latency_has_tags_that_fit(
    keys: dict[str, Any], first_tag_s: float, tags: int
) -> None:
    spec = LatencySpec.model_validate({"procedure": "latency", **keys})
    assert (spec.first_tag_s, spec.tags) == (first_tag_s, tags)
