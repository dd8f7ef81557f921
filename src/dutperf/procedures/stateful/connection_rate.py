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
    Opened,
    expired,
    fastest,
    opened_per_s,
    stateful_of,
    unproven,
)
from dutperf.procedures.trials import ATTEMPTS, DeviceTrials, no_rate_helps
from dutperf.protocol.result_messages import Reason, TrialResult, VerdictKind
from dutperf.protocol.stream_parts import Survival
from dutperf.results import bounds
from dutperf.results.details import Eviction, Picture
from dutperf.results.model import CellResult
from dutperf.results.rate_results import RepeatResult
from dutperf.search import Resolution, SearchResult, attempted
from dutperf.search.binary import binary_search
from dutperf.stats.survival import Ranges, oldest_kind, survivors
from dutperf.tables.connection_tables import connection_table


def measure_connection_rate(
    runner: DeviceTrials, cell: Cell, limit: MaxRate, quantity: str = ""
) -> CellResult:
    """Search ``cell.repeats`` times; the result is the median (RFC 9693 6).

    ``quantity``: what that is, of open connections that are used.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    limit = fastest(limit, stateful_of(cell).connections)
    searched: list[_Searched] = []
    for repeat in range(1, cell.repeats + 1):
        searched.append(_search(runner, cell, limit, repeat))
        if no_rate_helps(searched[-1].told.reasons):
            break
    repeats = [each.told for each in searched]
    of_all = bounds.overall(repeats)
    return CellResult(
        **of_cell(cell, limit, bound_deviations(cell, of_all)),
        **of_repeats(repeats, of_all),
        quantity=quantity or _quantity(stateful_of(cell)),
        eviction=_eviction(searched[-1], stateful_of(cell)),
    )


class _Searched(NamedTuple):
    """One repeat: its tests, and what those of the search say."""

    tests: Establishing
    told: RepeatResult


def _eviction(last: _Searched, stateful: Stateful) -> Eviction | None:
    """Who survives, where validations lost frames whatever the rate was."""
    tests = last.tests
    if last.told.verdict != "fail" or stateful.alpha is None or tests.last is None:
        return None
    lowest = tests.last.first.load_fps
    rate_per_s = max(lowest, min(SLOW_PER_S, stateful.connections))
    return probe_eviction(tests, stateful, [stateful.connections], rate_per_s)


def _quantity(stateful: Stateful) -> str:
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
    return _Searched(tests, _repeat_result(found, tests, cell, limit))


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
            text = f"limited by {limit.words}, {limit.rate_fps:,}/s: none was lost"
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


# Which connections survive when more are opened than the table holds (RFC 9693 4.9).
#
# Each of them is tried once, whatever became of its first frame; those whose first
# frame did not arrive were never there, even if a frame that was sent for them came
# back.


SLOW_PER_S = 1000
"""A rate at which no device loses a connection for its speed."""
_MOST_RANGES = 100


def numbers_beyond(capacity: int, most: int) -> list[int]:
    """How many connections to open: about 1.5 and 2 times the capacity, if there are.

    The two differ by a prime number, so that no size of a chunk divides it: a device
    that drops chunks keeps another number each time.
    """
    first = min(capacity + max(1, capacity // 2), most)
    second = min(first + _prime_up_to(max(2, capacity // 2)), most)
    return sorted({number for number in (first, second) if number > capacity})


def probe_eviction(
    tests: Establishing, stateful: Stateful, numbers: Sequence[int], rate_per_s: int
) -> Eviction | None:
    """What the device evicts, by the survivors of each of ``numbers``.

    None where no trial told anything.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    pictures = [
        picture
        for number in numbers
        if (picture := _picture(tests, stateful.with_connections(number), rate_per_s))
    ]
    return eviction(pictures) if pictures else None


def eviction(pictures: Sequence[Picture]) -> Eviction:
    """The policy that the last picture shows, and what two of them tell."""
    last = pictures[-1]
    oldest = oldest_kind(pictures)
    words = last.words
    if oldest:  # others have no such words
        named = {"one_by_one": "one by one", "chunks": "in chunks"}[oldest]
        words = words.replace("one by one or in chunks", named)
    return Eviction(
        policy=last.policy, oldest=oldest, words=words, pictures=list(pictures)
    )


def opened_and_used(
    tests: Establishing, stateful: Stateful, rate_per_s: int
) -> Opened | None:
    """Both phases, whatever the first one lost; again while they are invalid.

    None where no test told anything.
    """
    each = (
        tests.both(stateful, rate_per_s, goes_on=("pass", "fail"))
        for _ in range(ATTEMPTS)
    )
    try:
        opened = attempted(each, lambda tried: tried[-1].tells_nothing)[-1]
    except NoUseError:
        return None
    return None if opened.tells_nothing else opened


def _picture(
    tests: Establishing, stateful: Stateful, rate_per_s: int
) -> Picture | None:
    opened = opened_and_used(tests, stateful, rate_per_s)
    return picture_of(opened, stateful) if opened else None


def picture_of(opened: Opened, stateful: Stateful) -> Picture | None:
    """Of both phases of one test; None where there was but one."""
    if opened.back is None:
        return None
    total = stateful.connections
    first, back = survival(opened.first.result), survival(opened.back.result)
    if first is None or back is None:
        return None
    size = back.block_frames
    lost = lost_of(first, back)
    if lost is None:
        pairs = zip(first.received, back.received, strict=True)
        blocks = [min(pair) for pair in pairs]
        lost = _spread(blocks, size, total)
    else:
        blocks = _by_block(lost, size, total)
    opened_first = sum(first.received)
    return Picture(
        **vars(survivors(total, lost, total - opened_first)),
        opened=opened_first,
        rate_per_s=opened.first.load_fps,
        block_connections=size,
        blocks=blocks,
        lost_ranges=lost[:_MOST_RANGES],
        more_ranges=max(0, len(lost) - _MOST_RANGES),
    )


def survival(result: TrialResult) -> Survival | None:
    """Which frames of a phase arrived."""
    return result.directions[0].streams[0].survival


def lost_of(opened: Survival, used: Survival) -> Ranges | None:
    """Connections that one of both phases lost: rising, without overlap.

    None: of one they are too many to be listed.
    """
    if opened.more_ranges or used.more_ranges:
        return None
    found: Ranges = []
    for first, count in sorted([*opened.lost_ranges, *used.lost_ranges]):
        if found and first <= sum(found[-1]):
            begin = found[-1][0]
            found[-1] = (begin, max(sum(found[-1]), first + count) - begin)
        else:
            found.append((first, count))
    return found


def _spread(blocks: Sequence[int], size: int, total: int) -> Ranges:
    """Ranges that say of each block no more than how many were lost in it."""
    found: Ranges = []
    for number, alive in enumerate(blocks):
        end = min((number + 1) * size, total)
        begin = number * size + alive
        if end > begin:
            found.append((begin, end - begin))
    return found


def _by_block(lost: Ranges, size: int, total: int) -> list[int]:
    """How many of each block survived."""
    blocks = [min(size, total - begin) for begin in range(0, total, size)]
    for first, count in lost:
        at = first
        while at < first + count:
            end = min((at // size + 1) * size, first + count)
            blocks[at // size] -= end - at
            at = end
    return blocks


def _prime_up_to(number: int) -> int:
    """The largest one."""
    return next(n for n in range(number, 1, -1) if _is_prime(n))


def _is_prime(number: int) -> bool:
    return all(number % d for d in range(2, int(number**0.5) + 1))
