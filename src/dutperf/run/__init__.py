"""A run: cells to jobs, jobs to trials, trials to the journal, and resuming from it.

What is measured and why is ``procedures``' business; here it happens, once, in order.
An executor gets jobs and gives outcomes.

A job is all that is needed to measure one cell: it can be written as JSON and measured
on another machine. Jobs of different testbeds are independent of each other. Those of
one testbed need it for themselves and are measured in their order: a later one may ask
for what an earlier one found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from pydantic import Field

from dutperf.config import Campaign, PlannedTestbed
from dutperf.errors import DutperfError, InputError
from dutperf.model.cell import Cell
from dutperf.model.fields import Strict
from dutperf.procedures.trials import PASSED
from dutperf.protocol.result_messages import VerdictKind
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import CellResult, Environment, NotMeasured
from dutperf.results.environment import differences, listed
from dutperf.results.trial_record import TrialRecord


class Job(Strict):
    """One cell and where to measure it."""

    campaign: str = Field(description="its name")
    planned: PlannedTestbed
    cell: Cell


Outcome = CellResult | NotMeasured
OnOutcome = Callable[[Outcome], None]


class Executor(Protocol):
    """Measures jobs, wherever that is."""

    def run(self, jobs: Sequence[Job], on_outcome: OnOutcome) -> None:
        """Measure ``jobs``, and tell the outcome of each as soon as it is known.

        Raises:
            TestbedsError: not all could be measured; all others were.
            DutperfError: nothing more can be measured anywhere, or was to be; so of
                all jobs if there is only one testbed.
        """
        ...


class StoredTrialsByTestbed(Protocol):
    """All that a run has stored; see ``StoredTrials``."""

    @property
    def cells(self) -> Collection[str]: ...  # noqa: D102
    def of(self, cells: Iterable[str]) -> list[TrialRecord]: ...  # noqa: D102
    def __len__(self) -> int: ...


class RunStore(Protocol):
    """Where what is measured is stored: ``ResultsDirectory``, or one elsewhere."""

    stands_in: str | None
    """Name of the equal testbed that is used in place of that of the jobs."""

    @property
    def records(self) -> StoredTrialsByTestbed:
        """See ``ResultsDirectory``; so for the others."""
        ...

    def environment(self, testbed: str | None) -> Environment | None: ...  # noqa: D102
    def write_environment(self, env: Environment) -> None: ...  # noqa: D102
    def engine_log(self, testbed: str | None) -> Path: ...  # noqa: D102
    def append(self, record: TrialRecord) -> TrialRecord: ...  # noqa: D102


class TestbedsError(DutperfError):
    """Some testbeds could not be measured, or not all of their cells."""

    __test__ = False  # as Testbed

    def __init__(self, message: str, hint: str, exit_code: int) -> None:
        super().__init__(message, hint)
        self.exit_code = exit_code


def jobs_of(
    campaign: Campaign, planned: Sequence[PlannedTestbed], cells: Sequence[Cell]
) -> list[Job]:
    """A job for each of ``cells``, in their order."""
    at = {each.testbed.name: each for each in planned}
    return [
        Job(campaign=campaign.name, planned=at[cell.testbed or ""], cell=cell)
        for cell in cells
    ]


def by_testbed(jobs: Sequence[Job]) -> list[list[Job]]:
    """The jobs of each testbed, testbeds in the order in which they are first named."""
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.planned.name, []).append(job)
    return list(groups.values())


# The journal of the run that is resumed, as the answer to the first trials.
#
# A run that is resumed asks for the same trials in the same order, as searches are
# pure. Those that the journal holds already are answered from it, without a frame or a
# wait; the first one that it does not hold is measured.


_TRIAL_IDS = 65535


class JournalEndsError(Exception):
    """The next trial is not in the journal, and nothing is there to measure it."""


class Replay:
    """Where in the journal of one testbed a run is; ``finished`` counts beyond its end.

    Args:
        stored: what it holds of the testbed, in order.
        elsewhere: how many trials of other testbeds it holds.
    """

    def __init__(self, stored: Sequence[TrialRecord] = (), elsewhere: int = 0) -> None:
        self.finished = 0
        self._stored = tuple(stored)
        self._elsewhere = elsewhere

    @property
    def replaying(self) -> bool:
        """Whether the next trial is in the journal already."""
        return self.finished < len(self._stored)

    @property
    def next(self) -> TrialRecord:
        """The next trial, while ``replaying``."""
        return self._stored[self.finished]

    @property
    def next_number(self) -> int:
        """Trials are numbered through all testbeds, in the order of the journal."""
        if self.replaying:
            return self.next.number
        return self._elsewhere + self.finished + 1

    @property
    def next_id(self) -> int:
        """What tells the next trial's frames from those of the ones before it.

        Trials of one testbed are counted, so it does not depend on what is measured
        elsewhere.
        """
        if self.replaying:
            return self.next.request.trial_id
        return self.finished % _TRIAL_IDS + 1

    def take(self, asked: dict[str, Any]) -> TrialRecord:
        """The next one, which must be what is ``asked`` for; it is not counted yet.

        Raises:
            InputError: it is another one.
        """
        record = self.next
        changes = differences(record.model_dump(include=set(asked)), asked)
        if changes:
            raise InputError(
                f"trial {record.number} of the journal is not the one that this run "
                f"would measure:\n{listed(changes, 3)}",
                "the ports, the lab or dutperf have changed since the run began; give "
                "--output with a new directory to start anew",
            )
        return record

    def opened(
        self,
        phase1: Callable[[], TrialRecord],
        goes_on: Collection[VerdictKind] = PASSED,
    ) -> TrialRecord:
        """See ``DeviceTrials``."""
        replayed = self.replaying
        record = phase1()
        while replayed and record.result.verdict.kind in goes_on:
            if self.replaying and not opens(self.next.request):
                break
            replayed = self.replaying
            record = phase1()
        return record

    def can_check(self) -> bool:
        """See ``DeviceTrials``."""
        if self.replaying:
            return self.next.role == "validation"
        return self.finished > len(self._stored)

    def is_of(self, cell: Cell) -> bool:
        """Whether the next trial is in the journal already, and one of ``cell``."""
        return self.replaying and self.next.cell == cell.id


def opens(request: TrialRequest) -> bool:
    """Whether it is phase 1 of a stateful test; of TCP, the trial that opens."""
    if request.tcp:
        return request.tcp.begin == "syn"
    if request.tcp_data:
        return False
    return request.learn is not None and not request.learn.keep


def connections_of(request: TrialRequest) -> int | None:
    """How many connections its initiator's frames are of; None: it has no part."""
    if request.tcp:
        (direction,) = request.directions
        return request.frames(direction)
    return request.learn.entries if request.learn else None
