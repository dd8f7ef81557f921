"""Frame loss over offered load: by the RFC, or around the throughput."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from dutperf.charts.cells import MEASURED, CellView
from dutperf.charts.chart import (
    HOVER_END,
    Chart,
    Figure,
    Trace,
    heading,
    layout,
    line_trace,
)
from dutperf.charts.delay_views import streams_of
from dutperf.charts.text import NBSP, duration_ns, percent, plural, whole
from dutperf.protocol.result_messages import (
    Histogram,
    Series,
    StreamResult,
    TrialResult,
)
from dutperf.results.words import kinds_words

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
        "customdata": [[p.load_fps, p.load_percent, cell.of_load] for p in cell.curve],
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


# When frames were lost: by the time they were sent, and how many in a row.


MAX_INTERVALS = 400


@dataclass(frozen=True)
class Interval:
    """Frames sent in ``[start, end)`` of a trial; ``lost`` of them never arrived."""

    start_s: float
    end_s: float
    sent: int
    received: int

    @property
    def lost(self) -> int:
        """Frames that never arrived."""
        return self.sent - self.received

    @property
    def seconds(self) -> float:
        """How long it lasted."""
        return self.end_s - self.start_s


@dataclass(frozen=True)
class FrameRow:
    """Frames of one stream of a trial."""

    direction: str
    stream: str
    sent: int
    received: int
    lost: int
    late: int
    duplicate: int
    reordered: int
    damaged: str
    unplaced: int

    @property
    def loss_percent(self) -> float | None:
        """RFC 2544 26.3: lost in percent of what was sent."""
        return self.lost * 100 / self.sent if self.sent else None


@dataclass(frozen=True)
class RunClass:
    """How often between ``lowest`` and ``highest`` frames were lost in a row."""

    lowest: int
    highest: int
    runs: int


def intervals_of(series: Series, duration_ns: int) -> list[Interval]:
    """The series in at most ``MAX_INTERVALS`` intervals; no frame is left out.

    Neighbours are added up. What was sent after the end of the trial, by a sender that
    was behind, is in the last interval, which is never shorter than nothing.
    """
    together = -(-len(series.sent) // MAX_INTERVALS) or 1
    found = []
    for first in range(0, len(series.sent), together):
        last = min(first + together, len(series.sent))
        start, end = first * series.interval_ns, last * series.interval_ns
        if last == len(series.sent) and start < duration_ns < end:
            end = duration_ns
        found.append(
            Interval(
                start_s=start / 1e9,
                end_s=end / 1e9,
                sent=sum(series.sent[first:last]),
                received=sum(series.received[first:last]),
            )
        )
    return found


def frame_rows(result: TrialResult) -> list[FrameRow]:
    """Frames of every stream, foreground and background apart."""
    return [
        FrameRow(
            direction=direction.name,
            stream=stream.name,
            sent=stream.sent,
            received=stream.received,
            lost=stream.lost,
            late=stream.late,
            duplicate=stream.duplicate,
            reordered=stream.reordered,
            damaged=kinds_words(stream.damaged) or whole(stream.corrupt),
            unplaced=stream.unplaced,
        )
        for direction, stream in streams_of(result)
    ]


def run_classes(histogram: Histogram) -> list[RunClass]:
    """Runs of lost frames by powers of two, from 1 to the longest, none left out.

    A bucket of the engine never crosses a power of two.
    """
    if histogram.max is None:
        return []
    found = [0] * histogram.max.bit_length()
    for lowest, _, count in histogram.buckets:
        found[lowest.bit_length() - 1] += count
    return [RunClass(1 << k, (2 << k) - 1, runs) for k, runs in enumerate(found)]


def loss_sentence(stream: StreamResult, rate_fps: float) -> str:
    """Which frames were lost, in words: how many, when, and how many in a row.

    Args:
        stream: of any trial.
        rate_fps: at which the stream was sent, to tell how long the longest run was.
    """
    if stream.lost == 0:
        return "no frame was lost."
    share = percent(stream.lost * 100 / stream.sent)
    said = f"{plural(stream.lost, 'frame')} of {whole(stream.sent)} lost ({share})"
    return f"{said}{_when(stream.series)}; {_in_a_row(stream.loss_runs, rate_fps)}."


def _when(series: Series) -> str:
    hit = [index for index, lost in enumerate(series.lost) if lost > 0]
    if not hit:
        return ""
    of = f"{plural(len(series.sent), 'interval')} of {duration_ns(series.interval_ns)}"
    start, end = hit[0] * series.interval_ns, (hit[-1] + 1) * series.interval_ns
    return (
        f" in {whole(len(hit))} of {of}, "
        f"all sent between {start / 1e9:g} and {end / 1e9:g}\u00a0s"
    )


def _in_a_row(runs: Histogram, rate_fps: float) -> str:
    longest = runs.max or 1
    if longest == 1:
        return "never two in a row"
    lasted = duration_ns(longest / rate_fps * 1e9) if rate_fps else ""
    return (
        f"in {plural(runs.count, 'run')}, the longest "
        f"{whole(longest)} in a row{f' ({lasted})' if lasted else ''}"
    )
