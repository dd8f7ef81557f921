"""All repeats of a cell side by side; one value over flows, or over what is swept."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

from dutperf.charts.cells import CellView
from dutperf.charts.chart import (
    BOUND_SYMBOL,
    HOVER_END,
    Chart,
    Figure,
    SignedScale,
    Trace,
    delay_range,
    heading,
    layout,
    line_trace,
    log_axis,
    numbers,
)
from dutperf.charts.delay_charts import look_of
from dutperf.charts.text import AT_LEAST, delay_ns, shown, whole
from dutperf.results import (
    CellResult,
    Finding,
    Measure,
    Scalability,
    ScalabilityPoint,
    SweepResult,
    SweptPoint,
    ValueGroup,
)
from dutperf.results.model import QueueLoad
from dutperf.tables.scalability_tables import KEYS, Growth, Swept
from dutperf.tables.table_model import delay

_FEW = 3
_ROW_PX = 34
_FOOT_PX = 48
_TICKS = 20
_LEAST_ROOM = 0.0005
"""Of the median: repeats that hardly differ must not look far apart."""
_BAR = {"width": 1.5, "color": "var(--ink)"}


def repeats_chart(cell: CellView, number: int) -> Chart | None:
    """A row for each quantity and stream, in it a dot for each repeat.

    None if there are too few to show a spread.
    """
    rows = [
        (stream.named(_several(cell)), stream.direction, measure)
        for stream in cell.measures
        for measure in stream.measures
    ]
    known = [f.value for _, _, m in rows for f in m.repeats if f.value is not None]
    if len(known) < _FEW * len(rows) or not rows:
        return None
    place, axis = _axis(known)
    names = list(dict.fromkeys(measure.name for _, _, measure in rows))
    rows.sort(key=lambda row: names.index(row[2].name))
    data: list[Trace] = []
    for name, direction, measure in rows:
        label = f"{measure.name}, {name}"
        dots = _dots(label, direction, measure, place)
        data += [dots, _result(label, measure, place)]
    figure: Figure = {
        "height": _ROW_PX * len(rows) + _FOOT_PX,
        "showlegend": False,
        "xaxis": axis,
        "yaxis": {
            "type": "category",
            "categoryarray": [f"{m.name}, {name}" for name, _, m in rows],
            "range": [len(rows) - 0.4, -0.6],
            "showgrid": True,
            "showline": False,
            "ticks": "",
        },
    }
    words = "; ".join(f"{m.name}, {name}: {_told(m)}" for name, _, m in rows)
    return Chart(f"repeats-{number}", f"Repeats of {cell.title}: {words}", data, figure)


def rate_repeats_chart(cell: CellView, number: int) -> Chart | None:
    """What each repeat of a search found, in their order: what drifts or jumps is seen.

    None if there are too few to show a spread.
    """
    result, middle = cell.result, cell.searched
    if result is None or middle is None or len(cell.values) < _FEW:
        return None
    found = [
        (n, repeat.value, AT_LEAST if repeat.bound else "")
        for n, repeat in enumerate(result.repeats, 1)
        if repeat.verdict != "invalid" and repeat.value is not None
    ]
    last = len(result.repeats) + 0.5
    figure = layout(
        "repeat",
        f"{cell.unit} per direction",
        {"range": [0.5, last], "dtick": max(1, -(-len(result.repeats) // _TICKS))},
        {"range": _room(result, [value for _, value, _ in found]), "tickformat": ",d"},
    )
    figure["height"], figure["showlegend"] = 240, False
    figure["shapes"] = _median_marks(result, middle, last)
    strays = {n for f in result.findings for g in _strays(f) for n in g.repeats}
    colours = ["var(--fail)" if n in strays else "var(--series-1)" for n, *_ in found]
    symbols = [BOUND_SYMBOL if sign else "circle" for *_, sign in found]
    dots: Trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [n for n, *_ in found],
        "y": [value for _, value, _ in found],
        "marker": {"size": 9, "color": colours, "symbol": symbols},
        "hovertext": [
            f"repeat {n}: {s}{whole(value)} {cell.unit}" for n, value, s in found
        ],
        "hoverinfo": "text",
        "cliponaxis": False,
        **numbers("repeats", "repeat", f"{cell.unit} per direction"),
    }
    what = cell.doubt or cell.statistic
    told = f"{what} {cell.figure_text} {cell.unit}"
    words = f"Repeats of {cell.title}, in their order; {told}"
    return Chart(f"rate-repeats-{number}", words, [dots], figure)


def _room(result: CellResult, values: Sequence[float]) -> list[float]:
    """From a little below to a little above; equal values stand in the middle."""
    low, high = min(values), max(values)
    around = max((high - low) * 0.1, _LEAST_ROOM * (result.median or 0), 1)
    return [low - around, high + around]


def _median_marks(result: CellResult, middle: float, last: float) -> list[Figure]:
    across = {"type": "rect", "layer": "below", "x0": 0.5, "x1": last}
    marks: list[Figure] = [
        across | {"type": "line", "y0": middle, "y1": middle, "line": _BAR}
    ]
    spread = result.spread
    if spread and spread.interval_lower is not None:
        ends = {"y0": spread.interval_lower, "y1": spread.interval_upper}
        band = {"fillcolor": "var(--series-1-soft)", "line": {"width": 0}}
        marks.insert(0, across | ends | band)
    return marks


def _strays(finding: Finding) -> list[ValueGroup]:
    """Outliers; groups of some size have no right one among them."""
    return finding.groups[1:] if finding.kind == "outliers" else []


def _several(cell: CellView) -> bool:
    return any(stream.stream != "foreground" for stream in cell.measures)


def _axis(known: Sequence[float]) -> tuple[Callable[[float], float], Figure]:
    """Logarithmic, or around zero where there are values on both sides of it."""
    if min(known) > 0:
        return lambda value: value, log_axis(*delay_range(known))
    sizes = sorted(abs(value) for value in known)
    scale = SignedScale.around(sizes[len(sizes) // 4], sizes[-1])
    return scale, {"range": list(scale.ends), **scale.ticks()}


def _dots(
    label: str, direction: str, measure: Measure, place: Callable[[float], float]
) -> Trace:
    figures = [f for f in enumerate(measure.repeats, 1) if f[1].value is not None]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [round(place(figure.value or 0), 4) for _, figure in figures],
        "y": [label] * len(figures),
        "marker": {
            "size": 9,
            "color": look_of(direction, 0).soft,
            "line": {"width": 1.2, "color": look_of(direction, 0).colour},
        },
        "hovertext": [f"repeat {n}: {delay_ns(f.value)}" for n, f in figures],
        "hoverinfo": "text",
        "cliponaxis": False,
        **numbers("repeats", "ns", "of", xs=[f.value or 0 for _, f in figures]),
    }


def _result(label: str, measure: Measure, place: Callable[[float], float]) -> Trace:
    value = measure.result.value
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [] if value is None else [round(place(value), 4)],
        "y": [] if value is None else [label],
        "marker": {
            "symbol": "line-ns-open",
            "size": 22,
            "color": "var(--ink)",
            "line": {"width": 2.5, "color": "var(--ink)"},
        },
        "hovertext": [f"{measure.summary}: {_told(measure)}"],
        "hoverinfo": "text",
        **numbers(measure.summary, "ns", "of", xs=[] if value is None else [value]),
    }


def _told(measure: Measure) -> str:
    return shown(delay(measure.result))


# Overload scalability (RFC 8219 10.2): a chart for each benchmark value.
#
# Above, the value with so many flows; below, on the same axis, its degradation against
# one flow, and between what it lies by what the repeats differ.


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
            "hovertext": list(map(_point_words, points)),
            "hovertemplate": "%{hovertext}" + HOVER_END,
        }
        | _bars(points, changes, trace["line"]["color"])
        | numbers(name, _FLOWS, _DEGRADATION)
    )


def _point_words(point: ScalabilityPoint) -> str:
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


# Sweeps: the value over the number, with what it lies in; the knee's interval is shaded
# and the plateau a line. Below, on the same axis, a row for each CPU or queue of the
# device: the darker, the more of the frames, or interrupts, it took. The page's plotly
# has no heat map, so its fields are shapes, with a mark in each that tells the share.


def sweep_charts(found: Sequence[Swept]) -> list[tuple[Swept, Chart | None]]:
    """Each with its chart, which is None where fewer than two results have a value."""
    return [(each, _sweep_chart(n, each)) for n, each in enumerate(found, 1)]


def _sweep_chart(number: int, swept: Swept) -> Chart | None:
    of = swept.result
    points = [point for point in of.points if point.value is not None]
    if len(points) < _FEW - 1:
        return None
    words = f"{of.name} over {KEYS[of.key]}: {swept.sentence}"
    figure = layout(
        KEYS[of.key],
        _sweep_axis(of),
        {
            "type": "log",
            "tickvals": _apart([point.number for point in of.points]),
            "tickformat": ",d",
        },
        {"rangemode": "tozero", "nticks": 6}
        | ({"tickformat": ",d"} if of.unit not in ("ns", "percent", "nJ/bit") else {}),
    )
    figure["showlegend"] = False
    figure["shapes"] = _knee_marks(of)
    data = [_swept_values(of, points)]
    if swept.has_queues:
        data.append(_shares(figure, of))
    return Chart(f"sweep-{number}", words, data, figure)


def _sweep_axis(of: SweepResult) -> str:
    unit = _UNITS.get(of.unit, of.unit)
    return ", ".join(part for part in (of.name, unit or of.unit) if part)


def _swept_values(of: SweepResult, points: Sequence[SweptPoint]) -> Trace:
    values = [point.value or 0.0 for point in points]
    trace = line_trace(0, of.name, [float(p.number) for p in points], [*values])
    symbols = [BOUND_SYMBOL if point.high is None else "circle" for point in points]
    trace["marker"]["symbol"] = symbols
    show = _SHOWN.get(of.unit, whole)
    ends = [
        ((p.high or value) - value, value - (value if p.low is None else p.low))
        for p, value in zip(points, values, strict=True)
    ]
    return (
        trace
        | {
            "cliponaxis": False,
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": [max(0.0, up) for up, _ in ends],
                "arrayminus": [max(0.0, down) for _, down in ends],
                "color": trace["line"]["color"],
                "thickness": 1.5,
                "width": 5,
            },
            "hovertext": [
                f"{point.number:,}: {show(value)}"
                + (" at least" if point.high is None else "")
                for point, value in zip(points, values, strict=True)
            ],
            "hovertemplate": "%{hovertext}" + HOVER_END,
        }
        | numbers(of.name, KEYS[of.key], _sweep_axis(of))
    )


def _knee_marks(of: SweepResult) -> list[Figure]:
    """On a logarithmic axis, too, ends of a shape are the numbers themselves."""
    marks: list[Figure] = []
    if of.knee is not None and of.knee_until is not None:
        first = of.knee_above or of.points[0].number
        marks.append(
            {
                "type": "rect",
                "layer": "below",
                "x0": first,
                "x1": of.knee_until,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "fillcolor": "var(--series-1-soft)",
                "line": {"width": 0},
            }
        )
    if of.plateau is not None:
        across = {"type": "line", "layer": "below", "xref": "paper", "x0": 0, "x1": 1}
        line = {"width": 1, "color": "var(--muted)", "dash": "dot"}
        marks.append(across | {"y0": of.plateau, "y1": of.plateau, "line": line})
    return marks


def _apart(numbers: Sequence[int]) -> list[int]:
    """Those that leave room for each other on a logarithmic axis."""
    kept: list[int] = []
    least = (numbers[-1] / numbers[0]) ** (1 / _TICKS)
    for number in numbers:
        if not kept or number >= kept[-1] * least:
            kept.append(number)
    return kept


_SHARE = "share of the frames that it took, or of the interrupts, %"
_RATE_FOOT = 0.1
"""Of the room for the values, between them and the queues."""


def _shares(figure: Figure, of: SweepResult) -> Trace:
    """The marks of all fields; the fields and their axis are added to ``figure``."""
    names = sorted({q.queue for p in of.points for q in p.queues}, key=_by_number)
    told = [point for point in of.points if point.queues]
    fields = [
        (point.number, names.index(each.queue), each.count / (totals[each.among] or 1))
        for point in told
        for totals in [_totals(point.queues)]
        for each in point.queues
    ]
    rows_px = _ROW_PX * len(names)
    foot = rows_px / (figure["height"] + rows_px)
    figure["height"] += rows_px
    figure["yaxis"]["domain"] = [foot + _RATE_FOOT * (1 - foot), 1]
    figure["yaxis2"] = {
        "domain": [0, foot],
        "range": [len(names) - 0.5, -0.5],
        "tickvals": list(range(len(names))),
        "ticktext": names,
        "ticks": "",
    }
    figure["xaxis"]["anchor"] = "y2"
    for mark in figure["shapes"]:
        if mark.get("yref") == "paper":
            mark["y0"] = foot + _RATE_FOOT * (1 - foot)
    most = max(share for _, _, share in fields)
    ends = _ends([point.number for point in told])
    figure["shapes"] += [
        {
            "type": "rect",
            "layer": "below",
            "x0": ends[number][0],
            "x1": ends[number][1],
            "yref": "y2",
            "y0": row - 0.45,
            "y1": row + 0.45,
            "fillcolor": "var(--series-1)",
            "opacity": round(share / most, 3),
            "line": {"width": 0},
        }
        for number, row, share in fields
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "yaxis": "y2",
        "x": [number for number, _, _ in fields],
        "y": [row for _, row, _ in fields],
        "marker": {"size": 12, "opacity": 0},
        "hovertext": [
            f"{number:,}, {names[row]}: {100 * share:.3g} %"
            for number, row, share in fields
        ],
        "hovertemplate": "%{hovertext}" + HOVER_END,
        **numbers(
            "queues",
            f"{KEYS[of.key]}, by queue: {', '.join(names)}",
            _SHARE,
            ys=[round(100 * share, 3) for _, _, share in fields],
        ),
    }


def _totals(queues: Sequence[QueueLoad]) -> Counter[str]:
    totals = Counter[str]()
    for each in queues:
        totals[each.among] += each.count
    return totals


def _by_number(name: str) -> list[tuple[int, str]]:
    parts = re.split(r"([0-9]+)", name)
    return [(len(part) if part.isdecimal() else 0, part) for part in parts]


def _ends(known: Sequence[int]) -> dict[int, tuple[float, float]]:
    """Of the fields, half-way to the neighbours; the outer ones as wide inwards."""
    between = [math.sqrt(a * b) for a, b in pairwise(known)] or [2.0 * known[0]]
    first = known[0] ** 2 / between[0]
    last = known[-1] ** 2 / between[-1] if len(known) > 1 else between[0]
    borders = [first, *between[: len(known) - 1], last]
    return dict(zip(known, pairwise(borders), strict=True))
