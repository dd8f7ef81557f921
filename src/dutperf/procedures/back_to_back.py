"""Back-to-back frames (RFC 9004): the longest burst without loss, and the buffer time.

    plan       the maximum rate, the longest burst, the throughput that corrects
    measure    searches for the longest burst, each by itself (RFC 9004 6.3)
    conclude   their average, and the buffer times (6.4)

Frame k of a burst is due at start + k / rate, as in every trial; how many frames there
are is all that differs. A burst that passed although it took too long is no evidence,
since the device had more time to empty its buffer: the engine's verdict sees to that
(docs/adr/0001). Nor is a loss while frames still arrive: a burst is tried again with a
longer wait if any came in the second half of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from statistics import stdev

from dutperf.charts.cells import CellView
from dutperf.model.cell import Cell
from dutperf.model.rate_specs import BackToBackSpec
from dutperf.procedures.cell_results import of_cell, of_repeats
from dutperf.procedures.conclusions import (
    bound_deviations,
    bound_of,
    search_findings,
    spoilt,
)
from dutperf.procedures.events import IntervalNarrowed
from dutperf.procedures.loss_criterion import loss_percent
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.method import Method, OnStreams
from dutperf.procedures.searching import Evidence, NoUseError, Troubles, outcome
from dutperf.procedures.tester_limit import MARGIN, MAX_LOWERINGS, reach_maximum
from dutperf.procedures.trials import (
    PATIENT_ATTEMPTS,
    Ask,
    Trials,
    fails_beside_loss,
    fails_without_loss,
    is_hopeless,
    no_rate_helps,
)
from dutperf.protocol.result_messages import Reason, TrialResult, Verdict, VerdictKind
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results.bounds import Overall, averaged, valued
from dutperf.results.model import CellResult
from dutperf.results.rate_results import Derived, RepeatResult
from dutperf.search import Outcome, Resolution, SearchResult, Step, Verification
from dutperf.search.binary import binary_search
from dutperf.standards import Deviation

LONGEST_WAIT_S = 60.0
"""What is still in a buffer then will not be waited for."""
_SHORT_FRAMES = 1000
"""Shorter ones last some tens of microseconds at the rates that are lowered at all."""


def measure_back_to_back(runner: Trials, cell: Cell, load: MaxRate) -> CellResult:
    """Search as often as the cell says; the result is the average.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    bursts, first = _plan(runner, cell, load)
    measured, repeats = _measure(runner, bursts, first)
    return _conclude(measured, repeats)


@dataclass(frozen=True)
class _Bursts:
    """What all bursts of a cell have in common.

    maximum: the rate at which their frames leave, and why it is no higher.
    throughput_fps: at which they leave the buffer; None: not known, see ``unknown``.
    """

    cell: Cell
    maximum: MaxRate
    throughput_fps: float | None
    unknown: str

    @property
    def spec(self) -> BackToBackSpec:
        return self.cell.spec_of(BackToBackSpec)

    @property
    def longest(self) -> int:
        """Frames of the longest one that is tried."""
        duration = Fraction(str(self.spec.longest_burst_s))
        return max(1, int(self.maximum.rate_fps * duration))

    def ask(self, frames: int, repeat: int, drain_s: float = 0) -> Ask:
        """One of so many frames, and a wait that is longer by ``drain_s``."""
        return Ask(
            self.cell,
            self.maximum.rate_fps,
            repeat=repeat,
            duration_s=frames / self.maximum.rate_fps,
            shape=partial(_with_wait, self.spec.residual_wait_s + drain_s),
            attempts=PATIENT_ATTEMPTS,
        )


def _plan(
    runner: Trials, cell: Cell, load: MaxRate
) -> tuple[_Bursts, list[TrialResult]]:
    """Lower the maximum until the tester can offer the longest burst."""

    def bursts(load: MaxRate) -> _Bursts:
        known: float | None = load.rate_fps if load.most else None
        given = cell.spec_of(BackToBackSpec).throughput_fps
        if isinstance(given, int):
            known = given
        return _Bursts(cell, load.most or load, known, load.shortfall)

    def longest(load: MaxRate) -> Ask:
        planned = bursts(load)
        return planned.ask(planned.longest, repeat=1)

    reached, first = reach_maximum(runner, load, longest)
    return bursts(reached), first


