"""Throughput (RFC 2544 26.1, 8219 7.1): the fastest rate at which no frame is lost.

A binary search between nothing and the maximum rate, which is tried first. The DUT is
blamed for lost frames only: a trial that the tester spoilt is repeated, and when the
tester cannot do better, the result is what was proven, marked "at least". With a frame
timeout or a tolerated loss the result is another one, and is called so.
"""

from __future__ import annotations

from dutperf import stats
from dutperf.config.campaign import Cell
from dutperf.engine.protocol import Reason, TrialResult, VerdictKind
from dutperf.procedures.describe import cell_deviations, cell_parameters
from dutperf.procedures.events import IntervalNarrowed
from dutperf.procedures.findings import rate_findings
from dutperf.procedures.judgement import (
    judged_by,
    throughput_quantity,
    timeout_losses,
)
from dutperf.procedures.limits import MaxRate
from dutperf.procedures.runner import TrialRunner
from dutperf.procedures.verdicts import ATTEMPTS, distinct, no_rate_helps
from dutperf.results.model import CellResult, RepeatResult
from dutperf.results.spread import spread_of
from dutperf.search import Outcome, Resolution, SearchResult, Step, binary_search

AT_LEAST = ", at least: not proven further"


def measure_throughput(runner: TrialRunner, cell: Cell, limit: MaxRate) -> CellResult:
    """Search ``cell.repeats`` times; the result is the median (RFC 8219 12).

    Raises:
        EngineError, SetupError: see ``TrialRunner.run``.
    """
    repeats: list[RepeatResult] = []
    passed: list[TrialResult | None] = []
    for repeat in range(1, cell.repeats + 1):
        trials = _Trials(runner, cell, repeat)
        repeats.append(_search(trials, cell, limit))
        passed.append(trials.passed)
        if no_rate_helps(repeats[-1].reasons):
            break
    values = [r.value for r in repeats if r.value is not None]
    verdict = _overall(repeats)
    bound = AT_LEAST if verdict == "invalid" and values else ""
    return CellResult(
        id=cell.id,
        procedure="throughput",
        quantity=throughput_quantity(cell) + bound,
        parameters=cell_parameters(cell, limit),
        median=stats.median(values) if values else None,
        unit="fps",
        repeats=repeats,
        verdict=verdict,
        reasons=distinct(reason for r in repeats for reason in r.reasons),
        deviations=cell_deviations(cell),
        timeouts=timeout_losses(cell, passed),
        spread=spread_of(values),
        findings=rate_findings(cell, repeats),
    )


def outcome(result: TrialResult) -> Outcome:
    """What a search has to know of a trial."""
    reasons = result.verdict.reasons
    behind = any(r.code == "sender_behind" for r in reasons)
    # On a dead link the sender falls behind too; that is not the tester's limit.
    if result.verdict.kind == "invalid" and behind and not no_rate_helps(reasons):
        return Outcome("invalid", offered_fps=offered_fps(result))
    return Outcome(result.verdict.kind)


def offered_fps(result: TrialResult) -> float:
    """What the slower direction's sender managed, frames per second."""
    return min(direction.offered_rate_fps for direction in result.directions)


class _NoUseError(Exception):
    """A trial stayed invalid for a reason that no other rate changes."""


class _Trials:
    """The trials of one search, as ``binary_search`` wants them measured."""

    def __init__(self, runner: TrialRunner, cell: Cell, repeat: int) -> None:
        self._runner = runner
        self._cell = cell
        self._repeat = repeat
        self._before = runner.finished
        self.passed_fps: int | None = None
        self.passed: TrialResult | None = None
        self.troubles: list[Reason] = []

    @property
    def count(self) -> int:
        return self._runner.finished - self._before

    def measure(self, rate_fps: int, duration_s: float) -> Outcome:
        record = self._runner.run(
            self._cell, rate_fps, repeat=self._repeat, duration_s=duration_s
        )
        verdict = record.result.verdict
        self.troubles = verdict.reasons if verdict.kind == "invalid" else []
        if verdict.kind == "pass":
            self._remember(rate_fps, record.result)
        if record.attempt == ATTEMPTS and no_rate_helps(self.troubles):
            raise _NoUseError
        return outcome(record.result)

    def on_step(self, step: Step) -> None:
        self._runner.on_event(IntervalNarrowed(step.lower_fps, step.upper_fps))

    def _remember(self, rate_fps: int, result: TrialResult) -> None:
        if self.passed_fps is None or rate_fps >= self.passed_fps:
            self.passed_fps, self.passed = rate_fps, result


def _search(trials: _Trials, cell: Cell, limit: MaxRate) -> RepeatResult:
    try:
        found = binary_search(
            trials.measure,
            max_rate_fps=limit.rate_fps,
            duration_s=cell.trial_duration_s,
            resolution=Resolution.parse(cell.resolution),
            attempts=ATTEMPTS,
            on_step=trials.on_step,
        )
    except _NoUseError:
        found = SearchResult(trials.passed_fps, None, "unstable", [])
    return _repeat_result(found, cell, limit, trials)


def _repeat_result(
    found: SearchResult, cell: Cell, limit: MaxRate, trials: _Trials
) -> RepeatResult:
    verdict: VerdictKind
    value = found.rate_fps
    at_least = "" if value is None else f"; the throughput is at least {value:,} fps"
    match found.conclusion:
        case "found":
            verdict, reasons = "pass", []
        case "max_rate_passed":
            verdict, reasons = "pass", [_limited(limit, judged_by(cell))]
        case "nothing_passed":
            verdict, reasons, value = "fail", [_nothing_passed(cell)], 0
        case "tester_limited":
            verdict, reasons = "invalid", [_tester_limited(at_least)]
        case "unstable":
            verdict, reasons = "invalid", [_unstable(at_least), *trials.troubles]
    return RepeatResult(
        value=value, verdict=verdict, reasons=reasons, trials=trials.count
    )


def _overall(repeats: list[RepeatResult]) -> VerdictKind:
    kinds = {r.verdict for r in repeats}
    if "invalid" in kinds:
        return "invalid"
    return "pass" if "pass" in kinds else "fail"


def _limited(limit: MaxRate, judged: str) -> Reason:
    passed = f"it passed, {judged}" if judged else "no frame was lost"
    return Reason(
        code="max_rate",
        message=f"limited by {limit.words}, {limit.rate_fps:,} fps: {passed}",
    )


def _nothing_passed(cell: Cell) -> Reason:
    lost = "lost" if cell.frame_timeout_ms is None else "lost or late"
    return Reason(
        code="nothing_passed",
        message=f"frames were {lost} at every rate that was tried",
        hint="does the device forward at all? try frame-loss at a low --load, and look "
        "at its routes and filters",
    )


def _tester_limited(at_least: str) -> Reason:
    return Reason(
        code="sender_behind",
        message=f"the tester could not offer the rates above{at_least}",
        hint="give the testbed more cores or a faster port driver, "
        "or set --max-rate to what the tester can offer",
    )


def _unstable(at_least: str) -> Reason:
    return Reason(
        code="unstable",
        message=f"trials stayed invalid when they were repeated{at_least}",
        hint="see the trials' reasons; keep other work off the tester's CPUs",
    )
