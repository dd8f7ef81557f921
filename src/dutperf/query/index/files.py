"""The files of an index, and the one that says which of them count.

An index is a directory::

    index.json                                    what counts; replaced in one step
    runs-TOKEN.parquet                            each run: fingerprint, partitions
    TABLE/month=2026-11/testbed=NAME/TOKEN_N.parquet
    lock, readers                                 who writes, who reads

Files that ``index.json`` does not name are those of a process that goes on, or broke
off.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Literal

from pydantic import Field, ValidationError

from dutperf import __version__
from dutperf.plain_files import read_plain
from dutperf.query.index.reading import Outcome, quoted
from dutperf.query.index.tables import signature
from dutperf.results.storage import write_atomically
from dutperf.results.stored import Stored

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_CONTENTS = "index.json"
_OUTCOME = (
    ("key", "VARCHAR"),
    ("fingerprint", "VARCHAR"),
    ("parts", "VARCHAR[]"),
    ("notice", "VARCHAR"),
)


class FileRecord(Stored):
    """A file of the index: its name there, and how a damaged one is told from it."""

    name: str
    part: str
    bytes: int
    modified_ns: int
    crc32: int


class Contents(Stored):
    """``index.json``."""

    schema_version: Literal[1] = 1
    dutperf_version: str = __version__
    columns: str
    directory: int
    runs: FileRecord
    tables: dict[str, list[FileRecord]]
    superseded: list[str] = Field(default_factory=list)


class UnusableError(Exception):
    """Why an index has to be made anew."""


def load(home: Path) -> Contents | None:
    """What counts in the index at ``home``; None: there is none.

    Raises:
        UnusableError: it is damaged, of another version, or of another directory.
        OSError: it cannot be read.
    """
    try:
        text = read_plain(home / _CONTENTS)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        contents = Contents.model_validate_json(text)
    except ValidationError as error:
        raise UnusableError("it is damaged, or of another version") from error
    if contents.dutperf_version != __version__ or contents.columns != signature():
        raise UnusableError(f"it is of dutperf {contents.dutperf_version}")
    if contents.directory != home.stat().st_ino:
        raise UnusableError("it was made elsewhere, and copied")
    listed = [record.name for record in _records(contents)]
    if any(_leads_out(name) for name in [*listed, *contents.superseded]):
        raise UnusableError("it names files elsewhere")
    for record in _records(contents):
        if not _is_whole(home, record):
            raise UnusableError(f"{record.name} is damaged")
    return contents


def save(
    home: Path,
    runs: FileRecord,
    tables: dict[str, list[FileRecord]],
    before: Contents | None,
) -> Contents:
    """From now on these files count, and what else counted ``before`` may go.

    Raises:
        StorageError: the file system refused; what counted before still does.
    """
    contents = Contents(
        columns=signature(),
        directory=home.stat().st_ino,
        runs=runs,
        tables=tables,
    )
    if before:
        kept = {record.name for record in _records(contents)}
        known = {*before.superseded, *(record.name for record in _records(before))}
        there = (name for name in known - kept if (home / name).exists())
        contents.superseded.extend(sorted(there))
    write_atomically(home / _CONTENTS, contents.stored_text() + "\n")
    return contents


def record_of(home: Path, path: Path, part: str = "") -> FileRecord:
    """A file that was just written."""
    known = path.stat()
    return FileRecord(
        name=str(path.relative_to(home)),
        part=part,
        bytes=known.st_size,
        modified_ns=known.st_mtime_ns,
        crc32=zlib.crc32(path.read_bytes()),
    )


def sweep(home: Path, contents: Contents) -> None:
    """Remove what counted before: no file that this index did not list."""
    for name in contents.superseded:
        (home / name).unlink(missing_ok=True)


def is_ours(home: Path) -> bool:
    """Whether it has plain files alone, no links or FIFOs, and is ours."""
    if home.is_symlink():
        return False
    return not home.exists() or (
        home.stat().st_uid == os.geteuid()
        and all(
            stat.S_IFMT(path.lstat().st_mode) in (stat.S_IFREG, stat.S_IFDIR)
            for path in home.rglob("*")
        )
    )


def stored_outcomes(
    database: DuckDBPyConnection, home: Path, contents: Contents
) -> dict[str, Outcome]:
    """Of each run what became of it."""
    path = quoted(str(home / contents.runs.name))
    rows = database.execute(
        f"select {', '.join(name for name, _ in _OUTCOME)} from read_parquet({path})"
    ).fetchall()
    return {row[0]: Outcome(*row) for row in rows}


def write_outcomes(
    database: DuckDBPyConnection, path: Path, outcomes: dict[str, Outcome]
) -> None:
    """The file of all runs."""
    told = ", ".join(f"unnest(?::{kind}[]) as {name}" for name, kind in _OUTCOME)
    values = [
        [getattr(each, name) for each in outcomes.values()] for name, _ in _OUTCOME
    ]
    place = quoted(str(path))
    database.execute(
        f"copy (select {told}) to {place} (format parquet, compression zstd)", values
    )


def _records(contents: Contents) -> Iterator[FileRecord]:
    yield contents.runs
    for records in contents.tables.values():
        yield from records


def _leads_out(name: str) -> bool:
    return PurePath(name).is_absolute() or ".." in PurePath(name).parts


def _is_whole(home: Path, record: FileRecord) -> bool:
    """Its sum is made where the file was touched."""
    path = home / record.name
    try:
        known = path.stat()
        if known.st_size != record.bytes:
            return False
        touched = known.st_mtime_ns != record.modified_ns
        return not touched or zlib.crc32(read_plain(path)) == record.crc32
    except OSError:
        return False
