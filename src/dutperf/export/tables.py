"""The tables of a stored run."""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.errors import InputError
from dutperf.report.page import cells_of
from dutperf.report.source import Source
from dutperf.tables import Table, tables


def tables_of(source: Source, keys: Sequence[str] = ()) -> list[Table]:
    """Those that the report has; only those with ``keys``, in that order, if any.

    Raises:
        InputError: the run has no such table, or none at all.
    """
    found = {t.key: t for t in tables(cells_of(source), source.scalability)}
    if not found:
        raise InputError(f"{source.name}: there is no result yet")
    missing = [key for key in keys if key not in found]
    if missing:
        raise InputError(
            f"--table {missing[0]}: the run has no such table",
            f"it has: {', '.join(found)}",
        )
    return [found[key] for key in keys or found]
