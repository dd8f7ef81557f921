"""What happens during a run, for whoever watches; nothing here influences it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from dutperf.model.cell import Cell
from dutperf.protocol.trial_messages import TrialProgress
from dutperf.results.model import CellResult, ResultsFile
from dutperf.results.trial_record import TrialRecord


@dataclass(frozen=True)
class Notice:
    """Something the user should know; the run goes on."""

    text: str


@dataclass(frozen=True)
class RunStarted:
    """The results directory exists.

    cells: all that are to be measured, in their order.
    virtual: names of the testbeds whose ports are known to be virtual.
    """

    directory: Path
    cells: Sequence[Cell] = ()
    virtual: Collection[str] = ()


@dataclass(frozen=True)
class TestbedStarted:
    """One of several testbeds has its turn, with so many cells."""

    __test__ = False  # as Testbed

    name: str
    cells: int


@dataclass(frozen=True)
class CellStarted:
    """``index`` counts from 1; ``safe_fps`` is for the tester without a device."""

    cell: Cell
    index: int
    count: int
    safe_fps: int | None = None


@dataclass(frozen=True)
class TrialStarted:
    """The trial's frames are about to be sent; ``planned_s`` includes its waits."""

    number: int
    cell: str
    repeat: int
    attempt: int
    rate_fps: int
    planned_s: float


@dataclass(frozen=True)
class TrialMoved:
    """About twice a second while a trial runs."""

    progress: TrialProgress


@dataclass(frozen=True)
class TrialFinished:
    """The trial is in the journal."""

    record: TrialRecord


@dataclass(frozen=True)
class TrialReplayed:
    """The trial was in the journal of the run that is resumed; nothing was sent."""

    record: TrialRecord


@dataclass(frozen=True)
class IntervalNarrowed:
    """The result lies between the two rates (frames per second, per direction)."""

    lower_fps: float
    upper_fps: float


@dataclass(frozen=True)
class ResultsChanged:
    """All results so far; sent before they are written, so that they can be shown."""

    results: ResultsFile


@dataclass(frozen=True)
class ReportWritten:
    """The report shows all results so far."""

    path: Path


@dataclass(frozen=True)
class CellMeasured:
    """A cell has its result; told where several testbeds are measured at once."""

    result: CellResult


@dataclass(frozen=True)
class TestbedState:
    """How a testbed stands, in a word: queued, away (its worker), done, failed."""

    __test__ = False  # as Testbed

    state: str


@dataclass(frozen=True)
class At:
    """What happens at one of several testbeds that are measured at once."""

    testbed: str
    event: Event


Event = (
    Notice
    | RunStarted
    | TestbedStarted
    | CellStarted
    | TrialStarted
    | TrialMoved
    | TrialFinished
    | TrialReplayed
    | IntervalNarrowed
    | ResultsChanged
    | ReportWritten
    | CellMeasured
    | TestbedState
    | At
)
OnEvent = Callable[[Event], None]
