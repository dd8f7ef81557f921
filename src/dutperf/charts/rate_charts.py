"""The charts of the report, each from the views of the cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise

from markupsafe import Markup

from dutperf.charts.cells import CellView
from dutperf.charts.chart import (
    BOUND_SYMBOL,
    HOVER_END,
    Chart,
    Figure,
    Trace,
    layout,
    line_trace,
    numbers,
)
from dutperf.charts.text import NBSP, duration_ns, whole
from dutperf.charts.trial_views import (
    SearchPath,
    SearchStep,
    lag_of,
    loss,
    offered,
    reasons,
)
from dutperf.protocol.result_messages import VerdictKind
from dutperf.results import Media
from dutperf.tables.rate_tables import Rates, rate_rows

# What media carry of each frame size (RFC 2544 20).


def maxima(rows: Rates) -> dict[str, dict[int, int]]:
    """What each kind of medium carries: its name -> frame size -> rate.

    Where frames of one size are not all as long on the wire, of the shortest.
    """
    found: dict[str, dict[int, int]] = {}
    for row in (row for _, series in rows for row in series):
        if row.media and row.cell.frame_size:
            rates = found.setdefault(medium(row.media), {})
            size = row.cell.frame_size
            rates[size] = max(row.media.rate_fps, rates.get(size, 0))
    return {name: dict(sorted(rates.items())) for name, rates in found.items()}


def medium(media: Media) -> str:
    """``10,000 Mbit/s``, and that a virtual link only names it."""
    nominal = " (nominal)" if media.nominal else ""
    return f"{media.of_ports}{whole(media.link_speed_mbps)}{NBSP}Mbit/s{nominal}"


_LOG_FROM_RATIO = 20
_X_TICKS = 12
_OFF_SCALE_RATIO = 3
_TIMES_A_BURST = 4
_FEW_LOADS = 3
_NEAR_RATIO = 0.5
_MARK_PX = 11
_SMALL_PX = 6
_MARKS: dict[VerdictKind, tuple[str, str]] = {
    "pass": ("pass", "circle"),
    "fail": ("fail: the DUT lost or delayed frames", "x"),
    "invalid": ("invalid: the tester cannot tell", "diamond-open"),
}


def search_chart(cell: CellView, number: int) -> Chart:
    """The search's path: trials in order, and the interval that is left to search."""
    steps = [step for path in cell.paths for step in path.steps]
    bounded = [path for path in cell.paths if path.bounded]
    bottom, top = _room(steps, cell.searched)
    if cell.family == "burst search" and cell.searched:
        # It begins decades above: what decides is near the result.
        top = min(top, _TIMES_A_BURST * cell.searched)
    data = [_interval(bounded)] if bounded and cell.searches else []
    if cell.searched is not None:
        data.append(_result_line(cell, len(steps)))
    for kind in _MARKS:
        chosen = [step for step in steps if step.trial.result.verdict.kind == kind]
        if chosen:
            tried = [step.tried for step in chosen]
            named = numbers(_MARKS[kind][0], "trial", _axis_title(cell), ys=tried)
            data.append(_marks(kind, chosen, (bottom, top)) | named)
    figure = layout(
        "trial",
        _axis_title(cell),
        {
            "tick0": 1,
            "dtick": max(1, math.ceil(len(steps) / _X_TICKS)),
            "range": [0.5, len(steps) + 0.5],
        },
        {"range": [bottom, top], "tickformat": ",d"},
    )
    figure["annotations"] = [] if bottom else _off_scale(steps, top)
    figure["shapes"] = [_rule_before(path) for path in cell.paths[1:]]
    return Chart(f"search-{number}", f"Search path: {cell.title}", data, figure)


def _axis_title(cell: CellView) -> str:
    tried = "burst, frames" if cell.family == "burst search" else "intended rate, fps"
    return f"{tried} per direction"


def _room(steps: Sequence[SearchStep], result: float | None) -> tuple[float, float]:
    """Ends of the rate axis; not from zero where whole trials are far above it.

    Short trials beyond the ends stand at the edge.
    """
    loads = [step.tried for step in steps]
    whole = [step.tried for step in steps if step.counts]
    if len(whole) < len(loads) and min(whole) > _NEAR_RATIO * max(whole):
        shown = [*whole, result or whole[0]]
        around = max(0.15 * (max(shown) - min(shown)), 0.002 * max(shown))
        return min(shown) - around, max(shown) + around
    return 0, _top(loads, result)


