"""Cells on open connections (RFC 9693 4.7): what was opened, and when."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from dutperf.results import CellResult

_COLUMNS = {
    "connections": "connections",
    "R, fps": "phase1_rate",
    "T, ms": "timeout_ms",
    "D, ms": "phase2_after_ms",
    "needed timeout, s": "needed_dut_timeout_s",
    "known": "dut_timeout_s",
}


def phase_tables(cells: Sequence[CellResult]) -> list[Table]:
    """One table of all such cells, if there are any."""
    phased = [cell for cell in cells if cell.parameters.get("phase1_rate") is not None]
    if not phased:
        return []
    table = Table(title="Connections opened before each trial (RFC 9693 4.7)")
    table.add_column("cell", overflow="fold")
    for name in _COLUMNS:
        table.add_column(name, justify="right")
    for cell in phased:
        values = [cell.parameters.get(key) for key in _COLUMNS.values()]
        table.add_row(cell.id, *("-" if v is None else f"{v:,}" for v in values))
    return [table]
