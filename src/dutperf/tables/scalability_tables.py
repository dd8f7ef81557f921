"""Values by a number: of flows (RFC 8219 10.2), or of what is swept.

Of flows: a row for each number, a column for each frame size, as the RFC wants it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dutperf.results import (
    MeasuredValue,
    Scalability,
    ScalabilityPoint,
    SweepResult,
    SweptPoint,
)
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import (
    NONE,
    Column,
    Columns,
    Entry,
    Span,
    Table,
    Value,
    count,
    delay,
    heads,
    percent,
    rows,
)


@dataclass(frozen=True)
class Growth:
    """Values of one benchmark that stand side by side.

    ``columns``: frame sizes if there are several, and ``name`` is that of the value;
    else names of values, and ``name`` is the frame size.
    """

    title: str
    name: str
    columns: tuple[str, ...]
    series: tuple[Scalability, ...]
    table: Table

    @property
    def higher_is_better(self) -> bool:
        """Whether less than with one flow is worse."""
        return self.series[0].better == "higher"

    @property
    def is_rate(self) -> bool:
        """Whether the value is its own rate."""
        return self.series[0].unit == "fps"

    @property
    def rate_per_flow_fps(self) -> int | None:
        """What each flow adds to the load; None: they share it."""
        return self.series[0].rate_per_flow_fps

    @property
    def rfc(self) -> str:
        """The section that says how the flows are loaded."""
        return _rfc(self.series[0])

    @property
    def has_intervals(self) -> bool:
        """Whether repeats were enough for one."""
        return any(bool(_interval(p)) for each in self.series for p in each.points)

    @property
    def several_rates(self) -> bool:
        """Whether not only the number of flows changed."""
        return len({p.rate_fps for each in self.series for p in each.points}) > 1


_UNITS = {"fps": "fps per direction", "frames": "frames"}
"""Of a column; other values have theirs with them."""


class _Line(NamedTuple):
    """One number of flows, and each column's point, if it has one."""

    flows: int
    points: tuple[ScalabilityPoint | None, ...]


def growths(series: Sequence[Scalability], cells: Sequence[Subject]) -> list[Growth]:
    """The benchmarks in the order in which they were measured.

    Those of one frame size have all their values side by side, others have their sizes.
    """
    titles = {
        cell.id: f"{cell.name}, {cell.versions}, {cell.ways}{cell.at}" for cell in cells
    }
    sizes: dict[str, set[str]] = {}
    for each in series:
        sizes.setdefault(each.series, set()).add(each.frame_size)
    groups: dict[tuple[str, str], list[Scalability]] = {}
    for each in series:
        name = each.name if len(sizes[each.series]) > 1 else ""
        groups.setdefault((each.series, name), []).append(each)
    return [
        _growth(number, titles, group, by_size=bool(name))
        for number, ((_, name), group) in enumerate(groups.items(), 1)
    ]


def _growth(
    place: int, titles: Mapping[str, str], group: list[Scalability], *, by_size: bool
) -> Growth:
    first = group[0]
    title = titles.get(first.points[0].cell, first.series)
    names = tuple(_size(each) if by_size else each.name for each in group)
    name = first.name if by_size else _size(first)
    return Growth(title, name, names, tuple(group), _table(place, title, names, group))


def _table(
    place: int, title: str, names: Sequence[str], group: Sequence[Scalability]
) -> Table:
    first = group[0]
    size = "" if len({each.frame_size for each in group}) > 1 else f", {_size(first)}"
    known = any(bool(_interval(point)) for each in group for point in each.points)
    columns: Columns[_Line] = (
        (Column("flows", "n, in each direction."), lambda line: count(line.flows)),
        *(
            column
            for index, (name, each) in enumerate(zip(names, group, strict=True))
            for column in _columns(index, name, each, intervals=known)
        ),
    )
    points = [{point.flows: point for point in each.points} for each in group]
    flows = sorted({n for of in points for n in of})
    return Table(
        key=f"scalability-{place}",
        title=f"{title}{size}: overload scalability ({_rfc(first)})",
        columns=heads(columns),
        rows=rows(
            columns, [_Line(n, tuple(of.get(n) for of in points)) for n in flows]
        ),
        notes=tuple(_notes(group)),
    )


def _rfc(of: Scalability) -> str:
    return "RFC 8219 10.2.1" if of.rate_per_flow_fps is None else "RFC 8219 10.2.2"


def _notes(group: Sequence[Scalability]) -> Iterator[str]:
    first = group[0]
    yield f"flows differ in {first.varied}; + is worse than one flow"
    if first.rate_per_flow_fps is not None:
        yield (
            f"{first.rate_per_flow_fps:,} fps for each flow, each number of flows in "
            "trials of its own; RFC 8219 10.2.2 starts flow after flow in one trial"
        )
    compared = [
        point
        for each in group
        for point in each.points
        if point.degradation_percent is not None
    ]
    intervals = [_interval(point) for point in compared]
    if any(intervals):
        yield (
            "an interval that holds 0 shows no difference; all of a run hold together "
            "with 95 %"
        )
    if not all(intervals):
        yield (
            "without an interval a degradation may be chance: too few repeats, or they "
            "have no common value"
        )


