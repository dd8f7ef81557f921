"""``dutperf selftest --stateful``: the tester's limits with connections, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import typer
from rich.table import Table

from dutperf.bench.stateful_limits import (
    SelftestSettings,
    fell_short,
    run_selftest,
)
from dutperf.cli.exit_codes import INVALID
from dutperf.cli.failures import PatientConsole
from dutperf.cli.measuring import watched
from dutperf.cli.summary import show_json
from dutperf.cli.table_print import entry_text
from dutperf.model.frames import version_of
from dutperf.model.specs import ConnectionRateSpec
from dutperf.results import CellResult, ResultsFile, spread_of, valued
from dutperf.tables.table_model import count

_ROWS = {
    "phase 1": "phase 1: each frame another four-tuple, learned",
    "both": "phase 2, both directions, per direction",
    "forward": "phase 2, initiator to responder",
    "reverse": "phase 2, responder to initiator",
}


def measure_stateful(
    settings: SelftestSettings, output: Path | None, *, as_json: bool
) -> None:
    """Measure and print.

    Raises:
        DutperfError: as ``run_selftest``.
        typer.Exit: with 1 if something other than the tester ended a search.
    """
    results = watched(
        lambda on_event: run_selftest(settings, output, on_event),
        show_json if as_json else _show,
    )
    if results and any(map(fell_short, results.cells)):
        raise typer.Exit(INVALID)


def _show(console: PatientConsole, results: ResultsFile, report: Path | None) -> None:
    console.print(_table(results.cells))
    for cell in filter(fell_short, results.cells):
        for reason in cell.reasons:
            console.print(f"{cell.id}: {reason.message}", markup=False, soft_wrap=True)
    if report:
        console.print(str(report), markup=False, soft_wrap=True)


def _table(cells: Sequence[CellResult]) -> Table:
    table = Table(title="The tester's own limits, stateful (ports crossed)")
    table.add_column("frames", overflow="fold")
    for name in ("four-tuples", "table, MiB", "median fps", "1st", "99th", "spread, N"):
        table.add_column(name, justify="right")
    for row in _rows(cells):
        table.add_row(*row)
    return table


def _rows(cells: Sequence[CellResult]) -> Iterator[list[str]]:
    for key, words in _ROWS.items():
        for cell in cells:
            is_phase1 = isinstance(cell.cell.spec, ConnectionRateSpec)
            if key == ("phase 1" if is_phase1 else cell.cell.direction):
                yield [words, *_figures(cell)]


def _figures(cell: CellResult) -> list[str]:
    opened = cell.cell.stateful.connections if cell.cell.stateful else 0
    bytes_each = 12 if version_of(cell.cell.ip, "right") == 4 else 36
    memory = f"{opened * bytes_each / 2**20:,.1f}"
    # What ends at the tester's limit is no lower bound here, but what is looked for.
    spread = spread_of(valued(cell.repeats)[0])
    if cell.median is None or spread is None:
        return [f"{opened:,}", memory, "-", "-", "-", "-"]
    return [
        f"{opened:,}",
        memory,
        entry_text(count(cell.median)),
        entry_text(count(spread.percentile_1)),
        entry_text(count(spread.percentile_99)),
        f"{spread.dispersion_percent:.1f} %, {spread.count}",
    ]
