"""What a search concluded, in words and verdicts that are stored."""

from __future__ import annotations

from collections.abc import Sequence

from dutperf import search, stats
from dutperf.config.cell import Cell
from dutperf.config.deviating import lower_bound
from dutperf.config.search_keys import GoalSpec
from dutperf.config.specs import ThroughputSpec
from dutperf.procedures.loss_criterion import goal_words, judged_by
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.searching import Evidence, least_rate_of, repeats_of
from dutperf.procedures.trial_verdicts import is_final, was_disturbed
from dutperf.protocol import Reason, VerdictKind
from dutperf.results.bounds import Overall, valued
from dutperf.results.rate_results import (
    Bound,
    BoundCause,
    GoalResult,
    RepeatResult,
    Settlement,
)
from dutperf.search.search_types import Conclusion
from dutperf.standards import Deviation


def repeat_result(
    found: search.SearchResult,
    cell: Cell,
    limit: MaxRate,
    evidence: Evidence,
    trials: int,
) -> RepeatResult:
    """One repeat; a device that loses frames at any rate has a throughput of 0.

    Args:
        found: what the search says.
        cell: what was searched.
        limit: the highest rate that was allowed.
        evidence: what its trials say beside.
        trials: how many it took.
    """
    value = found.rate_fps
    if found.conclusion == "nothing_passed" and not cell.spec.loss_criterion.goals:
        value = 0
    verdict, reasons = _told(found.conclusion, value, cell, limit, evidence)
    bound, cause = bound_of(found.conclusion, value, limit, evidence)
    return RepeatResult(
        value=value,
        verdict=verdict,
        bound=bound,
        bound_cause=cause,
        reasons=reasons,
        trials=trials,
    )


def bound_of(
    conclusion: Conclusion,
    value: float | None,
    limit: MaxRate,
    evidence: Evidence,
) -> tuple[Bound, BoundCause]:
    """Whether what a search found is a lower bound only, and why."""
    if value is None:
        return None, None
    match conclusion:
        case "found" | "nothing_passed":
            return None, None
        case "max_rate_passed":
            cause = limit.bound_cause
            return ("lower" if cause else None), cause
        case "tester_limited":
            return "lower", "held_back" if evidence.held_back else "tester"
        case "unstable":
            return "lower", "disturbed" if was_disturbed(evidence.troubles) else None


def bound_deviations(cell: Cell, found: Overall) -> list[Deviation]:
    """That the limit which is not the device's was all that was found, if it was."""
    if found.bound_cause is None:
        return []
    actual = {
        "tester": "a lower bound: the tester could not offer more",
        "disturbed": "a lower bound: others disturbed the test whenever more was tried",
        "held_back": "a lower bound: something behind a port stopped the tester",
        "set": "a lower bound: no more was allowed to be asked for",
        "nominal": "a lower bound: no more than a virtual link's nominal rate is tried",
        "short_tests": "a lower bound: the tests are too short to prove more",
    }[found.bound_cause]
    return [lower_bound(cell, actual)]


def goal_results(
    found: Sequence[search.GoalResult],
    cell: Cell,
    limit: MaxRate,
    evidence: Evidence,
) -> list[GoalResult]:
    """Each goal of MLRsearch, in their order; the rest as above."""
    told = [
        _goal_result(spec, each, cell, limit, evidence)
        for spec, each in zip(cell.spec.loss_criterion.goals, found, strict=False)
    ]
    return told if len(told) == 1 else [_named(goal) for goal in told]


def settlement(cell: Cell, repeats: Sequence[RepeatResult]) -> Settlement | None:
    """How ``auto`` ended; None where the number of repeats was given."""
    width = cell.spec_of(ThroughputSpec).interval_width
    if width is None:
        return None
    values, at_least = valued(repeats)
    return Settlement(
        width=width,
        max_repeats=cell.repeats,
        looks=sum(look <= len(values) for look in stats.LOOKS),
        reached=repeats_of(cell).settled(values, at_least),
    )


def _goal_result(
    spec: GoalSpec,
    found: search.GoalResult,
    cell: Cell,
    limit: MaxRate,
    evidence: Evidence,
) -> GoalResult:
    goal, lower_fps = found.goal, found.lower_fps
    verdict, reasons = _told(found.conclusion, lower_fps, cell, limit, evidence, spec)
    bound, cause = bound_of(found.conclusion, lower_fps, limit, evidence)
    return GoalResult(
        name=goal_words(spec.loss_percent, spec.exceed_percent) or "no loss",
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        final_duration_s=goal.final_duration_s,
        duration_sum_s=goal.duration_sum_s,
        initial_duration_s=goal.initial_duration_s,
        width=goal.width,
        lower_fps=lower_fps,
        upper_fps=found.upper_fps,
        conditional_fps=found.conditional_fps,
        regular=found.regular,
        bound=bound,
        bound_cause=cause,
        verdict=verdict,
        reasons=reasons,
    )


