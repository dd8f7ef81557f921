"""All repeats of a cell's delays side by side: does the next run say the same?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dutperf.charts.cells import CellView
from dutperf.charts.chart import (
    BOUND_SYMBOL,
    Chart,
    Figure,
    SignedScale,
    Trace,
    delay_range,
    layout,
    log_axis,
    numbers,
)
from dutperf.charts.delay_charts import look_of
from dutperf.charts.text import AT_LEAST, delay_ns, shown, whole
from dutperf.results import CellResult, Finding, Measure, ValueGroup
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
