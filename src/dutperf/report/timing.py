"""The trials of a cell in time: delays, and when frames were lost.

One trial is shown, the one that the cell's result rests on; the reader may choose any
other. They are in the page, so that nothing has to be measured or made again; of very
many those around it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from hdrh.histogram import HdrHistogram

from dutperf.charts.cells import CellView
from dutperf.charts.chart import (
    HOVER_END,
    Chart,
    Figure,
    Trace,
    delay_range,
    heading,
    line_trace,
    log_axis,
    numbers,
)
from dutperf.charts.delay_charts import delay_charts, look_of, variation_charts
from dutperf.charts.delay_views import (
    ErrorRow,
    SpreadRow,
    delay_rows,
    error_rows,
    several_streams,
    stream_delays,
    streams_of,
    variation_rows,
)
from dutperf.charts.loss_charts import FrameRow, frame_rows, loss_sentence
from dutperf.charts.text import duration_ns, percent, whole
from dutperf.charts.time_charts import runs_chart, time_charts
from dutperf.charts.trial_views import totals
from dutperf.errors import InputError
from dutperf.protocol.result_messages import DirectionResult, Histogram, StreamResult
from dutperf.report.source import read_source
from dutperf.results import TrialRecord
from dutperf.results.storage import storing, write_atomically
from dutperf.visible import visible

# Loss over frame timeout: what would be lost if slow frames counted as lost.


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


_MOST_TRIALS = 150
"""Of all cells together, so that a page stays small; each has a few at least."""
_LEAST_TRIALS = 3
_FEW = 4
"""Cells of delays that are unfolded at once; of more than these only the first."""


@dataclass(frozen=True)
class TimeoutRow:
    """Frames of one stream that were lost or slower than each timeout."""

    direction: str
    stream: str
    shares: tuple[str, ...]


@dataclass(frozen=True)
class TrialTiming:
    """Everything that one trial tells about time."""

    record: TrialRecord

    @property
    def id(self) -> str:
        """Of the element that holds it."""
        return f"trial-{self.record.number}"

    @property
    def label(self) -> str:
        """How the reader tells it from the others: number, load, verdict and loss."""
        record, frames = self.record, totals(self.record)
        share = percent(frames.loss_percent)
        gone = f", {share} {frames.word}" if frames.gone else ""
        again = f", attempt {record.attempt}" if record.attempt > 1 else ""
        return (
            f"{record.number}: {whole(record.load_fps)} fps, "
            f"{record.result.verdict.kind}{again}{gone}"
        )

    @property
    def traffic(self) -> str:
        """Load and duration."""
        record = self.record
        lasted = duration_ns(record.request.duration_ns)
        return f"{whole(record.load_fps)} fps per direction for {lasted}"

    @property
    def several_streams(self) -> bool:
        """Whether foreground and background frames must be told apart."""
        return several_streams([self.record.result])

    @property
    def timeout(self) -> str:
        """The frame timeout; empty if there was none."""
        timeout_ns = self.record.request.frame_timeout_ns
        return duration_ns(timeout_ns) if timeout_ns else ""

    @property
    def frames(self) -> list[FrameRow]:
        """Frames of every stream."""
        return frame_rows(self.record.result)

    @property
    def delays(self) -> list[SpreadRow]:
        """Delays of every stream."""
        return delay_rows(self.record.result)

    @property
    def plain_delays(self) -> list[SpreadRow]:
        """Delays of every stream, in the order of ``frames``."""
        return stream_delays(self.record.result)

    @property
    def variations(self) -> list[SpreadRow]:
        """IPDV of every stream for which it was recorded."""
        return variation_rows(self.record.result)

    @property
    def errors(self) -> list[ErrorRow]:
        """The tester's share in each direction's delays."""
        return error_rows(self.record.result)

    @property
    def has_tags(self) -> bool:
        """Whether single frames were followed."""
        return self.record.request.record.tags is not None

    @property
    def has_shadows(self) -> bool:
        """Whether the tester had stalls that the DUT may have suffered from."""
        return any(direction.shadows for direction in self.record.result.directions)

    @property
    def bucket_width(self) -> str:
        """How finely delays of all frames are told: the widest, as a share of them."""
        shares = (
            (high - low) / high
            for _, stream in streams_of(self.record.result)
            for low, high, _ in stream.delay_ns.buckets
            if high
        )
        return percent(100 * max(shares, default=0.0))

    @property
    def losses(self) -> list[tuple[str, str]]:
        """Direction and stream, and which of their frames were lost; empty: none."""
        if not any(row.lost for row in self.frames):
            return []
        found = []
        for direction in self.record.result.directions:
            seconds = direction.sending_ns / 1e9
            for stream in direction.streams:
                several = len(direction.streams) > 1
                name = direction.name + (f", {stream.name}" if several else "")
                rate_fps = stream.sent / seconds if seconds else 0.0
                found.append((name, loss_sentence(stream, rate_fps)))
        return found

    @property
    def timeouts(self) -> tuple[list[str], list[TimeoutRow]]:
        """Heads and rows of the table of loss over frame timeout."""
        heads: dict[int, None] = {}
        rows = []
        for direction in self.record.result.directions:
            for stream in direction.streams:
                heads |= dict.fromkeys(slower.timeout_ns for slower in stream.slower)
                gone = (stream.lost + slower.frames for slower in stream.slower)
                shares = tuple(
                    percent(100 * frames / stream.sent if stream.sent else None)
                    for frames in gone
                )
                if shares:
                    rows.append(TimeoutRow(direction.name, stream.name, shares))
        return [duration_ns(timeout) for timeout in heads], rows

    @cached_property
    def rows_of_charts(self) -> list[tuple[str, list[Chart]]]:
        """Charts by kind; those of both directions stand side by side."""
        record = self.record
        found = [
            ("delay", delay_charts(record)),
            ("variation", variation_charts(record)),
            ("time", time_charts(record)),
            ("runs", [chart for chart in (runs_chart(record),) if chart]),
            ("timeout", [chart for chart in (trial_timeout_chart(record),) if chart]),
        ]
        return [(kind, charts) for kind, charts in found if charts]

    @property
    def charts(self) -> list[Chart]:
        """All of them."""
        return [chart for _, charts in self.rows_of_charts for chart in charts]


@dataclass(frozen=True)
class CellTiming:
    """The trials of one cell; ``shown`` is the one that is on show at first."""

    cell: CellView
    shown: TrialTiming
    trials: tuple[TrialTiming, ...]
    left_out: int
    open: bool

    @property
    def id(self) -> str:
        """Of the element that holds it."""
        return f"timing-{self.cell.id}"


def timings_of(cells: Sequence[CellView]) -> list[CellTiming]:
    """All cells that have a trial with delays."""
    few = sum(cell.family == "fixed load" for cell in cells) <= _FEW
    every = [
        (cell, [TrialTiming(t) for t in cell.trials if _has_delays(t)])
        for cell in cells
    ]
    timed = [(cell, trials) for cell, trials in every if trials]
    room = max(_LEAST_TRIALS, _MOST_TRIALS // max(len(timed), 1))
    found: list[CellTiming] = []
    for cell, trials in timed:
        shown = _result_trial(cell, trials)
        chosen = _nearest(trials, shown, room)
        is_open = not found or (few and cell.family == "fixed load")
        left_out = len(trials) - len(chosen)
        found.append(CellTiming(cell, shown, chosen, left_out, is_open))
    return found


def _nearest(
    trials: Sequence[TrialTiming], shown: TrialTiming, room: int
) -> tuple[TrialTiming, ...]:
    """Those whose loads are nearest to that of ``shown``, in the order of the run."""

    def distance(trial: TrialTiming) -> tuple[bool, float]:
        return trial is not shown, abs(trial.record.load_fps - shown.record.load_fps)

    chosen = {trial.id for trial in sorted(trials, key=distance)[:room]}
    return tuple(trial for trial in trials if trial.id in chosen)


def _has_delays(trial: TrialRecord) -> bool:
    return any(stream.delay_ns.count for _, stream in streams_of(trial.result))


def _result_trial(cell: CellView, trials: Sequence[TrialTiming]) -> TrialTiming:
    """The trial a reader wants first.

    Of a throughput the fastest one that passed, of other procedures the one with the
    highest load that is valid; if there is none, the last one.
    """
    kinds = {"pass"} if cell.family == "rate search" else {"pass", "fail"}
    counting = {record.number for record in cell.counting_trials}
    good = [
        t
        for t in trials
        if t.record.number in counting and t.record.result.verdict.kind in kinds
    ]
    if not good:
        return trials[-1]
    return max(good, key=lambda trial: trial.record.load_fps)


# Delays of each trial as HdrHistogram logs, for the tools that read those.
#
# One file for each trial (log format 1.3, histograms V2 compressed, base64), in it a
# tagged line for each direction and stream, ``forward-foreground``. Values are
# nanoseconds with three significant digits, of the upper ends of their buckets: how
# delays spread that differ by less than a thousandth, only the result itself tells. A
# frame that never arrived has no delay and is in no histogram; comments say how many
# these are. The package's own log writer knows no tags, so the lines are written here.


HIGHEST_NS = 2**47
"""No delay is longer: what the protocol's longest trial and wait allow."""
SIGNIFICANT_DIGITS = 3
_NS_PER_MS = 1_000_000
_LEGEND = (
    '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'
)


