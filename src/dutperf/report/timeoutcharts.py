"""Loss over frame timeout: what would be lost if slow frames counted as lost."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dutperf.report.cells import CellView
from dutperf.report.chart import (
    HOVER_END,
    Chart,
    Figure,
    Trace,
    heading,
    line_trace,
    numbers,
)
from dutperf.report.marks import look_of
from dutperf.report.scales import delay_range, log_axis
from dutperf.report.text import percent
from dutperf.results import TrialRecord

_LOG_FROM_RATIO = 20
_HOVER = "timeout %{x:,d} ns: %{y:.4~g} % lost or late" + HOVER_END


def trial_timeout_chart(trial: TrialRecord) -> Chart | None:
    """Of one trial, a line for each stream; None without a sweep."""
    lines = [
        (direction, index, stream)
        for direction in trial.result.directions
        for index, stream in enumerate(direction.streams)
        if len(stream.slower) > 1 and stream.sent
    ]
    data: list[Trace] = []
    for direction, index, stream in lines:
        look = look_of(direction.name, index)
        several = len(direction.streams) > 1
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": direction.name + (f", {stream.name}" if several else ""),
                "x": [slower.timeout_ns for slower in stream.slower],
                "y": [
                    100 * (stream.lost + slower.frames) / stream.sent
                    for slower in stream.slower
                ],
                "line": {"width": 2, "color": look.colour, "dash": look.dash},
                "marker": {"size": 7, "color": look.colour},
            }
        )
    words = f"Loss over frame timeout, trial {trial.number}"
    return _chart(f"timeout-{trial.number}", words, data)


def cell_timeout_chart(cell: CellView, number: int) -> Chart | None:
    """Of a cell, a line for each load; None without a sweep."""
    if not cell.result or not cell.measured:
        return None
    found = [("at the throughput", cell.result.timeouts)]
    found += [
        (f"{percent(point.load_percent)} load", list(point.timeouts))
        for point in reversed(cell.curve)
    ]
    data = [
        line_trace(
            index,
            name,
            [float(each.timeout_ns) for each in timeouts],
            [each.loss_percent for each in timeouts],
        )
        for index, (name, timeouts) in enumerate(f for f in found if len(f[1]) > 1)
    ]
    words = f"Loss over frame timeout: {cell.title}"
    return _chart(f"timeouts-{number}", words, data)


def _chart(name: str, description: str, data: list[Trace]) -> Chart | None:
    if all(value is None for trace in data for value in trace["y"]):
        return None
    for trace in data:
        trace["hovertemplate"] = _HOVER
        heads = (trace["name"], "frame timeout, ns", "lost or late, %")
        trace.update(numbers(*heads, ys=trace["y"]))
    timeouts = [timeout for trace in data for timeout in trace["x"]]
    figure: Figure = {
        "height": 280,
        "showlegend": len(data) > 1,
        "xaxis": {
            "title": {"text": "frame timeout", "standoff": 6},
            **log_axis(*delay_range(timeouts)),
        },
        "yaxis": {"showgrid": True, **_percent_axis(data)},
        "annotations": [heading("lost or late", 1, "top")],
    }
    return Chart(name, description, data, figure)


def _percent_axis(data: Sequence[Trace]) -> Figure:
    """From zero; logarithmic where values are far apart, with a place for zero."""
    every = [value for trace in data for value in trace["y"]]
    shown = [value for value in every if value is not None]
    some = [value for value in shown if value > 0]
    if not some or max(some) < _LOG_FROM_RATIO * min(some):
        return {"rangemode": "tozero", "ticksuffix": "\u00a0%"}
    low, high = math.floor(math.log10(min(some))), math.log10(max(some))
    zero = low if min(shown) > 0 else low - 0.6
    for trace in data:
        trace["customdata"] = trace["y"]
        trace["y"] = [10**zero if y == 0 else y for y in trace["y"]]
        trace["hovertemplate"] = trace["hovertemplate"].replace("%{y", "%{customdata")
    ticks = [10.0**power for power in range(low, math.floor(high) + 1)]
    texts = [percent(tick) for tick in ticks]
    if zero < low:
        ticks, texts = [10**zero, *ticks], [percent(0.0), *texts]
    return {
        "type": "log",
        "range": [round(zero - 0.1, 4), round(high + 0.2, 4)],
        "tickvals": ticks,
        "ticktext": texts,
    }
