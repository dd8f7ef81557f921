"""What a search concluded, in words and verdicts that are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dutperf import search, stats
from dutperf.catalogue import Unit
from dutperf.config.deviations import lower_bound
from dutperf.model.cell import Cell
from dutperf.model.fields import GoalSpec
from dutperf.model.procedure_keys import SearchedKeys
from dutperf.model.rate_specs import RateSearchKeys
from dutperf.procedures.loss_criterion import goal_words, judged_by
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.searching import Evidence, least_rate_of, repeats_of
from dutperf.procedures.trials import is_final, was_disturbed
from dutperf.protocol.result_messages import Reason, VerdictKind
from dutperf.results.bounds import Overall, valued
from dutperf.results.details import DelayRecord, Measure
from dutperf.results.rate_results import (
    Bound,
    BoundCause,
    Finding,
    GoalResult,
    LoadPoint,
    RepeatResult,
    Settlement,
    ValueGroup,
)
from dutperf.results.units import about, duration, in_unit
from dutperf.search import Conclusion, Resolution, mlr
from dutperf.standards import Deviation
from dutperf.stats import stability


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
        "disturbed": "a lower bound: other processes disturbed every faster trial",
        "held_back": "a lower bound: something behind a port stopped the tester",
        "set": "a lower bound: the maximum rate that was set was reached",
        "nominal": "a lower bound: a virtual link's nominal rate was reached",
        "short_tests": "a lower bound: the tests are too short to prove more",
        "kept": "a lower bound: no connection was forgotten in the time that was "
        "waited",
    }[found.bound_cause]
    return [lower_bound(cell, actual)]


def goal_results(
    found: Sequence[mlr.GoalBounds],
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
    width = cell.spec_of(RateSearchKeys).interval_width
    if width is None:
        return None
    values, at_least = valued(repeats)
    return Settlement(
        width=width,
        max_repeats=cell.repeats,
        looks=sum(look <= len(values) for look in stats.LOOKS),
        reached=repeats_of(cell).reaches_width(values, at_least),
    )


def _goal_result(
    spec: GoalSpec,
    found: mlr.GoalBounds,
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
    message="other processes preempted the CPUs in every trial above the highest "
    "passing rate",
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


# Repeats that have no common value, in words: what of it, and the evidence.


LOSS_RESOLUTION_PERCENT = 0.01
"""Smaller differences of a loss say nothing of a device."""
DELAY_RESOLUTION = 0.01
"""Of the median; and a delay is not known better than the tester's share in it."""
LEAST_WIDTH = 1.0
"""Rates are whole, and no tester knows a delay to a nanosecond, be the median 0."""
LEAST_APART_NS = 100.0
"""A poll of a port takes as long. Of values around 0, as IPDV has, a share says
nothing: -30 ns and -10 ns are one value."""
DELAY_LIMITS = stability.Limits(middle=0.5, all_of_them=1.0)
"""Delays of software scatter by nature: the repeats of a worst case most of all."""

_LIMITS = stability.Limits()


def rate_findings(cell: Cell, repeats: Sequence[RepeatResult]) -> list[Finding]:
    """Of the rates that a search found, each known to within its resolution."""
    what = "rate" if judged_by(cell) else "throughput"
    resolution = Resolution.parse(cell.spec_of(SearchedKeys).resolution)
    return search_findings(repeats, resolution, what, "fps")


def search_findings(
    repeats: Sequence[RepeatResult],
    resolution: Resolution,
    what: str,
    unit: Unit,
    limits: stability.Limits = _LIMITS,
) -> list[Finding]:
    """Of whatever repeated searches found: ``what``, in ``unit``."""
    values = _valid(repeats)
    known = [value for value in values if value is not None]
    if not known:
        return []
    width = float(resolution.value)
    if resolution.relative:
        width = max(width * stats.median(known), LEAST_WIDTH)
    found = stability.examine(values, width, limits)
    return [_Words(what, unit, len(known), width).finding(f) for f in found]


def loss_findings(points: Iterable[LoadPoint]) -> list[Finding]:
    """Of the share of frames that arrived, load by load.

    Not of the loss: a loss of 0.02 instead of 0.01 % is twice as much of next to
    nothing.
    """
    findings = []
    for point in points:
        values = [None if v is None else 100 - v for v in _valid(point.repeats)]
        words = _Words(
            point.words,
            "percent",
            sum(value is not None for value in values),
            LOSS_RESOLUTION_PERCENT,
        )
        found = stability.examine(values, LOSS_RESOLUTION_PERCENT)
        findings += [words.finding(each) for each in found]
    return findings


def delay_findings(
    measures: Iterable[Measure], delays: DelayRecord | None
) -> list[Finding]:
    """Of every delay of every stream; repeats in which it is infinite have none.

    Groups and drifts must be wider than the tester's share. That the repeats have no
    common value is told whatever the share: the worse the tester, the more is said. But
    nanoseconds are nothing.
    """
    measures = list(measures)
    bound_ns = float(delays.usual_bound_ns or 0) if delays else 0.0
    findings = []
    for measure in measures:
        values = [figure.value for figure in measure.repeats]
        known = [value for value in values if value is not None]
        if not known:
            continue
        share_ns = DELAY_RESOLUTION * abs(stats.median(known))
        width_ns = max(bound_ns, share_ns, measure.rounding_ns or 0.0, LEAST_WIDTH)
        words = _Words(measure.words, "ns", len(known), width_ns)
        found = stability.examine(
            values,
            width_ns,
            DELAY_LIMITS,
            apart=max(share_ns, LEAST_APART_NS),
        )
        findings += [words.finding(each) for each in found]
    return [*findings, *_of_tester(measures, delays)]


