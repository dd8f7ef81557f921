"""The figures of a cell: all that may be quoted of it, one by one.

A throughput is one figure, a frame loss curve one for each load, delays have one for
each measure, direction and stream.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from dutperf.catalogue import Unit
from dutperf.report.source import Source
from dutperf.results import (
    CellResult,
    LoadPoint,
    Measure,
    MeasuredValue,
    RepeatResult,
    Spread,
    valued,
)
from dutperf.results.details import Absent
from dutperf.tables import Subject
from dutperf.tables.subject import trials_by_cell

Limit = Literal["lower", "upper", "below"] | None
"""lower: that much, or more. upper: that much, or less. below: less."""


@dataclass(frozen=True)
class StoredFigure:
    """One figure of a cell, in ``unit``.

    Attributes:
        cell: of whom.
        name: what it is, short: throughput, TL, PDV, ...
        value: None: there is none, ``absent`` says why if that is known. Infinite: so
            many frames were lost.
        direction: of the frames that it is of.
        repeats: each that has a value; a lost one is infinite.
        at_least: how many of these are lower bounds.
        load_fps: at which it was measured, per direction; None: it was searched.
        load_percent: the same of the maximum, or of the throughput.
    """

    cell: Subject
    name: str
    unit: Unit
    value: float | None
    limit: Limit = None
    absent: Absent | None = None
    direction: str = ""
    stream: str = ""
    spread: Spread | None = None
    repeats: tuple[float, ...] = ()
    at_least: int = 0
    load_fps: float | None = None
    load_percent: float | None = None

    def interval(
        self, end: Literal["interval_lower", "interval_upper"]
    ) -> float | None:
        """One end of the interval of the median; None if it may be higher, too."""
        known = self.spread
        if known is None or self.value is None or end in known.lower_bounds:
            return None
        told: float | None = getattr(known, end)
        return told

    @property
    def dispersion_percent(self) -> float | None:
        """(99th - 1st percentile) / median of the repeats."""
        known = self.spread if self.value is not None else None
        return known.dispersion_percent if known else None


def stored_cells(source: Source) -> list[Subject]:
    """Those with a result, with their own trials."""
    trials = trials_by_cell(source.trials)
    return [
        Subject(
            cell.id,
            device_of(source, cell.place),
            cell.procedure,
            cell,
            tuple(trials.get(cell.id, ())),
        )
        for cell in source.cells
    ]


def device_of(source: Source, place: str | None) -> str:
    """The name of a lab or testbed; a run with one says it once."""
    return (place or "") if source.several else source.testbeds[0].name


def figures_of(cell: Subject) -> Iterator[StoredFigure]:
    """Those of a cell with a result; at least one, which may have no value."""
    result = cell.result
    if result is None:
        return
    if result.points:
        yield from (_of_point(cell, result.unit, point) for point in result.points)
    elif result.measures:
        yield from (_of_measure(cell, measure) for measure in result.measures)
    else:
        yield _of_cell(cell, result)


def leading_figures(cell: Subject) -> Iterator[StoredFigure]:
    """Those that the cell is known by.

    Of a curve the highest load, of delays the first measure in each direction.
    """
    found = list(figures_of(cell))
    if cell.result and cell.result.points:
        yield max(found, key=lambda figure: figure.load_percent or 0)
    else:
        first = found[0].name if found else ""
        yield from (
            figure
            for figure in found
            if figure.name == first and figure.stream != "background"
        )


def _of_cell(cell: Subject, result: CellResult) -> StoredFigure:
    repeats, at_least = _valid(result.repeats)
    is_below = cell.median == 0 and cell.within_ns is not None
    cell_load_fps = result.load.rate_fps if result.load else None
    limit: Limit = "lower" if cell.is_bound else None
    title = cell.known.title.lower() if cell.known else ""
    return StoredFigure(
        cell,
        "rate" if cell.judged and cell.family == "rate search" else title,
        result.unit,
        cell.within_ns if is_below else cell.median,
        "below" if is_below else limit,
        None if cell.measured else "invalid",
        direction=cell.direction,
        spread=cell.spread,
        repeats=repeats,
        at_least=at_least,
        load_fps=result.recovery.overload_fps if result.recovery else cell_load_fps,
    )


def _of_point(cell: Subject, unit: Unit, point: LoadPoint) -> StoredFigure:
    repeats, at_least = _valid(point.repeats)
    valid = any(repeat.verdict != "invalid" for repeat in point.repeats)
    return StoredFigure(
        cell,
        "frame loss",
        unit,
        point.loss_percent if valid else None,
        absent=None if valid else "invalid",
        direction=cell.direction,
        spread=point.spread,
        repeats=repeats,
        at_least=at_least,
        load_fps=point.load_fps,
        load_percent=point.load_percent,
    )


def _of_measure(cell: Subject, measure: Measure) -> StoredFigure:
    values = (_told(repeat) for repeat in measure.repeats)
    value = _told(measure.result) if cell.state != "invalid" else None
    return StoredFigure(
        cell,
        measure.name,
        measure.unit,
        value,
        _limit(measure.result) if value is not None else None,
        measure.result.absent if cell.state != "invalid" else "invalid",
        direction=measure.direction,
        stream=measure.stream,
        spread=measure.spread,
        load_fps=cell.load_fps,
        repeats=tuple(value for value in values if value is not None),
    )


def _told(figure: MeasuredValue) -> float | None:
    if figure.absent == "lost":
        return math.inf
    return figure.value if figure.below_ns is None else figure.below_ns


def _limit(figure: MeasuredValue) -> Limit:
    if figure.below_ns is not None:
        return "below"
    return "upper" if figure.at_most else None


def _valid(repeats: Sequence[RepeatResult]) -> tuple[tuple[float, ...], int]:
    """Values, and how many of them are lower bounds."""
    values, at_least = valued([r for r in repeats if r.verdict != "invalid"])
    return tuple(values), sum(at_least)
