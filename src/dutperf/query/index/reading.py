"""Some runs, read once and written as Parquet files, a file for each table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dutperf.errors import InputError
from dutperf.query.index.places import Found, Place
from dutperf.query.index.tables import (
    MONTH,
    TABLES,
    TESTBED,
    Values,
    joined,
    stored_columns,
    values_of,
)
from dutperf.query.runs import Run
from dutperf.report.source import read_source

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ITS_PATH = "\0"
"""Stands for the run's directory in a notice: that is called as the user calls it."""
_PARTITION = f"'month=' || {MONTH} || '/testbed=' || {TESTBED}"
"""SQL: the directory of a row."""
_AT_ONCE = 5000
"""Rows that are handed to DuckDB in one statement, about."""


@dataclass(frozen=True)
class Outcome:
    """What became of a run: where its rows are, or why it was left out."""

    key: str
    fingerprint: str
    parts: Sequence[str] = ()
    notice: str = ""


@dataclass(frozen=True)
class Batch:
    """Runs to be read, and the directory that their rows are written to."""

    runs: tuple[Found, ...]
    into: str


def read_batch(place: Place, batch: Batch) -> list[Outcome]:
    """Write ``into/TABLE.parquet`` of each table.

    What cannot be read, or holds what no column does, costs its run alone.
    """
    into = Path(batch.into)
    into.mkdir(parents=True, exist_ok=True)
    with _tables() as database:
        outcomes = list(_inserted(database, place, batch.runs))
        parts = _parts(database)
        for table in TABLES:
            path = quoted(str(into / f"{table.name}.parquet"))
            database.execute(f"copy {table.name} to {path} (format parquet)")
    return [replace(each, parts=parts.get(each.key, ())) for each in outcomes]


def _parts(database: DuckDBPyConnection) -> dict[str, list[str]]:
    """The partitions that a run has rows in."""
    rows = " union ".join(f"select run, {_PARTITION} from {t.name}" for t in TABLES)
    found: dict[str, list[str]] = {}
    for key, part in database.execute(rows).fetchall():
        found.setdefault(key, []).append(part)
    return found


def quoted(text: str) -> str:
    """A text of SQL."""
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def _tables() -> Iterator[DuckDBPyConnection]:
    import duckdb  # noqa: PLC0415 - takes a while to be loaded

    with duckdb.connect(config={"threads": 1}) as database:
        for table in TABLES:
            columns = ", ".join(map(" ".join, stored_columns(table)))
            database.execute(f"create table {table.name} ({columns})")
        yield database


@dataclass(frozen=True)
class _Read:
    """The rows of one run, not inserted yet."""

    outcome: Outcome
    values: list[Values]

    @property
    def rows(self) -> int:
        return sum(len(values[0]) for values in self.values)


def _inserted(
    database: DuckDBPyConnection, place: Place, runs: Sequence[Found]
) -> Iterator[Outcome]:
    waiting: list[_Read] = []
    for found in runs:
        read = _read(place, found)
        if isinstance(read, Outcome):
            yield read
            continue
        waiting.append(read)
        if sum(read.rows for read in waiting) >= _AT_ONCE:
            yield from _insert(database, waiting)
            waiting = []
    yield from _insert(database, waiting)


def _read(place: Place, found: Found) -> _Read | Outcome:
    """The run's rows, or why it is left out."""
    with place.fetched(found.path) as directory:
        try:
            source = read_source(directory)
        except InputError as error:
            told = error.message.replace(str(directory), ITS_PATH)
            return Outcome(found.key, found.fingerprint, notice=told)
    run = Run(Path(found.key), source)
    try:
        values = [values_of(table, run) for table in TABLES]
    except (OverflowError, ValueError) as error:
        return _no_figure(found, error)
    outcome = Outcome(found.key, found.fingerprint)
    return _Read(outcome, values)


def _no_figure(run: Found | Outcome, error: Exception) -> Outcome:
    told = f"{ITS_PATH} holds what is no figure: {' '.join(str(error).split())}"
    return Outcome(run.key, run.fingerprint, notice=told)


def _insert(
    database: DuckDBPyConnection, waiting: Sequence[_Read]
) -> Iterator[Outcome]:
    """All at once; one by one if one of them has what cannot be stored."""
    import duckdb  # noqa: PLC0415 - as above

    if not waiting:
        return
    try:
        database.begin()
        for at, table in enumerate(TABLES):
            columns = [kind for _, kind in stored_columns(table)]
            told = ", ".join(f"unnest(?::{kind}[])" for kind in columns)
            statement = f"insert into {table.name} select {told}"
            database.execute(statement, joined([read.values[at] for read in waiting]))
        database.commit()
    except (duckdb.Error, OverflowError, ValueError) as error:
        database.rollback()
        if len(waiting) > 1:
            for read in waiting:
                yield from _insert(database, [read])
            return
        yield _no_figure(waiting[0].outcome, error)
        return
    yield from (read.outcome for read in waiting)
