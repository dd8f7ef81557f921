"""Maximum connection establishment rate of a stateful gateway (RFC 9693 4.5, 4.6).

Like throughput, but each frame opens a connection: the rate passes when all N arrive.
That they arrived does not prove that the device remembers them; validated, each must
also let a frame back, sent at ``alpha`` times the rate. The device's table is emptied
before each test, by the testbed's hooks.
"""

from __future__ import annotations

from functools import partial

from dutperf import stats
from dutperf.config import Cell
from dutperf.config.stateful import Stateful
from dutperf.engine.protocol import Reason, TrialResult, VerdictKind
from dutperf.procedures.describe import cell_deviations, cell_parameters
from dutperf.procedures.events import IntervalNarrowed
from dutperf.procedures.limits import MaxRate
from dutperf.procedures.phases import phase1, validation
from dutperf.procedures.runner import TrialRunner
from dutperf.procedures.searching import NoUseError, outcome
from dutperf.procedures.verdicts import ATTEMPTS, distinct, no_rate_helps
from dutperf.results.model import CellResult, RepeatResult
from dutperf.results.spread import spread_of
from dutperf.search import Outcome, Resolution, SearchResult, Step, binary_search

UNIT = "connections/s"


def measure_connection_rate(
    runner: TrialRunner, cell: Cell, limit: MaxRate
) -> CellResult:
    """Search ``cell.repeats`` times; the result is the median (RFC 9693 6).

    Raises:
        EngineError, SetupError: see ``TrialRunner.run``.
    """
    stateful = cell.stateful
    assert stateful is not None, "cells of connection-rate have it"  # noqa: S101
    repeats: list[RepeatResult] = []
    for repeat in range(1, cell.repeats + 1):
        tests = _Tests(runner, cell, stateful, repeat)
        repeats.append(_search(tests, cell, limit))
        if no_rate_helps(repeats[-1].reasons):
            break
    values = [r.value for r in repeats if r.value is not None]
    verdicts = [r.verdict for r in repeats]
    return CellResult(
        id=cell.id,
        procedure="connection-rate",
        quantity=quantity(stateful),
        parameters=cell_parameters(cell, limit),
        median=stats.median(values) if values else None,
        unit="connections/s",
        repeats=repeats,
        verdict=_overall(verdicts),
        reasons=distinct(reason for r in repeats for reason in r.reasons),
        deviations=cell_deviations(cell),
        spread=spread_of(values, stats.median_interval(values)),
    )


def quantity(stateful: Stateful) -> str:
    """What the median is."""
    name = (
        f"maximum connection establishment rate, {stateful.connections:,} connections"
    )
    if stateful.alpha is None:
        return f"{name} (RFC 9693 4.5)"
    return f"validated {name}, alpha {stateful.alpha:g} (RFC 9693 4.6)"


