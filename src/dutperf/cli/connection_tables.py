"""Stateful gateways: connection rates as the table of RFC 9693 6, and more of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from dutperf import stats
from dutperf.catalogue import ProcedureName
from dutperf.cli import figures
from dutperf.results import CellResult, result_word
from dutperf.results.connection_results import ports_in
from dutperf.results.units import about, duration, whole

_TITLES: dict[ProcedureName, str] = {
    "connection-rate": "Maximum connection establishment rate (RFC 9693 6)",
    "table-capacity": "Capacity of the connection tracking table (RFC 9693 4.9)",
    "teardown-rate": "Connection tear-down rate (RFC 9693 4.8)",
}
_CELLS_A_TABLE = 4
"""As many as a terminal shows side by side."""
_COLUMNS = ("connections", "source ports", "destination ports")
_ADDRESSES = ("source_addresses", "destination_addresses")


def connection_tables(cells: Sequence[CellResult]) -> list[Table]:
    """One table of each procedure about connections."""
    return [
        _table(procedure, found[first : first + _CELLS_A_TABLE])
        for procedure in _TITLES
        if (found := [cell for cell in cells if cell.procedure == procedure])
        for first in range(0, len(found), _CELLS_A_TABLE)
    ]


def capacity_tables(cells: Sequence[CellResult]) -> list[Table]:
    """The steps of each search for a capacity."""
    return [_steps(cell) for cell in cells if cell.capacity]


def connection_lines(cells: Sequence[CellResult]) -> Iterator[str]:
    """How searches for a capacity ended, who survives, and what commands took."""
    for cell in cells:
        for number, search in enumerate(cell.capacity, 1):
            which = f", repeat {number}" if len(cell.capacity) > 1 else ""
            yield f"{cell.id}{which}: {search.words}"
        if cell.eviction:
            yield f"{cell.id}: {cell.eviction.words}"
        if cell.teardown:
            took = stats.median([each.command_s for each in cell.teardown])
            told = [e.rfc_rate_per_s for e in cell.teardown if e.rfc_rate_per_s]
            with_it = ""
            if told:
                rate = whole(stats.median(told))
                with_it = f"; with it, as in RFC 9693 4.8, {rate}/s"
            yield (
                f"{cell.id}: the command itself took {duration(took * 1e9)}, the "
                "median of deleting nothing, which is taken off"
                f"{with_it}"
            )


def _table(procedure: ProcedureName, cells: Sequence[CellResult]) -> Table:
    """A column for each cell, as RFC 9693 6 has it.

    What hooks show of a table stands there if any did, and how many addresses there
    are if any cell has more than one on a side.
    """
    limits = [
        name
        for name in ("hash_size", "table_size")
        if any(cell.limits and getattr(cell.limits, name) for cell in cells)
    ]
    spread = any(_several_addresses(cell) for cell in cells)
    addresses = list(_ADDRESSES) if spread else []
    shown = [name.replace("_", " ") for name in (*addresses, *limits)]
    shown += ["connections per bucket"] if "hash_size" in limits else []
    result = "capacity" if procedure == "table-capacity" else "connections/s"
    most = ("at most", *_COLUMNS[1:]) if procedure == "table-capacity" else _COLUMNS
    names = (*most, *shown, "experiments", "error", result, "1st", "99th", "verdict")
    table = Table(title=_TITLES[procedure])
    table.add_column("")
    for cell in cells:
        table.add_column(cell.id, justify="right", overflow="fold")
    rows = (_row(cell, addresses, limits) for cell in cells)
    for name, *values in zip(names, *rows, strict=True):
        table.add_row(name, *values)
    return table


def _several_addresses(cell: CellResult) -> bool:
    return any(cell.parameters.get(name) not in (None, 1) for name in _ADDRESSES)


def _row(
    cell: CellResult, addresses: Sequence[str], limits: Sequence[str]
) -> list[str]:
    error = "error" if cell.procedure == "table-capacity" else "resolution"
    return [
        _integer(cell.parameters.get("connections")),
        _integer(ports_in(cell.parameters.get("source_ports"))),
        _integer(ports_in(cell.parameters.get("destination_ports"))),
        *(_integer(cell.parameters.get(name)) for name in addresses),
        *_limits(cell, limits),
        str(len(cell.repeats)),
        _given(cell.parameters.get(error)),
        figures.rate(cell.median, cell.bound),
        figures.of_spread(cell, "percentile_1"),
        figures.of_spread(cell, "percentile_99"),
        result_word(cell.verdict),
    ]


def _limits(cell: CellResult, names: Sequence[str]) -> list[str]:
    sizes = [getattr(cell.limits, name, None) for name in names]
    shown = [_integer(size) for size in sizes]
    if "hash_size" in names:
        buckets, sessions = sizes[0], cell.parameters.get("connections")
        ratio = "-"
        if isinstance(buckets, int) and isinstance(sessions, int) and buckets:
            ratio = about(sessions / buckets, 3)
        shown.append(ratio)
    return shown


def _steps(cell: CellResult) -> Table:
    """Of the last repeat, in the order in which they were tried."""
    table = Table(title=f"{cell.id}: steps of the search")
    for name in ("connections", "connections/s", "at least", "", "tests"):
        table.add_column(name, justify="right")
    for step in cell.capacity[-1].steps:
        rate = _integer(step.rate_per_s)
        held = step.held.replace("_", " ")
        least = f"{step.least_per_s:,}"
        table.add_row(f"{step.connections:,}", rate, least, held, str(step.tests))
    return table


def _given(value: object) -> str:
    return "-" if value is None else str(value)


def _integer(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else "-"
