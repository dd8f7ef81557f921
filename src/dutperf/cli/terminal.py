"""What a user sees while a run lasts, on standard error.

On a terminal one view of the running cell, see ``live_view``, and a line for each cell
that has ended; elsewhere, and on request, a line for each trial.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.text import Text

from dutperf.cli.console import PatientConsole
from dutperf.cli.live_view import (
    ROLES,
    STYLES,
    WIDTH,
    LiveView,
    expected,
    judged_kind,
    span,
)
from dutperf.procedures.events import (
    At,
    CellMeasured,
    CellStarted,
    Event,
    IntervalNarrowed,
    Notice,
    ReportWritten,
    ResultsChanged,
    RunStarted,
    TestbedStarted,
    TestbedState,
    TrialFinished,
    TrialMoved,
    TrialReplayed,
    TrialStarted,
)
from dutperf.protocol.result_messages import Damage, StreamResult, TrialResult
from dutperf.protocol.trial_messages import TrialProgress
from dutperf.results import ResultsFile, TrialRecord, Words, closing, how_to_go_on
from dutperf.results.units import about, whole
from dutperf.results.words import kinds_words
from dutperf.visible import visible

# Many testbeds on a terminal at once: a line for each that measures, and the whole.
#
# Those that measure stand first, in the order of the campaign; of hundreds as many as a
# terminal has room for.


_SHOWN_TESTBEDS = 10
_MEASURING = "measuring"


@dataclass
class _Bed:
    """What is known of one testbed."""

    state: str = "waiting"
    cell: CellStarted | None = None
    running: TrialStarted | None = None
    progress: TrialProgress | None = None
    last: TrialRecord | None = None
    left_s: dict[str, float] = field(default_factory=dict)

    def on_event(self, event: Event) -> None:
        match event:
            case TestbedState(state):
                self.state, self.running = state, None
            case CellStarted():
                self.state, self.cell, self.last = _MEASURING, event, None
            case TrialStarted():
                self.state, self.running, self.progress = _MEASURING, event, None
            case TrialMoved(progress):
                self.progress = progress
            case TrialFinished(record):
                self.running, self.last = None, record
            case CellMeasured(result):
                self.left_s.pop(result.id, None)

    def told(self) -> Text:
        if self.state != _MEASURING or self.cell is None:
            return Text(self.state)
        name = visible(self.cell.cell.id).rpartition("@")[0] or self.cell.cell.id
        text = Text.assemble(name, "  ")
        if self.running:
            return text.append_text(self._now(self.running))
        if self.last:
            kind = judged_kind(self.last)
            load = f"{whole(self.last.load_fps)} fps "
            text.append_text(Text.assemble(load, (kind, STYLES[kind])))
        return text

    def _now(self, trial: TrialStarted) -> Text:
        phase = self.progress.phase if self.progress else "starting"
        elapsed_s = self.progress.elapsed_ns / 1e9 if self.progress else 0.0
        return Text(
            f"{whole(trial.rate_fps)} fps {phase}, {elapsed_s:.1f} of "
            f"{trial.planned_s:.1f} s"
        )


class ManyState:
    """What events told of all testbeds of a run."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun_s = clock()
        self._beds: dict[str, _Bed] = {}
        self._cells = self._done = 0

    def on_event(self, event: Event) -> None:
        """Remember what ``event`` tells."""
        match event:
            case RunStarted(cells=cells):
                self._cells = len(cells)
                known = expected(event)
                for cell in cells:
                    bed = self._beds.setdefault(cell.testbed or "", _Bed())
                    found = known.get(cell.id)
                    bed.left_s[cell.id] = found.duration_s if found else 0.0
            case At(testbed, what):
                self._done += isinstance(what, CellMeasured)
                self._beds.setdefault(testbed, _Bed()).on_event(what)

    def lines(self, width: int, *, ascii_only: bool = False) -> Iterator[Text]:
        """At most twelve, none of them longer than ``width``."""
        width = min(width, WIDTH)
        beds = sorted(self._beds.items(), key=lambda each: each[1].state != _MEASURING)
        shown = beds[:_SHOWN_TESTBEDS]
        wide = max((len(name) for name, _ in shown), default=0)
        rows = [
            Text.assemble(f"  {visible(name):<{wide}}  ", bed.told())
            for name, bed in shown
        ]
        if len(beds) > len(shown):
            rows.append(Text(f"  and {len(beds) - len(shown)} more", "dim"))
        for line in (self._title(), *rows):
            line.truncate(width, overflow="crop" if ascii_only else "ellipsis")
            line.no_wrap = True
            yield line

    def _title(self) -> Text:
        states = Counter(bed.state for bed in self._beds.values())
        told = ", ".join(f"{count} {state}" for state, count in states.items())
        took_s = self._clock() - self._begun_s
        left_s = max((sum(b.left_s.values()) for b in self._beds.values()), default=0)
        to_go = f"about {span(left_s)} to go" if left_s else "almost done"
        return Text(
            f"[{self._done}/{self._cells}] {span(took_s)} so far, {to_go}; testbeds: "
            f"{told}",
            "bold",
        )


# A line for each trial of a testbed, as it ends.


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
        self._here = TrialLines(console, wanted=self._lines)
        self._elsewhere: dict[str, TrialLines] = {}
        self._run: RunStarted | None = None
        self._ends = 0

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
                self.directory, self._run = directory, event
            case TestbedStarted(name, cells):
                self._print(f"{name}: {cells} test case{'' if cells == 1 else 's'}")
            case At(testbed, what):
                self._at(testbed, what)
            case ResultsChanged(results):
                self.results = results
                self._ended(results)
            case ReportWritten(path):
                self.report = path
            case _:
                self._here.on_event(event)
        if self._view:
            self._view.on_event(event)

    def _at(self, testbed: str, event: Event) -> None:
        """One of several testbeds that are measured at once."""
        if self._view and not self._elsewhere:
            self._view.show(ManyState(), self._run)
        lines = TrialLines(self._console, wanted=self._lines, name=testbed)
        self._elsewhere.setdefault(testbed, lines).on_event(event)
        if isinstance(event, CellMeasured) and not self._lines:
            self._ends += 1
            count = len(self._run.cells) if self._run else 0
            sentences = closing([event.result], words=Words(where="in the report"))
            self._print(f"[{self._ends}/{count}] {sentences[0]}")

    def _ended(self, results: ResultsFile) -> None:
        """A line for the cell, where its trials had none and others come after it."""
        cell = self._here.cell
        found = [r for r in results.cells if cell and r.id == cell.cell.id]
        if self._lines or cell is None or cell.index == cell.count or not found:
            return
        sentences = closing(found, words=Words(where="in the report"))
        self._print(f"[{cell.index}/{cell.count}] {sentences[0]}")

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