def _measure(
    runner: Trials, bursts: _Bursts, first: list[TrialResult]
) -> tuple[_Bursts, list[RepeatResult]]:
    """All searches at one rate: lower, and all anew, where that cannot be offered."""
    for _ in range(MAX_LOWERINGS):
        try:
            return bursts, _searches(runner, bursts, first, may_lower=True)
        except _TooFastError as behind:
            bursts, first = _offered(runner, bursts, behind), []
    return bursts, _searches(runner, bursts, first, may_lower=False)


def _offered(runner: Trials, bursts: _Bursts, behind: _TooFastError) -> _Bursts:
    """Lower until a short burst can be offered, too: a search comes to those last.

    One that is all lost costs the tester least, so long ones say nothing of it.
    """
    frames = min(behind.frames, _SHORT_FRAMES)

    def short(load: MaxRate) -> Ask:
        return replace(bursts, maximum=load).ask(frames, repeat=1)

    lowered = bursts.maximum.lowered(behind.rate_fps)
    reached, _ = reach_maximum(runner, lowered, short)
    return replace(bursts, maximum=reached)


def _searches(
    runner: Trials, bursts: _Bursts, first: list[TrialResult], *, may_lower: bool
) -> list[RepeatResult]:
    """Of the first search the first trials, with the longest burst, may be there."""
    repeats: list[RepeatResult] = []
    while len(repeats) < bursts.cell.repeats:
        number = len(repeats) + 1
        search = _Search(runner, bursts, number, first, may_lower=may_lower)
        repeats.append(search.result())
        first = []
        if no_rate_helps(repeats[-1].reasons):
            break
    return repeats


class _TooFastError(Exception):
    """Trials with one burst could not be offered, time after time."""

    def __init__(self, frames: int, rate_fps: int) -> None:
        super().__init__()
        self.frames = frames
        self.rate_fps = rate_fps


