"""What one trial, or several, say: rates, counts, and the search they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from dutperf.engine.protocol import DirectionResult, StreamResult
from dutperf.report.text import percent, plural, whole
from dutperf.results import TrialRecord


@dataclass(frozen=True)
class SearchStep:
    """One trial of a search and the bounds before it; rates per direction."""

    position: int
    trial: TrialRecord
    lower_fps: int
    upper_fps: int


@dataclass(frozen=True)
class SearchPath:
    """One repeat of a search, with the bounds it ended with."""

    repeat: int
    steps: tuple[SearchStep, ...]
    lower_fps: int
    upper_fps: int


@dataclass(frozen=True)
class Totals:
    """Frames of one trial, all directions together."""

    sent: int
    received: int
    lost: int
    duplicate: int

    @property
    def loss_percent(self) -> float | None:
        """RFC 2544 26.3: lost in percent of what was sent."""
        return self.lost * 100 / self.sent if self.sent else None


def search_paths(trials: Sequence[TrialRecord]) -> list[SearchPath]:
    """The bounds of each repeat, told from its verdicts.

    A pass raises the lower bound, a fail lowers the upper one; an invalid trial says
    nothing about the DUT and moves neither.
    """
    paths: list[SearchPath] = []
    position = 0
    for repeat, group in groupby(trials, key=lambda trial: trial.repeat):
        path = _search_path(repeat, list(group), position)
        position += len(path.steps)
        paths.append(path)
    return paths


def _search_path(repeat: int, trials: list[TrialRecord], before: int) -> SearchPath:
    lower, upper = 0, max(trial.load_fps for trial in trials)
    steps = []
    for position, trial in enumerate(trials, before + 1):
        steps.append(SearchStep(position, trial, lower, upper))
        if trial.result.verdict.kind == "pass":
            lower = max(lower, trial.load_fps)
        elif trial.result.verdict.kind == "fail":
            upper = min(upper, trial.load_fps)
    return SearchPath(repeat, tuple(steps), lower, upper)


def totals(trial: TrialRecord) -> Totals:
    """Frames of all streams of ``trial``."""
    return _totals(_streams(trial.result.directions))


def totals_by_stream(trial: TrialRecord) -> list[tuple[str, Totals]]:
    """Frames of the foreground and of the background; empty if there is only one."""
    streams = list(_streams(trial.result.directions))
    names = dict.fromkeys(stream.name for stream in streams)
    if len(names) == 1:
        return []
    return [(name, _totals(s for s in streams if s.name == name)) for name in names]


def _totals(streams: Iterable[StreamResult]) -> Totals:
    streams = list(streams)
    return Totals(
        sent=sum(stream.sent for stream in streams),
        received=sum(stream.received for stream in streams),
        lost=sum(stream.lost for stream in streams),
        duplicate=sum(stream.duplicate for stream in streams),
    )


def _streams(directions: Iterable[DirectionResult]) -> Iterable[StreamResult]:
    return (stream for direction in directions for stream in direction.streams)


def offered(trial: TrialRecord) -> str:
    """Offered load per direction; both when they differ by a frame per second."""
    rates = [whole(d.offered_rate_fps) for d in trial.result.directions]
    return " / ".join(dict.fromkeys(rates))


def loss(trial: TrialRecord) -> str:
    """``none`` or the number of lost frames and their share."""
    frames = totals(trial)
    if frames.lost == 0:
        return "none"
    parts = ", ".join(
        f"{name} {percent(of_stream.loss_percent)}"
        for name, of_stream in totals_by_stream(trial)
    )
    share = percent(frames.loss_percent) + (f"; {parts}" if parts else "")
    return f"{plural(frames.lost, 'frame')} ({share})"


def reasons(trial: TrialRecord) -> str:
    """Why the verdict is what it is."""
    return "; ".join(reason.message for reason in trial.result.verdict.reasons)
