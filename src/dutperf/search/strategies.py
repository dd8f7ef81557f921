"""The ways to search a throughput, behind one interface.

    search = narrowed(task)
    search(measure)    # the first repeat
    search(measure)    # the second one knows what the first one found

classic     from nothing to the maximum, each time: what RFC 2544 testers do
narrowed    the same, until all evidence says that two trials are enough (``narrowing``)
verified    likewise, with trials that lost frames repeated (``binary``)
mlrsearch   RFC 9971, several goals at once (``mlr``)

What runs on devices and what the laboratory compares is this code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dutperf.search import Bracket, Measure, Resolution, SearchResult, Verification
from dutperf.search.binary import OnStep, binary_search, confirm, ignore_step
from dutperf.search.mlr import Goal, GoalBounds, mlr_search

# Narrowing: fewer trials a repeat, as long as all evidence says that there is a step.
#
# The classic procedure starts every repeat between nothing and the maximum, and most of
# its full-length trials confirm what the repeat before had shown. A device that
# forwards everything up to some rate and loses frames above it, each time, ends all
# repeats at the same two rates; then those two are all that is worth measuring.
#
# Whether a device is like that cannot be seen from where narrowed repeats end. A frame
# lost once in a while fails a trial at *any* rate; a repeat that starts where others
# passed keeps their luck, and reads too high. So:
#
# * The first ``CLASSIC_FIRST`` repeats are classic. If they do not end at the very same
#   two rates, all are.
# * From then on a repeat measures those two rates, with full-length trials
#   (``confirm``).
# * The first that finds anything else contradicts a step: the narrowed repeats are
#   withdrawn, itself included, and all others are classic.
#
# What is left is either all classic, repeats that know nothing of each other, or
# repeats that all found the same. Withdrawing does not bend the result: on a device
# that forgets, what was withdrawn says nothing of the classic repeats. What may go
# unseen is a soft limit where less than half of all classic repeats end at those two
# rates (otherwise they are the median's) and yet the first four do: at most one
# campaign in sixteen, before the narrowed repeats get their chance to contradict.


CLASSIC_FIRST = 4


@dataclass
class Narrowing:
    """What the repeats found so far; ``ends`` is what the next one should confirm."""

    ends: Bracket | None = None
    _classic: list[SearchResult] = field(default_factory=list)
    _confirmed: int = 0

    def add_classic(self, result: SearchResult) -> None:
        """Take account of a repeat from nothing to the maximum."""
        self._classic.append(result)
        if len(self._classic) == CLASSIC_FIRST:
            self.ends = _common(self._classic)

    def add_confirmed(self, result: SearchResult) -> int:
        """Take account of a repeat that measured ``ends``.

        Returns:
            How many repeats, this one included, are withdrawn.
        """
        self._confirmed += 1
        if self.ends is not None and self.ends == _bracket(result):
            return 0
        self.ends = None
        return self._confirmed


def _common(results: list[SearchResult]) -> Bracket | None:
    first, *others = [_bracket(result) for result in results]
    return first if all(other == first for other in others) else None


def _bracket(result: SearchResult) -> Bracket | None:
    """The two rates that ended a search; None: the device did not end it."""
    if result.conclusion != "found" or not result.rate_fps or not result.upper_fps:
        return None
    return Bracket(result.rate_fps, result.upper_fps)


_ONCE = Verification()


@dataclass(frozen=True)
class Task:
    """What all searches of a cell have in common.

    ``begin_fps``: where the first one begins; None: at the maximum. ``least_fps``: no
    lower rate tells more.
    """

    max_rate_fps: int
    duration_s: float
    resolution: Resolution
    attempts: int = 3
    begin_fps: int | None = None
    least_fps: int = 1


@dataclass(frozen=True)
class Found:
    """What one repeat found; of MLRsearch ``result`` is that of the first goal.

    ``withdrawn``: so many repeats, this one and those just before it, do not count.
    """

    result: SearchResult
    goals: tuple[GoalBounds, ...] = ()
    withdrawn: int = 0


class Strategy(Protocol):
    """Searches once a call, and may know what it found before."""

    def __call__(self, measure: Measure, on_step: OnStep = ignore_step) -> Found:
        """One repeat; ``on_step`` is told of each trial that narrows its bounds."""
        ...


def classic(task: Task) -> Strategy:
    """Every repeat starts between nothing and the maximum."""
    bisect = _Bisections(task, _ONCE)

    def search(measure: Measure, on_step: OnStep = ignore_step) -> Found:
        return Found(bisect(measure, on_step))

    return search


def narrowed(task: Task, *, verification: Verification = _ONCE) -> Strategy:
    """Repeats become short while all of them find the same.

    ``verification``: how often a trial with loss is repeated before it counts.
    """
    return _Narrowed(task, verification)


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


@dataclass
class _Narrowed:
    _task: Task
    _verification: Verification
    _narrowing: Narrowing = field(default_factory=Narrowing)

    def __post_init__(self) -> None:
        self._bisect = _Bisections(self._task, self._verification)

    def __call__(self, measure: Measure, on_step: OnStep = ignore_step) -> Found:
        ends = self._narrowing.ends
        if ends is None:
            result = self._bisect(measure, on_step)
            self._narrowing.add_classic(result)
            return Found(result)
        result = confirm(
            measure,
            ends,
            duration_s=self._task.duration_s,
            verification=self._verification,
            attempts=self._task.attempts,
            on_step=on_step,
        )
        return Found(result, withdrawn=self._narrowing.add_confirmed(result))


@dataclass
class _Bisections:
    """Searches from nothing to the maximum, each without regard to what others found.

    But for one thing: where the tester could not offer the maximum, the next search
    begins at the highest rate that could be judged, and goes to the maximum if that
    passes. What the device did above it is not known, so no luck is kept. The first one
    begins where the task says.
    """

    _task: Task
    _verification: Verification
    _begin_fps: int | None = field(init=False)

    def __post_init__(self) -> None:
        begin_fps = self._task.begin_fps or self._task.max_rate_fps
        self._begin_fps = min(begin_fps, self._task.max_rate_fps)

    def __call__(self, measure: Measure, on_step: OnStep) -> SearchResult:
        found = binary_search(
            measure,
            max_rate_fps=self._task.max_rate_fps,
            duration_s=self._task.duration_s,
            resolution=self._task.resolution,
            verification=self._verification,
            attempts=self._task.attempts,
            begin_fps=self._begin_fps,
            least_fps=self._task.least_fps,
            on_step=on_step,
        )
        judged = [s.rate_fps for s in found.steps if s.outcome.verdict != "invalid"]
        self._begin_fps = max(judged, default=None)
        return found
