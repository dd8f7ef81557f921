"""When frames were lost: by the time they were sent, and how many in a row."""

from __future__ import annotations

from dataclasses import dataclass

from dutperf.protocol import Histogram, Series, StreamResult, TrialResult
from dutperf.report.delay_views import streams_of
from dutperf.report.text import duration_ns, percent, plural, whole
from dutperf.results.damage_words import kinds_words

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
