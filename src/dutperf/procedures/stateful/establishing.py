"""The elementary test of a stateful gateway: open all connections, then use each once.

Phase 1 passes when all N frames arrive (RFC 9693 4.5). That they arrived does not prove
that the device remembers them; validated, each must also let a frame back, sent at
``alpha`` times the rate (4.6). The device's table is emptied before each test, by the
testbed's hooks.

A device that forgets what was too much for it forgets the burst after a stall of the
tester, too. So a validation which misses nothing but connections that were opened in
the shadow of such a stall, and no more than it can have cost, tells nothing of the rate
(``docs/adr/0001``): the test is made again.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import NoReturn

from dutperf.config import Cell
from dutperf.config.stateful_keys import Stateful
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.searching import NoUseError, Troubles, outcome
from dutperf.procedures.stateful.connection_diagnosis import unexpected_reasons
from dutperf.procedures.stateful.counting import Counting
from dutperf.procedures.stateful.phases import SHORTEST_NS, phase1, validation
from dutperf.procedures.stateful.short_tests import Loss
from dutperf.procedures.trial_verdicts import (
    ATTEMPTS,
    fails_beside_loss,
    fails_without_loss,
    no_rate_helps,
)
from dutperf.procedures.trials import PASSED, Afterwards, Ask, DeviceTrials
from dutperf.protocol import Reason, Shadow, TrialResult, Verdict, VerdictKind
from dutperf.results.trial_record import TrialRecord
from dutperf.search import Outcome


def stateful_of(cell: Cell) -> Stateful:
    """What a cell of a procedure about connections has."""
    assert cell.stateful is not None, f"{cell.id} opens connections"  # noqa: S101
    return cell.stateful


def fastest(limit: MaxRate, connections: int) -> MaxRate:
    """``limit``, or the rate at which so many take the shortest trial there is."""
    most = connections * 10**9 // SHORTEST_NS
    if limit.rate_fps <= most:
        return limit
    detail = f"the rate at which {connections:,} connections take the shortest trial"
    return replace(limit, rate_fps=most, kind="tester", detail=detail, line_rate=False)


@dataclass
class Opened:
    """Both phases of one test; ``back`` is None if there was no second one."""

    first: TrialRecord
    back: TrialRecord | None = None

    @property
    def last(self) -> TrialRecord:
        """The one that decides."""
        return self.back or self.first

    @property
    def tells_nothing(self) -> bool:
        """Whether it is invalid."""
        return self.last.result.verdict.kind == "invalid"


class Establishing:
    """The elementary tests of one repeat, and what became of them.

    Args:
        runner: runs their trials.
        cell: whose tests they are.
        repeat: its number.
        may_collapse: see ``Trials.run``.
    """

    def __init__(
        self,
        runner: DeviceTrials,
        cell: Cell,
        repeat: int,
        *,
        may_collapse: bool = False,
    ) -> None:
        self._runner = runner
        self._cell = cell
        self._repeat = repeat
        self._may_collapse = may_collapse
        self._before = runner.finished
        self._counting = Counting(runner)
        self.passed: int | None = None
        self.opened_at: dict[int, TrialResult] = {}
        """Phase 1 of the last test that passed at each rate."""
        self.last: Opened | None = None
        self.troubles = Troubles()
        self.expired = False
        self.losses: list[Loss] = []
        """Of the tests whose phase 1 failed."""
        self._pause_s = 0.0
        """The longest between the phases: what hooks took, beside the waits."""

    @property
    def failed_otherwise(self) -> list[Reason]:
        """Why the last test failed, where it lost no connections."""
        return fails_without_loss(self.last.last.result.verdict) if self.last else []

    @property
    def trials(self) -> int:
        """How many there were, of both phases."""
        return self._runner.finished - self._before

    def establish(self, stateful: Stateful, rate_per_s: int) -> Outcome:
        """One test: what it says of that rate.

        Raises:
            NoUseError: no test at this or a lower rate would tell anything.
            EngineError, SetupError: see ``Trials.run``.
        """
        if self._outlives(stateful, rate_per_s):
            self._expired()
        if stateful.alpha is None:
            opened = self.opened(stateful, rate_per_s)
        else:
            opened = self.both(stateful, rate_per_s)
        if reason := forgotten_in_shadow(opened):
            self._spoilt(rate_per_s, [reason])
            return Outcome("invalid")
        if opened.last.result.verdict.kind == "pass":
            self.opened_at[rate_per_s] = opened.first.result
        return self._told(rate_per_s, opened.last.result)

    def both(
        self,
        stateful: Stateful,
        rate_per_s: int,
        *,
        goes_on: Collection[VerdictKind] = PASSED,
    ) -> Opened:
        """Phase 1 and, after one of these verdicts, the validation of what it opened.

        A run that ended between the two has lost what was opened: it is opened anew.
        """
        found: list[Opened] = []

        def phase1() -> TrialRecord:
            found.append(self.opened(stateful, rate_per_s))
            return found[-1].first

        verdict = self._runner.opened(phase1, goes_on).result.verdict.kind
        opened = found[-1]
        if verdict not in goes_on:
            return opened
        return self._used(opened, stateful, rate_per_s)

    def opened(
        self,
        stateful: Stateful,
        rate_per_s: int,
        afterwards: Afterwards | None = None,
    ) -> Opened:
        """Phase 1 alone, whatever it says."""
        record = self._runner.run(
            Ask(
                self._cell,
                rate_per_s,
                repeat=self._repeat,
                shape=partial(phase1, cell=self._cell, stateful=stateful),
                afterwards=afterwards or self._counting.ask,
                may_collapse=self._may_collapse,
            )
        )
        self.last = Opened(record)
        self._check(record, stateful, rate_per_s)
        if afterwards is None:
            self._counting.compare(record, stateful)
        lost = record.result.directions[0].streams[0].lost
        if record.result.verdict.kind == "fail" and lost:
            self.losses.append(Loss(rate_per_s, lost))
        return self.last

    def _used(self, opened: Opened, stateful: Stateful, rate_per_s: int) -> Opened:
        """One frame back for each connection."""
        back = self._cell.model_copy(update={"direction": stateful.responder_direction})
        record = self._runner.run(
            Ask(
                back,
                max(1, int(rate_per_s * (stateful.alpha or 1))),
                repeat=self._repeat,
                shape=partial(validation, stateful=stateful),
                continues=True,
                may_collapse=self._may_collapse,
            )
        )
        self.last = Opened(opened.first, record)
        self._check(record, stateful, rate_per_s)
        table = record.result.table
        if table:
            phase1 = opened.first.request
            pause_ns = table.since_learning_ns - phase1.duration_ns
            pause_ns -= phase1.residual_wait_ns
            self._pause_s = max(self._pause_s, pause_ns / 1e9)
        if record.result.verdict.kind == "fail" and self._outlives(
            stateful, rate_per_s
        ):
            self._expired()
        return self.last

    def _expired(self) -> NoReturn:
        self.expired = True
        raise NoUseError

    def _outlives(self, stateful: Stateful, rate_per_s: int) -> bool:
        """Whether a test would last longer than the device keeps connections."""
        timeout_s = stateful.dut_timeout_s
        lives_s = stateful.lifetime_s(rate_per_s) + self._pause_s
        return timeout_s is not None and lives_s >= timeout_s

    def _check(self, record: TrialRecord, stateful: Stateful, rate_per_s: int) -> None:
        if elsewhere := unexpected_reasons(record, stateful):
            self._spoilt(rate_per_s, elsewhere)
            raise NoUseError
        reasons = record.result.verdict.reasons
        if record.attempt == ATTEMPTS and no_rate_helps(reasons):
            self._spoilt(rate_per_s, reasons)
            raise NoUseError

    def _spoilt(self, rate_per_s: int, reasons: list[Reason]) -> None:
        self.troubles.note(rate_per_s, Verdict(kind="invalid", reasons=reasons))

    def _told(self, rate_per_s: int, result: TrialResult) -> Outcome:
        self.troubles.note(rate_per_s, result.verdict)
        if result.verdict.kind == "pass":
            self.passed = max(rate_per_s, self.passed or 0)
        if fails_beside_loss(result.verdict):
            return Outcome("fail")  # whatever share of them is missing
        return outcome(result)


def forgotten_in_shadow(opened: Opened) -> Reason | None:
    """Why the validation of a test whose phase 1 had a stall tells nothing, if so."""
    if opened.back is None or opened.back.result.verdict.kind != "fail":
        return None
    if {reason.code for reason in opened.back.result.verdict.reasons} != {
        "frames_lost"
    }:
        return None  # a stall makes no duplicates
    (first,) = opened.first.result.directions
    survival = opened.back.result.directions[0].streams[0].survival
    if survival is None or survival.more_ranges:
        return None
    lost = [
        range(begin, begin + count) for begin, count in survival.lost_ranges if count
    ]
    bursts = [shadow for shadow in first.shadows if shadow.may_lose]
    missing = sum(map(len, lost))
    most = sum(missing if b.frames is None else b.frames for b in bursts)
    spans = [_opened_in(shadow, first.intended_rate_fps) for shadow in bursts]
    if not 0 < missing <= most or not all(
        any(one[0] in span and one[-1] in span for span in spans) for one in lost
    ):
        return None
    return Reason(
        code="sender_burst",
        message=f"{missing:,} connections do not work that were opened in the shadow "
        "of a stall of the tester's sender, which may have cost them",
        hint="isolate the tester's cores; the test is worth repeating",
    )


def _opened_in(shadow: Shadow, rate_per_s: int) -> range:
    """The connections whose frame of phase 1 was due then, and one at each end."""
    begin = shadow.begin_ns * rate_per_s // 10**9
    if shadow.end_ns is None:
        return range(max(0, begin - 1), sys.maxsize)
    return range(max(0, begin - 1), shadow.end_ns * rate_per_s // 10**9 + 2)


def expired(stateful: Stateful) -> Reason:
    """Why slower tests were not made."""
    return Reason(
        code="connections_expire",
        message=f"at the rates that are left a test would last longer than the device "
        f"keeps connections, {stateful.dut_timeout_s:g} s",
        hint="raise the device's UDP timeout and --dut-timeout, or open fewer "
        "connections",
    )