def _columns(
    index: int, name: str, of: Scalability, *, intervals: bool
) -> Iterator[_Col]:
    is_rate = of.unit == "fps"
    unit = _UNITS.get(of.unit, "")
    yield (
        Column(name, f"The {of.name} with so many flows.", unit, tone="strong"),
        _at(index, lambda point: _value(of, point)),
    )
    yield (
        Column(
            "degradation",
            "Against one flow, + is worse (RFC 8219 10.2.1).",
            spared=1,
            below=True,
        ),
        _at(index, lambda point: _signed(point.degradation_percent)),
    )
    if intervals:
        yield (
            Column(
                "interval",
                "What the degradation lies in, by what the repeats differ.",
                spared=1,
                below=True,
                tone="muted",
            ),
            _at(index, _interval),
        )
    if not is_rate:
        yield (
            Column(
                "at",
                "The applied frame rate.",
                "fps per direction",
                spared=2,
                below=True,
                tone="muted",
            ),
            _at(index, lambda point: count(point.rate_fps)),
        )


_Col = tuple[Column, Callable[[_Line], Entry]]


def _at(
    index: int, entry: Callable[[ScalabilityPoint], Entry]
) -> Callable[[_Line], Entry]:
    def of_line(line: _Line) -> Entry:
        point = line.points[index]
        return NONE if point is None else entry(point)

    return of_line


def _size(of: Scalability) -> str:
    """Where IP versions have sizes of their own, these are told with them."""
    return of.frame_size if "IPv" in of.frame_size else f"{of.frame_size} bytes"


def _value(of: Scalability, point: ScalabilityPoint) -> Value:
    match of.unit:
        case "fps" | "frames":
            return count(point.value, "lower" if point.at_least else None)
        case "percent":
            return percent(point.value)
        case "ns":
            return delay(MeasuredValue(value=point.value))


def _signed(change_percent: float | None) -> Entry:
    """One flow has none."""
    return "" if change_percent is None else _change(change_percent)


def _change(percents: float) -> Value:
    told = percent(percents, digits=3)
    return replace(told, digits=f"+{told.digits}") if percents > 0 else told


def _interval(point: ScalabilityPoint) -> Entry:
    """An end that is not known is left out; empty: there is none."""
    low, high = point.lower_percent, point.upper_percent
    if low is not None and high is not None:
        return Span(_change(low), _change(high))
    if low is not None:
        return replace(_change(low), bound="lower")
    return "" if high is None else replace(_change(high), bound="upper")


# Sweeps: a row for each number, and in words where the knee is.


@dataclass(frozen=True)
class Swept:
    """One sweep; ``title`` is the procedure with its frames."""

    title: str
    result: SweepResult
    table: Table

    @property
    def has_queues(self) -> bool:
        """Whether it is known what the device's queues took."""
        return any(point.queues for point in self.result.points)

    @property
    def sentence(self) -> str:
        """What it says."""
        return f"{self.title}: {self.result.words}"


def swept(found: Sequence[SweepResult], cells: Sequence[Subject]) -> list[Swept]:
    """The sweeps in the order in which they were measured."""
    titles = {cell.id: f"{cell.name}, {_frames(cell)}{cell.at}" for cell in cells}
    return [
        Swept(title, each, _sweep_table(number, title, each))
        for number, each in enumerate(found, 1)
        for title in [titles.get(each.points[0].cell, each.series)]
    ]


def _frames(cell: Subject) -> str:
    """What is the same for all numbers; the size, unless it is what varies."""
    sweep = cell.cell.spec.sweep if cell.cell else None
    profile = cell.profile
    if sweep and cell.traffic and sweep.is_of_traffic:
        profile = sweep.without(cell.traffic).words
    elif sweep and sweep.key == "flows":
        profile = ""
    size = "" if sweep and sweep.key == "frame_size" else cell.sizes
    return ", ".join(filter(None, (cell.versions, size, cell.ways, profile)))


def _sweep_table(place: int, title: str, of: SweepResult) -> Table:
    unit = "" if of.unit == "ns" else of.unit
    columns: Columns[SweptPoint] = (
        (
            Column(KEYS[of.key], "The number that was swept."),
            lambda point: count(point.number),
        ),
        (
            Column(of.name, f"The {of.name} there.", unit, tone="strong"),
            lambda point: _swept_value(of, point.value, point),
        ),
        (
            Column(
                "known to be",
                "What it lies in, by what the repeats differ and how fine the search "
                "is.",
                unit,
                spared=1,
                tone="muted",
            ),
            lambda point: _known(of, point),
        ),
        (
            Column("knee", "Which numbers its interval is between.", words=True),
            lambda point: _mark(of, point.number),
        ),
    )
    return Table(
        key=f"sweep-{place}",
        title=f"{title}: over {KEYS[of.key]}",
        columns=heads(columns),
        rows=rows(columns, of.points),
        notes=(of.words, *_unread(of.points)),
    )


def _unread(points: Sequence[SweptPoint]) -> Iterator[str]:
    first = {why: point.number for point in reversed(points) for why in point.unread}
    for why, number in first.items():
        yield f"not read, for {number:,} first: {why}"


KEYS: Mapping[str, str] = {
    "addresses": "addresses on each side",
    "ports": "ports of each kind",
    "networks": "networks on each side",
    "flows": "flows",
    "frame_size": "bytes",
    "connections": "connections",
}


def _swept_value(of: SweepResult, value: float | None, point: SweptPoint) -> Entry:
    if value is None:
        return NONE
    if of.unit == "ns":
        return delay(MeasuredValue(value=value))
    if of.unit == "percent":
        return percent(value)
    return count(value, "lower" if point.high is None else None)


def _known(of: SweepResult, point: SweptPoint) -> Entry:
    if point.low is None or point.high is None:
        return ""
    low, high = (_swept_value(of, end, point) for end in (point.low, point.high))
    return Span(low, high) if isinstance(low, Value) and isinstance(high, Value) else ""


def _mark(of: SweepResult, number: int) -> str:
    told = {of.knee_above: "above", of.knee_until: "at most"}
    if number == of.knee and of.knee != of.knee_until:
        return "found"
    return told.get(number, "") if of.knee is not None else ""
