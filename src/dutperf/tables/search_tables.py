"""What a search found beside one rate: goals of MLRsearch, and loss by timeout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dutperf.results import Bound, GoalResult, TimeoutLoss
from dutperf.tables.figures import NONE, Entry, Value, count, duration, number, percent
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import Column, Columns, Table, heads, rows


def _regular(goal: GoalResult) -> str:
    if goal.regular:
        return "regular"
    return f"irregular ({', '.join(reason.code for reason in goal.reasons)})"


class _Swept(NamedTuple):
    """One load, and what each timeout would have lost of it."""

    load: Entry
    timeouts: Sequence[TimeoutLoss]


_GOALS: Columns[GoalResult] = (
    (Column("goal", "What is tolerated.", words=True), lambda goal: goal.name),
    (
        Column("time per load", "That decides about a load.", "s", spared=2),
        lambda goal: number(goal.duration_sum_s),
    ),
    (
        Column(
            "width", "(upper - lower) / upper bound, at most (RFC 9971 4.6).", spared=2
        ),
        lambda goal: percent(goal.width * 100, digits=3),
    ),
    (
        Column("lower bound", "Relevant lower bound.", "fps", tone="strong"),
        lambda goal: count(goal.lower_fps, goal.bound),
    ),
    (
        Column("upper bound", "Relevant upper bound.", "fps"),
        lambda goal: count(goal.upper_fps),
    ),
    (
        Column("conditional throughput", "What comes out at the lower bound.", "fps"),
        lambda goal: count(goal.conditional_fps),
    ),
    (
        Column(
            "result",
            "Only a regular one has both bounds within its width (RFC 9971 4.8).",
            words=True,
        ),
        _regular,
    ),
)


def goal_table(cell: Subject) -> Table:
    """A row for each goal; rates per direction."""
    return Table(
        key=f"goals-{cell.id}",
        title=f"{cell.id}: goals (RFC 9971), per direction",
        columns=heads(_GOALS),
        rows=rows(_GOALS, cell.result.goals if cell.result else []),
    )


def timeout_table(cell: Subject) -> Table:
    """What would be lost by each frame timeout: at the rate found, or at each load."""
    swept = _swept(cell)
    columns: Columns[_Swept] = (
        (Column("load", "At which the frames were sent."), lambda line: line.load),
        *(
            (_timeout_head(timeout), _lost_within(place))
            for place, timeout in enumerate(swept[0].timeouts)
        ),
        (Column("N", "Valid repeats."), lambda line: _valid(line.timeouts)),
    )
    return Table(
        key=f"timeouts-{cell.id}",
        title=f"{cell.id}: loss by frame timeout",
        columns=heads(columns),
        rows=rows(columns, swept),
    )


def _swept(cell: Subject) -> list[_Swept]:
    result = cell.result
    if result is None:
        return []
    points = sorted(result.points, key=lambda point: -point.load_percent)
    found = [_Swept(percent(point.load_percent), point.timeouts) for point in points]
    if result.timeouts:
        bound: Bound = "lower" if cell.is_bound else None
        rate = count(cell.median, bound, "fps per direction")
        found.insert(0, _Swept(rate, result.timeouts))
    return [each for each in found if each.timeouts]


def _timeout_head(timeout: TimeoutLoss) -> Column:
    meaning = "Lost, or slower than this."
    return Column("within", meaning, "of frames", value=duration(timeout.timeout_ns))


def _lost_within(place: int) -> Callable[[_Swept], Entry]:
    def entry(line: _Swept) -> Entry:
        lost = line.timeouts[place].loss_percent
        return Value(absent="invalid") if lost is None else percent(lost)

    return entry


def _valid(timeouts: Sequence[TimeoutLoss]) -> Value:
    counts = (sum(v is not None for v in each.repeats) for each in timeouts)
    return count(max(counts, default=0)) if timeouts else NONE
