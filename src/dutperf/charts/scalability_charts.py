"""Overload scalability (RFC 8219 10.2): a chart for each benchmark value.

Above, the value with so many flows; below, on the same axis, its degradation against
one flow, and between what it lies by what the repeats differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dutperf.charts.chart import (
    BOUND_SYMBOL,
    HOVER_END,
    Chart,
    Figure,
    Trace,
    delay_range,
    heading,
    line_trace,
    log_axis,
    numbers,
)
from dutperf.charts.text import delay_ns, whole
from dutperf.results import Scalability, ScalabilityPoint
from dutperf.tables.scalability_tables import Growth

_HEIGHT = 460
_FOOT, _HEAD = 0.46, 0.56
"""Where the degradation ends and the values begin."""
_UNITS = {"fps": "fps per direction", "frames": "frames", "percent": "%", "ns": ""}
_FLOWS = "network flows in each direction"
_DEGRADATION = "degradation against one flow, %"


def growth_charts(found: Sequence[Growth]) -> list[tuple[Growth, Chart | None]]:
    """Each with its chart, which is None where nothing can be compared."""
    return [
        (each, _chart(number, f"{each.title}, {each.name}", each))
        for number, each in enumerate(found, 1)
    ]


def _chart(number: int, title: str, growth: Growth) -> Chart | None:
    """None where nothing can be compared."""
    named = list(enumerate(zip(growth.columns, growth.series, strict=True)))
    if not any(_compared(each) for _, (_, each) in named):
        return None
    data = [_values(index, name, each) for index, (name, each) in named]
    data += [
        _degradations(index, name, each)
        for index, (name, each) in named
        if _compared(each)
    ]
    values = [p.value for each in growth.series for p in each.points]
    words = f"Value and degradation over the number of flows: {title}"
    figure = _layout(growth, [value for value in values if value is not None])
    return Chart(f"scalability-{number}", words, data, figure)


def _layout(growth: Growth, values: Sequence[float]) -> Figure:
    unit = growth.series[0].unit
    ticks = sorted({p.flows for each in growth.series for p in each.points})
    scale: Figure = {"rangemode": "tozero", "tickformat": ",d", "nticks": 5}
    if unit == "ns":
        positive = all(value > 0 for value in values)
        scale = log_axis(*delay_range(values)) if positive else {"ticksuffix": " ns"}
    elif unit == "percent":
        scale = {"rangemode": "tozero", "nticks": 5}
    names = {each.name for each in growth.series}
    value = names.pop() if len(names) == 1 else "value"
    told = ", ".join(part for part in (value, _UNITS[unit]) if part)
    return {
        "height": _HEIGHT,
        "showlegend": True,
        "xaxis": {
            "title": {"text": _FLOWS, "standoff": 10},
            "type": "log",
            "tickvals": ticks,
            "tickformat": ",d",
            "anchor": "y2",
        },
        "yaxis": {"domain": [_HEAD, 0.95], "showgrid": True, **scale},
        "yaxis2": {
            "domain": [0, _FOOT - 0.05],
            "showgrid": True,
            "zeroline": True,
            "zerolinecolor": "var(--rule)",
            "nticks": 5,
        },
        "annotations": [
            heading(told, 0.95, "above"),
            heading(_DEGRADATION, _FOOT - 0.05, "above"),
        ],
    }


def _compared(of: Scalability) -> bool:
    return any(point.degradation_percent is not None for point in of.points)


def _values(index: int, name: str, of: Scalability) -> Trace:
    """Lower bounds have a sign of their own."""
    points = [point for point in of.points if point.value is not None]
    trace = line_trace(
        index,
        name,
        [float(point.flows) for point in points],
        [point.value for point in points],
    )
    plain = trace["marker"]["symbol"]
    trace["marker"]["symbol"] = [
        BOUND_SYMBOL if point.at_least else plain for point in points
    ]
    shown = _SHOWN[of.unit]
    return (
        trace
        | {
            "legendgroup": name,
            "cliponaxis": False,
            "hovertext": [
                f"{point.flows:,} flows: {shown(point.value or 0.0)}"
                + (" at least" if point.at_least else "")
                for point in points
            ],
            "hovertemplate": "%{hovertext}" + HOVER_END,
        }
        | numbers(name, _FLOWS, of.name if of.unit == "ns" else _words(of))
    )


def _words(of: Scalability) -> str:
    return f"{of.name}, {_UNITS[of.unit]}"


_SHOWN: dict[str, Callable[[float], str]] = {
    "fps": lambda value: f"{whole(value)} fps",
    "frames": lambda value: f"{whole(value)} frames",
    "percent": lambda value: f"{value:.4g} %",
    "ns": delay_ns,
}


def _degradations(index: int, name: str, of: Scalability) -> Trace:
    """One flow is the origin."""
    points = [p for p in of.points if p.flows == 1 or p.degradation_percent is not None]
    changes = [point.degradation_percent or 0.0 for point in points]
    xs = [float(point.flows) for point in points]
    trace = line_trace(index, name, xs, [*changes])
    return (
        trace
        | {
            "legendgroup": name,
            "showlegend": False,
            "yaxis": "y2",
            "cliponaxis": False,
            "hovertext": list(map(_told, points)),
            "hovertemplate": "%{hovertext}" + HOVER_END,
        }
        | _bars(points, changes, trace["line"]["color"])
        | numbers(name, _FLOWS, _DEGRADATION)
    )


def _told(point: ScalabilityPoint) -> str:
    told = f"{point.flows:,} flows: {point.degradation_percent or 0.0:+,.3g} %"
    low, high = point.lower_percent, point.upper_percent
    if low is None or high is None:
        return told
    return f"{told}, between {low:+,.3g} and {high:+,.3g} %"


def _bars(
    points: Sequence[ScalabilityPoint], changes: Sequence[float], colour: str
) -> Figure:
    """The intervals, where there is one."""
    if all(point.lower_percent is None for point in points):
        return {}
    ends = [
        (
            0.0 if p.upper_percent is None else max(0.0, p.upper_percent - change),
            0.0 if p.lower_percent is None else max(0.0, change - p.lower_percent),
        )
        for p, change in zip(points, changes, strict=True)
    ]
    return {
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [up for up, _ in ends],
            "arrayminus": [down for _, down in ends],
            "color": colour,
            "thickness": 1.5,
            "width": 5,
        }
    }
