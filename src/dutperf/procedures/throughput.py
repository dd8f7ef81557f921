"""Throughput (RFC 2544 26.1, 8219 7.1): the fastest rate at which no frame is lost.

A binary search between nothing and the maximum rate, which is tried first. The DUT is
blamed for lost frames only: a trial that the tester spoilt is repeated, and when the
tester cannot do better, the result is what was proven, marked "at least".
"""

from __future__ import annotations

from collections.abc import Iterable

from dutperf import stats
from dutperf.config.campaign import Cell
from dutperf.engine.protocol import Reason, TrialResult, VerdictKind
from dutperf.procedures.describe import cell_deviations, cell_parameters
from dutperf.procedures.events import IntervalNarrowed
from dutperf.procedures.limits import MaxRate
from dutperf.procedures.runner import TrialRunner
from dutperf.results.model import CellResult, RepeatResult
from dutperf.search import Outcome, Resolution, SearchResult, Step, binary_search

QUANTITY = "throughput per direction (RFC 2544 26.1)"
AT_LEAST = "throughput per direction (RFC 2544 26.1), at least: not proven further"

ATTEMPTS = 3
"""How often an invalid trial is run at most."""

_NOT_THE_RATE = {"link_down", "flow_control", "neighbour_missing", "nothing_sent"}


def measure_throughput(runner: TrialRunner, cell: Cell, limit: MaxRate) -> CellResult:
    """Search ``cell.repeats`` times; the result is the median (RFC 8219 12).

    Raises:
        EngineError, SetupError: see ``TrialRunner.run``.
    """
    repeats: list[RepeatResult] = []
    for repeat in range(1, cell.repeats + 1):
        repeats.append(_search(runner, cell, limit, repeat))
        if no_rate_helps(repeats[-1].reasons):
            break
    values = [r.value for r in repeats if r.value is not None]
    verdict = _overall(repeats)
    return CellResult(
        id=cell.id,
        procedure="throughput",
        quantity=AT_LEAST if verdict == "invalid" and values else QUANTITY,
        parameters=cell_parameters(cell, limit),
        median=stats.median(values) if values else None,
        unit="fps",
        repeats=repeats,
        verdict=verdict,
        reasons=distinct(reason for r in repeats for reason in r.reasons),
        deviations=cell_deviations(cell),
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


def distinct(reasons: Iterable[Reason]) -> list[Reason]:
    """Each reason once, in the order of their first appearance."""
    return list(dict.fromkeys(reasons))


def no_rate_helps(reasons: Iterable[Reason]) -> bool:
    """Whether a reason for an invalid trial holds at any other rate as well."""
    return any(reason.code in _NOT_THE_RATE for reason in reasons)


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
            self.passed_fps = max(rate_fps, self.passed_fps or 0)
        if record.attempt == ATTEMPTS and no_rate_helps(self.troubles):
            raise _NoUseError
        return outcome(record.result)

    def on_step(self, step: Step) -> None:
        self._runner.on_event(IntervalNarrowed(step.lower_fps, step.upper_fps))


def _search(
    runner: TrialRunner, cell: Cell, limit: MaxRate, repeat: int
) -> RepeatResult:
    trials = _Trials(runner, cell, repeat)
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
    return _repeat_result(found, limit, trials.troubles, trials.count)


def _repeat_result(
    found: SearchResult, limit: MaxRate, troubles: list[Reason], trials: int
) -> RepeatResult:
    verdict: VerdictKind
    value = found.rate_fps
    at_least = "" if value is None else f"; the throughput is at least {value:,} fps"
    match found.conclusion:
        case "found":
            verdict, reasons = "pass", []
        case "max_rate_passed":
            verdict, reasons = "pass", [_limited(limit)]
        case "nothing_passed":
            verdict, reasons, value = "fail", [_nothing_passed()], 0
        case "tester_limited":
            verdict, reasons = "invalid", [_tester_limited(at_least)]
        case "unstable":
            verdict, reasons = "invalid", [_unstable(at_least), *troubles]
    return RepeatResult(value=value, verdict=verdict, reasons=reasons, trials=trials)


def _overall(repeats: list[RepeatResult]) -> VerdictKind:
    kinds = {r.verdict for r in repeats}
    if "invalid" in kinds:
        return "invalid"
    return "pass" if "pass" in kinds else "fail"


def _limited(limit: MaxRate) -> Reason:
    return Reason(
        code="max_rate",
        message=f"limited by {limit.words}, {limit.rate_fps:,} fps: no frame was lost",
    )


def _nothing_passed() -> Reason:
    return Reason(
        code="nothing_passed",
        message="frames were lost at every rate that was tried",
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
