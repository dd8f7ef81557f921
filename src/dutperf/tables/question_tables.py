"""Answers to the questions of a campaign: a row for each device, a column a figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dutperf.results.figures import Figure, figures_of
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import (
    NONE,
    Column,
    Columns,
    Entry,
    Table,
    Verdict,
    count,
    heads,
    of_figure,
    rows,
    state_word,
)


@dataclass(frozen=True)
class Answer:
    """All cells that were asked for one question, and what they say in one table.

    ``devices``: names of those in the table, in its order.
    """

    question: str
    devices: tuple[str, ...]
    table: Table


class _Device(NamedTuple):
    """One row."""

    testbed: str
    versions: str


class _Place(NamedTuple):
    """One column: a figure, and with what frames and connections it was measured."""

    figure: str
    size: str
    connections: str
    traffic: str
    ways: str


Told = dict[tuple[_Device, _Place], tuple[Subject, Figure | None]]


def answers(cells: Sequence[Subject]) -> list[Answer]:
    """One for each question, in the order in which they were asked."""
    by_question: dict[str, list[Subject]] = {}
    for cell in cells:
        if cell.spec and cell.spec.question:
            by_question.setdefault(cell.spec.question, []).append(cell)
    return [
        _answer(number, question, of)
        for number, (question, of) in enumerate(by_question.items(), 1)
    ]


def _answer(number: int, question: str, cells: Sequence[Subject]) -> Answer:
    told: Told = {}
    for cell in cells:
        device = _Device(cell.testbed, cell.versions)
        told.setdefault((device, _place(cell)), (cell, _figure(cell)))
    devices = tuple(dict.fromkeys(device for device, _ in told))
    places = _in_order(told)
    same = [len(set(of)) == 1 for of in zip(*places, strict=True)]
    columns: Columns[_Device] = (
        *(
            [(Column("device", "", words=True), lambda row: row.testbed)]
            if any(device.testbed for device in devices)
            else []
        ),
        (
            Column(
                "frames",
                "IP versions, left and right.",
                words=True,
                below=True,
                tone="muted",
            ),
            lambda row: row.versions,
        ),
        *(column for place in places for column in _columns(told, place, same)),
    )
    return Answer(
        question,
        tuple(dict.fromkeys(device.testbed for device in devices)),
        Table(
            key=f"question-{number}",
            title=question,
            columns=heads(columns),
            rows=rows(columns, devices),
            notes=tuple(_notes(told, places[0], same)),
        ),
    )


def _in_order(told: Told) -> list[_Place]:
    """Figures as they were asked for, of each the sizes and connections rising."""
    figures = list(dict.fromkeys(place.figure for _, place in told))
    cells = {place: cell for (_, place), (cell, _) in told.items()}
    return sorted(
        cells,
        key=lambda place: (
            figures.index(place.figure),
            cells[place].frame_size or 0,
            cells[place].connections or 0,
        ),
    )


def _figure(cell: Subject) -> Figure | None:
    """What it is known by, of delays in the worse direction; None: it has none."""
    if cell.result is None or not cell.measured:
        return None
    return max((f for f in figures_of(cell.result) if f.leads), key=_rank)


def _rank(figure: Figure) -> float:
    return -math.inf if figure.value is None else figure.value


def _place(cell: Subject) -> _Place:
    is_other_rate = cell.criterion and cell.family == "rate search"
    name = "rate" if is_other_rate else cell.known.noun if cell.known else cell.name
    size = cell.frame_size
    opened = cell.connections
    up_to = "up to " if cell.unit == "connections" else ""
    one_way = cell.family != "connections" and not cell.bidirectional
    return _Place(
        ", ".join(filter(None, (name, cell.criterion))),
        cell.sizes if size is None else f"{size:,} bytes",
        "" if opened is None else f"{up_to}{opened:,} connections",
        cell.profile,
        cell.ways if one_way else "",
    )


def _columns(
    told: Told, place: _Place, same: Sequence[bool]
) -> Iterator[tuple[Column, Callable[[_Device], Entry]]]:
    """The figure; and its load, where it is not one that was looked for."""
    name = ", ".join(
        part
        for number, part in enumerate(place)
        if part and (number == 0 or not same[number])
    )
    own = {device: found for (device, of), found in told.items() if of == place}
    cell = next(iter(own.values()))[0]
    unit = {"fps": "fps per direction", "ns": "", "percent": ""}.get(
        cell.unit, cell.unit
    )
    yield (
        Column(name, cell.known.finds if cell.known else "", unit, tone="strong"),
        lambda row: _entry(*own[row]) if row in own else NONE,
    )
    loads = {device: _load_fps(figure) for device, (_, figure) in own.items()}
    if any(loads.values()):
        yield (
            Column(
                "at",
                "The load at which it was measured.",
                "fps per direction",
                below=True,
                tone="muted",
            ),
            lambda row: count(loads.get(row)),
        )


def _load_fps(figure: Figure | None) -> float | None:
    return figure.load_fps if figure else None


def _entry(cell: Subject, figure: Figure | None) -> Entry:
    return Verdict(cell.state) if figure is None else of_figure(figure)


def _notes(told: Told, first: _Place, same: Sequence[bool]) -> Iterator[str]:
    """What all columns have in common, and what speaks against single figures."""
    common = [part for part, is_same in zip(first, same, strict=True) if is_same]
    if said := ", ".join(filter(None, common[1:] if same[0] else common)):
        yield f"all of {said}"
    found: dict[str, None] = {}
    for cell, figure in told.values():
        where = f"{cell.name}, {cell.frames}{cell.at}"
        if figure is None:
            reasons = cell.result.reasons if cell.result else []
            why = f": {reasons[0].message}" if reasons else ""
            found[f"{where}: {state_word(cell.state)}{why}"] = None
        elif cell.doubt:
            found[f"{where}: {cell.doubt}"] = None
        elif cell.judged != cell.criterion:
            found[f"{cell.frames}{cell.at}: {cell.judged}"] = None
    yield from found