def _top(loads: Sequence[int], result: float | None = None) -> float:
    """Upper end of the rate axis; the result is always below it.

    The first trials are at the media's maximum, often far above all others; on their
    scale the search itself could not be seen. Where a wide gap parts them from at least
    half of all trials, they are drawn at the edge, with their figures.
    """
    rising = sorted(loads)
    upper_half = rising[(len(rising) - 1) // 2 :]
    highest = next(
        (low for low, high in pairwise(upper_half) if high > _OFF_SCALE_RATIO * low),
        rising[-1],
    )
    return 1.15 * max(highest, result or 0)


def _off_scale(steps: Sequence[SearchStep], top: float) -> list[Figure]:
    """One label for each run of neighbours: labels of their own would overlap."""
    labels: list[Figure] = []
    said = ""
    for is_off, group in groupby(steps, lambda step: step.tried > top):
        if not is_off:
            continue
        run = list(group)
        told = dict.fromkeys(whole(step.tried) for step in run)
        loads = ", ".join(told)
        # Every repeat starts at the same rate: say it once, then only point up.
        text = "\u2191"
        if loads != said and len(told) <= _FEW_LOADS:
            text += f" {loads}"
        labels.append(_label_beside(run, text, top, len(steps)))
        said = loads
    return labels


def _label_beside(
    run: Sequence[SearchStep], text: str, top: float, trials: int
) -> Figure:
    """On the side of ``run`` where the chart has more room."""
    is_late = run[-1].position > trials / 2
    return {
        "x": run[0].position if is_late else run[-1].position,
        "y": top,
        "text": text,
        "showarrow": False,
        "xanchor": "right" if is_late else "left",
        "xshift": -10 if is_late else 10,
        "yshift": -10,
    }


def _interval(paths: Sequence[SearchPath]) -> Trace:
    """A band from lower to upper bound, each repeat a closed outline of its own."""
    x: list[float | None] = []
    y: list[float | None] = []
    for path in paths:
        corners = [
            (step.position + side, step.lower, step.upper)
            for step in path.steps
            for side in (-0.5, 0.5)
        ]
        end = corners[-1][0]
        corners += [(end, path.lower, path.upper)]
        x += [c[0] for c in corners] + [c[0] for c in reversed(corners)] + [None]
        y += [c[2] for c in corners] + [c[1] for c in reversed(corners)] + [None]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "still to search: lower to upper bound",
        "x": x,
        "y": y,
        "line": {"width": 1, "color": "var(--band-edge)"},
        "fill": "toself",
        "fillcolor": "var(--band)",
        "hoverinfo": "skip",
    }


def _result_line(cell: CellView, trials: int) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{cell.name.lower()}: {cell.figure_text} {cell.unit}",
        "x": [0.5, trials + 0.5],
        "y": [cell.searched, cell.searched],
        "line": {"width": 1.5, "dash": "dash", "color": "var(--ink)"},
        "hoverinfo": "skip",
    }


def _marks(
    kind: VerdictKind,
    steps: Sequence[SearchStep],
    ends: tuple[float, float],
) -> Trace:
    """Trials that are shorter than others have small marks."""
    edge = 0.03 * ends[1] if not ends[0] else 0
    name, symbol = _MARKS[kind]
    sizes = [_MARK_PX if step.counts else _SMALL_PX for step in steps]
    colour = f"var(--{kind})"
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [step.position for step in steps],
        "y": [min(max(step.tried, ends[0]), ends[1] - edge) for step in steps],
        "marker": {
            "symbol": symbol,
            "size": sizes,
            "color": colour,
            "line": {"width": 2.5 if kind == "invalid" else 0, "color": colour},
        },
        "cliponaxis": False,
        "hovertext": [_hover(step) for step in steps],
        "hoverinfo": "text",
    }


