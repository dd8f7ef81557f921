"""What an older dutperf stored is read as what it is, and nothing is made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stored_samples import VERSION_1

from dutperf.errors import InputError
from dutperf.results import (
    RESULTS_SCHEMA_VERSION,
    CellResult,
    load_environment,
    load_journal,
    load_results,
    spread_of,
)
from dutperf.results.upgrade import cell_of_today, upgraded_record


def records() -> list[dict[str, Any]]:
    lines = (VERSION_1 / "journal.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines[1:]]


def test_results_of_version_1_are_read_with_their_numbers() -> None:
    results = load_results(VERSION_1)
    assert results.schema_version == RESULTS_SCHEMA_VERSION
    assert [(c.procedure, c.median) for c in results.cells] == [
        ("throughput", None),
        ("frame-loss", pytest.approx(70)),
    ]
    assert [c.measures for c in results.cells] == [[], []]
    assert results.dutperf_version == "0.1.0"


def test_what_a_command_of_version_1_printed_is_read_as_its_results(
    tmp_path: Path,
) -> None:
    stored = json.loads((VERSION_1 / "results.json").read_text())
    printed = tmp_path / "printed.json"
    printed.write_text(json.dumps({k: v for k, v in stored.items() if k != "trials"}))
    results = load_results(printed)
    assert (results.cells, results.trials) == (load_results(VERSION_1).cells, [])


def test_the_journal_of_version_1_has_the_same_trials() -> None:
    journal = load_journal(VERSION_1)
    assert journal.records == tuple(load_results(VERSION_1).trials)
    assert len(journal.records) == len(records()) > 2


def test_counts_are_kept_and_delays_are_not_recorded() -> None:
    for old, new in zip(records(), load_journal(VERSION_1).records, strict=True):
        assert not new.delays_recorded
        for before, after in zip(
            old["result"]["directions"], new.result.directions, strict=True
        ):
            for counted, stream in zip(before["streams"], after.streams, strict=True):
                assert counted.items() <= stream.model_dump().items()
                assert (stream.delay_ns.count, stream.ipdv_ns, stream.tags) == (
                    (0, None, None)
                )
                assert stream.series.sent == [counted["sent"]]
                assert stream.series.lost == [counted["lost"]]


def test_a_trial_of_version_1_may_have_lasted_a_day() -> None:
    """Its time series would have too many intervals of today's length."""
    old = records()[0]
    old["request"]["duration_ns"] = 86_400 * 10**9
    assert upgraded_record(old, 1)["request"]["record"]


def test_todays_trials_are_left_alone() -> None:
    record = {"number": 1}
    assert upgraded_record(record, RESULTS_SCHEMA_VERSION) is record


@pytest.mark.parametrize("version", [1, RESULTS_SCHEMA_VERSION])
@pytest.mark.parametrize(
    ("cell", "procedure", "place"),
    [
        ("latency-ip4-64-both-at-throughput@ipdv-lab", "latency", "ipdv-lab"),
        ("ipdv-ip4-64-both-1000fps", "ipdv", None),
        ("throughput-ip6-4-84-both@pdv", "throughput", "pdv"),
        ("something else", None, None),
    ],
)
def test_the_id_of_its_cell_tells_what_a_trial_was(
    cell: str, procedure: str | None, place: str | None, version: int
) -> None:
    record = {k: v for k, v in records()[0].items() if k not in ("procedure", "place")}
    found = upgraded_record(record | {"cell": cell}, version)
    assert (found["procedure"], found["place"]) == (procedure, place)


def test_the_environment_of_version_1_does_not_know_the_clocks() -> None:
    assert load_environment(VERSION_1).clock_offset_ns is None


