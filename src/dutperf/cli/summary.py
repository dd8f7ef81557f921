"""The results at the end, on standard output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from dutperf import stats
from dutperf.cli.failures import PatientConsole
from dutperf.cli.json_print import print_json
from dutperf.cli.table_print import show_table
from dutperf.procedures.all_tables import tables
from dutperf.results import (
    CellResult,
    DelayRecord,
    NotMeasured,
    ResultsFile,
    Words,
    closing,
    settled_words,
    withdrawn_words,
)
from dutperf.results.units import duration, whole
from dutperf.results.words import beside_sentence, damage_sentence, management_sentence
from dutperf.tables import Table, subjects


def show_json(
    console: PatientConsole, results: ResultsFile, _report: Path | None = None
) -> None:
    """Print ``results`` without its trials as one JSON object."""
    print_json(console, results.model_dump_json(indent=2, exclude={"trials"}))


def show_summary(
    console: PatientConsole, results: ResultsFile, report: Path | None
) -> None:
    """Print the tables, a few sentences, and the report's path."""
    _show_tables(console, results)
    _close(console, results, report)


def show_with_deviations(
    console: PatientConsole, results: ResultsFile, report: Path | None
) -> None:
    """The same, and how the run stands to the RFCs, point by point."""
    _show_tables(console, results)
    _say_standards(console, results)
    _close(console, results, report)


def show_all(
    console: PatientConsole, results: ResultsFile, report: Path | None
) -> None:
    """The same, and between tables and sentences all that the report has in words."""
    cells = results.cells
    for table in _tables(results):
        show_table(console, table)
    for line in [
        *_named(results),
        *(
            f"{cell.id}: {damage_sentence(cell, '>= ')}"
            for cell in cells
            if cell.damage
        ),
        *_connection_lines(cells),
        *_settled_lines(cells),
        *_delay_notes(cells),
    ]:
        _say(console, line)
    for cell in results.cells:
        for reason in cell.reasons:
            remedy = f" ({reason.hint})" if reason.hint else ""
            _say(console, f"{cell.id}: {reason.message}{remedy}")
        for finding in cell.findings:
            _say(console, f"{cell.id}: {finding.message}")
        if cell.beside:
            _say(console, f"{cell.id}: {beside_sentence(cell)}")
        if sentence := management_sentence(cell):
            _say(console, f"{cell.id}: {sentence}")
    for line in _not_measured(results.not_measured):
        _say(console, line)
    _say_standards(console, results)
    _close(console, results, report)


def _show_tables(console: PatientConsole, results: ResultsFile) -> None:
    for table in _tables(results):
        if not table.detail:
            show_table(console, table)


def _say_standards(console: PatientConsole, results: ResultsFile) -> None:
    for line in [*_conformance(results.cells), *_deviations(results.cells)]:
        _say(console, line)


def _close(console: PatientConsole, results: ResultsFile, report: Path | None) -> None:
    for line in closing(
        results.cells,
        not_measured=results.not_measured,
        complete=results.complete,
        words=Words(
            where="in the report" if report else "in results.json",
            lister="--deviations",
        ),
    ):
        _say(console, line)
    if report:
        _say(console, str(report))


def _tables(results: ResultsFile) -> Iterator[Table]:
    return tables(list(subjects(results)), results.scalability)


def _named(results: ResultsFile) -> list[str]:
    """What a rate is, where it is not what RFC 2544 calls a throughput."""
    return [
        f"{cell.id}: {cell.result.quantity}"
        for cell in subjects(results)
        if cell.family == "rate search" and cell.result and cell.judged
    ]


def _connection_lines(cells: Sequence[CellResult]) -> Iterator[str]:
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


def _settled_lines(cells: Sequence[CellResult]) -> Iterator[str]:
    """How the repeats of each cell ended, where that is not just their number."""
    for cell in cells:
        told = (settled_words(cell), withdrawn_words(cell.withdrawn))
        yield from (f"{cell.id}: {words}" for words in told if words)


def _delay_notes(cells: Sequence[CellResult]) -> list[str]:
    """What the cells' delays are, and how far they may be wrong; each text once."""
    found: dict[str, None] = {}
    for cell in cells:
        if cell.delays:
            found[f"delay: {cell.delays.definition}"] = None
            found[f"{cell.id}: {_tester_share(cell.delays)}"] = None
    return list(found)


def _tester_share(delays: DelayRecord) -> str:
    usual_ns = delays.usual_bound_ns
    usual = "" if usual_ns is None else f" ({duration(usual_ns)} in 998 of 1000 frames)"
    return (
        f"the tester's own share of a delay is at least {duration(delays.floor_ns)} "
        f"and at most {duration(delays.bound_ns)}{usual}; "
        f"values: {delays.resolution}"
    )


def _not_measured(cells: list[NotMeasured]) -> list[str]:
    """Each reason once, with the cells that it concerns."""
    found: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        found.setdefault((cell.place, cell.message), []).append(cell.id)
    return [
        f"not measured at {testbed}: {', '.join(ids)}: {message}"
        for (testbed, message), ids in found.items()
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


def _say(console: PatientConsole, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
