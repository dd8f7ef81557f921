"""A journal that grows is read as far as it is whole, and is not disturbed."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_samples import STORED, trial_record

from dutperf.errors import InputError
from dutperf.results import (
    JournalFollower,
    ResultsDirectory,
    is_running,
    load_journal,
    load_results,
)


def numbers(follower: JournalFollower, most: int = 100) -> list[int]:
    return [record.number for record in follower.more(most)]


def test_each_trial_is_told_once_and_in_order(tmp_path: Path) -> None:
    with ResultsDirectory.create(tmp_path / "r", "demo") as directory:
        follower = JournalFollower(directory.path)
        assert follower.header.campaign == "demo"
        assert numbers(follower) == []
        for number in (1, 2, 3):
            directory.append(trial_record(number))
        assert numbers(follower, most=2) == [1, 2]
        assert numbers(follower, most=2) == [3]
        directory.append(trial_record(4))
        assert numbers(follower) == [4]


def test_a_torn_line_waits_until_it_is_whole(tmp_path: Path) -> None:
    directory = ResultsDirectory.create(tmp_path / "r", "demo")
    directory.append(trial_record(1))
    journal = directory.path / "journal.jsonl"
    whole = journal.read_bytes()
    follower = JournalFollower(directory.path)
    journal.write_bytes(whole[:-9])
    assert numbers(follower) == []
    journal.write_bytes(whole)
    assert numbers(follower) == [1]
    directory.close()


def test_what_is_followed_is_what_is_loaded() -> None:
    follower = JournalFollower(STORED)
    loaded = load_journal(STORED)
    assert follower.header == loaded.header
    assert tuple(follower.more(10_000)) == loaded.records


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        ("half a li", "empty"),
        ("no json\n", "not valid JSON"),
        ('{"schema_version": 99}\n', "schema version 99"),
    ],
)
def test_what_is_no_journal_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "journal.jsonl").write_text(text)
    with pytest.raises(InputError, match=told):
        JournalFollower(tmp_path).more(1)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    with ResultsDirectory.create(tmp_path / "r", "demo") as directory:
        directory.append(trial_record(1))
        with (directory.path / "journal.jsonl").open("a") as file:
            file.write("{}\n")
        with pytest.raises(InputError, match=r"journal\.jsonl:3"):
            JournalFollower(directory.path).more(10)


def test_a_run_lasts_as_long_as_it_has_its_journal(tmp_path: Path) -> None:
    assert not is_running(tmp_path)
    directory = ResultsDirectory.create(tmp_path / "r", "demo")
    assert is_running(directory.path)
    directory.close()
    assert not is_running(directory.path)


def test_who_looks_does_not_keep_a_run_from_its_journal(tmp_path: Path) -> None:
    ResultsDirectory.create(tmp_path / "r", "demo").close()
    assert not is_running(tmp_path / "r")
    ResultsDirectory.resume(tmp_path / "r", "demo", {}).close()


def test_results_can_be_read_without_their_trials() -> None:
    every, bare = load_results(STORED), load_results(STORED, trials=False)
    assert every.trials
    assert bare == every.model_copy(update={"trials": []})