class _Search:
    """One search: binary, with losses verified (ETSI GS NFV-TST 009 12.3)."""

    def __init__(
        self,
        runner: Trials,
        bursts: _Bursts,
        repeat: int,
        first: list[TrialResult],
        *,
        may_lower: bool,
    ) -> None:
        self._runner = runner
        self._bursts = bursts
        self._repeat = repeat
        self._first = list(first)
        self._before = runner.finished - len(first)
        self._may_lower = may_lower
        self._invalid: list[Outcome] = []
        self._drain_s = 0.0
        self._passed = 0
        self._failed_otherwise: list[Reason] = []
        self._troubles = Troubles()

    def result(self) -> RepeatResult:
        """The longest burst that passed, or what is known of it."""
        spec = self._bursts.spec
        try:
            found = binary_search(
                self._outcome,
                max_rate_fps=self._bursts.longest,
                duration_s=spec.longest_burst_s,
                resolution=Resolution.parse(spec.step),
                verification=Verification(
                    spec.verify_trials, spec.max_verify_loss_percent / 100
                ),
                attempts=PATIENT_ATTEMPTS,
                on_step=self._on_step,
            )
        except NoUseError:
            found = SearchResult(self._passed or None, None, "unstable", [])
        evidence = self._troubles.evidence(found.upper_fps, self._failed_otherwise)
        verdict, reasons = self._told(found, evidence)
        value = 0 if verdict == "fail" else found.rate_fps
        limit = MaxRate(self._bursts.longest, "set")
        bound, cause = bound_of(found.conclusion, value, limit, evidence)
        return RepeatResult(
            value=value,
            verdict=verdict,
            bound=bound,
            bound_cause=cause,
            reasons=reasons,
            trials=self._runner.finished - self._before,
        )

    def _outcome(self, frames: int, _longest_s: float) -> Outcome:
        result = self._run(frames)
        verdict = result.verdict
        self._troubles.note(frames, verdict)
        if verdict.kind == "invalid":
            self._invalid.append(outcome(result))
            self._lower(frames)
            return Outcome("invalid")
        self._invalid = []
        if verdict.kind == "pass":
            self._passed = max(self._passed, frames)
        self._failed_otherwise = fails_without_loss(verdict)
        ratio = 1.0 if fails_beside_loss(verdict) else loss_percent(result) / 100
        return Outcome(verdict.kind, loss_ratio=ratio)

    def _lower(self, frames: int) -> None:
        """Once a burst is given up that could not be offered in most of its trials.

        Then the rate is the tester's, and the next burst would fare no better.
        """
        if len(self._invalid) < PATIENT_ATTEMPTS:
            return
        offered = [o.offered_fps for o in self._invalid if o.offered_fps is not None]
        self._invalid = []
        if self._may_lower and 2 * len(offered) >= PATIENT_ATTEMPTS:
            most_fps = min(max(offered), self._bursts.maximum.rate_fps)
            raise _TooFastError(frames, max(1, int(most_fps * MARGIN)))

    def _run(self, frames: int) -> TrialResult:
        """One trial whose buffer was empty when it ended (RFC 9004 6.2)."""
        while True:
            wait_s = self._bursts.spec.residual_wait_s + self._drain_s
            result = self._first.pop(0) if self._first else self._ask(frames)
            took_s = _longest_delay_s(result)
            if result.verdict.kind != "fail" or took_s < wait_s / 2:
                self._drain_s = max(self._drain_s, took_s)
                return result
            if wait_s >= LONGEST_WAIT_S:
                self._troubles.note(frames, _still_draining(wait_s))
                raise NoUseError
            self._drain_s = max(self._drain_s, 2 * took_s)

    def _ask(self, frames: int) -> TrialResult:
        record = self._runner.run(self._bursts.ask(frames, self._repeat, self._drain_s))
        if is_hopeless(record):
            self._troubles.note(frames, record.result.verdict)
            raise NoUseError
        return record.result

    def _told(
        self, found: SearchResult, evidence: Evidence
    ) -> tuple[VerdictKind, list[Reason]]:
        match found.conclusion:
            case "max_rate_passed":
                return "pass", [_longest_passed(self._bursts)]
            case "nothing_passed":
                return "fail", [_nothing_passed(evidence), *evidence.otherwise]
            case "unstable" | "tester_limited":
                return spoilt(found.rate_fps, evidence)
            case "found":
                return "pass", []

    def _on_step(self, step: Step) -> None:
        self._runner.on_event(IntervalNarrowed(step.lower_fps, step.upper_fps))


def _with_wait(wait_s: float, request: TrialRequest) -> TrialRequest:
    return request.model_copy(update={"residual_wait_ns": round(wait_s * 1e9)})


def _longest_delay_s(result: TrialResult) -> float:
    """Of all frames that arrived."""
    streams = [stream for each in result.directions for stream in each.streams]
    return max((stream.delay_ns.max or 0 for stream in streams), default=0) / 1e9


def _still_draining(wait_s: float) -> Verdict:
    reason = Reason(
        code="unstable",
        message=f"frames still arrived {wait_s:g} s after the burst: its end is not "
        "known",
        hint="what is between tester and device holds frames for long, or the device "
        "hardly forwards: see its throughput",
    )
    return Verdict(kind="invalid", reasons=[reason])


def _nothing_passed(evidence: Evidence) -> Reason:
    if evidence.otherwise:
        return Reason(code="nothing_passed", message="bursts of every length failed")
    return Reason(
        code="nothing_passed",
        message="not even a single frame passed at the maximum rate",
        hint="does the device forward at all? try frame-loss at a low --load",
    )


def _longest_passed(bursts: _Bursts) -> Reason:
    return Reason(
        code="max_rate",
        message=f"no frame was lost of the longest burst, {bursts.longest:,} frames "
        f"({bursts.spec.longest_burst_s:g} s)",
        hint="a device that forwards at the maximum rate takes any (RFC 9004 5); else "
        "raise longest_burst_s (--longest-burst)",
    )


