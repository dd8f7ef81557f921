"""Trials that stay in the journal, and which of them count."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from stored_samples import results_file, trial_record

from dutperf.evidence.accounting import check_trials
from dutperf.results import ResultsDirectory, TrialRecord, load_journal, load_results
from dutperf.results import journal as module
from dutperf.results.journal import counting
from oracle.records import by_cell


def records(*places: tuple[str, str | None]) -> list[TrialRecord]:
    """A trial each, of a cell, at the testbed that stands in."""
    return [
        trial_record(number).model_copy(update={"cell": cell, "stands_in": stands_in})
        for number, (cell, stands_in) in enumerate(places, 1)
    ]


def numbers(trials: Sequence[TrialRecord]) -> list[int]:
    return [trial.number for trial in trials]


def test_of_a_cell_that_was_taken_over_the_later_trials_count() -> None:
    own: list[tuple[str, str | None]] = [("one", None), ("two", None), ("two", None)]
    assert numbers(counting(records(*own))) == [1, 2, 3]
    assert numbers(counting(records(*own, ("two", "spare")))) == [1, 4]
    back = records(*own, ("two", "spare"), ("two", None), ("three", None))
    assert numbers(counting(back)) == [1, 5, 6]
    plain = [json.loads(record.stored_text()) for record in back]
    again = [trial["number"] for of in by_cell(plain).values() for trial in of]
    assert again == [1, 5, 6]


def test_ids_begin_again_with_a_cell_that_is_taken_over() -> None:
    taken = records(("one", None), ("two", None), ("two", "spare"), ("two", "spare"))
    ids = (1, 2, 2, 3)
    plain = [json.loads(record.stored_text()) for record in taken]
    for trial, number in zip(plain, ids, strict=True):
        trial["request"]["trial_id"] = trial["result"]["trial_id"] = number
    assert not [told for told in check_trials(plain) if "its ids" in told]
    plain[2]["request"]["trial_id"] = 7
    told = [told for told in check_trials(plain) if "its ids" in told]
    assert told == ["trial 3: its ids, 7 and 2, are not 2 or 3"]


def test_trials_are_read_from_the_journal_when_they_are_not_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_HAND", 1)
    stored = records(("one", None), ("two", None), ("one", None), ("two", "spare"))
    with ResultsDirectory.create(tmp_path / "run", "name") as directory:
        directory.append(stored[0])
        directory.append_all(stored[1:])
        assert directory.records == stored
        assert directory.records[-1] == stored[-1]
        assert directory.records[1:3] == stored[1:3]
        assert directory.records.of(["two"]) == [stored[3]]
        assert directory.records.of(["two", "one"]) == [stored[0], *stored[2:]]
        with pytest.raises(IndexError):
            _ = directory.records[4]
    assert load_journal(tmp_path / "run").records == tuple(stored)


@pytest.mark.parametrize("piece_bytes", [1, 1000, 1 << 20])
def test_results_have_the_lines_of_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece_bytes: int
) -> None:
    monkeypatch.setattr(module, "_PIECE_BYTES", piece_bytes)
    stored = records(("one", None), ("two", None))
    results = results_file()
    for trials in ([], stored):
        path = tmp_path / str(len(trials))
        with ResultsDirectory.create(path, "name") as directory:
            directory.append_all(trials) if trials else None
            update = {"trials": directory.records}
            directory.write_results(results.model_copy(update=update))
        found = load_results(path)
        assert found == results.model_copy(update={"trials": trials})