def _named(goal: GoalResult) -> GoalResult:
    """Reasons that tell which of several goals they are about."""
    reasons = [
        reason.model_copy(update={"message": f"goal {goal.name}: {reason.message}"})
        for reason in goal.reasons
    ]
    return goal.model_copy(update={"reasons": reasons})


def _told(
    conclusion: Conclusion,
    value_fps: int | None,
    cell: Cell,
    limit: MaxRate,
    evidence: Evidence,
    goal: GoalSpec | None = None,
) -> tuple[VerdictKind, list[Reason]]:
    match conclusion:
        case "found":
            return "pass", []
        case "max_rate_passed":
            return "pass", [_limited(limit, judged_by(cell, goal))]
        case "nothing_passed":
            otherwise = evidence.otherwise
            return "fail", [_nothing_passed(cell, otherwise), *otherwise]
        case "tester_limited":
            return tester_limited(value_fps, evidence)
        case "unstable":
            return spoilt(value_fps, evidence)


def _limited(limit: MaxRate, judged: str) -> Reason:
    passed = f"it passed, {judged}" if judged else "no frame was lost"
    return Reason(
        code="max_rate",
        message=f"limited by {limit.words}, {limit.rate_fps:,} fps: {passed}",
    )


def _nothing_passed(cell: Cell, otherwise: Sequence[Reason]) -> Reason:
    lost = "lost" if cell.spec.frame_timeout_ns is None else "lost or late"
    failed = "trials failed" if otherwise else f"frames were {lost}"
    least_fps = least_rate_of(cell)
    tried = (
        "was tried" if least_fps is None else f"was tried, down to {least_fps:,} fps"
    )
    return Reason(
        code="nothing_passed",
        message=f"{failed} at every rate that {tried}",
        hint="" if otherwise else _why_nothing(cell),
    )


def tester_limited(
    value: float | None, evidence: Evidence
) -> tuple[VerdictKind, list[Reason]]:
    """What is said of a search that ended where the tester could offer no more."""
    reason = _HELD_BACK if evidence.held_back else _TESTER_LIMITED
    if value is not None:
        return "pass", [reason]
    return "invalid", [reason if evidence.held_back else _NOTHING_OFFERED]


def spoilt(value: float | None, evidence: Evidence) -> tuple[VerdictKind, list[Reason]]:
    """What is said of a search that ended at trials which stayed invalid."""
    troubles = evidence.troubles
    if value and was_disturbed(troubles):
        return "pass", [_DISTURBED]
    if is_final(troubles):
        return "invalid", list(troubles)
    return "invalid", [_UNSTABLE, *troubles]


def _why_nothing(cell: Cell) -> str:
    """What to look at where no rate passed."""
    frames = cell.traffic.burst_frames
    if frames is None:
        return _FORWARDS
    return (
        f"a single burst of {frames:,} frames may be more than the device's buffer "
        "takes, however long it has then: take shorter ones (--bursts); or does it "
        "forward at all?"
    )


_FORWARDS = (
    "does the device forward at all? try frame-loss at a low --load, and look at its "
    "routes and filters"
)
_HINT = (
    "give the testbed more cores or a faster port driver, or set --max-rate to what "
    "the tester can offer"
)
_HELD_BACK = Reason(
    code="held_back",
    message="something behind a port stopped the tester: flow control, or a queue "
    "longer than the tester's buffers",
    hint="switch Ethernet flow control off on both ends, or shorten the device's "
    "input queue",
)
_TESTER_LIMITED = Reason(
    code="sender_behind",
    message="the tester could not offer more than what passed",
    hint=_HINT,
)
_DISTURBED = Reason(
    code="unstable",
    message="others had the CPUs each time that more than what passed was tried",
    hint="keep other work off the CPUs of tester and device, or isolate them",
)
_NOTHING_OFFERED = Reason(
    code="sender_behind",
    message="the tester could offer no rate at which the device might pass",
    hint=_HINT,
)
_UNSTABLE = Reason(
    code="unstable",
    message="trials stayed invalid when they were repeated",
    hint="see the trials' reasons; keep other work off the tester's CPUs",
)
