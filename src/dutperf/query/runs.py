"""One stored run, as the rows of it are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from dutperf.report.source import Source
from dutperf.results import TrialRecord
from dutperf.tables import Subject
from dutperf.tables.subject import trials_by_cell

Notify = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """One run as it is stored, complete or not."""

    path: Path
    source: Source

    @property
    def created_at(self) -> datetime | None:
        """When it began, UTC without a zone; None: what is stored is no time."""
        return moment(self.source.created_at)

    def device(self, place: str | None) -> str:
        """The name of the lab or testbed; a run with one says it once."""
        return (place or "") if self.source.several else self.source.testbeds[0].name

    @cached_property
    def cells(self) -> list[Subject]:
        """Those with a result, with their own trials."""
        trials = trials_by_cell(self.source.trials)
        return [
            Subject(
                cell.id,
                self.device(cell.place),
                cell.procedure,
                cell,
                tuple(trials.get(cell.id, ())),
            )
            for cell in self.source.cells
        ]

    @cached_property
    def first_trials(self) -> dict[str, TrialRecord]:
        """Of each cell: for what a run that ended in it does not say of it."""
        found: dict[str, TrialRecord] = {}
        for trial in self.source.trials:
            found.setdefault(trial.cell, trial)
        return found


def moment(stamp: str) -> datetime | None:
    """An ISO 8601 time stamp as UTC without a zone; None: it is none."""
    try:
        told = datetime.fromisoformat(stamp)
        return told.astimezone(UTC).replace(tzinfo=None) if told.tzinfo else told
    except (ValueError, OverflowError):
        return None
