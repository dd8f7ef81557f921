"""The table of RFC 2544 26.5, each repeat and direction, and one trial around A."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from dutperf.charts.cells import CellView
from dutperf.charts.time_charts import marked, time_charts, upright
from dutperf.procedures.method import Panel
from dutperf.protocol.base import DirectionName
from dutperf.results.details import DirectionRecovery, Recovery, RecoveryTime
from dutperf.results.trial_record import TrialRecord
from dutperf.tables.result_tables import ENDING, EXTREMES, TRAFFIC, title
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
    """Each repeat and direction."""
    if cell.result and cell.result.recovery:
        yield recovery_repeats_table(cell)


def result_table(key: str, cells: Sequence[Subject]) -> Table:
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
            lambda cell: duration(cell.within_ns, TIME_DIGITS),
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
            lambda line: _told_time(line.time),
        ),
        (
            Column("known to", "How much longer it may be."),
            lambda line: (
                duration(line.time.within_ns, TIME_DIGITS) if line.time else NONE
            ),
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


def _told_time(time: RecoveryTime | None) -> Value:
    if time is None:
        return Value(absent="invalid")
    at_least = time.bound is not None
    return time_value(time.value_ns, time.within_ns, at_least=at_least)


_INTERVALS_SHOWN = 10
"""To either side of the fall at least; a longer recovery has as much room again."""


def panel(cell: CellView) -> Panel:
    """The trial whose recovery took longest, around time stamp A."""
    recovery = cell.result.recovery if cell.result else None
    valid = [t for t in cell.trials if t.result.verdict.kind != "invalid"]
    if not valid or recovery is None:
        return Panel(cell)
    longest_ns = [
        max((t.value_ns for d in recovery.directions if (t := d.repeats[n])), default=0)
        for n in range(len(recovery.directions[0].repeats))
    ]
    trial = max(valid, key=lambda trial: longest_ns[trial.repeat - 1])
    around = _around(trial, recovery, longest_ns[trial.repeat - 1])
    fell = upright(recovery.overload_ns / 1e9)
    charts = (marked(chart, "recovery", around, [fell]) for chart in time_charts(trial))
    return Panel(cell, trial, tuple(charts))


def _around(
    trial: TrialRecord, recovery: Recovery, longest_ns: float
) -> tuple[float, float]:
    """What of the trial is shown, in seconds."""
    room_ns = _INTERVALS_SHOWN * trial.request.record.series_interval_ns
    begin_ns = max(0, recovery.overload_ns - room_ns)
    end_ns = recovery.overload_ns + max(room_ns, 2 * longest_ns)
    return begin_ns / 1e9, min(end_ns, trial.request.duration_ns) / 1e9
