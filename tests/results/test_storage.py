"""Failures of the file system, as the user reads them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dutperf.errors import SetupError
from dutperf.results.storage import (
    append_line,
    create_exclusively,
    lock,
    storage_error,
    write_atomically,
)


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EROFS, "mounted read only"),
        (errno.EACCES, "may write to"),
        (errno.EPERM, "may write to"),
        (errno.ENOTDIR, "part of the path is a file"),
        (errno.EIO, "kernel log"),
        (errno.EMFILE, "another results directory"),
    ],
)
def test_each_failure_names_file_reason_and_remedy(number: int, remedy: str) -> None:
    error = storage_error(OSError(number, ""), Path("/r/results.json"), "x is safe")
    reason = os.strerror(number)
    assert error.message == f"cannot write /r/results.json: {reason}; x is safe"
    assert remedy in error.hint


def test_an_os_error_without_number_keeps_its_words() -> None:
    assert "odd" in storage_error(OSError("odd"), Path("f")).message


def test_a_link_that_waits_under_a_files_new_name_is_not_written_through(
    tmp_path: Path,
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".report.html.new").symlink_to(victim)
    write_atomically(tmp_path / "report.html", "page")
    assert victim.read_text() == "mine"
    assert (tmp_path / "report.html").read_text() == "page"


def _exchange(directory: Path, other: Path) -> None:
    directory.rename(directory.with_name("moved"))
    directory.symlink_to(other)


@pytest.mark.parametrize(
    "write",
    [
        lambda file: write_atomically(file, "x"),
        lambda file: create_exclusively(file, "x"),
    ],
)
def test_a_directory_that_is_exchanged_meanwhile_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], None]
) -> None:
    directory, other = tmp_path / "run", tmp_path / "other"
    directory.mkdir()
    other.mkdir()
    opened = os.open

    def exchange(path: str | Path, *rest: int, **named: int) -> int:
        descriptor = opened(path, *rest, **named)
        if Path(path) == directory:
            _exchange(directory, other)
        return descriptor

    monkeypatch.setattr(os, "open", exchange)
    write(directory / "results.json")
    assert not list(other.iterdir())
    assert [path.name for path in (tmp_path / "moved").iterdir()] == ["results.json"]


@pytest.mark.parametrize("change", [lambda file: append_line(file, "x"), lock])
def test_no_link_is_followed_to_be_written(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "journal.jsonl").symlink_to(tmp_path / "victim")
    with pytest.raises(SetupError) as told:
        change(tmp_path / "journal.jsonl")
    assert told.value.hint.startswith("links are not followed")
    assert (tmp_path / "victim").read_text() == "mine"


def test_a_failed_replacement_keeps_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "results.json"
    write_atomically(file, "old")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SetupError, match="No space left"):
        write_atomically(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]