@pytest.mark.parametrize(
    "damage",
    [
        {"result": None},
        {"result": []},
        {"request": None},
        {"result": {}},
        {"result": {"directions": 1}},
        {"result": {"directions": [1], "ports": [1]}},
    ],
)
def test_a_damaged_record_of_version_1_is_still_an_input_error(
    damage: dict[str, Any], tmp_path: Path
) -> None:
    lines = [
        json.dumps({"schema_version": 1, "campaign": "x", "created_at": "x"}),
        json.dumps(records()[0] | damage),
    ]
    (tmp_path / "journal.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=r"journal\.jsonl:2"):
        load_journal(tmp_path)


# --- cells of which it was not stored what is a lower bound


def cell(
    *repeats: tuple[float | None, str, list[str]], **keys: object
) -> dict[str, Any]:
    """As it was stored: value, verdict and codes of each repeat."""
    values = [value for value, _, _ in repeats if value is not None]
    return {
        "id": "throughput-ip4-64-both",
        "procedure": "throughput",
        "quantity": "throughput per direction (RFC 2544 26.1)",
        "parameters": {"max_load_is": "media"},
        "median": sorted(values)[len(values) // 2] if values else None,
        "unit": "fps",
        "repeats": [
            {
                "value": value,
                "verdict": verdict,
                "reasons": [{"code": code, "message": "at least 1"} for code in codes],
                "trials": 1,
            }
            for value, verdict, codes in repeats
        ],
        "verdict": repeats[0][1],
        "spread": spread_of(values).model_dump(exclude={"lower_bounds"})  # type: ignore[union-attr]
        if values
        else None,
        **keys,
    }


def read(data: dict[str, Any]) -> CellResult:
    return cell_of_today(CellResult.model_validate(data))


MEDIA = {"rate_fps": 9, "link_speed_mbps": 10_000}


@pytest.mark.parametrize(
    ("told", "bound", "cause"),
    [
        (cell((5, "invalid", ["sender_behind"])), "lower", "tester"),
        (cell((5, "invalid", ["unstable", "sender_behind"])), "lower", None),
        (cell((None, "invalid", ["sender_behind"])), None, None),
        (cell((5, "pass", [])), None, None),
        (cell((0, "fail", ["nothing_passed"])), None, None),
        (
            cell((5, "pass", ["max_rate"]), parameters={"max_load_is": "set"}),
            "lower",
            "set",
        ),
        (
            cell((5, "pass", ["max_rate"]), media={**MEDIA, "nominal": True}),
            "lower",
            "nominal",
        ),
        (
            cell((5, "pass", ["max_rate"]), media={**MEDIA, "nominal": False}),
            None,
            None,
        ),
        (cell((5, "pass", ["max_rate"])), "lower", None),
        (
            cell((5, "pass", ["max_rate"]), procedure="table-capacity"),
            "lower",
            "set",
        ),
    ],
)
def test_codes_say_what_was_a_lower_bound(
    told: dict[str, Any], bound: str | None, cause: str | None
) -> None:
    found = read(told)
    assert (found.bound, found.bound_cause) == (bound, cause)
    assert found.verdict == told["verdict"]
    assert found.median == told["median"]


def test_the_figures_that_rest_on_it_are_told() -> None:
    found = read(
        cell(
            *[(5.0, "pass", [])] * 2,
            (7, "invalid", ["sender_behind"]),
            verdict="invalid",
        )
    )
    assert found.bound is None
    assert found.spread is not None
    assert found.spread.lower_bounds == ["percentile_99", "maximum"]
    assert found.spread.dispersion_percent is None


def test_what_todays_dutperf_stored_is_left_alone() -> None:
    told = cell((5, "pass", ["max_rate"])) | {"bound": None}
    assert read(told).bound is None


def test_a_file_without_bounds_is_read_with_them(tmp_path: Path) -> None:
    stored = {
        **json.loads((VERSION_1 / "results.json").read_text()),
        "schema_version": RESULTS_SCHEMA_VERSION,
        "cells": [cell((5, "invalid", ["sender_behind"]))],
        "trials": [],
    }
    (tmp_path / "results.json").write_text(json.dumps(stored))
    [found] = load_results(tmp_path).cells
    assert (found.verdict, found.bound, found.median) == ("invalid", "lower", 5)


@pytest.mark.parametrize(
    ("told", "profile"),
    [
        ({"flows": 4, "flows_by": "ports", "traffic": "flows4"}, ""),
        ({"flows": 4, "flows_by": "ports", "traffic": "mix50-50-flows4"}, "mix50-50"),
        (
            {"flows": 16, "flows_by": "addresses", "traffic": "x-flows16-by-addresses"},
            "x",
        ),
        # A name that looks like a number of flows is a name.
        ({"flows": 4, "flows_by": "ports", "traffic": "flows1-flows4"}, "flows1"),
        ({"flows": 4, "profile": "known", "traffic": "flows4"}, "known"),
        ({"flows": None, "traffic": "flows4"}, None),
    ],
)
def test_a_profile_with_flows_has_its_name(
    told: dict[str, str | int | None], profile: str | None
) -> None:
    found = read(cell((5, "pass", []), parameters=told)).parameters
    assert found.get("profile") == profile
    assert found.get("traffic") == told["traffic"]
