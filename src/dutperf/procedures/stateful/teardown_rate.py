"""What is done with a device's connections after phase 1, and what it took.

The hooks that do it are in the trial's record, with their times; all figures are made
of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from dutperf import stats
from dutperf.charts.cells import CellView
from dutperf.charts.text import whole
from dutperf.config.testbed import Hook
from dutperf.model.cell import Cell
from dutperf.model.stateful_keys import Stateful
from dutperf.procedures.cell_results import of_cell, of_repeats
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.method import Method, OnConnections
from dutperf.procedures.searching import NoUseError
from dutperf.procedures.stateful.connection_diagnosis import agrees, number_in
from dutperf.procedures.stateful.establishing import Establishing, fastest, stateful_of
from dutperf.procedures.trials import (
    ATTEMPTS,
    DeviceTrials,
    fails_without_loss,
    no_rate_helps,
)
from dutperf.protocol.result_messages import Reason, TrialResult, VerdictKind
from dutperf.results.details import CountAt, Expiry, TeardownRate
from dutperf.results.model import CellResult
from dutperf.results.rate_results import RepeatResult
from dutperf.results.trial_record import HookMoment, HookRun, TrialRecord
from dutperf.results.units import about
from dutperf.search import attempted
from dutperf.tables.connection_tables import connection_table, teardown_table
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import Table

_EMPTY_DELETIONS = 5
_NOISE_RATIO = 20
"""What deleting takes must be so many times what empty deletions differ by: 5 %."""
_POLLS = 200
_LEAST_WAIT_S = 0.02
_LONGEST_RATIO, _COLLECTION_S = 3, 150
"""Linux looks for expired connections once a minute or two only."""
_LATE_WAIT_S = 0.25
_MOST_TIMES = 1000
_BEGUN, _DONE = 0.9, 0.1


@dataclass(frozen=True)
class Found:
    """One repeat; with ``reasons`` it is not proven."""

    part: TeardownRate | Expiry
    reasons: list[Reason]

    @property
    def rate_per_s(self) -> float | None:
        """Connections a second."""
        return self.part.rate_per_s


def delete_all(
    runner: DeviceTrials, _stateful: Stateful, _rate_per_s: int
) -> list[HookRun]:
    """Delete all connections, then, several times, none; up to what fails."""
    count: tuple[Hook | None, HookMoment] = (runner.hooks.table_count, "table_count")
    delete: tuple[Hook | None, HookMoment] = (runner.hooks.bulk_delete, "teardown")
    plan = [count, delete, count, *[delete] * _EMPTY_DELETIONS]
    runs: list[HookRun] = []
    began_s = runner.clock()
    for hook, moment in plan:
        if hook:
            runs += _timed(runner, hook, moment, began_s)
            if not runs[-1].succeeded:
                break
    return runs


def watch(runner: DeviceTrials, stateful: Stateful, rate_per_s: int) -> list[HookRun]:
    """Count connections until there are none, or for three times as long as they live.

    About 200 times while they should live; then, for what collects them late, four
    times a second.
    """
    hook = runner.hooks.table_count
    lives_s = (stateful.dut_timeout_s or 0) + stateful.connections / rate_per_s
    wait_s = max(_LEAST_WAIT_S, lives_s / _POLLS)
    runs: list[HookRun] = []
    began_s = runner.clock()
    longest_s = max(_LONGEST_RATIO * lives_s, lives_s + _COLLECTION_S)
    while hook and (passed_s := runner.clock() - began_s) < longest_s:
        runs += _timed(runner, hook, "table_count", began_s)
        if not runs[-1].succeeded or not (number_in(runs[-1]) or 0):
            break
        late = passed_s > _LONGEST_RATIO / 2 * lives_s
        runner.sleep(max(wait_s, _LATE_WAIT_S) if late else wait_s)
    return runs


def deleted(runs: Sequence[HookRun], stateful: Stateful) -> Found:
    """What ``delete_all`` found."""
    counts = [number_in(run) for run in runs if run.moment == "table_count"]
    times_s = [run.duration_s for run in runs if run.moment == "teardown"]
    full_s, empty_s = times_s[0], times_s[1:]
    command_s = stats.median(empty_s)
    noise_s = max(empty_s) - min(empty_s)
    net_s = full_s - command_s
    too_short = net_s <= 0 or net_s < _NOISE_RATIO * noise_s
    before, after = (counts[0], counts[-1]) if counts else (None, None)
    reasons = list(_counted(before, after, stateful.connections))
    if too_short:
        reasons.append(_too_short(full_s, command_s, noise_s, stateful.connections))
    return Found(
        TeardownRate(
            connections=stateful.connections,
            counted_before=before,
            counted_after=after,
            delete_s=full_s,
            empty_s=empty_s,
            command_s=command_s,
            rate_per_s=None if too_short else stateful.connections / net_s,
            rfc_rate_per_s=stateful.connections / full_s if full_s > 0 else None,
        ),
        reasons,
    )


def expired(runs: Sequence[HookRun], stateful: Stateful) -> Found:
    """What ``watch`` found."""
    counts = [
        CountAt(after_s=run.after_s or 0, connections=number)
        for run in runs
        if run.moment == "table_count" and (number := number_in(run)) is not None
    ]
    total = stateful.connections
    begins_s, ends_s = _passes(counts, _BEGUN * total), _passes(counts, _DONE * total)
    seen = any(_DONE * total < count.connections < _BEGUN * total for count in counts)
    rate = None
    if seen and begins_s is not None and ends_s is not None and ends_s > begins_s:
        rate = (_BEGUN - _DONE) * total / (ends_s - begins_s)
    reasons = list(_counted(counts[0].connections if counts else None, None, total))
    if rate is None and not reasons:
        reasons.append(_did_not_expire(counts, stateful))
    part = Expiry(
        connections=total,
        counts=counts,
        begins_s=begins_s,
        ends_s=ends_s,
        rate_per_s=rate,
    )
    return Found(part, reasons)


def _timed(
    runner: DeviceTrials, hook: Hook, moment: HookMoment, began_s: float
) -> list[HookRun]:
    after_s = round(runner.clock() - began_s, 6)
    runs = runner.run_hooks([hook], moment)
    return [run.model_copy(update={"after_s": after_s}) for run in runs]


def _passes(counts: Sequence[CountAt], number: float) -> float | None:
    """When there were so many; between two counts, in proportion."""
    for one, other in pairwise(counts):
        if one.connections >= number > other.connections:
            share = (one.connections - number) / (one.connections - other.connections)
            return one.after_s + share * (other.after_s - one.after_s)
    return None


def _counted(before: int | None, after: int | None, total: int) -> list[Reason]:
    """Where the device's own counts are not what they should be."""
    if before is not None and not agrees(before, total):
        return [
            Reason(
                code="table_disagrees",
                message=f"{total:,} connections were opened, but the device counts "
                f"{before:,}",
                hint="is the table large enough, the timeout long enough, and does "
                "the hook table_count print that number first?",
            )
        ]
    if after is not None and not agrees(total + after, total):
        return [
            Reason(
                code="table_disagrees",
                message=f"the device still counts {after:,} connections after it "
                "deleted them: it only marks them",
                hint="give a hook bulk_delete that ends when they are gone",
            )
        ]
    return []


