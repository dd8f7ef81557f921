"""Trials whose load changes while they last: a procedure asks for them as for others.

The engine's schedule of steps is the only one; here is who says what the steps are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dutperf.config.cell import Cell
from dutperf.config.specs import ThroughputSpec
from dutperf.procedures.bursts import Bursts
from dutperf.procedures.events import OnEvent
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.trials import Ask, Trials
from dutperf.protocol import RateStep, TrialRequest, TrialResult
from dutperf.results.trial_record import TrialRecord

StepsOf = Callable[[int], list[RateStep]]
"""Of a load: the steps of a period; none where it is steady."""
JudgedBy = Callable[[TrialResult, Ask], TrialResult]


def shaped_trials(runner: Trials, cell: Cell, peak: MaxRate) -> Trials:
    """``runner``, whose trials are as the cell's traffic says.

    ``peak``: the rate of frames within a burst.
    """
    frames, shape = cell.traffic.burst_frames, cell.traffic.load_shape
    if frames is not None:
        searched = isinstance(cell.spec, ThroughputSpec)
        bursts = Bursts(frames, peak.rate_fps, searched)
        return _ShapedTrials(runner, bursts.steps_of, bursts.judged)
    if shape is not None:
        return _ShapedTrials(runner, shape.of_load, _as_it_is)
    return runner


def with_steps(request: TrialRequest, steps: Sequence[RateStep]) -> TrialRequest:
    """``request`` with this load in all directions; a steady one without ``steps``."""
    if not steps:
        return request
    changed = {"steps": steps, "rate_fps": max(step.rate_fps for step in steps)}
    directions = [d.model_copy(update=changed) for d in request.directions]
    return request.model_copy(update={"directions": directions})


def _as_it_is(result: TrialResult, _ask: Ask) -> TrialResult:
    return result


@dataclass(frozen=True)
class _ShapedTrials:
    """See ``Trials``."""

    runner: Trials
    steps_of: StepsOf
    judge: JudgedBy

    @property
    def on_event(self) -> OnEvent:
        return self.runner.on_event

    @property
    def finished(self) -> int:
        return self.runner.finished

    def run(self, ask: Ask) -> TrialRecord:
        steps = self.steps_of(ask.rate_fps)

        def shape(request: TrialRequest) -> TrialRequest:
            return with_steps(ask.shape(request) if ask.shape else request, steps)

        def judged(result: TrialResult, *, again: bool) -> TrialResult:
            told = ask.rejudge(result, again=again) if ask.rejudge else result
            return self.judge(told, ask)

        return self.runner.run(replace(ask, shape=shape, rejudge=judged))
