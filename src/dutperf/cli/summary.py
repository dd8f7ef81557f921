"""The results at the end, on standard output."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from dutperf.cli.connection_tables import (
    capacity_tables,
    connection_lines,
    connection_tables,
)
from dutperf.cli.delay_tables import (
    delay_notes,
    delay_table,
    loss,
    timeout_table,
)
from dutperf.cli.media_tables import media_lines, media_table
from dutperf.cli.phase_tables import phase_tables
from dutperf.cli.rate_tables import WIDE, is_plain, throughput_table
from dutperf.cli.scalability_tables import scalability_tables
from dutperf.cli.search_tables import goal_table, settled_lines
from dutperf.results import (
    CellResult,
    LoadPoint,
    NotMeasured,
    ResultsFile,
    Words,
    closing,
    result_word,
)
from dutperf.results.damage_words import damage_sentence
from dutperf.results.units import duration


def show_json(
    console: Console, results: ResultsFile, _report: Path | None = None
) -> None:
    """Print ``results`` without its trials as one JSON object."""
    console.out(results.model_dump_json(indent=2, exclude={"trials"}), highlight=False)


def show_summary(console: Console, results: ResultsFile, report: Path | None) -> None:
    """Print the tables, a few sentences, and the report's path."""
    _show_tables(console, _tables(results.cells, console.width), results)
    _close(console, results, report)


def show_all(console: Console, results: ResultsFile, report: Path | None) -> None:
    """The same, and between tables and sentences all that the report has in words."""
    cells = results.cells
    _show_tables(console, [*_tables(cells), *_further_tables(cells)], results)
    for line in [
        *_named(cells),
        *(
            f"{cell.id}: {damage_sentence(cell, '>= ')}"
            for cell in cells
            if cell.damage
        ),
        *connection_lines(cells),
        *media_lines(cells),
        *settled_lines(cells),
        *delay_notes(cells),
    ]:
        _say(console, line)
    for cell in results.cells:
        for reason in cell.reasons:
            remedy = f" ({reason.hint})" if reason.hint else ""
            _say(console, f"{cell.id}: {reason.message}{remedy}")
        for finding in cell.findings:
            _say(console, f"{cell.id}: {finding.message}")
    for line in _not_measured(results.not_measured):
        _say(console, line)
    for line in [*_conformance(results.cells), *_deviations(results.cells)]:
        _say(console, line)
    _close(console, results, report)


def _close(console: Console, results: ResultsFile, report: Path | None) -> None:
    for line in closing(
        results.cells,
        not_measured=results.not_measured,
        complete=results.complete,
        words=Words(where="in the report" if report else "in results.json"),
    ):
        _say(console, line)
    if report:
        _say(console, str(report))


def _show_tables(
    console: Console, tables: Sequence[Table], results: ResultsFile
) -> None:
    for table in [*tables, *scalability_tables(results.scalability)]:
        console.print(table)


def _tables(cells: list[CellResult], width: int = WIDE) -> list[Table]:
    throughput = [c for c in cells if c.procedure == "throughput"]
    tables = [throughput_table(throughput, width)] if throughput else []
    tables += media_table(throughput)
    tables += connection_tables(cells)
    for cell in cells:
        if cell.procedure == "frame-loss":
            tables.append(_loss_table(cell))
        elif cell.measures:
            tables.append(delay_table(cell))
        if cell.goals:
            tables.append(goal_table(cell))
        if cell.timeouts:
            tables.append(timeout_table(cell))
    return tables


def _further_tables(cells: list[CellResult]) -> list[Table]:
    """How it was measured, and on the way to what."""
    return [*phase_tables(cells), *capacity_tables(cells)]


def _named(cells: list[CellResult]) -> list[str]:
    """What a rate is, where it is not what RFC 2544 calls a throughput."""
    return [
        f"{cell.id}: {cell.quantity}"
        for cell in cells
        if cell.procedure == "throughput" and not is_plain(cell)
    ]


def _loss_table(cell: CellResult) -> Table:
    table = Table(
        title=f"{cell.id}: {result_word(cell.verdict)}", caption=cell.quantity
    )
    timeouts = cell.points[0].timeouts if cell.points else []
    directions = _directions(cell)
    losses = [
        "loss %",
        *(f"{name} %" for name in directions),
        *(f"loss % within {duration(t.timeout_ns)}" for t in timeouts),
    ]
    for name in ("load %", "fps per direction", *losses, "N", "trials"):
        table.add_column(name, justify="right")
    for point in cell.points:
        table.add_row(
            f"{point.load_percent:g}",
            f"{point.load_fps:,}",
            loss(point.loss_percent),
            *(_loss_of(point, name) for name in directions),
            *(loss(timeout.loss_percent) for timeout in point.timeouts),
            str(len(point.repeats)),
            str(sum(r.trials for r in point.repeats)),
        )
    return table


def _directions(cell: CellResult) -> list[str]:
    """Those that have a loss of their own beside the sum."""
    return list(dict.fromkeys(d.direction for p in cell.points for d in p.directions))


def _loss_of(point: LoadPoint, direction: str) -> str:
    found = [d.loss_percent for d in point.directions if d.direction == direction]
    return loss(found[0] if found else None)


def _not_measured(cells: list[NotMeasured]) -> list[str]:
    """Each reason once, with the cells that it concerns."""
    found: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        found.setdefault((cell.place, cell.message), []).append(cell.id)
    return [
        f"not measured at {place}: {', '.join(ids)}: {message}"
        for (place, message), ids in found.items()
    ]


def _deviations(cells: list[CellResult]) -> list[str]:
    """Each deviation once, whatever number of cells has it."""
    found = dict.fromkeys(d for cell in cells for d in cell.deviations)
    return [
        f"deviation from {d.rfc}{_level(d.level)}: {d.requirement}: {d.actual}"
        for d in found
    ]


def _level(level: str | None) -> str:
    return f" ({level})" if level in {"MUST", "SHOULD"} else ""


def _conformance(cells: list[CellResult]) -> list[str]:
    """Each statement once, with the cells it is about if it is not about all."""
    said: dict[str, list[str]] = {}
    for cell in cells:
        if cell.conformance:
            said.setdefault(cell.conformance.statement, []).append(cell.id)
    return [
        f"{'all cells' if len(ids) == len(cells) > 1 else ', '.join(ids)}: {statement}"
        for statement, ids in said.items()
    ]


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