def _too_short(
    full_s: float, command_s: float, noise_s: float, connections: int
) -> Reason:
    net_s = full_s - command_s
    enough = _NOISE_RATIO * noise_s / net_s if net_s > 0 else math.inf
    more = f", about {2 * enough * connections:,.0f}" if enough < _MOST_TIMES else ""
    full, command, noise = (about(s * 1000, 3) for s in (full_s, command_s, noise_s))
    return Reason(
        code="too_short",
        message=f"deleting took {full} ms, the command alone {command} ms, give or "
        f"take {noise} ms: too close to tell",
        hint=f"open more connections (--connections){more}",
    )


def _did_not_expire(counts: Sequence[CountAt], stateful: Stateful) -> Reason:
    last = counts[-1] if counts else None
    told = (
        f": {last.connections:,} are left after {about(last.after_s, 3)} s"
        if last
        else ""
    )
    return Reason(
        code="too_short",
        message=f"connections were not seen to expire one by one{told}",
        hint=f"is the device's timeout {stateful.dut_timeout_s:g} s (--dut-timeout)? "
        "If all go between two counts, open more, or more slowly",
    )


# How fast a stateful gateway gets rid of connections (RFC 9693 4.8).
#
# All at once, by the hook bulk_delete, whose time on the empty table is taken off: what
# the command itself takes, to be started, to reach the device, says nothing of the
# connections. Or, with ``expiry``, one by one, watched by the hook table_count: that is
# another thing to do for a device. One that deletes each in its time is as fast as they
# were opened; one that collects late may be faster.


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


def _meaning(cell: CellView) -> str:
    return f"Connections deleted, {whole(cell.connections)} at once"


def _tables(cell: Subject) -> Iterator[Table]:
    if cell.result and cell.result.teardown:
        yield teardown_table(cell)


METHOD = Method(
    "teardown-rate",
    OnConnections(measure_teardown_rate),
    _meaning,
    connection_table,
    _tables,
)
