"""By frames lost and by time stamps (RFC 6201 1.3), and what was done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from dutperf.charts.cells import CellView
from dutperf.charts.chart import Figure
from dutperf.charts.time_charts import marked, time_charts, upright
from dutperf.procedures.method import Panel
from dutperf.protocol.base import DirectionName
from dutperf.results.details import Action, DirectionOutage, Outage, OutageTime
from dutperf.tables.result_tables import ENDING, EXTREMES, TRAFFIC, TRIAL_TIME, title
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import (
    NONE,
    TIME_DIGITS,
    Column,
    Columns,
    Entry,
    Table,
    Value,
    count,
    duration,
    heads,
    rows,
    time_value,
)


def tables(cell: Subject) -> Iterator[Table]:
    """Each repeat, and what was done meanwhile."""
    if cell.result and cell.result.outage:
        yield outage_repeats_table(cell)
        yield action_table(cell)


def result_table(key: str, cells: Sequence[Subject]) -> Table:
    """A row for each cell (RFC 6201 1.4)."""
    repeated = any(cell.several for cell in cells)
    both = any(cell.bidirectional for cell in cells)
    columns: Columns[Subject] = (
        *TRAFFIC,
        *TRIAL_TIME,
        (
            Column("load", "What each direction sent.", "fps per direction", spared=7),
            lambda cell: count(cell.load_fps),
        ),
        (
            Column(
                f"outage{', average' if repeated else ''}",
                "Frames lost / offered rate (RFC 6201 1.3); of both directions the "
                "longer one.",
                tone="strong",
            ),
            lambda cell: cell.figure,
        ),
        (
            Column("known to", "How far it may be wrong.", spared=5),
            lambda cell: duration(cell.within_ns, TIME_DIGITS),
        ),
        (
            Column(
                "by time stamps",
                "The longest time without a frame (RFC 6201 1.3), average; of both "
                "directions the longer one.",
                spared=2,
            ),
            _silence,
        ),
        (
            Column("lost", "Average; of both directions the more.", "frames", 4),
            lambda cell: _most(cell, lambda time: time.lost, count),
        ),
        *((_way("forward"), _way("reverse")) if both else ()),
        *(EXTREMES[:2] if repeated else ()),
        *ENDING,
    )
    return Table(
        key=key,
        title=title(cells),
        columns=heads(columns),
        rows=rows(columns, cells, lambda cell: cell.id),
    )


def _directions(cell: Subject) -> Sequence[DirectionOutage]:
    outage = cell.result.outage if cell.result and cell.measured else None
    return outage.directions if outage else ()


def _times(direction: DirectionOutage) -> list[OutageTime]:
    return [time for time in direction.repeats if time]


def _most(
    cell: Subject,
    of: Callable[[OutageTime], float],
    shown: Callable[[float], Value],
) -> Value:
    """The larger average of both directions."""
    averages = [fmean(map(of, _times(d))) for d in _directions(cell) if _times(d)]
    return shown(max(averages)) if averages else NONE


def _silence(cell: Subject) -> Value:
    return _most(
        cell,
        lambda time: time.silence_ns or 0,
        lambda value_ns: duration(value_ns, TIME_DIGITS),
    )


def _way(name: DirectionName) -> tuple[Column, Callable[[Subject], Entry]]:
    """The outage of one direction."""

    def entry(cell: Subject) -> Entry:
        found = [_times(d) for d in _directions(cell) if d.direction == name]
        if not found or not found[0]:
            return NONE
        return time_value(
            fmean(time.value_ns for time in found[0]),
            max(time.within_ns for time in found[0]),
            at_least=any(time.bound for time in found[0]),
        )

    return Column(name, "Outage of this direction, average.", spared=6), entry


class _Line(NamedTuple):
    """One direction in one repeat; without a time: invalid."""

    repeat: int
    direction: DirectionName
    time: OutageTime | None


def outage_repeats_table(cell: Subject) -> Table:
    """Every outage by both methods, and where the longest loss was."""
    columns: Columns[_Line] = (
        (Column("repeat", "Its number."), lambda line: count(line.repeat)),
        (
            Column("direction", "In which the frames went.", words=True),
            lambda line: line.direction,
        ),
        (
            Column("outage", "Frames lost / offered rate.", tone="strong"),
            lambda line: _told_time(line.time),
        ),
        (
            Column("known to", "How far it may be wrong."),
            lambda line: (
                duration(line.time.within_ns, TIME_DIGITS) if line.time else NONE
            ),
        ),
        (
            Column("by time stamps", "The longest time without a frame."),
            lambda line: (
                duration(line.time.silence_ns, TIME_DIGITS) if line.time else NONE
            ),
        ),
        (
            Column("lost", "In the whole trial.", "frames"),
            lambda line: count(line.time.lost) if line.time else NONE,
        ),
        (
            Column("in a row", "The longest run of lost frames.", "frames"),
            lambda line: count(line.time.longest_lost) if line.time else NONE,
        ),
        (
            Column("began", "When the first of these was due, since the first frame."),
            lambda line: duration(line.time.begin_ns, 6) if line.time else NONE,
        ),
    )
    return Table(
        key=f"outage-{cell.id}",
        title=f"{cell.id}: outage in each repeat",
        columns=heads(columns),
        rows=rows(columns, _lines(cell)),
        detail=True,
    )


def _lines(cell: Subject) -> Iterator[_Line]:
    outage = cell.result.outage if cell.result else None
    directions = outage.directions if outage else []
    for number in range(len(directions[0].repeats) if directions else 0):
        for each in directions:
            yield _Line(number + 1, each.direction, each.repeats[number])


def _told_time(time: OutageTime | None) -> Value:
    if time is None:
        return Value(absent="invalid")
    return time_value(time.value_ns, time.within_ns, at_least=time.bound is not None)


def action_table(cell: Subject) -> Table:
    """What hooks did while frames were sent."""
    columns: Columns[Action] = (
        (Column("repeat", "Its number."), lambda each: count(each.repeat)),
        (
            Column("command", "Of the hook during_trial.", words=True),
            lambda each: " ".join(each.command),
        ),
        (
            Column("at", "Where it ran.", words=True),
            lambda each: each.host or "this machine",
        ),
        (
            Column("began", "Since the first frame was due."),
            lambda each: duration(each.started_ns, 6),
        ),
        (
            Column("took", "Until it returned."),
            lambda each: duration(each.duration_ns, TIME_DIGITS),
        ),
    )
    outage = cell.result.outage if cell.result else None
    return Table(
        key=f"actions-{cell.id}",
        title=f"{cell.id}: what was done meanwhile",
        columns=heads(columns),
        rows=rows(columns, outage.actions if outage else []),
        detail=True,
    )


def panel(cell: CellView) -> Panel:
    """The trial that was out for longest over time, and what was done meanwhile."""
    outage = cell.result.outage if cell.result else None
    valid = [t for t in cell.trials if t.result.verdict.kind != "invalid"]
    if not valid or outage is None:
        return Panel(cell)
    trial = max(valid, key=lambda trial: _longest_ns(outage, trial.repeat))
    around = 0.0, trial.request.duration_ns / 1e9
    charts = (
        marked(chart, "outage", around, list(_acts(outage, trial.repeat)))
        for chart in time_charts(trial)
    )
    return Panel(cell, trial, tuple(charts))


def _longest_ns(outage: Outage, repeat: int) -> float:
    times = [direction.repeats[repeat - 1] for direction in outage.directions]
    return max((time.value_ns for time in times if time), default=0)


def _acts(outage: Outage, repeat: int) -> Iterator[Figure]:
    """When each hook began and returned."""
    for action in outage.actions:
        if action.repeat == repeat and action.started_ns is not None:
            yield upright(action.started_ns / 1e9)
            yield upright((action.started_ns + action.duration_ns) / 1e9)
