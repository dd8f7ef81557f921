"""Delays: each quantity of each stream, and the frames they were measured on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dutperf.results import FrameCount, Measure
from dutperf.results.figures import Figure, figures_of
from dutperf.tables.result_tables import TRAFFIC, TRIAL_TIME, title
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import (
    NONE,
    Column,
    Columns,
    Entry,
    Row,
    Span,
    Table,
    Value,
    Verdict,
    count,
    delay,
    heads,
    of_figure,
    rows,
)


class _Line(NamedTuple):
    """The measures of one stream of a cell; none of a cell that was not measured."""

    cell: Subject
    direction: str
    stream: str
    figures: tuple[Figure, ...]

    @property
    def measures(self) -> list[Measure]:
        """As they are stored."""
        return [f.stored for f in self.figures if isinstance(f.stored, Measure)]


def delay_table(key: str, cells: Sequence[Subject], samples: str = "frames") -> Table:
    """A row for each direction and stream, a column for each quantity.

    ``samples``: what a figure is taken from.
    """
    lines = [list(_lines(cell)) for cell in cells]
    measures = [m for each in lines for line in each for m in line.measures]
    background = any(measure.stream != "foreground" for measure in measures)
    lost = any(sum(measure.lost) for measure in measures)
    load = Column("load", "What each direction sent.", "fps per direction", spared=7)
    direction = Column("direction", "In which the frames went.", words=True)
    stream = Column("stream", "Foreground or background frames.", words=True)
    columns: Columns[_Line] = (
        *((head, _of_cell(entry)) for head, entry in (*TRAFFIC[:1], *TRIAL_TIME)),
        (load, lambda line: count(line.cell.load_fps)),
        (direction, lambda line: line.direction),
        *([(stream, lambda line: line.stream)] if background else []),
        *_quantities(measures, any(cell.several for cell in cells)),
        (
            Column("N", "Repeats that the figures are taken from.", spared=4),
            lambda line: (
                _joined([str(m.count) for m in line.measures])
                if line.measures
                else line.cell.valid_repeats
            ),
        ),
        (
            Column(samples, "What each repeat's figure is taken from.", "a repeat", 5),
            lambda line: _range([n for m in line.measures for n in m.samples]),
        ),
        *(
            [
                (
                    Column(
                        "lost", "Of them in all repeats: infinite delays.", spared=2
                    ),
                    lambda line: _joined([f"{sum(m.lost):,}" for m in line.measures]),
                )
            ]
            if lost
            else []
        ),
        (
            Column("verdict", "Whether there is a result to quote.", "", 3, words=True),
            lambda line: Verdict(line.cell.state),
        ),
    )
    repeated_of_cell = (0, 1, 2, len(columns) - 1)
    return Table(
        key=key,
        title=title(cells),
        columns=heads(columns),
        rows=tuple(
            _continued(row, repeated_of_cell) if place else row
            for of_cell in lines
            for place, row in enumerate(rows(columns, of_cell, _name))
        ),
        notes=tuple(
            dict.fromkeys(cell.result.quantity for cell in cells if cell.result)
        ),
    )


def frames_table(cell: Subject) -> Table:
    """Of all repeats, stream by stream."""
    columns: Columns[FrameCount] = (
        (Column("direction", "In which they went.", words=True), lambda f: f.direction),
        (Column("stream", "Foreground or background.", words=True), lambda f: f.stream),
        (Column("sent", "Frames that left the tester."), lambda f: count(f.sent)),
        (
            Column("received", "Frames that came back in time and sound."),
            lambda f: count(f.received),
        ),
        (
            Column("lost", "Frames that never arrived, or damaged.", tone="strong"),
            lambda f: count(f.lost),
        ),
    )
    return Table(
        key=f"frames-{cell.id}",
        title=f"{cell.id}: frames of all repeats",
        columns=heads(columns),
        rows=rows(columns, cell.result.frames if cell.result else []),
        detail=True,
    )


def _lines(cell: Subject) -> Iterator[_Line]:
    streams: dict[tuple[str, str], list[Figure]] = {}
    measured = cell.result if cell.measured else None
    for figure in figures_of(measured) if measured and measured.measures else ():
        streams.setdefault((figure.direction, figure.stream), []).append(figure)
    for (direction, stream), figures in streams.items():
        yield _Line(cell, direction, stream, tuple(figures))
    if not streams:
        yield _Line(cell, cell.ways, "", ())


def _quantities(measures: Sequence[Measure], repeated: bool) -> Columns[_Line]:
    """A column for each, and with several repeats one for their percentiles."""
    first = {measure.name: measure for measure in reversed(measures)}
    names = dict.fromkeys(measure.name for measure in measures)
    return [column for name in names for column in _quantity(first[name], repeated)]


def _quantity(measure: Measure, repeated: bool) -> Columns[_Line]:
    name = measure.name
    summary = measure.summary if repeated else ""
    value = Column(name, f"{measure.quantity}.", summary, tone="strong")
    ends = Column(
        "1st to 99th %ile",
        "1st to 99th percentile of the repeats (RFC 8219 12).",
        spared=6,
        below=True,
        tone="muted",
    )
    found: Columns[_Line] = (
        (value, lambda line: _figure(line, name)),
        (ends, lambda line: _ends(line, name)),
    )
    return found if repeated else found[:1]


def _figure(line: _Line, name: str) -> Entry:
    found = next((f for f in line.figures if f.name == name), None)
    return NONE if found is None else of_figure(found)


def _ends(line: _Line, name: str) -> Entry:
    found = [m for m in line.measures if m.name == name]
    if not found:
        return ""
    return Span(delay(found[0].percentile_1), delay(found[0].percentile_99))


def _of_cell(entry: Callable[[Subject], Entry]) -> Callable[[_Line], Entry]:
    return lambda line: entry(line.cell)


def _name(line: _Line) -> str:
    return line.cell.id


def _continued(row: Row, of_cell: Sequence[int]) -> Row:
    """Of the same cell as the row above: what is the cell's stands there."""
    entries = tuple("" if n in of_cell else e for n, e in enumerate(row.entries))
    return Row("", entries)


def _joined(told: Sequence[str]) -> Value:
    """Once, if all quantities have the same."""
    return Value(" / ".join(dict.fromkeys(told)))


def _range(samples: Sequence[int]) -> Value:
    """Of the repeats that are valid."""
    valid = [number for number in samples if number]
    if not valid:
        return NONE
    least, most = min(valid), max(valid)
    return count(least) if least == most else Value(f"{least:,} to {most:,}")
