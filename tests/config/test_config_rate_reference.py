"""Loads that are named by the throughput: grammar, who finds them, deviations."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from config_samples import make_campaign, make_testbed
from planning import spec_with
from pydantic import TypeAdapter, ValidationError
from ruamel.yaml import YAML

from dutperf.config import deviations, expand, load_campaign, resolved, with_sources
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.loads import FixedRate, RateReference, parse_rate_reference

THROUGHPUT: dict[str, Any] = {"procedure": "throughput", "ip": [4]}
LATENCY: dict[str, Any] = {"procedure": "latency", "ip": [4], "rate_fps": "throughput"}


def cells(*specs: dict[str, Any]) -> list[Cell]:
    return expand(make_campaign(*specs), make_testbed())


@pytest.mark.parametrize(
    ("given", "text", "load_fps"),
    [
        ("throughput", "throughput", 1000),
        (" throughput  p25", "throughput p25", 1000),
        ("90% of throughput", "90% of throughput", 900),
        ("99.95 % of throughput p5", "99.95% of throughput p5", 999),
        ("100% of throughput", "throughput", 1000),
        ("0.000001% of throughput", "0.000001% of throughput", 0),
    ],
)
def test_a_load_reads_as_it_is_written(given: str, text: str, load_fps: int) -> None:
    rate = parse_rate_reference(given)
    assert str(rate) == text
    assert parse_rate_reference(text) == rate
    assert rate.of(1000) == load_fps
    assert rate.plain == (text == "throughput")


def test_a_share_is_exact() -> None:
    """Not 0.1 + 0.2: nine tenths of ten frames are nine."""
    assert [
        parse_rate_reference("90% of throughput").of(n) for n in range(10, 60, 10)
    ] == [9 * n for n in range(1, 6)]
    assert isinstance(parse_rate_reference("throughput p1"), RateReference)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("fast", "must be whole frames per second like 100000, or throughput, "),
        ("throughput p0", "must be a lower quantile, p1 to p49"),
        ("throughput p50", "throughput alone is the median"),
        ("throughput p99", "must be a lower quantile"),
        ("0% of throughput", "must be above 0 and at most 100 % of it"),
        ("101% of throughput", "must be above 0 and at most 100 % of it"),
        ("-5", "must be whole frames per second"),
        (0, "must be at least 1, not 0"),
        (10**12 + 1, "must be at most 1000000000000"),
        (1.5, "must be whole frames per second, or throughput, not 1.5"),
        (True, "must be whole frames per second"),
    ],
)
def test_other_loads_are_refused_in_a_sentence(given: object, message: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        TypeAdapter(FixedRate).validate_python(given)
    assert message in refusal.value.errors()[0]["msg"]


def test_each_cell_knows_the_one_that_finds_its_load() -> None:
    found = cells(
        {**THROUGHPUT, "ip": [4, 6], "frame_size": [128, 256]},
        {**LATENCY, "ip": [6, 4], "frame_size": [256]},
        {**LATENCY, "procedure": "pdv", "rate_fps": "90% of throughput p25"}
        | {"frame_size": [128]},
    )
    assert [(cell.id, cell.throughput_cell) for cell in found[4:]] == [
        ("latency-ip6-256-both-at-throughput", "throughput-ip6-256-both"),
        ("latency-ip4-256-both-at-throughput", "throughput-ip4-256-both"),
        (
            "pdv-ip4-128-both-at-90percent-of-throughput-p25",
            "throughput-ip4-128-both",
        ),
    ]


def test_the_throughput_of_rfc_2544_is_preferred() -> None:
    tolerant = {**THROUGHPUT, "loss_tolerance_percent": 0.01}
    assert cells(tolerant, THROUGHPUT, LATENCY)[2].throughput_cell == (
        "throughput-ip4-64-both"
    )
    assert cells(tolerant, LATENCY)[1].throughput_cell == (
        "throughput-ip4-64-both-tolerating-0.01percent"
    )


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ([], "but no throughput of the same frames is measured before it"),
        ([{**THROUGHPUT, "ip": [6]}], "(those that are: throughput-ip6-84-both)"),
        ([{**THROUGHPUT, "frame_size": [128]}], "no throughput of the same frames"),
        ([{**THROUGHPUT, "direction": "forward"}], "no throughput of the same frames"),
        ([{**THROUGHPUT, "traffic": {"networks": 4}}], "no throughput of the same"),
        (
            [
                {**THROUGHPUT, "loss_tolerance_percent": 0.01},
                {**THROUGHPUT, "frame_timeout_ms": 10},
            ],
            "one: throughput-ip4-64-both-tolerating-0.01percent",
        ),
    ],
)
def test_a_load_that_nothing_finds_is_refused(
    before: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(InputError) as refusal:
        cells(*before, LATENCY)
    assert f"procedures[{len(before)}].rate_fps: latency-ip4" in refusal.value.message
    assert message in refusal.value.message
    assert "list one procedure throughput" in refusal.value.hint


def test_a_throughput_that_comes_later_does_not_count() -> None:
    with pytest.raises(InputError, match="no throughput of the same frames"):
        cells(LATENCY, THROUGHPUT)


def test_the_resolved_campaign_gives_the_same_cells(tmp_path: Path) -> None:
    sizes = {"frame_size": [128, 256]}
    campaign = make_campaign(
        THROUGHPUT | sizes,
        LATENCY | sizes,
        LATENCY | sizes | {"procedure": "ipdv", "rate_fps": "75% of throughput p10"},
    )
    text = io.StringIO()
    YAML(typ="safe", pure=True).dump(resolved(campaign, make_testbed()), text)
    (tmp_path / "c.yaml").write_text(text.getvalue())
    again = load_campaign(tmp_path / "c.yaml")
    assert expand(again, make_testbed()) == expand(campaign, make_testbed())


@pytest.mark.parametrize(
    ("procedure", "rate", "expected"),
    [
        ("latency", "throughput", []),
        ("latency", "throughput p25", [("RFC 8219 7.2", "at throughput p25")]),
        ("pdv", "90% of throughput", [("RFC 8219 7.3.1", "at 90% of throughput")]),
        ("ipdv", 5000, [("RFC 8219 7.3.2", "at 5,000 fps, as given")]),
    ],
)
def test_any_load_but_the_throughput_is_a_deviation(
    procedure: str, rate: str | int, expected: list[tuple[str, str]]
) -> None:
    asked = {"procedure": procedure, "rate_fps": rate}
    *_, cell = cells(THROUGHPUT, LATENCY | asked)
    found = [
        (shortfall.rfc, shortfall.actual)
        for shortfall in deviations(cell)
        if shortfall.requirement == "load at the throughput rate"
    ]
    assert found == expected


def test_a_search_is_put_before_a_procedure_that_needs_one() -> None:
    given = spec_with(
        LATENCY
        | {"frame_size": [128, 256], "max_rate_fps": 77, "settle_wait_s": 1}
        | {"traffic": {"networks": 4, "ports": {"source": "fixed:7"}}}
    )
    search, same = with_sources(given)
    assert same is given
    assert (search.procedure, search.trial_duration_s) == ("throughput", 60)
    for key in ("ip", "frame_size", "max_rate_fps", "settle_wait_s", "traffic"):
        assert getattr(search, key) == getattr(given, key)
    campaign = make_campaign(search.model_dump(), given.model_dump())
    assert [cell.procedure for cell in expand(campaign, make_testbed())] == [
        *["throughput"] * 2,
        *["latency"] * 2,
    ]


def test_short_trials_are_short_in_the_search_too() -> None:
    short = {"trial_duration_s": 3, "first_tag_s": 1}
    search, _ = with_sources(spec_with(LATENCY | short))
    assert search.trial_duration_s == 3


def test_a_load_in_frames_needs_no_search() -> None:
    given = spec_with(LATENCY | {"rate_fps": 1000})
    assert with_sources(given) == [given]
