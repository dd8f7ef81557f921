"""What a user sees while a run lasts: standard error, one line a trial.

On a terminal the running trial has a line of its own that changes in place.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from rich.status import Status
from rich.text import Text

from dutperf.catalogue import names_of
from dutperf.cli.failures import PatientConsole
from dutperf.procedures.damage_search import judged_whole
from dutperf.procedures.events import (
    CellStarted,
    Event,
    IntervalNarrowed,
    Notice,
    ReportWritten,
    ResultsChanged,
    RunStarted,
    TestbedStarted,
    TrialFinished,
    TrialMoved,
    TrialReplayed,
    TrialStarted,
)
from dutperf.protocol import Damage, StreamResult, TrialProgress, TrialResult
from dutperf.results import ResultsFile, TrialRecord, how_to_go_on
from dutperf.results.damage_words import RECEIVED, kinds_words
from dutperf.results.trial_record import TrialRole
from dutperf.results.units import about

_ROLES: dict[TrialRole, str] = {
    "trial": "",
    "first_frames": ", first frames",
    "probe": ", probe",
    "phase1": ", phase 1",
    "validation": ", validation",
    "damage": f", {RECEIVED}",
}
_STYLES = {"pass": "green", "fail": "yellow", "invalid": "red"}


class Terminal:
    """Shows events; remembers what is shown at the end."""

    def __init__(self, console: PatientConsole) -> None:
        self.directory: Path | None = None
        self.results: ResultsFile | None = None
        self.report: Path | None = None
        self._console = console
        self._status = (
            Status("", console=console, refresh_per_second=2)
            if console.is_terminal
            else None
        )
        self._trial: TrialStarted | None = None
        self._usual_s = 0.0
        self._in_frames = False
        self._repeat: tuple[str, int] | None = None
        self._interval = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the changing line away."""
        if self._status:
            self._status.stop()

    def say_interrupted(self) -> None:
        """Tell where the measured part is, and how to have the rest."""
        where = f"; results so far are in {self.directory}" if self.directory else ""
        self._print(f"interrupted{where}")
        if self.directory and (command := how_to_go_on(self.directory)):
            self._print(f"hint: go on where it ended: {command}")

    def on_event(self, event: Event) -> None:
        """Show ``event``."""
        match event:
            case Notice(text):
                self._print(f"notice: {text}")
            case RunStarted(directory):
                self.directory = directory
            case TestbedStarted(name, cells):
                self._print(f"{name}: {cells} cell{'' if cells == 1 else 's'}")
            case CellStarted(cell, index, count):
                self._usual_s = cell.spec.trial_duration_s
                self._in_frames = cell.procedure in names_of("burst search")
                self._print(f"[{index}/{count}] {cell.id}")
            case TrialStarted():
                self._started(event)
            case TrialMoved(progress):
                self._moved(progress)
            case TrialFinished(record):
                self._finished(record)
            case TrialReplayed(record):
                self._enter(record.cell, record.repeat)
            case IntervalNarrowed(lower_fps, upper_fps):
                self._interval = f" in {lower_fps:,.0f}..{upper_fps:,.0f}"
            case ResultsChanged(results):
                self.results = results
            case ReportWritten(path):
                self.report = path

    def _started(self, trial: TrialStarted) -> None:
        self._enter(trial.cell, trial.repeat)
        self._trial = trial
        self._live("starting", 0.0)

    def _enter(self, cell: str, repeat: int) -> None:
        """Each repeat starts with the whole interval."""
        if (cell, repeat) != self._repeat:
            self._interval = ""
        self._repeat = (cell, repeat)

    def _moved(self, progress: TrialProgress) -> None:
        self._live(progress.phase, progress.elapsed_ns / 1e9)

    def _live(self, phase: str, elapsed_s: float) -> None:
        trial = self._trial
        if self._status is None or trial is None:
            return
        self._status.update(
            f"trial {trial.number}: {trial.rate_fps:,} fps{self._interval}: "
            f"{phase}, {elapsed_s:.1f} of {trial.planned_s:.1f} s"
        )
        self._status.start()

    def _finished(self, record: TrialRecord) -> None:
        verdict = record.result.verdict
        kind = verdict.kind
        if record.role == "damage":
            kind = judged_whole(record) or "invalid"
        again = f" (attempt {record.attempt})" if record.attempt > 1 else ""
        reasons = _in_short([reason.message for reason in verdict.reasons])
        early = ", ended early" if record.result.ended_early else ""
        where = f"{self._duration(record)}{self._interval}{again}"
        why = f" ({reasons})" if reasons else ""
        beside = f"{why}{early}{_by_stream(record.result)}{_damaged(record.result)}"
        told = [Text(kind, _STYLES[kind]), beside]
        if record.role == "probe":
            told = [_offered(record.result)]
        self._console.print(
            f"  trial {record.number}{_ROLES[record.role]}: {record.load_fps:,} fps"
            f"{where}: ",
            *told,
            sep="",
            highlight=False,
            soft_wrap=True,
        )

    def _duration(self, record: TrialRecord) -> str:
        """Where it is not that of the cell, as when a search explores; of a burst."""
        if self._in_frames and record.role == "trial":
            direction = record.request.directions[0]
            return f", burst of {record.request.frames(direction):,}"
        duration_s = record.request.duration_ns / 1e9
        return "" if duration_s == self._usual_s else f" for {about(duration_s, 3)} s"

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _offered(result: TrialResult) -> str:
    """Of a probe, whose frames are lost on purpose."""
    offered_fps = min(d.offered_rate_fps for d in result.directions)
    return f"the ports offered {offered_fps:,.0f} fps"


def _by_stream(result: TrialResult) -> str:
    """What of foreground and background got lost, where there are both."""
    streams = [s for d in result.directions for s in d.streams]
    names = list(dict.fromkeys(s.name for s in streams))
    if len(names) < 2:
        return ""
    return "".join(_told([s for s in streams if s.name == name]) for name in names)


def _damaged(result: TrialResult) -> str:
    """What arrived damaged, where the verdict does not tell."""
    if result.verdict.kind == "fail":
        return ""
    streams = [s for d in result.directions for s in d.streams]
    words = kinds_words(sum((s.damaged or Damage() for s in streams), Damage()))
    return f"; damaged: {words}" if words else ""


def _told(streams: list[StreamResult]) -> str:
    sent, lost, late = (
        sum(getattr(s, key) for s in streams) for key in ("sent", "lost", "late")
    )
    too_late = f" and {late:,} late" if late else ""
    return f"; {streams[0].name} {lost:,} lost{too_late} of {sent:,}"


def _in_short(reasons: list[str]) -> str:
    """The first reason stands for all; results and report have the others."""
    if len(reasons) < 2:
        return "".join(reasons)
    return f"{reasons[0]}; and {len(reasons) - 1} more"