def _hover(step: SearchStep) -> str:
    trial = step.trial
    lag = lag_of(direction.lag_ns for direction in trial.result.directions)
    again = f", attempt {trial.attempt}" if trial.attempt > 1 else ""
    duration_s = trial.request.duration_ns / 1e9
    kind = trial.result.verdict.kind
    frames = trial.request.frames(trial.request.directions[0])
    lines = [
        Markup("<b>{}</b>").format(f"trial {step.position}{again}: {kind}"),
        f"intended {whole(trial.load_fps)} fps per direction for {duration_s:g} s",
        f"{whole(frames)} frames per direction",
        f"offered {offered(trial)} fps",
        f"lost: {loss(trial)}",
        f"pacing lag p99: {duration_ns(lag.p99_ns if lag else None)}",
    ]
    why = reasons(trial)
    return Markup("<br>").join([*lines, why] if why else lines)


def _rule_before(path: SearchPath) -> Figure:
    """A dotted line between one repeat and the next."""
    at = path.steps[0].position - 0.5
    return {
        "type": "line",
        "x0": at,
        "x1": at,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"width": 1, "dash": "dot", "color": "var(--muted)"},
    }


def frame_rate_chart(cells: Sequence[CellView]) -> Chart | None:
    """RFC 2544 26.1: frame rate over frame size, theoretical and measured.

    None if nothing was measured at two frame sizes: a point makes no line.
    """
    lines = _rates_by_stream(cells)
    if not any(len(rates) > 1 for rates in lines.values()):
        return None
    sizes = sorted({size for rates in lines.values() for size in rates})
    media = maxima(rate_rows(cells))
    data = [_medium_line(name, each) for name, each in media.items()]
    data += [_measured_line(*each) for each in enumerate(lines.items())]
    for trace in data:
        trace.setdefault("hovertemplate", "%{x:,d} bytes: %{y:,d} fps" + HOVER_END)
    shown = [value for trace in data for value in trace["y"]]
    figure = layout(
        "frame size with FCS, bytes",
        "frame rate, fps per direction",
        {"tickvals": _apart(sizes), "tickformat": ",d"},
        _rate_axis(min(shown), max(shown)),
    )
    return Chart("frame-rate", "Frame rate over frame size", data, figure)


def _measured_line(index: int, line: tuple[str, dict[int, CellView]]) -> Trace:
    """Lower bounds point upwards."""
    name, cells = line
    ordered = sorted(cells)
    trace = line_trace(
        index,
        name,
        [float(size) for size in ordered],
        [cells[size].rate_fps for size in ordered],
    )
    signs = [cells[size].at_least for size in ordered]
    if not any(signs):
        return trace
    usual = trace["marker"].get("symbol", "circle")
    symbols = [BOUND_SYMBOL if sign else usual for sign in signs]
    return trace | {
        "marker": trace["marker"] | {"symbol": symbols},
        "customdata": signs,
        "hovertemplate": "%{x:,d} bytes: %{customdata}%{y:,d} fps" + HOVER_END,
    }


def _rates_by_stream(cells: Sequence[CellView]) -> dict[str, dict[int, CellView]]:
    lines: dict[str, dict[int, CellView]] = {}
    for cell in cells:
        if cell.rate_fps is not None and cell.frame_size and not cell.flows:
            of_series = lines.setdefault(f"measured, {cell.series}", {})
            of_series[cell.frame_size] = cell
    return lines


def _medium_line(name: str, rates: Mapping[int, int]) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": f"theoretical maximum at {name}",
        "x": list(rates),
        "y": list(rates.values()),
        "line": {"width": 1.5, "dash": "dash", "color": "var(--muted)"},
        "marker": {"symbol": "circle-open", "size": 7, "color": "var(--muted)"},
    }


def _rate_axis(lowest: float, highest: float) -> Figure:
    """From zero, unless that would press the measured line onto the axis."""
    if lowest > 0 and highest > _LOG_FROM_RATIO * lowest:
        return {"type": "log", "dtick": 1, "tickformat": ",d"}
    return {"rangemode": "tozero", "tickformat": ",d"}


def _apart(sizes: Sequence[int]) -> list[int]:
    """Axis labels that do not overlap: each far enough from the one before."""
    shown: list[int] = []
    for size in sizes:
        if not shown or size - shown[-1] > (sizes[-1] - sizes[0]) / 16:
            shown.append(size)
    return shown
