"""``journal.jsonl``: every finished trial, on disk before the next one starts.

The first line is a header, every other one a TrialRecord. The writer takes back a line
that it could write in part only, but a machine that loses power may leave a torn last
line; readers ignore it and say so.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from dutperf import __version__
from dutperf.errors import InputError
from dutperf.results.loading import (
    check_version,
    parse_object,
    read_text,
    stored_file,
    validated,
)
from dutperf.results.model import SchemaVersion, Stored, TrialRecord
from dutperf.results.storage import append_line, create_exclusively
from dutperf.results.upgrade import upgraded, upgraded_record

JOURNAL = "journal.jsonl"


class JournalHeader(Stored):
    """First line of a journal."""

    schema_version: SchemaVersion = 2
    dutperf_version: str = Field(default=__version__, description="who wrote it")
    campaign: str
    created_at: str = Field(description="ISO 8601, UTC")


class JournalContents(NamedTuple):
    """A journal as read; ``truncated``: a torn last line was left out."""

    header: JournalHeader
    records: tuple[TrialRecord, ...]
    truncated: bool


class Journal:
    """Appends to one journal. One writer at a time; not thread-safe."""

    def __init__(self, path: Path, header: JournalHeader) -> None:
        create_exclusively(path, header.model_dump_json() + "\n")
        self.path = path

    def append(self, record: TrialRecord) -> None:
        """Store ``record``; it is on disk when this returns.

        Raises:
            SetupError: the file system refused; earlier records are not affected.
        """
        append_line(self.path, record.model_dump_json(), "every earlier trial is safe")


def load_journal(path: Path) -> JournalContents:
    """Read the journal in directory ``path``, or the file ``path``.

    Raises:
        InputError: missing, damaged before its last line, or of a newer dutperf.
    """
    file = stored_file(path, JOURNAL)
    lines = read_text(file).split("\n")
    torn = lines.pop() != ""
    if not lines:
        raise InputError(f"{file} is empty", "the run ended before its first trial")
    data = parse_object(lines[0], f"{file}:1")
    check_version(data, f"{file}:1")
    header = validated(JournalHeader, upgraded(data), f"{file}:1")
    version = data["schema_version"]
    records = tuple(
        _record(line, version, f"{file}:{number}")
        for number, line in enumerate(lines[1:], 2)
    )
    return JournalContents(header, records, torn)


def _record(line: str, version: int, where: str) -> TrialRecord:
    data = upgraded_record(parse_object(line, where), version)
    return validated(TrialRecord, data, where)
