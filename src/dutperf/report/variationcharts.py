"""The charts of inter-packet delay variation: one for each direction, signed."""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.protocol import DirectionResult, Histogram
from dutperf.report.chart import HOVER_END, Chart, Figure, Trace, heading, numbers
from dutperf.report.delay_views import Mark, spread_of
from dutperf.report.marks import (
    BINS,
    at,
    end_with_room,
    look_of,
    outline,
    stairs,
    stairs_end,
)
from dutperf.report.scales import SignedScale
from dutperf.report.tails import even_edges, shares
from dutperf.results import TrialRecord

_HEIGHT = 260


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
        _shape(
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
    shapes, labels = stairs(marks, places, ends, _HEIGHT)
    top = stairs_end(len(marks), _HEIGHT)
    figure: Figure = {
        "height": _HEIGHT,
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


def _shape(name: str, drawn: Trace, scale: SignedScale) -> Trace:
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
