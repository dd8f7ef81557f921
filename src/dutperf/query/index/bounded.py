"""DuckDB with as much memory as a command may take."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = "600MB"
"""That DuckDB uses at most; what needs more is put on disk."""


@contextmanager
def bounded() -> Iterator[DuckDBPyConnection]:
    """A database in memory that is closed at the end."""
    import duckdb  # noqa: PLC0415 - takes a while to be loaded

    with (
        tempfile.TemporaryDirectory(prefix="dutperf-sort-") as spill,
        duckdb.connect(
            config={"memory_limit": MEMORY, "temp_directory": spill}
        ) as database,
    ):
        try:
            yield database
        except RuntimeError as error:
            if "interrupted" in str(error):  # what DuckDB makes of Ctrl-C
                raise KeyboardInterrupt from error
            raise
