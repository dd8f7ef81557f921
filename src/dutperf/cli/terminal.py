"""What a user sees while a run lasts, on standard error.

On a terminal one view of the running cell, see ``live_view``, and a line for each cell
that has ended; elsewhere, and on request, a line for each trial.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from dutperf.cli.failures import PatientConsole
from dutperf.cli.live_view import LiveView
from dutperf.cli.many_state import ManyState
from dutperf.cli.trial_lines import TrialLines
from dutperf.procedures.events import (
    At,
    CellMeasured,
    Event,
    Notice,
    ReportWritten,
    ResultsChanged,
    RunStarted,
    TestbedStarted,
)
from dutperf.results import ResultsFile, Words, closing, how_to_go_on


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
                self._print(f"{name}: {cells} cell{'' if cells == 1 else 's'}")
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
