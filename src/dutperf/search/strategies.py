"""The ways to search a throughput, behind one interface.

    search = narrowed(task, repeats=20)
    search(measure)    # the first repeat
    search(measure)    # the second one knows what the first one found

classic     from nothing to the maximum, each time: what RFC 2544 testers do
narrowed    where earlier searches say that the result should be (``narrowing``)
verified    the same, with trials that lost frames repeated (``binary``)
mlrsearch   RFC 9971, several goals at once (``mlr``)

What runs on devices and what the laboratory compares is this code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dutperf.search.binary import OnStep, binary_search, ignore_step
from dutperf.search.mlr import Goal, GoalResult, mlr_search
from dutperf.search.model import (
    Bracket,
    Measure,
    Resolution,
    SearchResult,
    Verification,
)
from dutperf.search.narrowing import EXPLORATION_S, EXPLORATIONS, Narrowing, explore

FEWEST_WITH_INTERVAL = 6
"""Repeats from which on the median has a 95 % confidence interval."""
_ONCE = Verification()


@dataclass(frozen=True)
class Task:
    """What all searches of a cell have in common.

    ``waits_s`` is what a trial takes beside its ``duration_s``.
    """

    max_rate_fps: int
    duration_s: float
    resolution: Resolution
    waits_s: float = 0.0
    attempts: int = 3


@dataclass(frozen=True)
class Found:
    """What one repeat found; of MLRsearch ``result`` is that of the first goal."""

    result: SearchResult
    goals: tuple[GoalResult, ...] = ()


class Strategy(Protocol):
    """Searches once a call, and may know what it found before."""

    def __call__(self, measure: Measure, on_step: OnStep = ignore_step) -> Found:
        """One repeat; ``on_step`` is told of each trial that narrows its bounds."""
        ...


def classic(task: Task) -> Strategy:
    """Every repeat starts between nothing and the maximum."""

    def search(measure: Measure, on_step: OnStep = ignore_step) -> Found:
        return Found(_binary(task, measure, on_step))

    return search


def narrowed(
    task: Task, *, repeats: int, verification: Verification = _ONCE
) -> Strategy:
    """Every repeat starts where the result is expected.

    Args:
        task: what to search.
        repeats: how many there will be, as far as is known.
        verification: how often a trial with loss is repeated before it counts.
    """
    return _Narrowed(task, verification, _explorations(task, repeats))


def mlrsearch(task: Task, goals: Sequence[Goal]) -> Strategy:
    """RFC 9971 with these goals; ``task`` gives the maximum and the attempts only."""

    def search(measure: Measure, on_step: OnStep = ignore_step) -> Found:
        del on_step  # several goals have no bounds in common
        found = mlr_search(
            measure,
            goals=goals,
            max_rate_fps=task.max_rate_fps,
            attempts=task.attempts,
        ).goals
        first = found[0]
        result = SearchResult(first.lower_fps, first.upper_fps, first.conclusion, [])
        return Found(result, tuple(found))

    return search


def _explorations(task: Task, repeats: int) -> int:
    """How many searches with short trials pay (``docs/adr/0009-search.md``).

    An interval of the median is worth the paper only if repeats hardly depend on each
    other, and for that the region must be known well. Without one the first exploration
    is all that saves time, provided that full trials are really longer.
    """
    if repeats >= FEWEST_WITH_INTERVAL:
        return EXPLORATIONS
    short_s = task.waits_s + _short_s(task)
    return 1 if task.waits_s + task.duration_s > 2 * short_s else 0


@dataclass
class _Narrowed:
    _task: Task
    _verification: Verification
    _explorations: int
    _narrowing: Narrowing | None = None

    def __call__(self, measure: Measure, on_step: OnStep = ignore_step) -> Found:
        if self._narrowing is None:
            self._narrowing = self._explore(measure)
        result = _binary(
            self._task,
            measure,
            on_step,
            verification=self._verification,
            expected=self._narrowing.expected,
        )
        self._narrowing.add(result)
        return Found(result)

    def _explore(self, measure: Measure) -> Narrowing:
        return explore(
            measure,
            max_rate_fps=self._task.max_rate_fps,
            resolution=self._task.resolution,
            searches=self._explorations,
            duration_s=_short_s(self._task),
            attempts=self._task.attempts,
        )


def _short_s(task: Task) -> float:
    """Never as long as trials that count, so that nobody takes one for the other."""
    return min(EXPLORATION_S, task.duration_s / 2)


def _binary(
    task: Task,
    measure: Measure,
    on_step: OnStep,
    *,
    verification: Verification = _ONCE,
    expected: Bracket | None = None,
) -> SearchResult:
    return binary_search(
        measure,
        max_rate_fps=task.max_rate_fps,
        duration_s=task.duration_s,
        resolution=task.resolution,
        verification=verification,
        expected=expected,
        attempts=task.attempts,
        on_step=on_step,
    )
