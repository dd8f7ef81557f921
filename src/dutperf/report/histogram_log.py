"""Delays of each trial as HdrHistogram logs, for the tools that read those.

One file for each trial (log format 1.3, histograms V2 compressed, base64), in it a
tagged line for each direction and stream, ``forward-foreground``. Values are
nanoseconds with three significant digits, of the upper ends of their buckets: how
delays spread that differ by less than a thousandth, only the result itself tells. A
frame that never arrived has no delay and is in no histogram; comments say how many
these are.

The package's own log writer knows no tags, so the lines are written here.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from hdrh.histogram import HdrHistogram

from dutperf.charts.delay_views import streams_of
from dutperf.errors import InputError
from dutperf.protocol.result_messages import DirectionResult, Histogram, StreamResult
from dutperf.report.source import read_source
from dutperf.results import TrialRecord
from dutperf.results.storage import storing, write_atomically
from dutperf.visible import visible

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
    trials = [trial for trial in stored if _has_delays(trial)]
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


def _has_delays(trial: TrialRecord) -> bool:
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
