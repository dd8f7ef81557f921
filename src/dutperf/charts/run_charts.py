"""A run of hours at a glance: delays, losses and gauges over the time under load."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from dutperf import stats
from dutperf.charts.chart import HOVER_END, Chart, Figure, Trace, heading, numbers
from dutperf.charts.delay_charts import look_of
from dutperf.protocol.base import DirectionName

_COLUMNS = 1500
"""A day minute by minute; of a longer run some trials are one."""
_GAUGES = 8
_DELAY_PX, _LOSS_PX, _GAUGE_PX, _GAP_PX, _FOOT_PX = 200, 60, 70, 28, 56
_AT = "time under load, h"


class Line(NamedTuple):
    """One series: hours, values, and by how much each is rounded up at most."""

    name: str
    direction: DirectionName | None
    unit: Literal["ns", "percent", ""]
    points: list[tuple[float, float, float]]


def run_chart(name: str, lines: Sequence[Line], spoilt: Sequence[float]) -> Chart:
    """One part below the other, over the same time.

    Args:
        name: of the cell.
        lines: that of the losses, those of delays, and gauges.
        spoilt: hours of trials that tell nothing.
    """
    (losses,) = (line for line in lines if line.unit == "percent")
    delays = [line for line in lines if line.unit == "ns"]
    gauges = [line for line in lines if not line.unit][:_GAUGES]
    heights = [_DELAY_PX, _LOSS_PX, *(_GAUGE_PX for _ in gauges)]
    data = list(_delays(delays))
    data += _losses(losses, spoilt)
    data += (
        _drawn(line, stats.median, axis=f"y{place}", colour="var(--series-1)")
        for place, line in enumerate(gauges, 3)
    )
    lost = f"frames lost, %{' (crosses: invalid trials)' if spoilt else ''}"
    titles = ["delay", lost, *(line.name for line in gauges)]
    figure = _axes(titles, heights)
    last = max([losses.points[-1][0], *spoilt])
    figure["xaxis"]["range"] = [0, round(last * 1.01, 5)]
    said = f"{name}: delays, losses and {len(gauges)} gauges over the time under load"
    return Chart(f"run-{name}", said, data, figure)


def _axes(titles: Sequence[str], heights: Sequence[int]) -> Figure:
    """A part of the figure for each, the first one on top."""
    height = sum(heights) + _GAP_PX * len(heights)
    figure: Figure = {
        "height": height + _FOOT_PX,
        "showlegend": True,
        "legend": {"y": 1.03},
        "xaxis": {"ticksuffix": "\u00a0h", "anchor": f"y{len(heights)}"},
        "annotations": [],
    }
    top = height - _GAP_PX
    more: list[Figure] = [
        {"rangemode": "tozero", "ticksuffix": "\u00a0µs", "nticks": 6},
        {"rangemode": "tozero", "nticks": 3},
        *({"nticks": 3} for _ in heights[2:]),
    ]
    for place, own in enumerate(heights):
        domain = [round((top - own) / height, 4), round(top / height, 4)]
        axis = f"yaxis{place + 1 if place else ''}"
        figure[axis] = {"domain": domain, "showgrid": True, **more[place]}
        figure["annotations"].append(heading(titles[place], domain[1], "above"))
        top -= own + _GAP_PX
    return figure


def _delays(lines: Sequence[Line]) -> Iterator[Trace]:
    """Of a direction the first series is drawn solid; of the others the worst count."""
    known: set[str | None] = set()
    for line in lines:
        first = line.direction not in known
        known.add(line.direction)
        scaled = line._replace(
            points=[(at, ns / 1e3, 0.0) for at, ns, _ in line.points]
        )
        colour = look_of(line.direction or "", 0).colour
        drawn = _drawn(scaled, stats.median if first else max, axis="y", colour=colour)
        drawn["line"]["dash"] = "solid" if first else "dot"
        name = f"{line.name}, {line.direction}"
        yield drawn | {"name": name, "showlegend": True, **numbers(name, _AT, "µs")}


def _drawn(
    line: Line,
    middle: Callable[[Sequence[float]], float],
    *,
    axis: str,
    colour: str,
) -> Trace:
    parts = _parts(line)
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [round(part[0][0], 5) for part in parts],
        "y": [float(f"{middle([v for _, v, _ in part]):.7g}") for part in parts],
        "yaxis": axis,
        "line": {"width": 1.5, "color": colour},
        "hovertemplate": f"%{{x:.4~g}} h: {line.name} %{{y:.5~g}}" + HOVER_END,
        "showlegend": False,
        **numbers(line.name, _AT, line.name),
    }


def _parts(line: Line) -> list[list[tuple[float, float, float]]]:
    every = -(-len(line.points) // _COLUMNS)
    return [line.points[at : at + every] for at in range(0, len(line.points), every)]


def _losses(line: Line, spoilt: Sequence[float]) -> Iterator[Trace]:
    """A bar for each lossy trial, and a cross for each invalid one."""
    worst = [max(part, key=lambda point: point[1]) for part in _parts(line)]
    # Without any the first one, of height zero: an axis needs something to hold.
    hit = [point for point in worst if point[1]] or worst[:1]
    colour = "var(--fail)"
    yield {
        "type": "bar",
        "x": [round(at, 5) for at, _, _ in hit],
        "width": [round(max(line.points[-1][0] / _COLUMNS, 1e-6), 6)] * len(hit),
        "y": [float(f"{value:.5g}") for _, value, _ in hit],
        "yaxis": "y2",
        # An edge of its own colour: one minute of a day must be seen.
        "marker": {"color": colour, "line": {"width": 1.5, "color": colour}},
        "hovertemplate": "%{x:.5~g} h: %{y:.5~g} % lost" + HOVER_END,
        "showlegend": False,
        **numbers("lost", _AT, "%"),
    }
    if spoilt:
        yield {
            "type": "scatter",
            "mode": "markers",
            "x": [round(at, 5) for at in spoilt[:_COLUMNS]],
            "y": [0] * len(spoilt[:_COLUMNS]),
            "yaxis": "y2",
            "marker": {"symbol": "x", "size": 6, "color": "var(--muted)"},
            "hovertemplate": "%{x:.4~g} h: invalid" + HOVER_END,
            "showlegend": False,
            **numbers("invalid", _AT, "%"),
        }
