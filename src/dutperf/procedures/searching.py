"""How a search meets the engine: the cell's strategy, and its trials.

What a search asks for follows from the cell and from the trials before, nothing else:
a run that is resumed asks for the same trials again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from dutperf.config.phase2 import timing_of
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.fields import GoalSpec
from dutperf.model.rate_specs import RateSearchKeys
from dutperf.procedures.events import IntervalNarrowed
from dutperf.procedures.loss_criterion import loss_percent
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.trials import (
    ATTEMPTS,
    Ask,
    Trials,
    could_not_offer,
    fails_beside_loss,
    fails_without_loss,
    is_hopeless,
    no_rate_helps,
    was_held_back,
)
from dutperf.protocol.result_messages import Reason, TrialResult, Verdict
from dutperf.results.trial_record import TrialRecord
from dutperf.search import Outcome, Repeats, Resolution, Step, Verification
from dutperf.search.mlr import Goal, least_rate_fps
from dutperf.search.strategies import Strategy, Task, classic, mlrsearch, narrowed

_INITIAL_S = 1.0  # shortest trials of MLRsearch


def strategy_of(
    cell: Cell, max_rate_fps: int, begin_fps: int | None = None
) -> Strategy:
    """The search that the cell asks for, with nothing found yet."""
    spec = cell.spec_of(RateSearchKeys)
    task = Task(
        max_rate_fps=max_rate_fps,
        duration_s=spec.trial_duration_s,
        resolution=Resolution.parse(spec.resolution),
        attempts=ATTEMPTS,
        begin_fps=begin_fps,
        least_fps=min(single_burst_fps(cell), max_rate_fps),
    )
    match spec.search:
        case "classic":
            return classic(task)
        case "narrowed":
            return narrowed(task)
        case "verified":
            return narrowed(task, verification=_verification(spec))
        case "mlrsearch":
            return mlrsearch(task, goals_of(cell))


def single_burst_fps(cell: Cell) -> int:
    """At this load a trial has one burst, and at lower ones it would be the same."""
    frames = cell.traffic.burst_frames
    if frames is None:
        return 1
    return max(1, int(frames / cell.spec.trial_duration_s))


def repeats_of(cell: Cell, highest_fps: float = math.inf) -> Repeats:
    """How often the cell's search is repeated, and what its results tell together."""
    spec = cell.spec_of(RateSearchKeys)
    width = spec.interval_width
    return Repeats(
        cell.repeats,
        None if width is None else Resolution.parse(width),
        Resolution.parse(spec.resolution),
        highest_fps,
    )


def goals_of(cell: Cell) -> list[Goal]:
    """The goals as MLRsearch wants them."""
    spec = cell.spec_of(RateSearchKeys)
    return [_goal(spec, goal) for goal in spec.goals]


def least_rate_of(cell: Cell) -> int | None:
    """The lowest rate that is tried; None: any."""
    return least_rate_fps(goals_of(cell)) if cell.spec.loss_criterion.goals else None


def check_range(cell: Cell, limit: MaxRate) -> None:
    """Refuse a maximum rate that leaves MLRsearch nothing to search.

    Raises:
        InputError: it does.
    """
    least_fps = least_rate_of(cell)
    if least_fps is not None and least_fps >= limit.rate_fps:
        raise InputError(
            f"{cell.id}: the lowest rate that MLRsearch tries with its resolution is "
            f"{least_fps:,} fps, but {limit.words} is {limit.rate_fps:,} fps",
            "take a coarser resolution, or another search",
        )


def waits_s(cell: Cell) -> float:
    """What one trial takes beside sending (RFC 2544 23), phase 1 included."""
    timing = timing_of(cell)
    before_s = timing.start_ms / 1000 if timing else 0.0
    before_s += cell.spec.tcp.retransmits_ns / 1e9 if cell.spec.tcp else 0.0
    waits = (
        cell.spec.settle_wait_s,
        cell.spec.residual_wait_s,
        cell.spec.restabilise_wait_s,
    )
    return before_s + sum(waits)


def outcome(result: TrialResult) -> Outcome:
    """What a search has to know of a trial."""
    verdict = result.verdict
    if verdict.kind == "invalid":
        return invalid_outcome(result)
    # No goal tolerates what fails otherwise: it counts as if all were lost.
    ratio = 1.0 if fails_beside_loss(verdict) else loss_percent(result) / 100
    return Outcome(verdict.kind, loss_ratio=ratio)


def invalid_outcome(result: TrialResult) -> Outcome:
    """The same of a trial that told nothing about the device."""
    verdict = result.verdict
    behind = could_not_offer(verdict.reasons)
    # On a dead link the sender falls behind too; that is not the tester's limit.
    if behind and not no_rate_helps(verdict.reasons):
        return Outcome("invalid", offered_fps=offered_fps(result))
    return Outcome("invalid")


def offered_fps(result: TrialResult) -> float:
    """What the slower direction's sender managed, frames per second."""
    return min(direction.offered_rate_fps for direction in result.directions)


class NoUseError(Exception):
    """A trial stayed invalid for a reason that no other rate changes."""


