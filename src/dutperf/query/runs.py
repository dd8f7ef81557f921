"""All runs that are stored under some directories."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from dutperf.errors import InputError
from dutperf.report.source import Source, read_source
from dutperf.results import TrialRecord
from dutperf.results.directory import RESULTS
from dutperf.results.journal import JOURNAL
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


def stored_runs(paths: Sequence[Path], notify: Notify) -> Iterator[Run]:
    """Each run in or below one of ``paths``, once, by the names of its directories.

    What cannot be read is told by ``notify``, and left out.

    Raises:
        InputError: there is no such directory, or no run in it that can be read.
    """
    for path in paths:
        if not path.is_dir():
            raise InputError(
                f"{path} is no directory", "give one that results are stored in"
            )
    found = False
    for directory in _directories(paths, notify):
        try:
            source = read_source(directory)
        except InputError as error:
            notify(f"left out: {error.message}")
            continue
        found = True
        yield Run(directory, source)
    if not found:
        raise InputError(
            f"no results in {', '.join(map(str, paths))}",
            f"give a directory that has runs in it: {RESULTS} or {JOURNAL}",
        )


def _directories(paths: Sequence[Path], notify: Notify) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        notify(f"left out: cannot read {error.filename}: {error.strerror}")

    seen: set[Path] = set()
    for path in paths:
        for place, below, files in os.walk(path, onerror=unreadable):
            below.sort()
            directory = Path(place)
            if {RESULTS, JOURNAL} & set(files) and directory.resolve() not in seen:
                seen.add(directory.resolve())
                yield directory
