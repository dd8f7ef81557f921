"""Maximum connection establishment rate of a stateful gateway (RFC 9693 4.5, 4.6).

Like throughput, but each frame opens a connection; see ``establishing``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dutperf.charts.cells import CellView
from dutperf.charts.text import whole
from dutperf.model.cell import Cell
from dutperf.model.procedure_keys import SearchedKeys
from dutperf.model.stateful_keys import Stateful
from dutperf.procedures.cell_results import of_cell, of_repeats
from dutperf.procedures.conclusions import (
    bound_deviations,
    bound_of,
    spoilt,
    tester_limited,
)
from dutperf.procedures.events import IntervalNarrowed
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.method import Method, OnConnections
from dutperf.procedures.searching import Evidence, NoUseError
from dutperf.procedures.stateful.establishing import (
    Establishing,
    Loss,
    as_deviation,
    expired,
    fastest,
    opened_per_s,
    stateful_of,
    too_short,
    unproven,
)
from dutperf.procedures.stateful.eviction_probe import SLOW_PER_S, probe_eviction
from dutperf.procedures.trials import ATTEMPTS, DeviceTrials, no_rate_helps
from dutperf.protocol.result_messages import Reason, VerdictKind
from dutperf.results import bounds
from dutperf.results.details import Eviction
from dutperf.results.model import CellResult
from dutperf.results.rate_results import RepeatResult
from dutperf.search import Resolution, SearchResult
from dutperf.search.binary import binary_search
from dutperf.tables.connection_tables import connection_table


def measure_connection_rate(
    runner: DeviceTrials, cell: Cell, limit: MaxRate
) -> CellResult:
    """Search ``cell.repeats`` times; the result is the median (RFC 9693 6).

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    limit = fastest(limit, stateful_of(cell).connections)
    searched: list[_Searched] = []
    for repeat in range(1, cell.repeats + 1):
        searched.append(_search(runner, cell, limit, repeat))
        if no_rate_helps(searched[-1].told.reasons):
            break
    eviction = _eviction(searched[-1], stateful_of(cell))
    return _cell_result(cell, limit, searched, eviction)


class _Searched(NamedTuple):
    """One repeat: its tests, and what those of the search say."""

    tests: Establishing
    told: RepeatResult
    losses: list[Loss]


def _cell_result(
    cell: Cell,
    limit: MaxRate,
    searched: Sequence[_Searched],
    eviction: Eviction | None,
) -> CellResult:
    stateful = stateful_of(cell)
    repeats = [each.told for each in searched]
    losses = [loss for each in searched for loss in each.losses]
    of_all = bounds.overall(repeats)
    short: list[Reason] = []
    if of_all.median and not of_all.bound:
        resolution = Resolution.parse(cell.spec_of(SearchedKeys).resolution)
        told = too_short(losses, stateful.connections, of_all.median, resolution)
        short = [told] if told else []
    beside = [*map(as_deviation, short), *bound_deviations(cell, of_all)]
    return CellResult(
        **of_cell(cell, limit, beside),
        **of_repeats(repeats, of_all, beside=short),
        quantity=quantity(stateful),
        eviction=eviction,
    )


def _eviction(last: _Searched, stateful: Stateful) -> Eviction | None:
    """Who survives, where validations lost frames whatever the rate was."""
    tests = last.tests
    if last.told.verdict != "fail" or stateful.alpha is None or tests.last is None:
        return None
    lowest = tests.last.first.load_fps
    rate_per_s = max(lowest, min(SLOW_PER_S, stateful.connections))
    return probe_eviction(tests, stateful, [stateful.connections], rate_per_s)


def quantity(stateful: Stateful) -> str:
    """What the median is."""
    name = (
        f"maximum connection establishment rate, {stateful.connections:,} connections"
    )
    if stateful.alpha is None:
        return f"{name} (RFC 9693 4.5)"
    return f"validated {name}, alpha {stateful.alpha:g} (RFC 9693 4.6)"


def _search(runner: DeviceTrials, cell: Cell, limit: MaxRate, repeat: int) -> _Searched:
    tests = Establishing(runner, cell, repeat)
    stateful = stateful_of(cell)
    try:
        found = binary_search(
            lambda rate_per_s, _duration_s: tests.establish(stateful, rate_per_s),
            max_rate_fps=limit.rate_fps,
            duration_s=1.0,  # follows from the number of connections
            resolution=Resolution.parse(cell.spec_of(SearchedKeys).resolution),
            attempts=ATTEMPTS,
            on_step=lambda step: runner.on_event(
                IntervalNarrowed(step.lower_fps, step.upper_fps)
            ),
        )
    except NoUseError:
        found = SearchResult(tests.passed, None, "unstable", [])
    told = _repeat_result(found, tests, cell, limit)
    return _Searched(tests, told, [*tests.losses])


def _repeat_result(
    found: SearchResult, tests: Establishing, cell: Cell, limit: MaxRate
) -> RepeatResult:
    evidence = tests.troubles.evidence(found.upper_fps, tests.failed_otherwise)
    verdict, reasons = _conclusion(found, evidence, limit)
    if tests.expired:
        # What expires bounds it by itself, whatever spoilt tests before.
        evidence = evidence._replace(troubles=())
        verdict, reasons = "invalid", [expired(stateful_of(cell))]
    value = 0 if verdict == "fail" else found.rate_fps
    bound, cause = bound_of(found.conclusion, value, limit, evidence)
    resolution = Resolution.parse(cell.spec_of(SearchedKeys).resolution)
    passed = tests.opened_at.get(found.rate_fps or 0)
    if passed and (reason := unproven(passed, found.rate_fps or 0, resolution)):
        value, bound, cause = int(opened_per_s(passed)), "lower", "short_tests"
        reasons = [*reasons, reason]
    return RepeatResult(
        value=value,
        verdict=verdict,
        bound=bound,
        bound_cause=cause,
        reasons=reasons,
        trials=tests.trials,
    )


def _conclusion(
    found: SearchResult, evidence: Evidence, limit: MaxRate
) -> tuple[VerdictKind, list[Reason]]:
    match found.conclusion:
        case "found":
            return "pass", []
        case "max_rate_passed":
            text = f"limited by {limit.words}, {limit.rate_fps:,}/s: all were opened"
            return "pass", [Reason(code="max_rate", message=text)]
        case "nothing_passed":
            otherwise = evidence.otherwise
            return "fail", [_FAILED, *otherwise] if otherwise else [_NOTHING]
        case "tester_limited":
            return tester_limited(found.rate_fps, evidence)
        case "unstable":
            return spoilt(found.rate_fps, evidence)


_NOTHING = Reason(
    code="nothing_passed",
    message="connections were lost at every rate that was tried",
    hint="is the table large enough, are there enough public ports, and does a hook "
    "empty the table before each test (hooks: bulk_delete)?",
)
_FAILED = Reason(
    code="nothing_passed", message="tests failed at every rate that was tried"
)


def _meaning(cell: CellView) -> str:
    proof = "each used once more" if cell.validated else "not validated"
    return f"New connections opened, of {whole(cell.connections)}, {proof}"


METHOD = Method(
    "connection-rate",
    OnConnections(measure_connection_rate),
    _meaning,
    table=connection_table,
)
