"""The view ``trials``: a row for each trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from dutperf.protocol import (
    BesideResult,
    DirectionName,
    Histogram,
    LossRun,
    StreamResult,
)
from dutperf.query.columns import Column, View, of_run
from dutperf.query.runs import Run, moment
from dutperf.results import TrialRecord
from dutperf.stats import histogram_median, histogram_percentile, merged_histogram


@dataclass(frozen=True)
class Row:
    """One trial, and the run it is of."""

    run: Run
    trial: TrialRecord

    @cached_property
    def streams(self) -> list[StreamResult]:
        """Of all directions."""
        return [s for d in self.trial.result.directions for s in d.streams]

    def summed(self, of: Callable[[StreamResult], int]) -> int:
        """Over all directions and streams."""
        return sum(map(of, self.streams))

    def lost(self, name: DirectionName) -> int | None:
        """Frames of one direction; None: nothing was sent there."""
        found = [d for d in self.trial.result.directions if d.name == name]
        return sum(s.lost for d in found for s in d.streams) if found else None

    def beside(self, of: Callable[[BesideResult], int]) -> int | None:
        """Frames beside the streams, of all directions; None: there were none."""
        found = [d.beside for d in self.trial.result.directions if d.beside]
        return sum(map(of, found)) if found else None

    @property
    def loss_percent(self) -> float | None:
        """Lost in percent of what was sent; None: nothing was."""
        sent = self.summed(lambda s: s.sent)
        return self.summed(lambda s: s.lost) * 100 / sent if sent else None

    @cached_property
    def delays(self) -> Histogram | None:
        """Of all streams; None: none was recorded."""
        parts = [s.delay_ns for s in self.streams if s.delay_ns.count]
        if not parts:
            return None
        return Histogram(
            count=sum(part.count for part in parts),
            min=min(part.min for part in parts if part.min is not None),
            max=max(part.max for part in parts if part.max is not None),
            buckets=merged_histogram([part.buckets for part in parts]),
        )

    def delay(self, of: Callable[[Histogram], float | None]) -> float | None:
        """A figure of them."""
        return None if self.delays is None else of(self.delays)

    @property
    def longest_loss(self) -> LossRun | None:
        """The most frames of a stream that were lost in a row."""
        runs = [s.longest_loss for s in self.streams if s.longest_loss]
        return max(runs, key=lambda run: run.frames, default=None)

    @property
    def longest_loss_ns(self) -> int | None:
        """When they were due, up to the next frame; None: none was lost, or came."""
        run = self.longest_loss
        return None if run is None or run.end_ns is None else run.end_ns - run.begin_ns

    @property
    def lag_max_ns(self) -> int | None:
        """The latest that a frame left."""
        found = [d.lag_ns.max for d in self.trial.result.directions]
        return max((lag for lag in found if lag is not None), default=None)


def _rows(run: Run) -> Iterator[Row]:
    return (Row(run, trial) for trial in run.source.trials)


def _count(name: str, meaning: str, of: Callable[[StreamResult], int]) -> Column[Row]:
    return Column(name, "BIGINT", meaning, lambda row: row.summed(of))


_WHICH: tuple[Column[Row], ...] = (
    *of_run(lambda row: row.run),
    Column(
        "device",
        "VARCHAR",
        "Name of the lab or testbed.",
        lambda row: row.run.device(row.trial.place) or None,
    ),
    Column("cell", "VARCHAR", "Id of the cell in its run.", lambda row: row.trial.cell),
    Column("procedure", "VARCHAR", "As the command.", lambda row: row.trial.procedure),
    Column(
        "trial",
        "BIGINT",
        "Its number in the run, from 1.",
        lambda row: row.trial.number,
    ),
    Column("repeat", "BIGINT", "Of the cell, from 1.", lambda row: row.trial.repeat),
    Column(
        "attempt",
        "BIGINT",
        "2 and up: an invalid trial run again.",
        lambda row: row.trial.attempt,
    ),
    Column(
        "role",
        "VARCHAR",
        "trial: the cell's own; others prepare or check: first_frames, probe, phase1, "
        "validation, damage.",
        lambda row: row.trial.role,
    ),
    Column("started_at", "TIMESTAMP", "UTC.", lambda row: moment(row.trial.started_at)),
    Column(
        "load_fps",
        "BIGINT",
        "What each direction was asked to send, frames/s.",
        lambda row: row.trial.load_fps,
    ),
    Column(
        "duration_s",
        "DOUBLE",
        "How long frames were sent.",
        lambda row: row.trial.request.duration_ns / 1e9,
    ),
    Column(
        "verdict",
        "VARCHAR",
        "pass; fail: the device lost frames; invalid: the tester cannot tell.",
        lambda row: row.trial.result.verdict.kind,
    ),
    Column(
        "reasons",
        "VARCHAR[]",
        "Codes of what led to the verdict.",
        lambda row: [reason.code for reason in row.trial.result.verdict.reasons],
    ),
)
_FRAMES: tuple[Column[Row], ...] = (
    _count("intended_frames", "Of all directions and streams.", lambda s: s.intended),
    _count("sent_frames", "Of these: that left the tester.", lambda s: s.sent),
    _count("received_frames", "Distinct frames that came back.", lambda s: s.received),
    _count("lost_frames", "Sent and not received.", lambda s: s.lost),
    Column(
        "lost_frames_forward",
        "BIGINT",
        "Of those sent from left to right; null: none were.",
        lambda row: row.lost("forward"),
    ),
    Column(
        "lost_frames_reverse",
        "BIGINT",
        "Of those sent from right to left; null: none were.",
        lambda row: row.lost("reverse"),
    ),
    Column(
        "loss_percent",
        "DOUBLE",
        "Lost, of those sent; late ones are not lost here.",
        lambda row: row.loss_percent,
    ),
    _count("late_frames", "Received after the frame timeout.", lambda s: s.late),
    _count("duplicate_frames", "That came once more.", lambda s: s.duplicate),
    _count("reordered_frames", "That a later one overtook.", lambda s: s.reordered),
    _count("damaged_frames", "That arrived damaged: lost.", lambda s: s.corrupt),
    _count(
        "shadow_lost_frames",
        "Of those lost: sent in the shadow of a tester's stall.",
        lambda s: s.lost_in_shadow,
    ),
    Column(
        "longest_loss_frames",
        "BIGINT",
        "Most frames of a stream lost in a row; null: none was lost.",
        lambda row: row.longest_loss and row.longest_loss.frames,
    ),
    Column(
        "longest_loss_ns",
        "BIGINT",
        "How long these were due; null: none was lost, or none came any more.",
        lambda row: row.longest_loss_ns,
    ),
    Column(
        "beside_sent_frames",
        "BIGINT",
        "Beside the streams, which need not be forwarded; null: none.",
        lambda row: row.beside(lambda frames: frames.sent),
    ),
    Column(
        "beside_received_frames",
        "BIGINT",
        "Of these: that came nevertheless.",
        lambda row: row.beside(lambda frames: frames.received),
    ),
)
_TIMES: tuple[Column[Row], ...] = (
    Column(
        "delay_min_ns",
        "DOUBLE",
        "Shortest delay of all frames received; null: not recorded.",
        lambda row: row.delay(lambda h: h.min),
    ),
    Column(
        "delay_median_ns",
        "DOUBLE",
        "Their median, as fine as the histogram.",
        lambda row: row.delay(lambda h: histogram_median(h.buckets)),
    ),
    Column(
        "delay_p99_ns",
        "DOUBLE",
        "Their 99th percentile.",
        lambda row: row.delay(lambda h: histogram_percentile(h.buckets, 99)),
    ),
    Column(
        "delay_max_ns",
        "DOUBLE",
        "The longest.",
        lambda row: row.delay(lambda h: h.max),
    ),
    Column(
        "lag_max_ns",
        "BIGINT",
        "How late a frame left the tester at most.",
        lambda row: row.lag_max_ns,
    ),
    Column(
        "stalls",
        "BIGINT",
        "How often the sender was late and made up for it with a burst.",
        lambda row: sum(len(d.stalls) for d in row.trial.result.directions),
    ),
)
TRIALS = View(
    "trials",
    "A row for each trial, also of a run that was interrupted; frames of all "
    "directions and streams together.",
    (*_WHICH, *_FRAMES, *_TIMES),
    _rows,
)
