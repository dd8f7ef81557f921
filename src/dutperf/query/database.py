"""The views in a DuckDB database in memory, which reads nothing but what it was given.

Nothing that SQL can say opens a file or a connection, or changes that again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dutperf.query.columns import View
from dutperf.query.environment_view import ENVIRONMENT
from dutperf.query.findings_view import FINDINGS
from dutperf.query.results_view import RESULTS
from dutperf.query.runs import Notify, Run, stored_runs
from dutperf.query.trials_view import TRIALS
from dutperf.visible import visible

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

VIEWS: tuple[View[Any], ...] = (RESULTS, TRIALS, ENVIRONMENT, FINDINGS)
_AT_ONCE = 2000
"""Rows."""
_ALONE: dict[str, Any] = {
    "allow_community_extensions": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}
"""No extension is loaded, no variable of the program is a table."""


def _unheard(_notice: str) -> None:
    pass


def connect(
    paths: Sequence[Path | str],
    notify: Notify = _unheard,
    *,
    writes: Path | None = None,
) -> DuckDBPyConnection:
    """All runs in or below ``paths`` as views of a new database in memory.

    Args:
        paths: results directories, or directories that have some at any depth.
        notify: is told what cannot be read, and was left out.
        writes: the only file that may be written (``select.write_parquet``).

    Raises:
        InputError: there is no such directory, or no run in it that can be read.
    """
    import duckdb  # noqa: PLC0415 - only who asks needs it

    database = duckdb.connect(config=_ALONE)
    if writes:
        allowed = _quoted(str(unfinished(writes)))
        database.execute(f"set allowed_paths = [{allowed}]")
    database.execute("set enable_external_access = false")
    database.execute("set lock_configuration = true")
    for view in VIEWS:
        for statement in _making(view):
            database.execute(statement)
    for run in stored_runs([Path(path) for path in paths], notify):
        try:
            database.begin()
            for view in VIEWS:
                _insert(database, view, run)
            database.commit()
        except (duckdb.Error, OverflowError, ValueError) as error:
            database.rollback()
            notify(f"left out: {run.path} holds what is no figure: {error}")
    return database


def unfinished(path: Path) -> Path:
    """Where a file is written before it gets its name: a reader never sees a part."""
    return path.with_name(f".{path.name}.new")


def _making(view: View[Any]) -> Iterator[str]:
    """A table that is filled, and the view of it: no SQL of a reader's changes it."""
    columns = ", ".join(f"{column.name} {column.type}" for column in view.columns)
    yield f"create table stored_{view.name} ({columns})"
    yield f"create view {view.name} as from stored_{view.name}"
    yield f"comment on view {view.name} is {_quoted(view.meaning)}"
    for column in view.columns:
        yield (
            f"comment on column {view.name}.{column.name} is {_quoted(column.meaning)}"
        )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _insert(database: DuckDBPyConnection, view: View[Any], run: Run) -> None:
    """Column by column: one statement for many rows is what DuckDB is quick at."""
    columns = ", ".join(f"unnest(?::{column.type}[])" for column in view.columns)
    statement = f"insert into stored_{view.name} select {columns}"
    for rows in _batches(view.rows(run)):
        values = [
            [_storable(column.of(row)) for row in rows] for column in view.columns
        ]
        database.execute(statement, values)


def _batches(rows: Iterable[Any]) -> Iterator[list[Any]]:
    rest = iter(rows)
    while batch := list(islice(rest, _AT_ONCE)):
        yield batch


def _storable(value: object) -> object:
    """Texts of files as they may be shown, wherever they go from here."""
    if isinstance(value, str):
        return visible(value)
    return [_storable(each) for each in value] if isinstance(value, list) else value
