"""What is done with a device's connections after phase 1, and what it took.

The hooks that do it are in the trial's record, with their times; all figures are made
of these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dutperf import stats
from dutperf.config.hooks import Hook
from dutperf.config.stateful_keys import Stateful
from dutperf.procedures.stateful.counting import agrees, number_in
from dutperf.procedures.trials import DeviceTrials
from dutperf.protocol import Reason
from dutperf.results.connection_results import CountAt, Expiry, TeardownRate
from dutperf.results.trial_record import HookMoment, HookRun
from dutperf.results.units import about

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