class _Tests:
    """The elementary tests of one search: phase 1, and the validation if asked for."""

    def __init__(
        self, runner: TrialRunner, cell: Cell, stateful: Stateful, repeat: int
    ) -> None:
        self._runner = runner
        self._cell = cell
        self._stateful = stateful
        self._repeat = repeat
        self._before = runner.finished
        self.passed: int | None = None
        self.troubles: list[Reason] = []
        self.expired = False

    @property
    def trials(self) -> int:
        """How many there were, of both phases."""
        return self._runner.finished - self._before

    def measure(self, rate_per_s: int, _duration_s: float) -> Outcome:
        """One test: what it says of that rate."""
        if self._outlives(rate_per_s):
            self.expired = True
            raise NoUseError
        first = self._run(rate_per_s, self._cell, continues=False)
        if first.verdict.kind != "pass" or self._stateful.alpha is None:
            return self._told(rate_per_s, first)
        back = self._cell.model_copy(
            update={"direction": self._stateful.responder_direction}
        )
        slower = max(1, int(rate_per_s * self._stateful.alpha))
        return self._told(rate_per_s, self._run(slower, back, continues=True))

    def on_step(self, step: Step) -> None:
        """Tell whoever watches."""
        self._runner.on_event(IntervalNarrowed(step.lower_fps, step.upper_fps))

    def _outlives(self, rate_per_s: int) -> bool:
        """Whether a test would last longer than the device keeps connections."""
        timeout_s = self._stateful.dut_timeout_s
        return (
            timeout_s is not None and self._stateful.lifetime_s(rate_per_s) >= timeout_s
        )

    def _run(self, rate_per_s: int, cell: Cell, *, continues: bool) -> TrialResult:
        shape = (
            partial(validation, stateful=self._stateful)
            if continues
            else partial(phase1, cell=cell, stateful=self._stateful)
        )
        record = self._runner.run(
            cell, rate_per_s, repeat=self._repeat, shape=shape, continues=continues
        )
        if record.attempt == ATTEMPTS and no_rate_helps(record.result.verdict.reasons):
            self.troubles = record.result.verdict.reasons
            raise NoUseError
        return record.result

    def _told(self, rate_per_s: int, result: TrialResult) -> Outcome:
        kind = result.verdict.kind
        self.troubles = result.verdict.reasons if kind == "invalid" else []
        if kind == "pass":
            self.passed = max(rate_per_s, self.passed or 0)
        return outcome(result)


def _search(tests: _Tests, cell: Cell, limit: MaxRate) -> RepeatResult:
    try:
        found = binary_search(
            tests.measure,
            max_rate_fps=limit.rate_fps,
            duration_s=1.0,  # follows from the number of connections
            resolution=Resolution.parse(cell.resolution),
            attempts=ATTEMPTS,
            on_step=tests.on_step,
        )
    except NoUseError:
        found = SearchResult(tests.passed, None, "unstable", [])
    verdict, reasons = _conclusion(found, tests, cell, limit)
    value = 0 if verdict == "fail" else found.rate_fps
    return RepeatResult(
        value=value, verdict=verdict, reasons=reasons, trials=tests.trials
    )


def _conclusion(
    found: SearchResult, tests: _Tests, cell: Cell, limit: MaxRate
) -> tuple[VerdictKind, list[Reason]]:
    at_least = "" if found.rate_fps is None else f"; it is at least {found.rate_fps:,}"
    if tests.expired:
        return "invalid", [_expired(cell)]
    match found.conclusion:
        case "found":
            return "pass", []
        case "max_rate_passed":
            text = f"limited by {limit.words}, {limit.rate_fps:,}/s: all were opened"
            return "pass", [Reason(code="max_rate", message=text)]
        case "nothing_passed":
            return "fail", [_NOTHING]
        case "tester_limited":
            text = f"the tester could not offer the rates above{at_least}"
            return "invalid", [
                Reason(code="sender_behind", message=text, hint=_MORE_CORES)
            ]
        case "unstable":
            text = f"tests stayed invalid when they were repeated{at_least}"
            return "invalid", [
                Reason(code="unstable", message=text, hint=_SEE),
                *tests.troubles,
            ]


_NOTHING = Reason(
    code="nothing_passed",
    message="connections were lost at every rate that was tried",
    hint="is the table large enough, are there enough public ports, and does a hook "
    "empty the table before each test (hooks: bulk_delete)?",
)
_MORE_CORES = (
    "give the testbed more cores or a faster port driver, or set --max-rate to what "
    "the tester can offer"
)
_SEE = "see the trials' reasons; keep other work off the tester's CPUs"


def _expired(cell: Cell) -> Reason:
    stateful = cell.stateful
    timeout_s = stateful.dut_timeout_s if stateful else None
    return Reason(
        code="connections_expire",
        message=f"at the rates that are left a test would last longer than the device "
        f"keeps connections, {timeout_s:g} s",
        hint="raise the device's UDP timeout and --dut-timeout, or open fewer "
        "connections",
    )


def _overall(verdicts: list[VerdictKind]) -> VerdictKind:
    if "invalid" in verdicts:
        return "invalid"
    return "pass" if "pass" in verdicts else "fail"
