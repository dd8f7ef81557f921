"""What a user sees while a run lasts, on standard error.

On a terminal one view of the running cell, see ``live_view``, and a line for each cell
that has ended; elsewhere, and on request, a line for each trial.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from rich.text import Text

from dutperf.catalogue import names_of
from dutperf.cli.failures import PatientConsole
from dutperf.cli.live_view import LiveView
from dutperf.cli.trial_words import ROLES, STYLES, judged_kind
from dutperf.procedures.events import (
    At,
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
from dutperf.protocol import Damage, StreamResult, TrialResult
from dutperf.results import ResultsFile, TrialRecord, Words, closing, how_to_go_on
from dutperf.results.damage_words import kinds_words
from dutperf.results.units import about


class Terminal:
    """Shows events; remembers what is shown at the end."""

    def __init__(
        self, console: PatientConsole, *, plain: bool = False, verbose: bool = False
    ) -> None:
        self.directory: Path | None = None
        self.results: ResultsFile | None = None
        self.report: Path | None = None
        self._console = console
        can_move = console.is_terminal and not console.is_dumb_terminal
        self._view = LiveView(console) if can_move and not plain else None
        self._lines = self._view is None or verbose
        self._cell: CellStarted | None = None
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
        """Take the view away."""
        if self._view:
            self._view.stop()

    def say_interrupted(self) -> None:
        """Tell where the measured part is, and how to have the rest."""
        where = ""
        if self.directory and self.directory.exists():
            where = f"; results so far are in {self.directory}"
        elif self.directory:
            where = f"; {self.directory} was removed: nothing is stored any more"
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
                self._cell = event
                self._usual_s = cell.spec.trial_duration_s
                self._in_frames = cell.procedure in names_of("burst search")
                if self._lines:
                    self._print(f"[{index}/{count}] {cell.id}")
            case TrialStarted(cell=name, repeat=repeat):
                self._enter(name, repeat)
            case TrialMoved():
                pass
            case TrialFinished(record):
                if self._lines:
                    self._finished(record)
            case TrialReplayed(record):
                self._enter(record.cell, record.repeat)
            case IntervalNarrowed(lower_fps, upper_fps):
                self._interval = f" in {lower_fps:,.0f}..{upper_fps:,.0f}"
            case ResultsChanged(results):
                self.results = results
                self._ended(results)
            case At():
                pass
            case ReportWritten(path):
                self.report = path
        if self._view:
            self._view.on_event(event)

    def _enter(self, cell: str, repeat: int) -> None:
        """Each repeat starts with the whole interval."""
        if (cell, repeat) != self._repeat:
            self._interval = ""
        self._repeat = (cell, repeat)

    def _ended(self, results: ResultsFile) -> None:
        """A line for the cell, where its trials had none and others come after it."""
        cell = self._cell
        found = [r for r in results.cells if cell and r.id == cell.cell.id]
        if self._lines or cell is None or cell.index == cell.count or not found:
            return
        sentences = closing(found, words=Words(where="in the report"))
        self._print(f"[{cell.index}/{cell.count}] {sentences[0]}")

    def _finished(self, record: TrialRecord) -> None:
        verdict = record.result.verdict
        kind = judged_kind(record)
        again = f" (attempt {record.attempt})" if record.attempt > 1 else ""
        reasons = _in_short([reason.message for reason in verdict.reasons])
        early = ", ended early" if record.result.ended_early else ""
        where = f"{self._duration(record)}{self._interval}{again}"
        why = f" ({reasons})" if reasons else ""
        beside = f"{why}{early}{_by_stream(record.result)}{_damaged(record.result)}"
        told = [Text(kind, STYLES[kind]), beside]
        if record.role == "probe":
            told = [_offered(record.result)]
        self._console.print(
            f"  trial {record.number}{ROLES[record.role]}: {record.load_fps:,} fps"
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