def _of_tester(
    measures: Sequence[Measure], delays: DelayRecord | None
) -> Iterator[Finding]:
    """What is an upper bound, and what the tester's share is: in one sentence."""
    bounded = [m for m in measures if m.result.at_most]
    if not bounded or delays is None:
        return
    names = " and ".join(dict.fromkeys(m.name for m in bounded))
    share_ns = delays.usual_bound_ns or delays.bound_ns
    yield Finding(
        kind="tester",
        of=names,
        message=f"{names}: up to {duration(share_ns)} (99.8 % of frames; "
        f"{duration(delays.bound_ns)} at worst) may be the tester's: an upper bound",
        unit="ns",
        numbers={"usual_bound": float(share_ns), "bound": float(delays.bound_ns)},
    )


def _valid(repeats: Iterable[RepeatResult]) -> list[float | None]:
    """What was proven of an invalid repeat, or as a lower bound, is not its value."""
    return [None if r.verdict == "invalid" or r.bound else r.value for r in repeats]


class _Words:
    """How the findings of one quantity read."""

    def __init__(self, what: str, unit: Unit, count: int, resolution: float) -> None:
        self._what = what
        self._unit = unit
        self._count = count
        self._resolution = resolution

    def finding(self, found: stability.Finding) -> Finding:
        message = {
            "modes": self._modes,
            "shift": self._shift,
            "drift": self._drift,
            "unstable": self._unstable,
            "outliers": self._outliers,
        }[found.kind](found)
        return Finding(
            kind=found.kind,
            of=self._what,
            message=message,
            unit=self._unit,
            groups=[
                ValueGroup(repeats=list(g.repeats), lowest=g.lowest, highest=g.highest)
                for g in found.groups
            ],
            numbers=found.numbers | {"resolution": self._resolution},
        )

    def _modes(self, found: stability.Finding) -> str:
        first, *others = found.groups
        told = [
            f"{len(first.repeats)} of {self._count} repeats at {self._range(first)}"
        ]
        told += [f"{len(g.repeats)} at {self._range(g)}" for g in others]
        if elsewhere := self._elsewhere(found):
            told.append(f"{elsewhere} elsewhere")
        return f"no single {self._what}: {', '.join(told)}; {self._gap(found)}"

    def _shift(self, found: stability.Finding) -> str:
        told = [f"{self._range(g)} in {_repeats(g.repeats)}" for g in found.groups]
        elsewhere = self._elsewhere(found)
        return (
            f"no single {self._what}: it changed during the run: "
            f"{', then '.join(told)}{f', {elsewhere} elsewhere' if elsewhere else ''}; "
            f"{self._gap(found)}"
        )

    def _elsewhere(self, found: stability.Finding) -> int:
        """How many repeats are in no group that is told; they may lie between."""
        return self._count - sum(len(group.repeats) for group in found.groups)

    def _outliers(self, found: stability.Finding) -> str:
        main, *strays = found.groups
        numbers = sorted(n for stray in strays for n in stray.repeats)
        told = [f"{self._range(g)} in {_repeats(g.repeats)}" for g in strays]
        begin = numbers == list(range(1, len(numbers) + 1))
        warm = "; was the device warm?" if begin else ""
        return (
            f"{self._what}: {len(numbers)} of {self._count} repeats far from all "
            f"others: {', '.join(told)}; the others at {self._range(main)}{warm}"
        )

    def _drift(self, found: stability.Finding) -> str:
        numbers = found.numbers
        first, last = numbers["first"], numbers["last"]
        way = "rises" if last > first else "falls"
        over = "" if first == 0 else f", {_share(abs(last / first - 1))} over the run"
        return (
            f"no stable {self._what}: it {way} from {self._text(first)} (median of "
            f"the first third of repeats) to {self._text(last)} (of the last third)"
            f"{over}, {self._text(abs(numbers['each']))} a repeat; p = "
            f"{numbers['p']:.1g}"
        )

    def _unstable(self, found: stability.Finding) -> str:
        numbers = found.numbers
        left_out = int(numbers["left_out"])
        count = int(numbers["count"])
        which = f"the {count} repeats"
        if left_out:
            which = f"the middle {count - left_out} of {count} repeats"
        ends = f"{self._text(numbers['lowest'])} to {self._text(numbers['highest'])}"
        return (
            f"no single {self._what}: {which} range from {ends}, "
            f"{_share(numbers['apart'])} of the median; "
            f"at most {_share(numbers['limit'])} may be one value"
        )

    def _gap(self, found: stability.Finding) -> str:
        gap, widest = found.numbers["gap"], found.numbers["widest"]
        if widest > self._resolution:
            than = f"{about(gap / widest)} times as wide as the widest group"
        else:
            than = f"{about(gap / self._resolution)} times the resolution"
        them = "any of them" if self._elsewhere(found) else "them"
        return f"nothing in the {self._text(gap)} between {them}, {than}"

    def _range(self, group: stability.Group) -> str:
        low, high = self._text(group.lowest), self._text(group.highest)
        return low if low == high else f"{low} to {high}"

    def _text(self, value: float) -> str:
        return in_unit(value, self._unit)


def _share(share: float) -> str:
    return f"{about(100 * share)} %"


def _repeats(numbers: Sequence[int]) -> str:
    """``repeat 3``, ``repeats 1-4``, ``repeats 2, 5, 9``."""
    if len(numbers) == 1:
        return f"repeat {numbers[0]}"
    if list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"repeats {numbers[0]}-{numbers[-1]}"
    return f"repeats {', '.join(map(str, numbers))}"
