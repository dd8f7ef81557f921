"""MLRsearch (RFC 9971): several goals at once, each with its own tolerated loss.

Which load to try next, and how a load is classified for a goal, is up to the package
``MLRsearch`` by the RFC's authors (``docs/adr/0009-search.md``). Around it, as in
``binary``: an invalid trial is repeated, a bounded number of times, and never judged;
when the sender cannot keep up, and not just once (``limit``), the search starts again
below what it managed. Rates are whole frames per second; the width handed to the
package is a little narrower, so that rounded bounds are still within the goal's width.

The search is a pure function of the outcomes: the same ones ask for the same trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from dutperf.search import (
    Conclusion,
    Measure,
    Outcome,
    Resolution,
    attempted,
    sender_limit_fps,
    tells_nothing,
)

# The package takes a second to import: only who searches with it waits for that.
if TYPE_CHECKING:
    from MLRsearch import MeasurementResult, MultipleLossRatioSearch, SearchGoal

_MARGIN = 0.05
_OF = 10**15  # the package takes counts; a double's digits fit
_ROUNDING = 2  # frames per second that two rounded bounds may differ more


@dataclass(frozen=True)
class Goal:
    """What a rate has to hold (RFC 9971 4.6; names of the attributes in full there).

    Trials of ``final_duration_s`` and more count in full. With ``duration_sum_s`` of
    them a rate is decided: it is a lower bound when at most ``exceed_ratio`` of that
    time had more loss than ``loss_ratio``. The defaults are RFC 2544's throughput.
    """

    loss_ratio: float = 0.0
    exceed_ratio: float = 0.0
    final_duration_s: float = 60.0
    duration_sum_s: float = 60.0
    initial_duration_s: float = 1.0
    width: float = 0.005

    def __post_init__(self) -> None:
        self.for_package(self.width)

    def for_package(self, width: float) -> SearchGoal:
        """The package's goal, which checks the values.

        Raises:
            ValueError: a value out of range.
        """
        from MLRsearch import SearchGoal  # noqa: PLC0415 - see above

        return SearchGoal(
            loss_ratio=self.loss_ratio,
            exceed_ratio=self.exceed_ratio,
            relative_width=width,
            initial_trial_duration=self.initial_duration_s,
            final_trial_duration=self.final_duration_s,
            duration_sum=self.duration_sum_s,
            fail_fast=False,
        )


@dataclass(frozen=True)
class GoalBounds:
    """The relevant bounds of one goal; None: there is none.

    ``conditional_fps`` is the forwarding rate at ``lower_fps`` that the goal's share of
    the time reached (RFC 9971 4.8). Only conclusion ``found`` is a regular result;
    other bounds must be shown as irregular.
    """

    goal: Goal
    lower_fps: int | None
    upper_fps: int | None
    conditional_fps: int | None
    conclusion: Conclusion

    @property
    def regular(self) -> bool:
        """Whether the RFC calls this a regular goal result."""
        return self.conclusion == "found"


@dataclass(frozen=True)
class MlrTrial:
    """One trial; ``attempt`` counts what was needed until it was valid."""

    rate_fps: int
    duration_s: float
    attempt: int
    outcome: Outcome


@dataclass(frozen=True)
class MlrResult:
    """One result a goal, in the goals' order, and all trials."""

    goals: list[GoalBounds]
    trials: list[MlrTrial]


OnTrial = Callable[[MlrTrial], None]


def ignore_trial(_trial: MlrTrial) -> None:
    """For callers that do not watch."""


def mlr_search(
    measure: Measure,
    *,
    goals: Sequence[Goal],
    max_rate_fps: int,
    min_rate_fps: int | None = None,
    attempts: int = 3,
    max_trials: int = 2000,
    on_trial: OnTrial = ignore_trial,
) -> MlrResult:
    """Lower and upper bound for each of ``goals``; outcomes must tell loss ratios.

    ``attempts`` and ``max_trials`` are as in ``binary_search``. Below ``min_rate_fps``
    nothing is tried; by default that is ``least_rate_fps``.

    Raises:
        ValueError: no goals, a goal twice, rates in the wrong order or too low for
            the width, or an outcome that tells no loss ratio.
    """
    if not goals or len(set(goals)) < len(goals):
        raise ValueError("MLRsearch needs goals, and each of them once")
    width = min(goal.width for goal in goals)
    lowest_fps = least_rate_fps(goals) if min_rate_fps is None else min_rate_fps
    if not 2 * _ROUNDING / width <= lowest_fps < max_rate_fps:
        raise ValueError(
            f"no range for MLRsearch with a width of {width}: "
            f"{lowest_fps}..{max_rate_fps} fps"
        )
    trials = _Trials(measure, attempts, max_trials, on_trial)
    highest_fps, margin, limited = max_rate_fps, _MARGIN, False
    while True:
        search = _prepare(goals, lowest_fps, highest_fps)
        try:
            search.search(trials, debug=_ignore_text)
            ended: Conclusion | None = "tester_limited" if limited else None
        except _UnstableError:
            ended = "unstable"
        except _LimitedError as limit:
            highest_fps = int(limit.offered_fps * (1 - margin))
            margin, limited = 2 * margin, True
            if highest_fps > lowest_fps:
                continue
            ended = "tester_limited"
        return MlrResult(
            [_goal_result(search, g, i, ended) for i, g in enumerate(goals)],
            trials.done,
        )


