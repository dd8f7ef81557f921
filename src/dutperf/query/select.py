"""What SQL of a user's gives: columns and rows, or why it gives none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dutperf.errors import InputError
from dutperf.query.columns import View
from dutperf.results.storage import storing

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

_EXPLAIN = re.compile(r"\s*explain\s+(analyze\s+)?(\([^()]*\)\s*)?", re.IGNORECASE)


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


def count_rows(database: DuckDBPyConnection, view: View[Any]) -> int:
    """How many rows a view has."""
    told: int = database.table(view.name).count("*").fetchall()[0][0]
    return told


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
