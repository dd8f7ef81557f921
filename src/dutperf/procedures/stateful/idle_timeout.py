"""How long a connection is kept that nobody uses (RFC 4787 REQ-5, RFC 5382 REQ-5).

Many connections are opened at once and then used once each, slowly, in the same order:
each is idle longer than the one before. The first that does not work any more, and
with it all that follow, has been idle for longer than the device waits.

    opened     |||||||||
    used                 |        |        |        |        |        |
    idle for             0       10       20       30       40       50 s
    works                yes     yes      yes      no       no       no

One trial tells all of it. What is lost between connections that work is no timeout:
then nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dutperf.charts.cells import CellView
from dutperf.model.cell import Cell
from dutperf.model.frames import translates
from dutperf.model.specs import IdleTimeoutSpec
from dutperf.procedures.cell_results import of_cell, of_repeats
from dutperf.procedures.conclusions import bound_deviations
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.method import Method, OnConnections
from dutperf.procedures.searching import NoUseError
from dutperf.procedures.stateful.establishing import (
    Establishing,
    Opened,
    not_opened,
    stateful_of,
)
from dutperf.procedures.trials import (
    ATTEMPTS,
    DeviceTrials,
    fails_without_loss,
    no_rate_helps,
)
from dutperf.protocol.result_messages import Reason, VerdictKind
from dutperf.results import bounds
from dutperf.results.model import CellResult
from dutperf.results.rate_results import RepeatResult
from dutperf.search import attempted
from dutperf.tables.result_tables import ENDING, EXTREMES, title
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import Column, Columns, Table, duration, heads, rows

_S = 10**9


class Least(NamedTuple):
    """How long the RFCs have a device wait at least."""

    rfc: str
    seconds: int


_UDP = Least("RFC 4787 REQ-5", 120)
_OF_TCP = {
    "established": Least("RFC 5382 REQ-5", 7440),
    "half-open": Least("RFC 5382 REQ-5", 240),
}


def least_of(spec: IdleTimeoutSpec) -> Least:
    """Of that state; NAT64 has the same numbers in RFC 6146 4."""
    least = _OF_TCP.get(spec.state, _UDP)
    return least._replace(rfc="RFC 6146 4") if translates(spec.ip[0]) else least


def measure_idle_timeout(
    runner: DeviceTrials, cell: Cell, limit: MaxRate
) -> CellResult:
    """Let connections wait ``cell.repeats`` times; the result is the median.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    repeats: list[RepeatResult] = []
    for repeat in range(1, cell.repeats + 1):
        repeats.append(_repeat(runner, cell, repeat))
        if no_rate_helps(repeats[-1].reasons):
            break
    state = cell.spec_of(IdleTimeoutSpec).words
    of_all = bounds.overall(repeats)
    return CellResult(
        **of_cell(cell, limit, bound_deviations(cell, of_all)),
        **of_repeats(repeats, of_all),
        quantity=f"longest time without packets after which {state} still works",
    )


def _repeat(runner: DeviceTrials, cell: Cell, repeat: int) -> RepeatResult:
    spec = cell.spec_of(IdleTimeoutSpec)
    tests = Establishing(runner, cell, repeat)
    # The test is about what outlives the timeout.
    stateful = stateful_of(cell).model_copy(update={"dut_timeout_s": None})
    rate_per_s = spec.uses_per_s(stateful.connections)
    opened = (tests.both(stateful, rate_per_s) for _ in range(ATTEMPTS))
    try:
        last = attempted(opened, lambda tried: tried[-1].tells_nothing)[-1]
    except NoUseError:
        reasons = tests.troubles.at(rate_per_s)
        return _told(None, "invalid", reasons, tests.trials)
    return _judged(last, stateful.connections, tests.trials)