def least_rate_fps(goals: Sequence[Goal]) -> int:
    """Ten steps of the narrowest width: below, whole frames per second are coarse."""
    return math.ceil(10 / min(goal.width for goal in goals))


def _ignore_text(_text: str) -> None:
    pass


def _prepare(
    goals: Sequence[Goal], lowest_fps: int, highest_fps: int
) -> MultipleLossRatioSearch:
    from MLRsearch import Config, MultipleLossRatioSearch  # noqa: PLC0415 - see above

    config = Config()
    # Each bound must stay on its side of the other one's old value.
    config.min_load = min(config.min_load, lowest_fps)
    config.max_load = highest_fps
    config.min_load = lowest_fps
    config.goals = [g.for_package(g.width - _ROUNDING / lowest_fps) for g in goals]
    config.search_duration_max = math.inf  # max_trials is the limit
    config.warmup_duration = 0.0
    return MultipleLossRatioSearch(config)


def _goal_result(
    search: MultipleLossRatioSearch,
    goal: Goal,
    index: int,
    ended: Conclusion | None,
) -> GoalBounds:
    target = search.scaling.goal_to_final_target[list(search.config.goals)[index]]
    bounds = search.database.get_relevant_bounds(target=target)
    upper_fps = None if bounds.chi is None else int(float(bounds.chi))
    lower_fps = conditional_fps = None
    if bounds.clo is not None:
        lower_fps = int(float(bounds.clo))
        loss_ratio = bounds.clo.target_to_stat[target].pessimistic_loss_ratio
        conditional_fps = int(lower_fps * (1 - loss_ratio))
    conclusion = _conclusion(goal, lower_fps, upper_fps, ended)
    return GoalBounds(goal, lower_fps, upper_fps, conditional_fps, conclusion)


def _conclusion(
    goal: Goal, lower_fps: int | None, upper_fps: int | None, ended: Conclusion | None
) -> Conclusion:
    if lower_fps is not None and upper_fps is not None:
        width = Resolution(Fraction(goal.width), relative=True)
        return "found" if width.reached(lower_fps, upper_fps) else "unstable"
    if ended is not None and upper_fps is None:
        return ended
    if upper_fps is None:
        return "max_rate_passed"
    return "unstable" if ended == "unstable" else "nothing_passed"


class _UnstableError(Exception):
    """Trials stayed invalid, or there were too many."""


class _LimitedError(Exception):
    """The sender managed ``offered_fps`` only."""

    def __init__(self, offered_fps: float) -> None:
        super().__init__(offered_fps)
        self.offered_fps = offered_fps


@dataclass
class _Trials:
    """Measures for the package: valid trials only."""

    _measure: Measure
    _attempts: int
    _max_trials: int
    _on_trial: OnTrial
    done: list[MlrTrial] = field(default_factory=list)
    sent_fps: int = 0

    def measure(
        self, intended_duration: float, intended_load: float
    ) -> MeasurementResult:
        """One trial of the package's, repeated while it is invalid."""
        from MLRsearch import MeasurementResult  # noqa: PLC0415 - see above

        rate_fps = int(intended_load)
        outcome = self._valid(rate_fps, intended_duration)
        if outcome.loss_ratio is None:
            raise ValueError("MLRsearch needs outcomes with a loss ratio")
        self.sent_fps = max(self.sent_fps, rate_fps)
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=_OF,
            loss_count=_lost(outcome.loss_ratio),
        )

    def _valid(self, rate_fps: int, duration_s: float) -> Outcome:
        left = range(1, self._max_trials - len(self.done) + 1)
        tried = attempted(
            (self._one(rate_fps, duration_s, attempt) for attempt in left),
            lambda tried: tells_nothing(tried, self.sent_fps, self._attempts),
        )
        if tried and tried[-1].verdict != "invalid":
            return tried[-1]
        limit_fps = sender_limit_fps(tried, self.sent_fps, self._attempts)
        if limit_fps is not None and limit_fps > self.sent_fps:
            raise _LimitedError(min(rate_fps, limit_fps))
        raise _UnstableError

    def _one(self, rate_fps: int, duration_s: float, attempt: int) -> Outcome:
        outcome = self._measure(rate_fps, duration_s)
        self.done.append(MlrTrial(rate_fps, duration_s, attempt, outcome))
        self._on_trial(self.done[-1])
        return outcome


def _lost(loss_ratio: float) -> int:
    """Of ``_OF`` frames; a loss never becomes none."""
    return max(round(loss_ratio * _OF), 1 if loss_ratio > 0 else 0)
