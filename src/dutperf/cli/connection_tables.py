"""Connection rates as the table of RFC 9693 6."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from dutperf import stats
from dutperf.results import CellResult

_COLUMNS = (
    "connections",
    "source ports",
    "destination ports",
    "N",
    "error",
    "connections/s",
    "1st",
    "99th",
    "verdict",
)


def connection_tables(cells: Sequence[CellResult]) -> list[Table]:
    """One table of all connection rates, if there are any."""
    rates = [cell for cell in cells if cell.procedure == "connection-rate"]
    if not rates:
        return []
    table = Table(title="Maximum connection establishment rate (RFC 9693)")
    table.add_column("cell", overflow="fold")
    for name in _COLUMNS:
        table.add_column(name, justify="right")
    for cell in rates:
        table.add_row(cell.id, *_row(cell))
    return [table]


def _row(cell: CellResult) -> list[str]:
    values = [r.value for r in cell.repeats if r.value is not None]
    bound = ">= " if cell.verdict == "invalid" else ""
    ends = [f"{stats.percentile(values, p):,.0f}" if values else "-" for p in (1, 99)]
    return [
        _integer(cell.parameters.get("connections")),
        str(cell.parameters.get("source_ports", "-")),
        str(cell.parameters.get("destination_ports", "-")),
        str(len(cell.repeats)),
        str(cell.parameters.get("resolution", "-")),
        "-" if cell.median is None else f"{bound}{cell.median:,.0f}",
        *ends,
        cell.verdict,
    ]


def _integer(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else "-"
