"""How fast a stateful gateway gets rid of connections (RFC 9693 4.8).

All at once, by the hook bulk_delete, whose time on the empty table is taken off: what
the command itself takes, to be started, to reach the device, says nothing of the
connections. Or, with ``expiry``, one by one, watched by the hook table_count: that is
another thing to do for a device. One that deletes each in its time is as fast as they
were opened; one that collects late may be faster.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from dutperf.config import Cell
from dutperf.config.stateful_keys import Stateful
from dutperf.procedures.cell_results import of_cell, of_repeats
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.searching import NoUseError
from dutperf.procedures.stateful.establishing import Establishing, fastest, stateful_of
from dutperf.procedures.stateful.tear_down import (
    Found,
    delete_all,
    deleted,
    expired,
    watch,
)
from dutperf.procedures.trial_verdicts import (
    ATTEMPTS,
    fails_without_loss,
    no_rate_helps,
)
from dutperf.procedures.trials import DeviceTrials
from dutperf.protocol import Reason, TrialResult, VerdictKind
from dutperf.results.connection_results import Expiry, TeardownRate
from dutperf.results.model import CellResult
from dutperf.results.rate_results import RepeatResult
from dutperf.results.trial_record import HookRun, TrialRecord
from dutperf.search.attempts import attempted


def measure_teardown_rate(
    runner: DeviceTrials, cell: Cell, limit: MaxRate
) -> CellResult:
    """Open and delete ``cell.repeats`` times; the result is the median (RFC 9693 6).

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    stateful = stateful_of(cell)
    limit = fastest(limit, stateful.connections)
    torn_down: list[_TornDown] = []
    for repeat in range(1, cell.repeats + 1):
        torn_down.append(_repeat(runner, cell, repeat, limit.rate_fps))
        if no_rate_helps(torn_down[-1].told.reasons):
            break
    repeats = [each.told for each in torn_down]
    parts = [each.found.part for each in torn_down if each.found]
    return CellResult(
        **of_cell(cell, limit),
        **of_repeats(repeats),
        quantity=_quantity(stateful),
        teardown=[part for part in parts if isinstance(part, TeardownRate)],
        expiry=[part for part in parts if isinstance(part, Expiry)],
    )


class _TornDown(NamedTuple):
    """One repeat: as it is stored, and what was found if connections were opened."""

    told: RepeatResult
    found: Found | None


def _quantity(stateful: Stateful) -> str:
    name = f"connection tear-down rate, {stateful.connections:,} connections"
    if stateful.expiry:
        return f"{name} that expire one by one (RFC 9693 4.8)"
    return f"{name} deleted at once (RFC 9693 4.8)"


def _repeat(
    runner: DeviceTrials, cell: Cell, repeat: int, rate_per_s: int
) -> _TornDown:
    tests = Establishing(runner, cell, repeat)
    stateful = stateful_of(cell)
    afterwards = partial(_afterwards, runner, stateful, rate_per_s)
    opened = (tests.opened(stateful, rate_per_s, afterwards) for _ in range(ATTEMPTS))
    try:
        last = attempted(opened, lambda tried: tried[-1].tells_nothing)[-1]
        reasons, found = _told(last.first, stateful)
    except NoUseError:
        reasons, found = tests.troubles.at(rate_per_s), None
    value = found.rate_per_s if found else None
    verdict: VerdictKind = "invalid" if reasons else "pass"
    told = RepeatResult(
        value=value if verdict == "pass" else None,
        verdict=verdict,
        reasons=reasons,
        trials=tests.trials,
    )
    return _TornDown(told, found)


def _afterwards(
    runner: DeviceTrials, stateful: Stateful, rate_per_s: int, result: TrialResult
) -> list[HookRun]:
    """Where all were opened, delete them, or watch them expire."""
    if result.verdict.kind != "pass":
        return []
    return (watch if stateful.expiry else delete_all)(runner, stateful, rate_per_s)


def _told(record: TrialRecord, stateful: Stateful) -> tuple[list[Reason], Found | None]:
    verdict = record.result.verdict
    if verdict.kind == "fail":
        return fails_without_loss(verdict) or [_not_opened(record)], None
    if verdict.kind == "invalid":
        return verdict.reasons, None
    found = (expired if stateful.expiry else deleted)(record.hooks, stateful)
    return found.reasons, found


def _not_opened(record: TrialRecord) -> Reason:
    return Reason(
        code="frames_lost",
        message=f"connections were lost while they were opened, at "
        f"{record.load_fps:,}/s: there is nothing to delete",
        hint="take a lower --rate than connection-rate finds, and fewer connections "
        "than the table holds",
    )
