"""Frame loss over offered load: by the RFC, or around the throughput."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from dutperf.report.cells import MEASURED, CellView
from dutperf.report.chart import (
    HOVER_END,
    Chart,
    Figure,
    Trace,
    heading,
    layout,
    line_trace,
)
from dutperf.report.text import NBSP, whole

_TOP = 1.15
"""Room above the curves, for what the dotted lines are."""
_LEAST_PERCENT = 1.0
"""Where nothing is lost the axis still has a height."""


def frame_loss_chart(cells: Sequence[CellView]) -> Chart | None:
    """RFC 2544 26.3: both axes from 0 to 100 percent, one line per cell.

    None if there is no curve with a valid point.
    """
    data = _lines([cell for cell in cells if cell.throughput_fps is None])
    if not data:
        return None
    for trace in data:
        trace["x"] = [percent for _, percent in trace.pop("loads")]
    figure = layout(
        "offered load, % of maximum",
        "frame loss, %",
        {"range": [0, 100], "dtick": 10},
        {"range": [0, 100], "dtick": 10},
    )
    return Chart("frame-loss", "Frame loss over offered load", data, figure)


def loss_around_chart(cells: Sequence[CellView]) -> Chart | None:
    """In frames per second, as each cell's 100 % is another throughput: it is dotted.

    None as above.
    """
    around = [cell for cell in cells if cell.throughput_fps is not None]
    data = _lines(around)
    if not data:
        return None
    for trace in data:
        trace["x"] = [load_fps for load_fps, _ in trace.pop("loads")]
    highest = max(value for t in data for value in t["y"] if value is not None)
    top = _TOP * max(highest, _LEAST_PERCENT)
    figure = layout(
        "offered load, fps per direction",
        "frame loss, %",
        {"rangemode": "tozero", "tickformat": ",d"},
        {"range": [0, top]},
    )
    with_curve = [cell for cell in around if cell.curve]
    figure["shapes"] = [_throughput_line(n, cell) for n, cell in enumerate(with_curve)]
    figure["annotations"] = [heading("dotted: the throughput found", 1, "top")]
    description = "Frame loss over offered load, around the throughput"
    return Chart("frame-loss-around", description, data, figure)


def _lines(cells: Sequence[CellView]) -> list[Trace]:
    """Nothing where no point of any is valid."""
    with_points = [cell for cell in cells if cell.curve]
    data = [_line(index, cell) for index, cell in enumerate(with_points)]
    valid = any(value is not None for trace in data for value in trace["y"])
    return data if valid else []


def _line(index: int, cell: CellView) -> Trace:
    """``loads`` are those of its points, in frames per second and in percent."""
    state = "" if cell.badge is MEASURED else f" ({cell.badge.label})"
    if cell.throughput_fps is not None:
        state = f": {whole(cell.throughput_fps)}{NBSP}fps{state}"
    losses = [point.loss_percent for point in cell.curve]
    return line_trace(index, f"{cell.line}{state}", [], losses) | {
        "loads": [(point.load_fps, point.load_percent) for point in cell.curve],
        "connectgaps": False,
        "cliponaxis": False,
        "customdata": [[p.load_fps, p.load_percent, p.of] for p in cell.curve],
        "hovertemplate": "%{customdata[1]:.4g} % %{customdata[2]} "
        "(%{customdata[0]:,d} fps per direction)"
        + Markup("<br>loss %{y:.4g} %")
        + HOVER_END,
    }


def _throughput_line(index: int, cell: CellView) -> Figure:
    colour = line_trace(index, "", [], [])["line"]["color"]
    return {
        "type": "line",
        "x0": cell.throughput_fps,
        "x1": cell.throughput_fps,
        "yref": "paper",
        "y0": 0,
        "y1": 0.92,
        "line": {"width": 1.5, "dash": "dot", "color": colour},
    }
