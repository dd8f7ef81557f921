"""What an executor is: jobs in, outcomes out.

A job is all that is needed to measure one cell: it can be written as JSON and measured
on another machine. Jobs of different testbeds are independent of each other. Those of
one testbed need it for themselves and are measured in their order: a later one may ask
for what an earlier one found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from pydantic import Field

from dutperf.config import Campaign, PlannedTestbed
from dutperf.errors import DutperfError
from dutperf.model.cell import Cell
from dutperf.model.fields import Strict
from dutperf.results import CellResult, Environment, NotMeasured, TrialRecord


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


class Trials(Protocol):
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
    def records(self) -> Trials:
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