def _conclude(bursts: _Bursts, repeats: list[RepeatResult]) -> CellResult:
    """The average of all searches (RFC 9004 6.3), and what follows from it."""
    step = Resolution.parse(bursts.spec.step)
    values = valued(repeats)[0]
    most = max(values, default=0.0)
    found = averaged(repeats, float(step.width_fps(most)))
    short = [*_short_of(bursts), *bound_deviations(bursts.cell, found)]
    return CellResult(
        **of_cell(bursts.cell, bursts.maximum, short),
        **of_repeats(repeats, found, beside=_not_overloaded(bursts)),
        quantity=f"longest burst per direction at {bursts.maximum.rate_fps:,} fps, "
        "average (RFC 9004 6.3)",
        derived=_derived(bursts, found, values),
        findings=search_findings(repeats, step, "longest burst", "frames"),
    )


def _not_overloaded(bursts: _Bursts) -> list[Reason]:
    """RFC 9004 6.1: only what is slower than the bursts has a buffer that fills."""
    rate_fps, throughput_fps = bursts.maximum.rate_fps, bursts.throughput_fps
    if throughput_fps is None or throughput_fps < rate_fps:
        return []
    return [
        Reason(
            code="max_rate",
            message=f"bursts come at {rate_fps:,} fps, which is no more than the "
            f"device's throughput, {throughput_fps:,.0f} fps: what they lost is no "
            "full buffer, and there is no corrected buffer time",
            hint="choose sizes whose throughput is below the maximum rate (RFC 9004 "
            "6.1), or a faster port driver",
        )
    ]


def _derived(bursts: _Bursts, found: Overall, values: Sequence[float]) -> list[Derived]:
    """RFC 9004 6.4; a device as fast as the bursts has no buffer that fills."""
    rate_fps, throughput_fps = bursts.maximum.rate_fps, bursts.throughput_fps
    average, bound = found.median, found.bound
    implied_s = None if average is None else average / rate_fps
    corrected_s = None
    if implied_s is not None and throughput_fps is not None and not bursts.unknown:
        left = 1 - throughput_fps / rate_fps
        corrected_s = implied_s * left if left > 0 else None
    return [
        Derived(
            name="corrected buffer time",
            meaning="Implied buffer time without the frames that left during the "
            "burst, at the throughput (RFC 9004 6.4).",
            value=corrected_s,
            unit="s",
            bound=bound,
        ),
        Derived(
            name="implied buffer time",
            meaning="How long the average burst takes (RFC 9004 6.4).",
            value=implied_s,
            unit="s",
            bound=bound,
        ),
        Derived(
            name="throughput",
            meaning="At which frames leave the buffer, measured before or given.",
            value=throughput_fps,
            unit="fps",
        ),
        Derived(
            name="standard deviation",
            meaning="Of the longest bursts of all searches (RFC 9004 6.4).",
            value=stdev(values) if len(values) > 1 else None,
            unit="frames",
        ),
    ]


def _short_of(bursts: _Bursts) -> list[Deviation]:
    """What turned out otherwise than RFC 9004 wants it."""
    found = []
    if bursts.maximum.bound_cause:
        found.append(
            Deviation(
                rfc="RFC 9004 6.2",
                requirement="bursts with the minimum gap, at the maximum theoretical "
                "frame rate",
                actual=f"bursts at {bursts.maximum.rate_fps:,} fps, "
                f"{bursts.maximum.words}",
                level="definition",
            )
        )
    if bursts.unknown:
        found.append(
            Deviation(
                rfc="RFC 9004 5",
                requirement="the throughput, measured without loss before",
                actual=f"{bursts.unknown}; no corrected buffer time",
                level="MUST",
            )
        )
    return found


def _meaning(cell: CellView) -> str:
    return f"Frames in a row{cell.each_way}, at the highest rate, without loss"


METHOD = Method("back-to-back", OnStreams(measure_back_to_back), _meaning)
