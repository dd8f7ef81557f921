"""System recovery: the table of RFC 2544 26.5, and each repeat and direction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from dutperf.protocol import DirectionName
from dutperf.results.details import (
    Action,
    DirectionOutage,
    DirectionRecovery,
    OutageTime,
    RecoveryTime,
)
from dutperf.tables.result_tables import ENDING, EXTREMES, TRAFFIC, TRIAL_TIME, title
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import (
    NONE,
    Column,
    Columns,
    Entry,
    Table,
    Value,
    count,
    duration,
    heads,
    rows,
)

_DIGITS = 4


def recovery_table(key: str, cells: Sequence[Subject]) -> Table:
    """A row for each cell: its throughput, the overload, and the recovery time."""
    repeated = any(cell.several for cell in cells)
    both = any(cell.bidirectional for cell in cells)
    columns: Columns[Subject] = (
        *TRAFFIC,
        (
            Column(
                "throughput",
                "What the overload is a share of.",
                "fps per direction",
                spared=5,
            ),
            lambda cell: count(cell.load_fps),
        ),
        (
            Column(
                "overload",
                "What was sent before the load fell to half of it.",
                "fps per direction",
                spared=7,
            ),
            lambda cell: count(cell.full_load_fps),
        ),
        (
            Column(
                f"recovery{', average' if repeated else ''}",
                "From when the load fell to when the last lost frame was due; of both "
                "directions the longer one.",
                tone="strong",
            ),
            lambda cell: cell.figure,
        ),
        (
            Column(
                "known to",
                "How much longer it may be: nobody knows when a device recovered "
                "between a lost frame and the next one.",
                spared=2,
            ),
            lambda cell: duration(cell.within_ns, _DIGITS),
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


def _way(name: DirectionName) -> tuple[Column, Callable[[Subject], Entry]]:
    """The same of one direction."""

    def entry(cell: Subject) -> Entry:
        recovery = cell.result.recovery if cell.result and cell.measured else None
        every = recovery.directions if recovery else []
        return next((_average(d) for d in every if d.direction == name), NONE)

    return Column(name, "Recovery of this direction, average.", spared=6), entry


def _average(direction: DirectionRecovery) -> Value:
    times = [time for time in direction.repeats if time]
    if not times:
        return NONE
    return time_value(
        fmean(time.value_ns for time in times),
        max(time.within_ns for time in times),
        at_least=any(time.bound for time in times),
    )


def time_value(value_ns: float, within_ns: float, *, at_least: bool) -> Value:
    """A time that is told as less than what it is known to, where it is 0."""
    if value_ns == 0:
        return replace(duration(within_ns, _DIGITS), bound="below")
    return replace(duration(value_ns, _DIGITS), bound="lower" if at_least else None)


class _Line(NamedTuple):
    """One direction in one repeat; without a time: invalid."""

    repeat: int
    direction: DirectionName
    time: RecoveryTime | None


def recovery_repeats_table(cell: Subject) -> Table:
    """Every time that was measured, and what was lost before and after the fall."""
    columns: Columns[_Line] = (
        (Column("repeat", "Its number."), lambda line: count(line.repeat)),
        (
            Column("direction", "In which the frames went.", words=True),
            lambda line: line.direction,
        ),
        (
            Column("recovery", "From A to the last lost frame.", tone="strong"),
            lambda line: _told(line.time),
        ),
        (
            Column("known to", "How much longer it may be."),
            lambda line: duration(line.time.within_ns, _DIGITS) if line.time else NONE,
        ),
        (
            Column("lost until A", "Of the overload.", "frames"),
            lambda line: count(line.time.overload_lost) if line.time else NONE,
        ),
        (
            Column("lost after A", "Of the reduced load.", "frames"),
            lambda line: count(line.time.reduced_lost) if line.time else NONE,
        ),
    )
    return Table(
        key=f"recovery-{cell.id}",
        title=f"{cell.id}: recovery in each repeat",
        columns=heads(columns),
        rows=rows(columns, _lines(cell)),
        detail=True,
    )


def _lines(cell: Subject) -> Iterator[_Line]:
    recovery = cell.result.recovery if cell.result else None
    directions = recovery.directions if recovery else []
    for number in range(len(directions[0].repeats) if directions else 0):
        for each in directions:
            yield _Line(number + 1, each.direction, each.repeats[number])


def _told(time: RecoveryTime | None) -> Value:
    if time is None:
        return Value(absent="invalid")
    at_least = time.bound is not None
    return time_value(time.value_ns, time.within_ns, at_least=at_least)


# Outages: by frames lost and by time stamps (RFC 6201 1.3), and what was done.


_OUTAGE_DIGITS = 4


def outage_table(key: str, cells: Sequence[Subject]) -> Table:
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
            lambda cell: duration(cell.within_ns, _OUTAGE_DIGITS),
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
        *((_outage_way("forward"), _outage_way("reverse")) if both else ()),
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
        lambda value_ns: duration(value_ns, _OUTAGE_DIGITS),
    )


def _outage_way(name: DirectionName) -> tuple[Column, Callable[[Subject], Entry]]:
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


class _OutageLine(NamedTuple):
    """One direction in one repeat; without a time: invalid."""

    repeat: int
    direction: DirectionName
    time: OutageTime | None


def outage_repeats_table(cell: Subject) -> Table:
    """Every outage by both methods, and where the longest loss was."""
    columns: Columns[_OutageLine] = (
        (Column("repeat", "Its number."), lambda line: count(line.repeat)),
        (
            Column("direction", "In which the frames went.", words=True),
            lambda line: line.direction,
        ),
        (
            Column("outage", "Frames lost / offered rate.", tone="strong"),
            lambda line: _outage_told(line.time),
        ),
        (
            Column("known to", "How far it may be wrong."),
            lambda line: (
                duration(line.time.within_ns, _OUTAGE_DIGITS) if line.time else NONE
            ),
        ),
        (
            Column("by time stamps", "The longest time without a frame."),
            lambda line: (
                duration(line.time.silence_ns, _OUTAGE_DIGITS) if line.time else NONE
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
        rows=rows(columns, _outage_lines(cell)),
        detail=True,
    )


def _outage_lines(cell: Subject) -> Iterator[_OutageLine]:
    outage = cell.result.outage if cell.result else None
    directions = outage.directions if outage else []
    for number in range(len(directions[0].repeats) if directions else 0):
        for each in directions:
            yield _OutageLine(number + 1, each.direction, each.repeats[number])


def _outage_told(time: OutageTime | None) -> Value:
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
            lambda each: duration(each.duration_ns, _OUTAGE_DIGITS),
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
