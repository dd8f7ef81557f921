"""A run that goes on, as its journal tells: what is measured now, and what was found.

Nothing is asked of the run itself; it does not know that somebody watches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dutperf.catalogue import PROCEDURES
from dutperf.charts.text import whole
from dutperf.charts.trial_views import (
    ROLES,
    SearchPath,
    loss,
    reasons,
    search_paths,
    tried_in,
    verdict,
)
from dutperf.model.cell import Cell
from dutperf.results import JournalFollower, TrialRecord

PlannedCells = Callable[[Path], Sequence[Cell]]
"""The cells that the run in a directory is to measure, in order; none: not known."""

_SHOWN_TRIALS = 12
_SHOWN_STEPS = 20
_AT_ONCE = 100
"""Trials that are read before others have their turn; one is some 100 kB."""


@dataclass(frozen=True)
class TrialLine:
    """One trial of the table."""

    number: int
    role: str
    tried: str
    verdict: str
    loss: str
    why: str


@dataclass(frozen=True)
class StepMark:
    """One trial of a search; places are shares of the highest that was tried."""

    lower: float
    upper: float
    tried: float
    kind: str


@dataclass(frozen=True)
class SearchInterval:
    """What is left to search; ``steps``: how it came to that, the last ones."""

    words: str
    steps: tuple[StepMark, ...]


@dataclass(frozen=True)
class LivePage:
    """All that the page shows. ``of``: how many cells there are; 0: not known."""

    cell: str
    title: str
    place: int
    of: int
    repeat: str
    trials: int
    interval: SearchInterval | None
    last: tuple[TrialLine, ...]


class Following:
    """One reader's view of a run; keeps the trials of its current cell, no others."""

    def __init__(self, directory: Path, planned: Sequence[Cell] = ()) -> None:
        self._journal = JournalFollower(directory)
        self._planned = {cell.id: cell for cell in planned}
        self._begun: dict[str, None] = {}
        self._own: list[TrialRecord] = []
        self._last: deque[TrialRecord] = deque(maxlen=_SHOWN_TRIALS)

    def read_on(self) -> bool:
        """Read what was stored since, or a piece of it; false: nothing was.

        Raises:
            InputError: the journal is damaged, or has gone.
        """
        records = self._journal.more(_AT_ONCE)
        for record in records:
            self._take(record)
        return bool(records)

    def _take(self, record: TrialRecord) -> None:
        if self._last and record.cell != self._last[-1].cell:
            self._own.clear()
        self._begun[record.cell] = None
        if record.role == "trial":
            self._own.append(_in_short(record))
        self._last.append(record)

    @property
    def view(self) -> LivePage | None:
        """What is known; None: no trial has ended yet."""
        if not self._last:
            return None
        record = self._last[-1]
        cell = self._planned.get(record.cell)
        places = {name: place for place, name in enumerate(self._planned, 1)}
        return LivePage(
            cell=record.cell,
            title=PROCEDURES[record.procedure].title if record.procedure else "",
            place=places.get(record.cell, len(self._begun)),
            of=len(self._planned),
            repeat=_repeat(record, cell),
            trials=record.number,
            interval=_interval(record, self._own),
            last=tuple(_line(each) for each in reversed(self._last)),
        )


def _in_short(record: TrialRecord) -> TrialRecord:
    """Without what was counted and timed: a search needs rates and verdicts."""
    result = record.result.model_copy(update={"directions": [], "ports": []})
    return record.model_copy(update={"result": result, "hooks": [], "log": None})


def _repeat(record: TrialRecord, cell: Cell | None) -> str:
    if cell is None or cell.repeats < record.repeat:
        return f"repeat {record.repeat}"
    at_most = "at most " if cell.auto else ""
    return f"repeat {record.repeat} of {at_most}{cell.repeats}"


def _interval(record: TrialRecord, own: Sequence[TrialRecord]) -> SearchInterval | None:
    """Of the search that goes on; of other procedures none."""
    if record.procedure is None or not PROCEDURES[record.procedure].varied:
        return None
    paths = [path for path in search_paths(own) if path.bounded]
    if not paths or paths[-1].repeat != record.repeat:
        return None
    return _closing_in(paths[-1], PROCEDURES[record.procedure].unit)


def _closing_in(path: SearchPath, unit: str) -> SearchInterval:
    """A search that met a fail below a pass has no interval, but both facts."""
    top = max(step.tried for step in path.steps) or 1
    bounds = [(step.lower, step.upper) for step in path.steps[1:]]
    bounds.append((path.lower, path.upper))
    steps = [
        StepMark(
            lower / top, upper / top, step.tried / top, step.trial.result.verdict.kind
        )
        for step, (lower, upper) in zip(path.steps, bounds, strict=True)
    ]
    failed = any(step.kind == "fail" for step in steps)
    lower, upper = f"{whole(path.lower)} {unit}", f"{whole(path.upper)} {unit}"
    passed = f"passed up to {lower}" if path.lower else "none passed yet"
    lost = f"failed from {upper}" if failed else "none failed yet"
    return SearchInterval(f"{passed}, {lost}", tuple(steps[-_SHOWN_STEPS:]))


def _line(record: TrialRecord) -> TrialLine:
    return TrialLine(
        record.number,
        ROLES[record.role],
        whole(tried_in(record)),
        verdict(record),
        loss(record),
        reasons(record),
    )
