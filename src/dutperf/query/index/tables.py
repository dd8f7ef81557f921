"""What is stored of each view: a table, and how its rows are made of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dutperf.query.columns import View
from dutperf.query.environment_view import ENVIRONMENT
from dutperf.query.findings_view import FINDINGS
from dutperf.query.results_view import RESULTS
from dutperf.query.runs import Run
from dutperf.query.series_table import SERIES
from dutperf.query.trials_view import TRIALS
from dutperf.visible import visible

VIEWS: tuple[View[Any], ...] = (RESULTS, TRIALS, ENVIRONMENT, FINDINGS)
"""What SQL sees."""
TABLES: tuple[View[Any], ...] = (*VIEWS, SERIES)
"""What is stored."""
PLACE = "row_of_run"
"""A column of each table besides: the place of a row among those of its run."""

MONTH = (
    "case when created_at is null then 'unknown' else "
    "format('{:04d}-{:02d}', year(created_at), month(created_at)) end"
)
TESTBED = (
    "left(regexp_replace(coalesce(nullif(device, ''), 'none'), "
    "'[^A-Za-z0-9._-]', '_', 'g'), 60)"
)
"""As a directory may be called. The two are SQL, and tell a row's partition."""

Values = list[list[object]]
"""Of each column its values."""


def stored_columns(table: View[Any]) -> list[tuple[str, str]]:
    """Names and DuckDB's types, in order."""
    return [
        *((column.name, column.type) for column in table.columns),
        (PLACE, "BIGINT"),
    ]


def values_of(table: View[Any], run: Run) -> Values:
    """What of a run stands in the table."""
    rows = list(table.rows(run))
    values = [[storable(column.of(row)) for row in rows] for column in table.columns]
    return [*values, [*range(len(rows))]]


def storable(value: object) -> object:
    """Texts of files as they may be shown, wherever they go from here."""
    if isinstance(value, str):
        return visible(value)
    return [storable(each) for each in value] if isinstance(value, list) else value


def joined(parts: Sequence[Values]) -> Values:
    """The rows of several runs."""
    return [
        [value for part in parts for value in part[at]] for at in range(len(parts[0]))
    ]


def signature() -> str:
    """Changes with every column."""
    columns = {table.name: stored_columns(table) for table in TABLES}
    return json.dumps(columns, separators=(",", ":"))
