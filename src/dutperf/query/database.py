"""A DuckDB database with the views, and what SQL of a user's gives.

It reads nothing but what it was given: nothing that SQL can say opens another file or a
connection, or changes that again.
"""

from __future__ import annotations

import re
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dutperf.errors import InputError
from dutperf.query.reader import MEMORY, Notify, quoted, room_in, unheard
from dutperf.query.run_index import indexed, rows_in
from dutperf.query.views import VIEWS
from dutperf.results.storage import storing

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

_ALONE: dict[str, Any] = {
    "allow_community_extensions": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "memory_limit": MEMORY,
}
"""No extension is loaded, no variable of the program is a table."""
_EXPLAIN = re.compile(r"\s*explain\s+(analyze\s+)?(\([^()]*\)\s*)?", re.IGNORECASE)


def connect(
    paths: Sequence[Path | str],
    notify: Notify = unheard,
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

    spill = tempfile.TemporaryDirectory(prefix="dutperf-query-")
    try:
        place = Path(spill.name)
        with room_in(place):
            files = indexed([str(path) for path in paths], notify, place)
            with duckdb.connect(place / "views.duckdb", config=_ALONE) as making:
                for statement in _making(files):
                    making.execute(statement)
            database = duckdb.connect(
                place / "views.duckdb", read_only=True, config=_ALONE
            )
    except BaseException:
        spill.cleanup()
        raise
    weakref.finalize(database, spill.cleanup)
    allowed = ", ".join(map(quoted, [*files.values(), *([writes] if writes else [])]))
    database.execute(f"set temp_directory = {quoted(spill.name)}")
    database.execute(f"set allowed_paths = [{allowed}]")
    database.execute("set enable_external_access = false")
    database.execute("set lock_configuration = true")
    return database


def _making(files: Mapping[str, Path]) -> Iterator[str]:
    for view in VIEWS:
        name = view.name
        yield f"create view {name} as {rows_in(files, view)}"
        yield f"comment on view {name} is {quoted(view.meaning)}"
        for column in view.columns:
            at = f"{name}.{column.name}"
            yield f"comment on column {at} is {quoted(column.meaning)}"


@dataclass(frozen=True)
class Selected:
    """What a SELECT gives: names and DuckDB's types of the columns, rows in order."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    relation: DuckDBPyRelation

    def rows(self) -> Iterator[tuple[object, ...]]:
        """Each, once.

        Raises:
            InputError: a value cannot be had, for example of a text that is no number.
        """
        with told_in_a_line():
            yield from self.relation.iter_rows()


def selected(database: DuckDBPyConnection, sql: str) -> Selected:
    """What ``sql`` gives.

    Raises:
        InputError: it is wrong, or gives no rows.
    """
    import duckdb  # noqa: PLC0415 - only who asks needs it

    with told_in_a_line():
        asked = database.extract_statements(sql)
        kinds = duckdb.StatementType
        reads = (kinds.SELECT, kinds.MULTI)  # the last one: PIVOT
        # EXPLAIN ANALYZE does what it explains.
        explained = [
            inside
            for statement in asked
            for inside in (
                database.extract_statements(_EXPLAIN.sub("", statement.query, 1))
                if statement.type == kinds.EXPLAIN
                else [statement]
            )
        ]
        if any(statement.type not in reads for statement in explained):
            raise InputError(
                "SQL reads here, and changes nothing",
                "begin it with SELECT; --output writes its rows to a file",
            )
        relation = database.sql(sql) if asked else None
    if relation is None:
        raise InputError("this SQL asks for nothing", "begin it with SELECT")
    names = tuple(relation.columns)
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError(
            f"two columns are called {twice[0]}", f"name one: {twice[0]} AS other"
        )
    return Selected(names, tuple(map(str, relation.types)), relation)


def write_parquet(
    database: DuckDBPyConnection, sql: str, path: Path, made: Path
) -> None:
    """Write what ``sql`` gives to ``path``, by ``made``, which ``database`` may write.

    Raises:
        InputError: the SQL is wrong, or a column has a type that Parquet has not.
        SetupError: the file cannot be written.
    """
    found = selected(database, sql)
    try:
        with storing(path):
            with told_in_a_line():
                found.relation.write_parquet(str(made))
            made.replace(path)
    finally:
        made.unlink(missing_ok=True)


@contextmanager
def told_in_a_line() -> Iterator[None]:
    """What DuckDB says of wrong SQL, without the SQL itself."""
    import duckdb  # noqa: PLC0415 - only who asks needs it

    try:
        yield
    except RuntimeError as error:  # what DuckDB makes of Ctrl-C
        raise KeyboardInterrupt from error
    except (duckdb.Error, OverflowError, ValueError) as error:
        said = " ".join(str(error).partition("\nLINE ")[0].split())
        raise InputError(
            f"this SQL cannot be answered: {said}",
            "dutperf query DIR lists the views and their columns",
        ) from error
