"""Overload scalability (RFC 8219 10.2.1): values by number of flows.

A row for each number of flows, a column for each frame size, as the RFC wants it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dutperf.results import Figure, Scalability, ScalabilityPoint
from dutperf.tables.figures import NONE, Entry, Value, count, delay, percent
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import Column, Columns, Table, heads, rows


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
    columns: Columns[_Line] = (
        (Column("flows", "n, in each direction."), lambda line: count(line.flows)),
        *(
            column
            for index, (name, each) in enumerate(zip(names, group, strict=True))
            for column in _columns(index, name, each)
        ),
    )
    points = [{point.flows: point for point in each.points} for each in group]
    flows = sorted({n for of in points for n in of})
    return Table(
        key=f"scalability-{place}",
        title=f"{title}{size}: overload scalability (RFC 8219 10.2.1)",
        columns=heads(columns),
        rows=rows(
            columns, [_Line(n, tuple(of.get(n) for of in points)) for n in flows]
        ),
        notes=(f"flows differ in {first.varied}; + is worse than one flow",),
    )


def _columns(index: int, name: str, of: Scalability) -> Iterator[_Col]:
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
            return delay(Figure(value=point.value))


def _signed(change_percent: float | None) -> Entry:
    """One flow has none."""
    if change_percent is None:
        return ""
    told = percent(change_percent, digits=3)
    return replace(told, digits=f"+{told.digits}") if change_percent > 0 else told
