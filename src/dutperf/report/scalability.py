"""Overload scalability (RFC 8219 10.2.1): a table and a chart for each benchmark value.

A row for each number of flows, a column for each frame size, as the RFC wants it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dutperf.report.cells import CellView
from dutperf.report.chart import Chart, Trace, layout, line_trace
from dutperf.report.text import NBSP, delay_ns, percent, whole
from dutperf.results import Scalability, ScalabilityPoint


@dataclass(frozen=True)
class Entry:
    """One result: as text, with what it says of the number of flows."""

    value: str
    degradation: str
    rate: str


@dataclass(frozen=True)
class Growth:
    """One benchmark value; ``rows`` has an entry for each of ``sizes``, or None."""

    title: str
    name: str
    varied: str
    is_rate: bool
    sizes: tuple[str, ...]
    rows: tuple[tuple[int, tuple[Entry | None, ...]], ...]
    chart: Chart | None


def scalability_of(
    series: Sequence[Scalability], cells: Sequence[CellView]
) -> list[Growth]:
    """The benchmark values in the order in which they were measured."""
    titles = {cell.id: f"{cell.name}, {cell.versions}, {cell.ways}" for cell in cells}
    groups: dict[tuple[str, str], list[Scalability]] = {}
    for each in series:
        groups.setdefault((each.series, each.name), []).append(each)
    return [
        _growth(number, titles, group)
        for number, group in enumerate(groups.values(), 1)
    ]


def _growth(number: int, titles: dict[str, str], group: list[Scalability]) -> Growth:
    first = group[0]
    title = titles.get(first.points[0].cell, first.series)
    flows = sorted({point.flows for each in group for point in each.points})
    by_size = [{point.flows: point for point in each.points} for each in group]
    return Growth(
        title=title,
        name=first.name,
        varied=first.varied,
        is_rate=first.procedure == "throughput",
        sizes=tuple(each.frame_size for each in group),
        rows=tuple(
            (
                count,
                tuple(
                    _entry(each, points.get(count))
                    for each, points in zip(group, by_size, strict=True)
                ),
            )
            for count in flows
        ),
        chart=_chart(number, f"{title}: {first.name}", group),
    )


def _entry(of: Scalability, point: ScalabilityPoint | None) -> Entry | None:
    if point is None:
        return None
    return Entry(
        value=_value(of, point.value),
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


def _chart(number: int, title: str, group: list[Scalability]) -> Chart | None:
    """None where nothing can be compared."""
    data = [
        _line(index, each)
        for index, each in enumerate(group)
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


def _line(index: int, of: Scalability) -> Trace:
    """One flow is the origin."""
    shown = [p for p in of.points if p.flows == 1 or p.degradation_percent is not None]
    return line_trace(
        index,
        of.frame_size if "IPv" in of.frame_size else f"{of.frame_size} bytes",
        [float(point.flows) for point in shown],
        [point.degradation_percent or 0.0 for point in shown],
    ) | {"hovertemplate": "%{x:,d} flows: %{y:+.3g} %<extra></extra>"}