class AskedTrial(NamedTuple):
    """A trial as a search asked for it."""

    rate_fps: int
    duration_s: float
    record: TrialRecord


class Evidence(NamedTuple):
    """What the trials of one search say beside what it found.

    troubles: why the last one was invalid, if it was.
    held_back: whether something behind a port stopped the tester in one of them.
    otherwise: why the last one that told something failed, if it lost nothing.
    """

    troubles: Sequence[Reason] = ()
    held_back: bool = False
    otherwise: Sequence[Reason] = ()


class Troubles:
    """Why trials of one search were invalid."""

    def __init__(self) -> None:
        self.held_back = False
        """Whether something behind a port stopped the tester in one of them."""
        self._reasons: dict[int, list[Reason]] = {}

    def note(self, rate_fps: int, verdict: Verdict) -> None:
        """Of each trial in turn."""
        if verdict.kind == "invalid":
            self._reasons.pop(rate_fps, None)  # the last one stands last
            self._reasons[rate_fps] = verdict.reasons
            self.held_back |= was_held_back(verdict.reasons)

    def at(self, rate_fps: int | None) -> list[Reason]:
        """Why the last one there was; if none was, the last one anywhere."""
        last = list(self._reasons.values())[-1:]
        return self._reasons.get(rate_fps or 0, last[0] if last else [])

    def evidence(
        self, upper_fps: int | None, otherwise: Sequence[Reason] = ()
    ) -> Evidence:
        """Of a search that ended below that rate."""
        return Evidence(self.at(upper_fps), self.held_back, otherwise)


class SearchTrials:
    """The trials of one repeat: what a search calls, and what became of them."""

    def __init__(self, runner: Trials, cell: Cell, repeat: int) -> None:
        self._runner = runner
        self._cell = cell
        self._spec = cell.spec_of(RateSearchKeys)
        self._repeat = repeat
        self._before = runner.finished
        self._valid: dict[int, TrialResult] = {}
        self.asked: list[AskedTrial] = []
        self.passed_fps: int | None = None
        self.troubles = Troubles()

    @property
    def count(self) -> int:
        """How many there were."""
        return self._runner.finished - self._before

    def at(self, rate_fps: int | None) -> TrialResult | None:
        """The last valid one of full length at that rate."""
        return None if rate_fps is None else self._valid.get(rate_fps)

    def evidence(self, upper_fps: int | None) -> Evidence:
        """What they say of a search that ended below that rate."""
        verdicts = [asked.record.result.verdict for asked in self.asked]
        valid = [verdict for verdict in verdicts if verdict.kind != "invalid"]
        otherwise = fails_without_loss(valid[-1]) if valid else []
        return self.troubles.evidence(upper_fps, otherwise)

    def valid_in_full(self, rate_fps: int | None) -> list[AskedTrial]:
        """All of them at that rate."""
        return [
            asked
            for asked in self.asked
            if asked.rate_fps == rate_fps
            and asked.duration_s >= self._spec.trial_duration_s
            and asked.record.result.verdict.kind != "invalid"
        ]

    def measure(self, rate_fps: int, duration_s: float) -> Outcome:
        """Run one.

        Raises:
            NoUseError: more of them would be as invalid.
            EngineError, SetupError: see ``Trials.run``.
        """
        record = self._runner.run(
            Ask(
                self._cell,
                rate_fps,
                repeat=self._repeat,
                duration_s=duration_s,
                stop_when_lost=self._spec.early_stop,
            )
        )
        self.asked.append(AskedTrial(rate_fps, duration_s, record))
        result = record.result
        kind = result.verdict.kind
        self.troubles.note(rate_fps, result.verdict)
        if kind != "invalid" and duration_s >= self._spec.trial_duration_s:
            self._keep(rate_fps, result)
        if is_hopeless(record):
            raise NoUseError
        return outcome(result)

    def on_step(self, step: Step) -> None:
        """Tell whoever watches."""
        self._runner.on_event(IntervalNarrowed(step.lower_fps, step.upper_fps))

    def _keep(self, rate_fps: int, result: TrialResult) -> None:
        self._valid[rate_fps] = result
        if result.verdict.kind == "pass":
            self.passed_fps = max(rate_fps, self.passed_fps or 0)


def _verification(spec: RateSearchKeys) -> Verification:
    hopeless_percent = spec.max_verify_loss_percent
    return Verification(
        trials=spec.verify_trials or 1,
        hopeless=1.0 if hopeless_percent is None else hopeless_percent / 100,
    )


def _goal(spec: RateSearchKeys, goal: GoalSpec) -> Goal:
    """Never narrower than the tolerated loss, as RFC 9971 recommends."""
    trial_s, loss_ratio = spec.trial_duration_s, goal.loss_percent / 100
    return Goal(
        loss_ratio=loss_ratio,
        exceed_ratio=goal.exceed_percent / 100,
        final_duration_s=trial_s,
        duration_sum_s=goal.duration_sum(trial_s),
        initial_duration_s=min(_INITIAL_S, trial_s),
        width=max(float(Resolution.parse(spec.resolution).value), loss_ratio),
    )
