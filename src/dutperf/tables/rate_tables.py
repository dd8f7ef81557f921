"""Throughput beside the theoretical maximum of the media (RFC 2544 26.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dutperf.results import Bound, GoalResult, Media, TimeoutLoss
from dutperf.results.passport import NEAR_PERCENT, PassportUse
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import (
    NONE,
    Column,
    Columns,
    Entry,
    Row,
    Table,
    Value,
    Verdict,
    count,
    duration,
    heads,
    number,
    percent,
    rows,
)


@dataclass(frozen=True)
class RateRow:
    """One throughput at one frame size; ``media`` is null where no speed is known."""

    cell: Subject
    media: Media | None

    @property
    def share_percent(self) -> float | None:
        """What of the theoretical maximum was reached."""
        if self.media is None or self.cell.rate_fps is None:
            return None
        return self.cell.rate_fps * 100 / self.media.rate_fps


Rates = Sequence[tuple[str, list[RateRow]]]
"""Name of a stream, and its throughputs by frame size."""
_COLUMNS: Columns[RateRow] = (
    (
        Column("traffic", "What is the same for all frame sizes.", words=True),
        lambda row: row.cell.series,
    ),
    (
        Column("frame size", "With the frame check sequence; or a mix.", "bytes"),
        lambda row: Value(row.cell.sizes.removesuffix(" bytes")),
    ),
    (
        Column(
            "theoretical maximum",
            "What the slower medium carries (RFC 2544 20, RFC 5180 A.1).",
            "fps per direction",
        ),
        lambda row: count(row.media.rate_fps if row.media else None),
    ),
    (
        Column("throughput", "The result.", "fps per direction", tone="strong"),
        lambda row: row.cell.figure,
    ),
    (
        Column("sum", "Of all directions together.", "fps", spared=2),
        lambda row: count(row.cell.sum_fps, "lower" if row.cell.is_bound else None),
    ),
    (
        Column("reached", "Throughput / theoretical maximum.", "of the maximum"),
        lambda row: percent(
            row.share_percent, "lower" if row.cell.is_bound else None, 3
        ),
    ),
    (
        Column("verdict", "Whether there is a result to quote.", "", 1, words=True),
        lambda row: Verdict(row.cell.state),
    ),
)


def media_table(cells: Sequence[Subject]) -> Table | None:
    """By stream and frame size; None if there is no throughput."""
    series = rate_rows(cells)
    if not series:
        return None
    known = [[row for row in of if row.media] for _, of in series]
    return Table(
        key="media",
        title="Throughput and theoretical maximum (RFC 2544 26.1)",
        columns=heads(_COLUMNS),
        rows=tuple(
            Row(row.name, ("", *row.entries[1:])) if place else row
            for _, of in series
            for place, row in enumerate(rows(_COLUMNS, of, lambda row: row.cell.id))
        ),
        notes=tuple(_media_notes([row for _, of in series for row in of])),
        detail=all(len(of) < 2 for of in known),
    )


def rate_rows(cells: Sequence[Subject]) -> Rates:
    """The throughputs of each stream, in the campaign's order; flows have a table.

    Of a stream they are by frame size, mixes last.
    """
    found: dict[str, list[RateRow]] = {}
    for cell in cells:
        if cell.family == "rate search" and cell.unit == "fps" and not cell.flows:
            found.setdefault(cell.series, []).append(RateRow(cell, cell.media))
    for of_series in found.values():
        of_series.sort(key=lambda row: row.cell.frame_size or float("inf"))
    return list(found.items())


def _media_notes(shown: Sequence[RateRow]) -> Iterator[str]:
    speeds = dict.fromkeys(_speed(row.media) for row in shown if row.media)
    if speeds:
        yield f"per direction; the maximum is that of {' or '.join(speeds)}"
    results = [row.cell.result for row in shown if row.cell.result]
    if any(cell.sum_fps is not None and cell.media is None for cell in results):
        yield "theoretical maximum: not known, a link does not tell its speed"


def _speed(media: Media) -> str:
    nominal = ", nominal: a virtual link, which may be faster" if media.nominal else ""
    return f"{media.of_ports}{media.link_speed_mbps:,} Mbit/s{nominal}"


# What a search found beside one rate: goals of MLRsearch, and loss by timeout.


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


# Each result beside what the tester can do itself, by its passport.


class _Row(NamedTuple):
    cell: Subject
    use: PassportUse


_PASSPORT_COLUMNS: Columns[_Row] = (
    (
        Column("of", "What was measured, and of which frames.", words=True),
        lambda row: f"{row.cell.name}, {row.cell.stream}",
    ),
    (
        Column("frames", "What the frames have that costs the tester.", words=True),
        lambda row: row.use.features,
    ),
    (
        Column(
            "safe rate",
            "At which the tester without a device passed every one of so many trials.",
            "fps per direction",
        ),
        lambda row: count(row.use.safe_rate_fps),
    ),
    (
        Column("proof", "How many trials in a row passed there.", "trials", spared=3),
        lambda row: count(row.use.trials),
    ),
    (
        Column("result", "The rate that it is about.", "fps per direction"),
        lambda row: count(row.use.rate_fps),
    ),
    (
        Column(
            "share",
            f"Result / safe rate; above {NEAR_PERCENT:.0f} % the tester hardly does "
            "more.",
            "of the safe rate",
            tone="strong",
        ),
        lambda row: percent(row.use.share_percent, digits=3),
    ),
    (
        Column(
            "delay floor",
            "Typical delay, and that of 999 in 1,000 frames, without a device.",
            spared=1,
        ),
        lambda row: _floor(row.use),
    ),
    (
        Column(
            "device's CPU for links",
            "Of a lab: what part of the device's CPU carried frames to and from the "
            "tester and did not forward them.",
            "of its time",
            spared=2,
        ),
        lambda row: percent(row.use.device_share_percent, digits=2),
    ),
)


def passport_table(cells: Sequence[Subject]) -> Table | None:
    """A row for each result that has a passport beside it; None without any."""
    known = [
        _Row(cell, cell.result.passport)
        for cell in cells
        if cell.result and cell.result.passport
    ]
    if not known:
        return None
    names = dict.fromkeys(row.use.passport for row in known)
    return Table(
        key="passport",
        title=f"The tester's own limits (passport {', '.join(names)})",
        columns=heads(_PASSPORT_COLUMNS),
        rows=rows(_PASSPORT_COLUMNS, known, lambda row: row.cell.id),
        detail=True,
    )


def _floor(use: PassportUse) -> Value:
    floor = use.floor
    if floor is None:
        return Value()
    typical, worst = duration(floor.typical_ns, 3), duration(floor.worst_ns, 3)
    return replace(
        typical,
        digits=f"{typical.digits} {typical.unit}, {worst.digits}",
        unit=worst.unit,
    )
