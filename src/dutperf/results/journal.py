"""``journal.jsonl``: every finished trial, on disk before the next one starts.

The first line is a header, every other one a TrialRecord. The writer takes back a line
that it could write in part only, but a machine that loses power may leave a torn last
line; readers ignore it and say so, and a run that is resumed cuts it off.

The journal is locked as long as a run may append to it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from dutperf import __version__, busy
from dutperf.errors import InputError
from dutperf.results.loading import (
    check_version,
    parse_object,
    read_bytes,
    stored_file,
    validated,
)
from dutperf.results.model import RESULTS_SCHEMA_VERSION, SchemaVersion
from dutperf.results.storage import append_line, create_exclusively, cut, lock
from dutperf.results.stored import Stored
from dutperf.results.stored_trials import StoredTrials
from dutperf.results.trial_record import TrialRecord

JOURNAL = "journal.jsonl"
LONGEST_LINE_BYTES = 1 << 27
"""Twice what the engine may tell of a trial (``engine/rpc.py``)."""


class JournalHeader(Stored):
    """First line of a journal."""

    schema_version: SchemaVersion = RESULTS_SCHEMA_VERSION
    dutperf_version: str = Field(default=__version__, description="who wrote it")
    campaign: str
    created_at: str = Field(description="ISO 8601, UTC")


class JournalContents(NamedTuple):
    """A journal as read; ``truncated``: a torn last line was left out.

    ``whole_bytes`` is its length up to the torn line.
    """

    header: JournalHeader
    records: tuple[TrialRecord, ...]
    truncated: bool
    whole_bytes: int


class Journal:
    """Appends to one journal, and keeps others from it until ``close``.

    Made by ``create`` or ``open``; not thread-safe.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._lock = descriptor

    @classmethod
    def create(cls, path: Path, header: JournalHeader) -> Journal:
        """Begin a journal.

        Raises:
            FileExistsError: there is one.
            SetupError: the file system refused.
        """
        create_exclusively(path, _line(header) + "\n")
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Journal:
        """Take a journal that exists; it is not changed yet.

        Raises:
            InputError: a run appends to it at this moment.
            SetupError: it cannot be opened.
        """
        try:
            return cls(path, lock(path))
        except BlockingIOError:
            raise InputError(
                f"{path.parent} is in use by another run: {busy.holder(path)}",
                "wait for its end, or give another directory",
            ) from None

    def close(self) -> None:
        """Let others have it."""
        os.close(self._lock)

    @property
    def begun(self) -> bool:
        """Whether its first line is whole: else the run ended before any trial."""
        return b"\n" in read_bytes(self.path)

    def begin(self, header: JournalHeader) -> None:
        """Start again with an empty journal.

        Raises:
            SetupError: the file system refused.
        """
        cut(self.path, 0)
        append_line(self.path, _line(header))

    def mend(self, contents: JournalContents) -> None:
        """Take a torn last line away, so that the next one stands on its own.

        Raises:
            SetupError: the file system refused.
        """
        if contents.truncated:
            cut(self.path, contents.whole_bytes)

    def trials(self, contents: JournalContents | None = None) -> StoredTrials:
        """Those that are in it: of a journal that has just begun none."""
        header, *lines = read_bytes(self.path).split(b"\n")[:-1]
        trials = StoredTrials(self.path, len(header) + 1)
        records = contents.records if contents else ()
        for record, line in zip(records, lines, strict=True):
            trials.add(record, len(line) + 1)
        return trials

    def append(self, records: Sequence[TrialRecord]) -> list[int]:
        """Store ``records``; they are on disk when this returns: how many bytes each.

        Raises:
            SetupError: the file system refused; earlier records are not affected.
        """
        lines = [record.stored_text() for record in records]
        append_line(self.path, "\n".join(lines), "every earlier trial is safe")
        return [len(line.encode()) + 1 for line in lines]


def load_journal(path: Path) -> JournalContents:
    """Read the journal in directory ``path``, or the file ``path``.

    Raises:
        InputError: missing, damaged before its last line, or of a newer dutperf.
    """
    file = stored_file(path, JOURNAL)
    stored = read_bytes(file)
    *lines, torn = stored.split(b"\n")
    if not lines:
        raise InputError(f"{file} is empty", "the run ended before its first trial")
    header = header_of(lines[0], file)
    records = tuple(
        record_of(line, f"{file}:{number}") for number, line in enumerate(lines[1:], 2)
    )
    return JournalContents(header, records, bool(torn), len(stored) - len(torn))


_DAMAGED = (
    "the file was changed by hand, or damaged; what stands above that line is good: to "
    "measure the rest again, keep a copy, cut the file off there, and resume"
)


def _line(header: JournalHeader) -> str:
    return header.stored_text()


def header_of(line: bytes, file: Path) -> JournalHeader:
    """The first line of a journal.

    Raises:
        InputError: it is damaged, or of a dutperf that stored other things.
    """
    data = parse_object(line, f"{file}:1")
    check_version(data, f"{file}:1")
    return validated(JournalHeader, data, f"{file}:1")


def record_of(line: bytes, where: str) -> TrialRecord:
    """Any other line of a journal.

    Raises:
        InputError: it is damaged.
    """
    if len(line) > LONGEST_LINE_BYTES:
        raise InputError(f"{where} is longer than any trial's record", _DAMAGED)
    try:
        return validated(TrialRecord, parse_object(line, where), where)
    except InputError as error:
        raise InputError(error.message, _DAMAGED) from error
