"""The charts of delays: one figure for each direction, with the same axes.

Above, how many frames had which delay; below, on the same axis, how many were within
it. The scale of the second stretches towards 100 percent, where the worst delays are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dutperf.protocol import DirectionResult, Histogram, StreamResult
from dutperf.report.chart import HOVER_END, Chart, Figure, Trace, heading, numbers
from dutperf.report.delay_views import Mark, marks_of, spread_of
from dutperf.report.marks import (
    BINS,
    Look,
    at,
    end_with_room,
    look_of,
    outline,
    stairs,
    stairs_end,
)
from dutperf.report.scales import delay_range, log_axis
from dutperf.report.tails import even_edges, shares, slower_shares
from dutperf.results import TrialRecord

_HEIGHT = 420
_SPLIT = 0.56
"""Where the distribution ends and the histogram begins."""
_PERCENT_TICKS = (
    (0.5, "50"),
    (0.1, "90"),
    (0.01, "99"),
    (0.001, "99.9"),
    (1e-4, "99.99"),
    (1e-5, "99.999"),
    (1e-6, "99.9999"),
    (1e-7, "99.99999"),
)


def delay_charts(trial: TrialRecord) -> list[Chart]:
    """One figure for each direction of which a frame arrived."""
    timeout_ns = trial.request.frame_timeout_ns
    directions = [
        direction
        for direction in trial.result.directions
        if any(stream.delay_ns.count for stream in direction.streams)
    ]
    if not directions:
        return []
    seen = [stream.delay_ns for d in directions for stream in d.streams]
    ends = [end for h in seen for end in (h.min, h.max) if end is not None]
    # A timeout far above all delays would squeeze them into a corner.
    near = timeout_ns if timeout_ns and timeout_ns < 10 * max(ends) else None
    marks = [marks_of(direction, near) for direction in directions]
    drawn = [mark.ns for row in marks for mark in row]
    low, high = delay_range([*ends, *drawn])
    until = math.ceil(high)
    for row in marks:
        places = [math.log10(max(mark.ns, 1)) for mark in row]
        high = end_with_room(places, low, high)
    bottom = _bottom(max(histogram.count for histogram in seen))
    charts = [
        _delay_chart(trial, direction, row, (low, high, until), bottom)
        for direction, row in zip(directions, marks, strict=True)
    ]
    most = max(y for c in charts for t in c.data if "fill" in t for y in t["y"])
    for chart in charts:
        chart.layout["yaxis2"]["range"] = [0, round(most * 1.05, 4)]
    return charts


def _bottom(frames: int) -> float:
    """The power of ten that ends the axis: the share of one frame is above it."""
    return min(10.0 ** math.floor(math.log10(0.9 / max(frames, 1))), 1e-4)


def _delay_chart(
    trial: TrialRecord,
    direction: DirectionResult,
    marks: Sequence[Mark],
    axis: tuple[float, float, float],
    bottom: float,
) -> Chart:
    x_range = axis[:2]
    data: list[Trace] = []
    for index, stream in enumerate(direction.streams):
        if stream.delay_ns.count:
            look = look_of(direction.name, index)
            data += _within(stream, look, bottom)
            data.append(_shape(stream, look, x_range))
    if direction.streams[0].delay_ns.count:
        data.append(_dots(direction.streams[0], look_of(direction.name, 0)))
    top = stairs_end(len(marks), _HEIGHT)
    places = [math.log10(max(mark.ns, 1)) for mark in marks]
    shapes, labels = stairs(marks, places, x_range, _HEIGHT)
    ticks = [(share, text) for share, text in _PERCENT_TICKS if share >= bottom]
    figure: Figure = {
        "height": _HEIGHT,
        "showlegend": False,
        "xaxis": {"anchor": "y", **log_axis(*axis)},
        "yaxis": {
            "domain": [0, _SPLIT],
            "type": "log",
            "range": [0, round(math.log10(bottom), 4)],
            "tickvals": [share for share, _ in ticks],
            "ticktext": [f"{text}\u00a0%" for _, text in ticks],
            "showgrid": True,
        },
        "yaxis2": {
            "domain": [_SPLIT + 0.05, top],
            "ticksuffix": "\u00a0%",
            "nticks": 4,
        },
        "shapes": at(shapes, [mark.ns for mark in marks]),
        "annotations": [
            *labels,
            heading("share of frames", top, "top"),
            heading("took no longer", 0, "foot"),
        ],
    }
    words = ", ".join(f"{mark.label} {mark.text}" for mark in marks)
    return Chart(
        f"delay-{trial.number}-{direction.name}",
        f"Delays of trial {trial.number}, {direction.name}: {words}",
        data,
        figure,
    )


def _within(stream: StreamResult, look: Look, bottom: float) -> list[Trace]:
    """The distribution; its last step, beyond which there is nothing, is no point."""
    *points, (largest, _) = slower_shares(stream.delay_ns)
    line = {"shape": "hv", "width": 2, "color": look.colour, "dash": look.dash}
    share = points[-1][1]
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [ns for ns, _ in points],
            "y": [float(f"{share:.5g}") for _, share in points],
            "line": line,
            "hovertemplate": "%{x:,d} ns: %{y:.3~p} of the frames took longer"
            + HOVER_END,
            **numbers(stream.name, "delay, ns", "share of frames that took longer"),
        },
        {
            "type": "scatter",
            "mode": "lines",
            "x": [points[-1][0], largest, largest],
            "y": [share, share, bottom],
            "line": line | {"shape": "linear"},
            "hoverinfo": "skip",
        },
    ]


def _bins(histogram: Histogram, low: float, high: float) -> list[float]:
    if not histogram.count:
        return [0.0]
    edges = even_edges(low, high, BINS)
    return shares(histogram, edges, lambda ns: math.log10(max(ns, 1)))


def _shape(stream: StreamResult, look: Look, x_range: tuple[float, float]) -> Trace:
    found = _bins(stream.delay_ns, *x_range)
    edges = [10**edge for edge in even_edges(*x_range, BINS)]
    return outline(found, [float(f"{edge:.5g}") for edge in edges], look) | {
        "yaxis": "y2",
        "hovertemplate": "%{y:.3~g} % of the frames from %{x:,.0f} ns on" + HOVER_END,
        **numbers(stream.name, "delay, ns", "frames from here on, %"),
    }


def _dots(stream: StreamResult, look: Look) -> Trace:
    """The median and the 99.9th percentile, on the curve."""
    spread = spread_of(stream.delay_ns)
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [spread.median_ns, spread.p999_ns],
        "y": [0.5, 0.001],
        "marker": {
            "size": 8,
            "color": "var(--paper)",
            "line": {"width": 2, "color": look.colour},
        },
        "hoverinfo": "skip",
    }
