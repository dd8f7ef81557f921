"""The trials of a cell in time: delays, and when frames were lost.

One trial is shown, the one that the cell's result rests on; the reader may choose any
other. They are in the page, so that nothing has to be measured or made again; of very
many those around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from dutperf.report.cells import CellView
from dutperf.report.chart import Chart
from dutperf.report.delay_views import (
    ErrorRow,
    SpreadRow,
    delay_rows,
    error_rows,
    several_streams,
    stream_delays,
    streams_of,
    variation_rows,
)
from dutperf.report.delaycharts import delay_charts
from dutperf.report.runs import FrameRow, frame_rows, loss_sentence
from dutperf.report.text import duration_ns, percent, whole
from dutperf.report.timecharts import runs_chart, time_charts
from dutperf.report.timeoutcharts import trial_timeout_chart
from dutperf.report.trial_views import totals
from dutperf.report.variationcharts import variation_charts
from dutperf.results import TrialRecord
from dutperf.tables import DELAYS

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
    few = sum(cell.procedure in DELAYS for cell in cells) <= _FEW
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
        is_open = not found or (few and cell.procedure in DELAYS)
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
    kinds = {"pass"} if cell.procedure == "throughput" else {"pass", "fail"}
    counting = {record.number for record in cell.counting_trials}
    good = [
        t
        for t in trials
        if t.record.number in counting and t.record.result.verdict.kind in kinds
    ]
    if not good:
        return trials[-1]
    return max(good, key=lambda trial: trial.record.load_fps)
