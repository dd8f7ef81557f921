"""The views in a DuckDB database that reads nothing but what it was given.

Their rows stay in the files of an index (``index``). Nothing that SQL can say opens
another file or a connection, or changes that again.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dutperf.errors import StorageError
from dutperf.query.columns import View
from dutperf.query.index import VIEWS, Snapshot, indexed
from dutperf.query.index.bounded import MEMORY
from dutperf.query.index.reading import quoted
from dutperf.query.runs import Notify

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ALONE: dict[str, Any] = {
    "allow_community_extensions": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "memory_limit": MEMORY,
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
    """All runs in or below ``paths`` as views of a new database, which is only read.

    Args:
        paths: results directories, or directories that have some at any depth;
            addresses that fsspec knows.
        notify: is told what cannot be read, and was left out.
        writes: the only file that may be written; it is not there yet.

    Raises:
        InputError: there is no such directory, or no run in it that can be read.
        StorageError: there is no room for an index.
    """
    import duckdb  # noqa: PLC0415 - only who asks needs it

    snapshot = indexed([str(path) for path in paths], notify)
    spill = tempfile.TemporaryDirectory(prefix="dutperf-query-")
    views = Path(spill.name) / "views.duckdb"
    try:
        with duckdb.connect(views, config=_ALONE) as making:
            for view in VIEWS:
                for statement in _making(view, snapshot):
                    making.execute(statement)
        database = duckdb.connect(views, read_only=True, config=_ALONE)
    except duckdb.IOException as error:  # a full disk, above all
        snapshot.close()
        spill.cleanup()
        raise StorageError(
            f"cannot write {spill.name}: {str(error).splitlines()[0]}",
            "free some space there, or set TMPDIR to a directory on another disk",
        ) from error
    weakref.finalize(database, snapshot.close)
    weakref.finalize(database, spill.cleanup)
    database.execute(f"set temp_directory = {quoted(spill.name)}")
    directories = ", ".join(map(quoted, snapshot.directories))
    database.execute(f"set allowed_directories = [{directories}]")
    if writes:
        database.execute(f"set allowed_paths = [{quoted(str(writes))}]")
    database.execute("set enable_external_access = false")
    database.execute("set lock_configuration = true")
    return database


def _making(view: View[Any], snapshot: Snapshot) -> Iterator[str]:
    yield f"create view {view.name} as {snapshot.rows(view)}"
    yield f"comment on view {view.name} is {quoted(view.meaning)}"
    for column in view.columns:
        yield f"comment on column {view.name}.{column.name} is {quoted(column.meaning)}"