def _judged(opened: Opened, connections: int, trials: int) -> RepeatResult:
    if opened.back is None:
        verdict = opened.first.result.verdict
        reasons = verdict.reasons if verdict.kind == "invalid" else []
        return _told(None, "invalid", reasons or [not_opened(opened.first)], trials)
    verdict = opened.back.result.verdict
    if verdict.kind == "invalid" or fails_without_loss(verdict):
        return _told(None, "invalid", verdict.reasons, trials)
    (stream,) = opened.back.result.directions[0].streams
    lost = stream.survival.lost_ranges if stream.survival else []
    gone = _gone_from(lost, connections)
    strays = stream.lost - (connections - gone)
    if strays:
        return _told(None, "invalid", [_strays(strays, gone)], trials)
    if gone == 0:
        reason = Reason(
            code="nothing_passed",
            message="no connection works, not even after "
            f"{duration(_idle_ns(opened, 0), 3)}",
            hint="probe sooner: more connections, a shorter --hold",
        )
        return _told(0, "fail", [reason], trials)
    value = _idle_ns(opened, gone - 1)
    if gone < connections:
        return _told(value, "pass", [], trials)
    return RepeatResult(
        value=value,
        verdict="pass",
        bound="lower",
        bound_cause="kept",
        reasons=[],
        trials=trials,
    )


def _gone_from(lost: Sequence[tuple[int, int]], connections: int) -> int:
    """The first of those that are all gone, up to the last one."""
    first, count = lost[-1] if lost else (connections, 0)
    return first if first + count == connections else connections


def _idle_ns(opened: Opened, connection: int) -> int:
    """From the frame that opened it until the one that used it, as both were due."""
    assert opened.back is not None  # noqa: S101 - it was used
    due_ns = [
        (record.result.begin_unix_ns or 0)
        + connection * _S // record.request.directions[0].rate_fps
        for record in (opened.first, opened.back)
    ]
    return due_ns[1] - due_ns[0]


def _told(
    value: float | None, verdict: VerdictKind, reasons: list[Reason], trials: int
) -> RepeatResult:
    return RepeatResult(value=value, verdict=verdict, reasons=reasons, trials=trials)


def _strays(strays: int, gone: int) -> Reason:
    return Reason(
        code="frames_lost",
        message=f"{strays:,} connections do not work, though some that were idle "
        f"longer do (all up to number {gone:,} should)",
        hint="that is no timeout: open more slowly (--phase1-rate), and no more than "
        "the table holds",
    )


def _state(cell: Subject) -> str:
    spec = cell.spec
    return spec.state if isinstance(spec, IdleTimeoutSpec) else ""


def _asked(cell: Subject) -> str:
    if not isinstance(cell.spec, IdleTimeoutSpec):
        return ""
    least = least_of(cell.spec)
    return f"{least.seconds:,} s ({least.rfc})"


def _is_met(cell: Subject) -> str:
    """The first that is gone was idle for a step longer than the last that works."""
    result, spec = cell.result, cell.spec
    if result is None or cell.opened is None or not isinstance(spec, IdleTimeoutSpec):
        return ""
    least_ns = least_of(spec).seconds * _S
    if result.verdict != "pass" or result.median is None:
        return "cannot tell"
    if result.median >= least_ns:
        return "met"
    gone_ns = result.median + _S / spec.uses_per_s(cell.opened.connections)
    return "cannot tell" if result.bound or gone_ns > least_ns else "not met"


_NOTE = (
    "Opened at once and used once each, slowly: the longest time without packets after "
    "which a connection still worked"
)


def _table(key: str, cells: Sequence[Subject]) -> Table:
    columns: Columns[Subject] = (
        (
            Column("traffic", "IP versions.", spared=6, words=True),
            lambda cell: f"{cell.versions}{cell.at}",
        ),
        (Column("state", "Of the connections.", words=True), _state),
        (
            Column("works after", "So long without packets.", tone="strong"),
            lambda cell: cell.figure,
        ),
        (
            Column("RFC asks for", "A device waits at least so long.", words=True),
            _asked,
        ),
        (Column("requirement", "Whether it does.", words=True), _is_met),
        *(EXTREMES if any(cell.several for cell in cells) else ()),
        *ENDING,
    )
    return Table(
        key=key,
        title=title(cells),
        columns=heads(columns),
        rows=rows(columns, cells, lambda cell: cell.id),
        notes=(_NOTE,),
    )


def _meaning(cell: CellView) -> str:
    spec = cell.spec
    state = spec.words if isinstance(spec, IdleTimeoutSpec) else "a connection"
    return f"So long without packets, and {state} still works"


METHOD = Method(
    "idle-timeout",
    OnConnections(measure_idle_timeout),
    _meaning,
    table=_table,
)
