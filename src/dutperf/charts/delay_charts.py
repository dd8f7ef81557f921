"""The charts of delays: one figure for each direction, with the same axes.

Above, how many frames had which delay; below, on the same axis, how many were within
it. The scale of the second stretches towards 100 percent, where the worst delays are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from dutperf.charts.chart import (
    HOVER_END,
    Chart,
    Figure,
    SignedScale,
    Trace,
    delay_range,
    heading,
    log_axis,
    numbers,
)
from dutperf.charts.delay_views import (
    Mark,
    even_edges,
    marks_of,
    shares,
    slower_shares,
    spread_of,
)
from dutperf.protocol.result_messages import DirectionResult, Histogram, StreamResult
from dutperf.results import TrialRecord

# What the charts of delays have in common: looks, outlines, and marks like stairs.


BINS = 141
"""Odd: on an axis around zero, zero has a bin of its own."""
_ROW_PX = 18
_FOOT_PX = 34
_LEFT_OF = 0.55
"""Up to here on the axis a label has room to the right, on a narrow screen, too.

There 99.99999 % beside the other axis leaves this one some 230 pixels.
"""
_GAP = 0.24
"""Length of a label on a common screen, as a share of the axis."""
_TEXT = {"tester": "var(--muted)", "delay": "var(--ink)", "limit": "var(--fail)"}
_LINE = {"tester": "var(--muted)", "delay": "var(--mark)", "limit": "var(--fail)"}


class Look(NamedTuple):
    """How the lines of one stream are drawn."""

    colour: str
    soft: str
    dash: str


_LOOKS = {
    "forward": Look("var(--series-1)", "var(--series-1-soft)", "solid"),
    "reverse": Look("var(--series-2)", "var(--series-2-soft)", "solid"),
}


def look_of(direction: str, stream: int) -> Look:
    """Directions differ by colour, streams by their dashes."""
    look = _LOOKS[direction]
    return look if stream == 0 else Look(look.colour, "rgba(0,0,0,0)", "dot")


def outline(found: Sequence[float], edges: Sequence[float], look: Look) -> Trace:
    """A histogram in percent, from the first bin that holds a frame to the last."""
    held = [index for index, share in enumerate(found) if share > 0] or [0]
    first, last = held[0], held[-1]
    y = [float(f"{100 * share:.4g}") for share in found[first : last + 1]]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [edges[first], *edges[first : last + 2]],
        "y": [0, *y, 0],
        "line": {"shape": "hv", "width": 1.5, "color": look.colour, "dash": look.dash},
        "fill": "tozeroy",
        "fillcolor": look.soft,
    }


def end_with_room(places: Sequence[float], low: float, high: float) -> float:
    """The upper end of an axis on which the labels of all marks find room.

    A label stands to the right of its line, or, further on, to the left, if the mark
    before is far enough away.
    """
    for place, before in zip(places, [low, *places], strict=False):
        is_late = place - low > _LEFT_OF * (high - low)
        if is_late and place - before < _GAP * (high - low):
            high = low + (place - low) / _LEFT_OF
    return high


def stairs_end(marks: int, height: int) -> float:
    """What is left of a figure below the labels of so many marks."""
    return round(1 - marks * _ROW_PX / (height - _FOOT_PX) - 0.01, 4)


def stairs(
    marks: Sequence[Mark],
    places: Sequence[float],
    ends: tuple[float, float],
    height: int,
) -> tuple[list[Figure], list[Figure]]:
    """Shapes and annotations: a line for each mark, their labels descending.

    A label stands above the lines of all later marks, so no label is ever crossed.

    Args:
        marks: by rising value.
        places: where they stand on the axis; of a logarithmic one the logarithms.
        ends: of the axis, as ``places``.
        height: of the figure in pixels.
    """
    step = _ROW_PX / (height - _FOOT_PX)
    late = ends[0] + (_LEFT_OF + 0.01) * (ends[1] - ends[0])
    shapes: list[Figure] = []
    annotations: list[Figure] = []
    for index, (mark, place) in enumerate(zip(marks, places, strict=True)):
        top = round(1 - step * index, 4)
        shapes.append(
            {
                "type": "line",
                "yref": "paper",
                "y0": 0,
                "y1": top,
                "layer": "below",
                "line": {
                    "width": 1,
                    "dash": "dash" if mark.kind == "limit" else "solid",
                    "color": _LINE[mark.kind],
                },
            }
        )
        annotations.append(
            {
                "x": round(place, 4),
                "xanchor": "right" if place > late else "left",
                "xshift": -3 if place > late else 3,
                "yref": "paper",
                "y": top,
                "yanchor": "top",
                "text": Markup("{} <b>{}</b>").format(mark.label, mark.text),
                "font": {"color": _TEXT[mark.kind]},
            }
        )
    return shapes, annotations


def at(shapes: Sequence[Figure], x: Sequence[float]) -> list[Figure]:
    """The shapes in their places, which are values also on a logarithmic axis."""
    return [
        shape | {"x0": value, "x1": value}
        for shape, value in zip(shapes, x, strict=True)
    ]


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


# The charts of inter-packet delay variation: one for each direction, signed.


_VARIATION_HEIGHT = 260


def variation_charts(trial: TrialRecord) -> list[Chart]:
    """IPDV: one figure for each direction for which it was recorded."""
    found = [
        (direction, [s.ipdv_ns for s in direction.streams if s.ipdv_ns])
        for direction in trial.result.directions
    ]
    found = [(d, hs) for d, hs in found if any(h.count for h in hs)]
    if not found:
        return []
    every = [h for _, histograms in found for h in histograms if h.count]
    least = min(histogram.min or 0 for histogram in every)
    most = max(histogram.max or 0 for histogram in every)
    typical = max(_typical(histogram) for histogram in every)
    scale = SignedScale.around(typical, max(-least, most))
    low, high = scale.ends
    for _, histograms in found:
        places = [scale(mark.ns) for mark in variation_marks(histograms[0])]
        high = end_with_room(places, low, high)
    return [_variation_chart(trial, d, hs, scale, (low, high)) for d, hs in found]


def _typical(histogram: Histogram) -> float:
    """How far from zero half of the values lie at most."""
    sizes = sorted((max(abs(lo), abs(hi)), n) for lo, hi, n in histogram.buckets)
    seen = 0
    for size, count in sizes:
        seen += count
        if 2 * seen >= histogram.count:
            return size
    return 0


def _variation_chart(
    trial: TrialRecord,
    direction: DirectionResult,
    histograms: Sequence[Histogram],
    scale: SignedScale,
    ends: tuple[float, float],
) -> Chart:
    edges = even_edges(*ends, BINS)
    rounded = [round(edge, 4) for edge in edges]
    names = [stream.name for stream in direction.streams if stream.ipdv_ns]
    data = [
        _variation_shape(
            names[index],
            outline(
                shares(histogram, edges, scale), rounded, look_of(direction.name, index)
            ),
            scale,
        )
        for index, histogram in enumerate(histograms)
        if histogram.count
    ]
    marks = variation_marks(histograms[0])
    places = [scale(mark.ns) for mark in marks]
    shapes, labels = stairs(marks, places, ends, _VARIATION_HEIGHT)
    top = stairs_end(len(marks), _VARIATION_HEIGHT)
    figure: Figure = {
        "height": _VARIATION_HEIGHT,
        "showlegend": False,
        "xaxis": {
            "range": [round(end, 4) for end in ends],
            **scale.ticks(),
        },
        "yaxis": {
            "domain": [0, top],
            "rangemode": "tozero",
            "nticks": 4,
            "ticksuffix": "\u00a0%",
        },
        "shapes": at(shapes, [round(place, 4) for place in places]),
        "annotations": [*labels, heading("share of pairs", top, "top")],
    }
    words = ", ".join(f"{mark.label} {mark.text}" for mark in marks)
    return Chart(
        f"variation-{trial.number}-{direction.name}",
        f"IPDV of trial {trial.number}, {direction.name}: {words}",
        data,
        figure,
    )


def _variation_shape(name: str, drawn: Trace, scale: SignedScale) -> Trace:
    """What is drawn on the signed scale, with the variations themselves."""
    from_ns = [round(scale.value_ns(place)) for place in drawn["x"]]
    return drawn | {
        "customdata": from_ns,
        "hovertemplate": "%{y:.3~g} % of the pairs from %{customdata:,d} ns on"
        + HOVER_END,
        **numbers(name, "IPDV, ns", "pairs from here on, %", xs=from_ns),
    }


def variation_marks(histogram: Histogram) -> list[Mark]:
    """Smallest, median and largest IPDV (RFC 8219 7.3.2)."""
    spread = spread_of(histogram)
    named = (
        ("min", spread.min_ns),
        ("median", spread.median_ns),
        ("max", spread.max_ns),
    )
    return [Mark(label, ns, "delay") for label, ns in named if ns is not None]
