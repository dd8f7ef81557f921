"""The journal survives what happens to long runs."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from stored_samples import trial_record

from dutperf.errors import InputError, SetupError
from dutperf.results import ResultsDirectory, load_journal


@pytest.fixture
def directory(tmp_path: Path) -> ResultsDirectory:
    made = ResultsDirectory.create(tmp_path, "demo")
    made.append(trial_record(1))
    return made


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """A disk that is full: the kernel refuses to write beyond ``size``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_header_names_the_campaign_and_the_schema(directory: ResultsDirectory) -> None:
    header = load_journal(directory.path).header
    assert (header.campaign, header.schema_version) == ("demo", 3)


def test_a_whole_journal_is_not_truncated(directory: ResultsDirectory) -> None:
    assert not load_journal(directory.path).truncated


@pytest.mark.parametrize("cut", [1, 2, 100])
def test_a_torn_last_line_is_left_out_and_told(
    directory: ResultsDirectory, cut: int
) -> None:
    directory.append(trial_record(2))
    journal = directory.path / "journal.jsonl"
    os.truncate(journal, journal.stat().st_size - cut)
    contents = load_journal(directory.path)
    assert contents.truncated
    assert [record.number for record in contents.records] == [1]


def test_damage_before_the_last_line_is_an_input_error(
    directory: ResultsDirectory,
) -> None:
    journal = directory.path / "journal.jsonl"
    journal.write_text(journal.read_text().replace('{"number"', '{"nummer"') + "{}\n")
    with pytest.raises(InputError, match=r"journal\.jsonl:2: number") as caught:
        load_journal(journal)
    assert "what stands above that line is good" in caught.value.hint


def test_an_empty_journal_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text("")
    with pytest.raises(InputError, match="is empty"):
        load_journal(tmp_path)


def test_a_newer_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text('{"schema_version": 4}\n')
    with pytest.raises(InputError, match="schema version 4"):
        load_journal(tmp_path)


def test_a_full_disk_is_told_with_what_is_safe(directory: ResultsDirectory) -> None:
    size = (directory.path / "journal.jsonl").stat().st_size
    with file_size_limit(size + 50), pytest.raises(SetupError) as caught:
        directory.append(trial_record(2))
    assert "journal.jsonl: File too large" in caught.value.message
    assert "every earlier trial is safe" in caught.value.message
    assert "ulimit" in caught.value.hint


def test_a_full_disk_leaves_the_journal_whole(directory: ResultsDirectory) -> None:
    size = (directory.path / "journal.jsonl").stat().st_size
    with file_size_limit(size + 50), pytest.raises(SetupError):
        directory.append(trial_record(2))
    directory.append(trial_record(3))
    contents = load_journal(directory.path)
    assert not contents.truncated
    assert [record.number for record in contents.records] == [1, 3]
    assert [record.number for record in directory.records] == [1, 3]


def test_a_removed_journal_is_a_setup_error(directory: ResultsDirectory) -> None:
    (directory.path / "journal.jsonl").unlink()
    with pytest.raises(SetupError, match="No such file") as caught:
        directory.append(trial_record(2))
    assert "somebody removed it" in caught.value.hint
