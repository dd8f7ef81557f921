"""A line for each trial of a testbed, as it ends."""

from __future__ import annotations

from rich.text import Text

from dutperf.cli.failures import PatientConsole
from dutperf.cli.trial_words import ROLES, STYLES, judged_kind
from dutperf.procedures.events import (
    CellStarted,
    Event,
    IntervalNarrowed,
    TrialFinished,
    TrialReplayed,
    TrialStarted,
)
from dutperf.protocol import Damage, StreamResult, TrialResult
from dutperf.results import TrialRecord
from dutperf.results.units import about
from dutperf.results.words import kinds_words


class TrialLines:
    """Shows the events of one testbed; ``name`` stands before each line of several.

    ``wanted``: whether lines are; what they need is remembered in any case.
    """

    def __init__(
        self, console: PatientConsole, *, wanted: bool, name: str = ""
    ) -> None:
        self.cell: CellStarted | None = None
        self._console = console
        self._wanted = wanted
        self._name = f"{name}: " if name else ""
        self._usual_s = 0.0
        self._in_frames = False
        self._repeat: tuple[str, int] | None = None
        self._interval = ""

    def on_event(self, event: Event) -> None:
        """Show ``event``, if it is one of cells or trials."""
        match event:
            case CellStarted(cell, index, count):
                self.cell = event
                self._usual_s = cell.spec.trial_duration_s
                self._in_frames = cell.family == "burst search"
                if self._wanted:
                    told = f"{self._name}[{index}/{count}] {cell.id}"
                    self._console.print(
                        told, markup=False, highlight=False, soft_wrap=True
                    )
            case TrialStarted(cell=name, repeat=repeat):
                self._enter(name, repeat)
            case TrialFinished(record):
                if self._wanted:
                    self._finished(record)
            case TrialReplayed(record):
                self._enter(record.cell, record.repeat)
            case IntervalNarrowed(lower_fps, upper_fps):
                self._interval = f" in {lower_fps:,.0f}..{upper_fps:,.0f}"

    def _enter(self, cell: str, repeat: int) -> None:
        """Each repeat starts with the whole interval."""
        if (cell, repeat) != self._repeat:
            self._interval = ""
        self._repeat = (cell, repeat)

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
            f"  {self._name}trial {record.number}{ROLES[record.role]}: "
            f"{record.load_fps:,} fps{where}: ",
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
