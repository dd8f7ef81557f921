"""Overload scalability (RFC 8219 10.2.1): a table and a chart for each benchmark value.

A row for each number of flows, a column for each frame size, as the RFC wants it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dutperf.report.cells import CellView
from dutperf.report.chart import Chart, Trace, layout, line_trace
from dutperf.report.text import AT_LEAST, NBSP, delay_ns, percent, whole
from dutperf.results import Scalability, ScalabilityPoint


@dataclass(frozen=True)
class Entry:
    """One result: as text, with what it says of the number of flows."""

    value: str
    degradation: str
    rate: str


@dataclass(frozen=True)
class Growth:
    """Values of one benchmark; ``rows`` has an entry, or None, for each column.

    ``name`` is that of the value if the columns are frame sizes.
    """

    title: str
    name: str
    varied: str
    is_rate: bool
    columns: tuple[str, ...]
    rows: tuple[tuple[int, tuple[Entry | None, ...]], ...]
    chart: Chart | None
    several_rates: bool


def scalability_of(
    series: Sequence[Scalability], cells: Sequence[CellView]
) -> list[Growth]:
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
    number: int, titles: dict[str, str], group: list[Scalability], *, by_size: bool
) -> Growth:
    first = group[0]
    title = titles.get(first.points[0].cell, first.series)
    columns = [_size(each) if by_size else each.name for each in group]
    name = first.name if by_size else _size(first)
    flows = sorted({point.flows for each in group for point in each.points})
    points = [{point.flows: point for point in each.points} for each in group]
    return Growth(
        title=title,
        name=name,
        varied=first.varied,
        is_rate=first.procedure == "throughput",
        columns=tuple(columns),
        rows=tuple((n, _row(n, group, points)) for n in flows),
        several_rates=len({p.rate_fps for each in group for p in each.points}) > 1,
        chart=_chart(number, f"{title}, {name}", columns, group),
    )


def _row(
    flows: int, group: list[Scalability], points: list[dict[int, ScalabilityPoint]]
) -> tuple[Entry | None, ...]:
    return tuple(
        _entry(each, of.get(flows)) for each, of in zip(group, points, strict=True)
    )


def _size(of: Scalability) -> str:
    return of.frame_size if "IPv" in of.frame_size else f"{of.frame_size} bytes"


def _entry(of: Scalability, point: ScalabilityPoint | None) -> Entry | None:
    if point is None:
        return None
    return Entry(
        value=(AT_LEAST if point.at_least else "") + _value(of, point.value),
        degradation=_signed(point.degradation_percent),
        rate=f"{whole(point.rate_fps)}{NBSP}fps",
    )


def _value(of: Scalability, value: float | None) -> str:
    match of.unit:
        case "fps":
            return whole(value)
        case "percent":
            return percent(value)
        case "ns":
            return delay_ns(value)


def _signed(change_percent: float | None) -> str:
    if change_percent is None:
        return ""
    if change_percent == 0:
        return f"0{NBSP}%"
    sign = "+" if change_percent > 0 else "\N{MINUS SIGN}"
    return f"{sign}{percent(abs(change_percent))}"


def _chart(
    number: int, title: str, names: list[str], group: list[Scalability]
) -> Chart | None:
    """None where nothing can be compared."""
    data = [
        _line(index, name, each)
        for index, (name, each) in enumerate(zip(names, group, strict=True))
        if any(point.degradation_percent is not None for point in each.points)
    ]
    if not data:
        return None
    ticks = sorted({p.flows for each in group for p in each.points})
    figure = layout(
        "network flows in each direction",
        "degradation against one flow, %",
        {"type": "log", "tickvals": ticks, "tickformat": ",d"},
        {"zeroline": True, "zerolinecolor": "var(--rule)"},
    )
    words = f"Degradation over the number of flows: {title}"
    return Chart(f"scalability-{number}", words, data, figure)


def _line(index: int, name: str, of: Scalability) -> Trace:
    """One flow is the origin."""
    shown = [p for p in of.points if p.flows == 1 or p.degradation_percent is not None]
    return line_trace(
        index,
        name,
        [float(point.flows) for point in shown],
        [point.degradation_percent or 0.0 for point in shown],
    ) | {"hovertemplate": "%{x:,d} flows: %{y:+,.3r} %<extra></extra>"}
