"""Maximum connection establishment rate of a stateful gateway (RFC 9693 4.5, 4.6).

Like throughput, but each frame opens a connection; see ``establishing``.
"""

from __future__ import annotations

from dutperf.config import Cell
from dutperf.config.specs import SearchedKeys
from dutperf.config.stateful_keys import Stateful
from dutperf.procedures.cell_results import of_cell, of_repeats
from dutperf.procedures.conclusions import (
    bound_deviations,
    bound_of,
    spoilt,
    tester_limited,
)
from dutperf.procedures.events import IntervalNarrowed
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.searching import NoUseError
from dutperf.procedures.stateful.establishing import (
    Establishing,
    expired,
    fastest,
    stateful_of,
)
from dutperf.procedures.stateful.eviction_probe import SLOW_PER_S, survey
from dutperf.procedures.stateful.short_tests import Loss, as_deviation, too_short
from dutperf.procedures.trial_verdicts import ATTEMPTS, no_rate_helps
from dutperf.procedures.trials import DeviceTrials
from dutperf.protocol import Reason, VerdictKind
from dutperf.results import bounds
from dutperf.results.connection_results import Eviction
from dutperf.results.model import CellResult
from dutperf.results.rate_results import RepeatResult
from dutperf.search import Outcome, Resolution, SearchResult, Step, binary_search


def measure_connection_rate(
    runner: DeviceTrials, cell: Cell, limit: MaxRate
) -> CellResult:
    """Search ``cell.repeats`` times; the result is the median (RFC 9693 6).

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    stateful = stateful_of(cell)
    limit = fastest(limit, stateful.connections)
    repeats: list[RepeatResult] = []
    losses: list[Loss] = []
    for repeat in range(1, cell.repeats + 1):
        tests = Establishing(runner, cell, repeat)
        repeats.append(_search(runner, tests, cell, limit))
        losses += tests.losses
        if no_rate_helps(repeats[-1].reasons):
            break
    eviction = _eviction(tests, stateful, repeats[-1])
    of_all = bounds.overall(repeats)
    short: list[Reason] = []
    if of_all.median and not of_all.bound:
        resolution = Resolution.parse(cell.spec_of(SearchedKeys).resolution)
        told = too_short(losses, stateful.connections, of_all.median, resolution)
        short = [told] if told else []
    return CellResult(
        **of_cell(
            cell,
            limit,
            [*map(as_deviation, short), *bound_deviations(cell, of_all)],
        ),
        **of_repeats(repeats, of_all, beside=short),
        quantity=quantity(stateful),
        eviction=eviction,
    )


def _eviction(
    tests: Establishing, stateful: Stateful, last: RepeatResult
) -> Eviction | None:
    """Who survives, where validations lost frames whatever the rate was."""
    if last.verdict != "fail" or stateful.alpha is None or tests.last is None:
        return None
    lowest = tests.last.first.load_fps
    rate_per_s = max(lowest, min(SLOW_PER_S, stateful.connections))
    return survey(tests, stateful, [stateful.connections], rate_per_s)


def quantity(stateful: Stateful) -> str:
    """What the median is."""
    name = (
        f"maximum connection establishment rate, {stateful.connections:,} connections"
    )
    if stateful.alpha is None:
        return f"{name} (RFC 9693 4.5)"
    return f"validated {name}, alpha {stateful.alpha:g} (RFC 9693 4.6)"


def _search(
    runner: DeviceTrials, tests: Establishing, cell: Cell, limit: MaxRate
) -> RepeatResult:
    def measure(rate_per_s: int, _duration_s: float) -> Outcome:
        return tests.establish(stateful_of(cell), rate_per_s)

    def on_step(step: Step) -> None:
        runner.on_event(IntervalNarrowed(step.lower_fps, step.upper_fps))

    try:
        found = binary_search(
            measure,
            max_rate_fps=limit.rate_fps,
            duration_s=1.0,  # follows from the number of connections
            resolution=Resolution.parse(cell.spec_of(SearchedKeys).resolution),
            attempts=ATTEMPTS,
            on_step=on_step,
        )
    except NoUseError:
        found = SearchResult(tests.passed, None, "unstable", [])
    verdict, reasons = _conclusion(found, tests, cell, limit)
    value = 0 if verdict == "fail" else found.rate_fps
    # What expires bounds it by itself, whatever spoilt tests before.
    troubles = [] if tests.expired else tests.troubles.at(found.upper_fps)
    bound, cause = bound_of(
        found.conclusion, value, limit, troubles, held_back=tests.troubles.held_back
    )
    return RepeatResult(
        value=value,
        verdict=verdict,
        bound=bound,
        bound_cause=cause,
        reasons=reasons,
        trials=tests.trials,
    )


def _conclusion(
    found: SearchResult, tests: Establishing, cell: Cell, limit: MaxRate
) -> tuple[VerdictKind, list[Reason]]:
    if tests.expired:
        return "invalid", [expired(stateful_of(cell))]
    match found.conclusion:
        case "found":
            return "pass", []
        case "max_rate_passed":
            text = f"limited by {limit.words}, {limit.rate_fps:,}/s: all were opened"
            return "pass", [Reason(code="max_rate", message=text)]
        case "nothing_passed":
            otherwise = tests.failed_otherwise
            return "fail", [_FAILED, *otherwise] if otherwise else [_NOTHING]
        case "tester_limited":
            return tester_limited(found.rate_fps, held_back=tests.troubles.held_back)
        case "unstable":
            return spoilt(found.rate_fps, tests.troubles.at(found.upper_fps))


_NOTHING = Reason(
    code="nothing_passed",
    message="connections were lost at every rate that was tried",
    hint="is the table large enough, are there enough public ports, and does a hook "
    "empty the table before each test (hooks: bulk_delete)?",
)
_FAILED = Reason(
    code="nothing_passed", message="tests failed at every rate that was tried"
)
