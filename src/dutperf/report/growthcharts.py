"""Overload scalability (RFC 8219 10.2.1): a chart for each benchmark value."""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.report.chart import HOVER_END, Chart, Trace, layout, line_trace
from dutperf.results import Scalability
from dutperf.tables.scalability_tables import Growth


def growth_charts(found: Sequence[Growth]) -> list[tuple[Growth, Chart | None]]:
    """Each with its chart, which is None where nothing can be compared."""
    return [
        (
            each,
            _chart(number, f"{each.title}, {each.name}", each.columns, each.series),
        )
        for number, each in enumerate(found, 1)
    ]


def _chart(
    number: int, title: str, names: Sequence[str], group: Sequence[Scalability]
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
    ) | {"hovertemplate": "%{x:,d} flows: %{y:+,.3r} %" + HOVER_END}
