"""The results at the end, on standard output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap

from rich.table import Table as Shown
from rich.text import Text

from dutperf import stats
from dutperf.cli.console import PatientConsole, print_json
from dutperf.procedures.measurements import tables
from dutperf.procedures.requirements import Judged
from dutperf.procedures.side_by_side import SideBySide, side_by_side
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
from dutperf.tables import (
    Column,
    Entry,
    Row,
    Style,
    Table,
    Verdict,
    state_word,
    subjects,
)
from dutperf.tables.scalability_tables import swept

# Tables on standard output; a narrow terminal leaves out what matters less.


STYLE = Style(
    absent={None: "-", "lost": "> lost", "undefined": "-", "invalid": "invalid"},
    bounds={None: "", "lower": ">= ", "upper": "<= ", "below": "< "},
    minus="-",
    space=" ",
    micro="u",
)
_SIDEWAYS_COLUMNS = 4
"""As many cells as a terminal shows side by side."""
_NAME_WIDTH = 32
"""A cell's id is folded only if it is longer than this."""
_WORDS_WIDTH = 24
"""The same of other words."""


def show_table(console: PatientConsole, table: Table) -> None:
    """Print it; with a column for each row where the RFC has it so."""
    if table.sideways:
        for first in range(0, len(table.rows), _SIDEWAYS_COLUMNS):
            rows = table.rows[first : first + _SIDEWAYS_COLUMNS]
            console.print(_sideways(table, rows))
        return
    console.print(_upright(table, console.width))


_COLOURS = {"met": "green", "not met": "red", "cannot tell": "yellow"}


def show_judged(console: PatientConsole, found: Sequence[Judged]) -> None:
    """Each requirement, whether it is met, and by what."""
    for each in found:
        line = Text(each.requirement.words + ": ")
        line.append(each.outcome, _COLOURS[each.outcome])
        line.append(f"; {each.cell}: {each.found}")
        console.print(line, highlight=False, soft_wrap=True)


def _upright(table: Table, width: int) -> Shown:
    named = any(row.name for row in table.rows)
    kept = _kept(table, width, named=named)
    shown = _empty(table)
    if named:
        shown.add_column("cell", overflow="fold")
    for place in kept:
        column = table.columns[place]
        head = _wrapped(column, _column_width(table, place))
        if column.words:
            shown.add_column(head, overflow="fold")
        else:
            shown.add_column(head, justify="right", no_wrap=True)
    for row in table.rows:
        name = [row.name] if named else []
        shown.add_row(*name, *(entry_text(row.entries[n]) for n in kept))
    return shown


def _sideways(table: Table, rows: Sequence[Row]) -> Shown:
    shown = _empty(table)
    shown.add_column("")
    for row in rows:
        shown.add_column(row.name, justify="right", overflow="fold")
    for place, column in enumerate(table.columns):
        told = (entry_text(row.entries[place]) for row in rows)
        shown.add_row(", ".join(column.head(STYLE)), *told)
    return shown


def _empty(table: Table) -> Shown:
    notes = "\n".join(table.notes)
    return Shown(
        title=table.title, caption=notes or None, title_style="", caption_style=""
    )


def _wrapped(column: Column, width: int) -> str:
    """Name and unit in lines that are no wider than the figures below them."""
    lines = (wrap(part, width, break_long_words=False) for part in column.head(STYLE))
    return "\n".join(line for part in lines for line in part)


def entry_text(entry: Entry) -> str:
    """As it stands on a terminal."""
    if isinstance(entry, Verdict):
        return state_word(entry.state)
    return entry if isinstance(entry, str) else entry.text(STYLE)


def _kept(table: Table, width: int, *, named: bool) -> list[int]:
    """Places of the columns that there is room for."""
    widths = [_column_width(table, place) for place in range(len(table.columns))]
    name = max(len(row.name) for row in table.rows) if named else 0
    kept = list(range(len(widths)))
    room = width - 1 - (min(name, _NAME_WIDTH) + 3 if named else 0)
    for spared in sorted({c.spared for c in table.columns}, reverse=True):
        if not spared or sum(widths[n] + 3 for n in kept) <= room:
            break
        kept = [n for n in kept if table.columns[n].spared != spared]
    return kept


def _column_width(table: Table, place: int) -> int:
    """Figures stay in one piece, words may be folded."""
    column = table.columns[place]
    texts = [entry_text(row.entries[place]) for row in table.rows]
    longest = max(map(len, texts), default=0)
    words = (len(word) for part in column.head(STYLE) for word in part.split())
    return max(min(longest, _WORDS_WIDTH) if column.words else longest, *words)


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
    if found := side_by_side(list(subjects(results))):
        _draw(console, found)
    for sweep in swept(results.sweeps, list(subjects(results))):
        _say(console, sweep.sentence)
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


_BAR_WIDTHS = 12, 40
"""Characters of the longest bar, at least and at most."""


def _draw(console: PatientConsole, found: SideBySide) -> None:
    """A bar for each device, and what it has more or less than the first."""
    full = "\N{FULL BLOCK}" if console.encoding.startswith("utf") else "#"
    bars = [bar for group in found.groups for bar in group.bars]
    label = max(len(group.label) for group in found.groups)
    device = max(map(len, found.devices))
    figure = max(len(entry_text(bar.figure)) for bar in bars)
    most = console.width - label - device - figure - 6
    width = min(max(most, _BAR_WIDTHS[0]), _BAR_WIDTHS[1])
    _say(console, found.title)
    for group in found.groups:
        for place, bar in enumerate(group.bars):
            drawn = full * max(1, round((bar.share or 0) * width)) if bar.share else ""
            head = f"{group.label if place == 0 else '':{label}}  ".lstrip(
                " " * (not label)
            )
            told = f"{head}{bar.device:{device}}  {drawn:{width}}"
            _say(console, f"{told}  {entry_text(bar.figure):>{figure}}")
    for sentence in found.sentences(STYLE):
        _say(console, sentence)


def _tables(results: ResultsFile) -> Iterator[Table]:
    return tables(list(subjects(results)), results.scalability, results.sweeps)


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
        f"{'all test cases' if len(ids) == len(cells) > 1 else ', '.join(ids)}: "
        f"{statement}"
        for statement, ids in said.items()
    ]


def _say(console: PatientConsole, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