def export_histograms(directory: Path, target: Path) -> list[Path]:
    """Write the delays of every trial of a cell in ``directory`` into ``target``.

    Returns:
        The files, in the order of the trials.

    Raises:
        InputError: there is nothing to read, or no trial has delays.
        SetupError: the file system refused.
    """
    stored = (t for t in read_source(directory).trials if t.role == "trial")
    trials = [trial for trial in stored if _any_delays(trial)]
    if not trials:
        raise InputError(
            f"{directory} holds no trial with delays",
            "no frame came back in any: see why in its report",
        )
    with storing(target):
        target.mkdir(parents=True, exist_ok=True)
    written = []
    for trial in trials:
        path = target / f"trial-{trial.number:04d}.hlog"
        write_atomically(path, "".join(f"{line}\n" for line in _lines(trial)))
        written.append(path)
    return written


def _any_delays(trial: TrialRecord) -> bool:
    return any(stream.delay_ns.count for _, stream in streams_of(trial.result))


def _begin_of(trial: TrialRecord) -> datetime:
    """When its first frame was due; of a trial without one when it was asked for."""
    begin_ns = trial.result.begin_unix_ns
    if begin_ns is None:
        return datetime.fromisoformat(trial.started_at)
    return datetime.fromtimestamp(begin_ns // 1_000_000 / 1000, UTC)


def _lines(trial: TrialRecord) -> Iterator[str]:
    start = _begin_of(trial)
    start_s = start.timestamp()
    yield f"#[{_one_line(trial)}]"
    yield "#[delays in nanoseconds; Interval_Max in milliseconds]"
    yield "#[Histogram log format version 1.3]"
    yield f"#[StartTime: {start_s:.3f} (seconds since epoch), {start.isoformat()}]"
    yield f"#[BaseTime: {start_s:.3f} (seconds since epoch)]"
    for direction, stream in streams_of(trial.result):
        gone = f"{stream.lost} of {stream.sent} frames were lost and have no delay"
        yield f"#[{_tag(direction, stream)}: {gone}]"
    yield _LEGEND
    seconds = trial.request.duration_ns / 1e9
    for direction, stream in streams_of(trial.result):
        if stream.delay_ns.count:
            largest_ms = (stream.delay_ns.max or 0) / _NS_PER_MS
            yield (
                f"Tag={_tag(direction, stream)},0.000,{seconds:.3f},{largest_ms:.3f},"
                f"{hdr_histogram(stream.delay_ns).encode().decode('ascii')}"
            )


def _one_line(trial: TrialRecord) -> str:
    """What the trial was; a name that somebody made up cannot start a new line."""
    cell = visible(" ".join(trial.cell.split()).replace("]", ")"))
    verdict = trial.result.verdict.kind
    return (
        f"dutperf trial {trial.number}, {cell}, {trial.load_fps} fps per direction, "
        f"{verdict}"
    )


def _tag(direction: DirectionResult, stream: StreamResult) -> str:
    return f"{direction.name}-{stream.name}"


def hdr_histogram(histogram: Histogram) -> HdrHistogram:
    """The same frames in an HdrHistogram."""
    made = HdrHistogram(1, HIGHEST_NS, SIGNIFICANT_DIGITS)
    if histogram.min is not None:
        made.record_value(histogram.min)
    for index, (_, highest, count) in enumerate(histogram.buckets):
        # One of the first bucket's frames took the smallest delay, known exactly.
        if rest := count - (index == 0):
            made.record_value(highest, rest)
    return made
