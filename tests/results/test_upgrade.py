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
    load_environment,
    load_journal,
    load_results,
)
from dutperf.results.upgrade import upgraded_record


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
