"""Runs one trial after another: numbers, waits, and the journal.

A trial is in the journal before anything else happens, in particular before the next
one starts, so what was measured is never lost to what comes later.

A run that is resumed asks for the same trials in the same order, as searches are pure.
Those that the journal holds already are answered from it, without a frame or a wait;
the first one that it does not hold is measured.

A trial that ended early without telling anything is measured in full when it is asked
for again: this, too, follows from the journal alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from dutperf.config.campaign import Cell
from dutperf.config.hooks import Hooks
from dutperf.config.testbed import Testbed
from dutperf.engine.client import planned_s
from dutperf.engine.measurer import Measurer
from dutperf.engine.protocol import TrialRequest, TrialResult, VerdictKind
from dutperf.errors import InputError, SetupError
from dutperf.procedures import device_cpu
from dutperf.procedures.collapse import has_collapsed
from dutperf.procedures.device_cpu import DeviceWatch
from dutperf.procedures.events import (
    Notice,
    OnEvent,
    TrialFinished,
    TrialMoved,
    TrialReplayed,
    TrialStarted,
)
from dutperf.procedures.hooks import (
    RunHooks,
    ask_is_alive,
    check,
    check_alive,
    judged,
    revive,
    run_before_trial,
    run_hooks,
)
from dutperf.procedures.in_light import Rejudge
from dutperf.procedures.openings import Openings, begun_like
from dutperf.procedures.traffic import trial_request
from dutperf.procedures.verdicts import ATTEMPTS, comes_and_goes
from dutperf.results.changes import differences, listed
from dutperf.results.model import Earlier, HookRun, TrialRecord, TrialRole

_TRIAL_IDS = 65535
_OF_COLLAPSE = ("is_alive", "restart")

DUT_GONE = "its process ended, or the lab's network namespaces were deleted"
DUT_GONE_HINT = (
    "do not run 'dutperf lab down' or 'ip netns del' while measuring; the logs of "
    "devices that are programs are in /run/dutperf"
)

Shape = Callable[[TrialRequest], TrialRequest]
Afterwards = Callable[[TrialResult], list[HookRun]]


class Trials(Protocol):
    """What a procedure asks for its trials; see ``TrialRunner``."""

    @property
    def on_event(self) -> OnEvent:
        """Is told what happens."""
        ...

    @property
    def finished(self) -> int:
        """How many there were."""
        ...

    def run(
        self,
        cell: Cell,
        rate_fps: int,
        *,
        repeat: int = 1,
        duration_s: float | None = None,
        stop_when_lost: bool = False,
        rejudge: Rejudge | None = None,
        role: TrialRole = "trial",
        attempts: int = ATTEMPTS,
    ) -> TrialRecord:
        """Run one, store it; or take a stored one."""
        ...


Check = Literal["possible", "gone", "left_out"]
PASSED: frozenset[VerdictKind] = frozenset({"pass"})
_LONGEST_PATIENCE_S = 4.0
_WORTH_TELLING_S = 1.0
_IMPATIENT_ATTEMPTS = 2


class JournalEndsError(Exception):
    """The next trial is not in the journal, and nothing is there to measure it."""


class TrialRunner:
    """Runs the trials of a campaign at one place.

    Args:
        measurer: what measures; None: the journal alone answers.
        testbed: addresses, next hops and hooks.
        journal: stores a record; returns when it is on disk.
        on_event: is told what happens.
        sleep: waits a number of seconds.
        dut_alive: whether the device under test is still there; asked when a trial
            did not pass.
        stored: what the journal of the run that is resumed holds of the place, in
            order.
        elsewhere: how many trials of other places it holds.
        hooks: runs the testbed's hooks.
        device: tells who else had the device's CPU in a trial; None: nobody knows.
        openings: what was opened on these ports, if no hook empties the table; None:
            nothing remembers it.
        clock: says how many seconds have passed.
    """

    def __init__(
        self,
        measurer: Measurer | None,
        testbed: Testbed,
        *,
        journal: Callable[[TrialRecord], None],
        on_event: OnEvent,
        sleep: Callable[[float], None] = time.sleep,
        dut_alive: Callable[[], bool] = lambda: True,
        stored: Sequence[TrialRecord] = (),
        elsewhere: int = 0,
        hooks: RunHooks = run_hooks,
        device: DeviceWatch | None = None,
        openings: Openings | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.on_event = on_event
        self.run_hooks = hooks
        self.sleep = sleep
        self.clock = clock
        self.finished = 0
        self._measurer = measurer
        self._testbed = testbed
        self._journal = journal
        self._dut_alive = dut_alive
        self._device = device
        self._openings = openings
        self._stored = tuple(stored)
        self._elsewhere = elsewhere
        self._hooks: list[HookRun] = []
        self._last: dict[TrialRole, TrialRecord] = {}
        self._wait_s = 0.0
        self._asked_for: tuple[str, int, int, int] | None = None
        self._invalid = 0
        """How many of the trials were since then, and of those that continued them."""

    def prepare(self) -> None:
        """Run the hooks before the campaign; the next trial's record tells of them.

        Raises:
            SetupError: one failed.
        """
        self._hooks = self.run_hooks(
            self._testbed.hooks.before_campaign, "before_campaign"
        )
        check(self._hooks)

    @property
    def hooks(self) -> Hooks:
        """Those of the testbed."""
        return self._testbed.hooks

    @property
    def replaying(self) -> bool:
        """Whether the next trial is in the journal already."""
        return self.finished < len(self._stored)

    def opened(
        self,
        phase1: Callable[[], TrialRecord],
        goes_on: Collection[VerdictKind] = PASSED,
    ) -> TrialRecord:
        """What ``phase1`` gives, with connections that are still there.

        Those of a run that ended right after it are gone: they are opened once more,
        if its verdict is one of those after which the test ``goes_on`` with them.
        """
        replayed = self.replaying
        record = phase1()
        while replayed and record.result.verdict.kind in goes_on:
            if self.replaying and not _opens(self._stored[self.finished]):
                break
            replayed = self.replaying
            record = phase1()
        return record

    def check_of(self, record: TrialRecord) -> Check:
        """Whether connections of ``record``, the trial before, can be checked.

        After a run that ended right after it they are ``gone``, and it is measured once
        more. An older dutperf went on, and ``left_out`` the check.
        """
        if not self.replaying:
            measured = self.finished > len(self._stored)
            return "possible" if measured else "gone"
        following = self._stored[self.finished : self.finished + 2]
        if following[0].role == "validation":
            return "possible"
        again = _opens(following[0]) and _is_same(following[-1:], record)
        return "gone" if again else "left_out"

    def goes_on_without(self, role: TrialRole, cell: Cell) -> bool:
        """Whether the journal has trials of ``cell`` next, but none of ``role``.

        So it is of a dutperf that did not make such trials yet.
        """
        if not self.replaying:
            return False
        stored = self._stored[self.finished]
        return stored.cell == cell.id and stored.role != role

    def run(
        self,
        cell: Cell,
        rate_fps: int,
        *,
        repeat: int = 1,
        duration_s: float | None = None,
        stop_when_lost: bool = False,
        shape: Shape | None = None,
        continues: bool = False,
        afterwards: Afterwards | None = None,
        may_collapse: bool = False,
        role: TrialRole = "trial",
        rejudge: Rejudge | None = None,
        attempts: int = ATTEMPTS,
    ) -> TrialRecord:
        """Let the DUT restabilise, run one trial, store it; or take a stored one.

        Args:
            cell: what the trial is for.
            rate_fps: intended load, frames per second and direction.
            repeat: number of the repeat in the cell, from 1.
            duration_s: other than the cell's.
            stop_when_lost: end the trial once it is certain to fail; for callers
                that need no more than the verdict. One that ended and told nothing
                is repeated, by the caller, in full.
            shape: makes another request of the cell's.
            continues: the trial before belongs to it: the device neither rests nor is
                prepared anew.
            afterwards: what is to be done with the device right after the trial; its
                record tells of it.
            may_collapse: a device that does not work any more is brought back, by
                its hooks; the record tells whether it was.
            role: what it is for in a test of several trials.
            rejudge: has the last word on whether the trial tells anything, and is told
                whether it may be run again.
            attempts: how often it is run at most while it is invalid.

        Raises:
            EngineError: the engine refused the trial or died.
            SetupError: the device under test has gone or does not work, or the
                journal cannot be written.
            InputError: the stored trial is not the one that is asked for.
            JournalEndsError: it is not stored, and nothing measures.
            ConnectionsRemainError: see ``Openings``.
        """
        number = self._next_number()
        trial_id = (number - 1) % _TRIAL_IDS + 1
        before = self._last.get(role)
        attempt = _attempt(before, cell, repeat, rate_fps)
        request = trial_request(
            self._testbed,
            cell,
            rate_fps,
            trial_id,
            duration_s,
            stop_when_lost=stop_when_lost and _may_stop(before, attempt),
        )
        request = shape(request) if shape else request
        request, earlier = self._placed(request, cell)
        asked_for = (cell.id, repeat, rate_fps, request.duration_ns)
        if not continues and asked_for != self._asked_for:
            self._asked_for, self._invalid = asked_for, 0
        if self.replaying:
            asked = {
                "cell": cell.id,
                "repeat": repeat,
                "attempt": attempt,
                "load_fps": rate_fps,
                "request": request.model_dump(),
                "role": role,
            }
            record = self._take_stored(asked)
            self._wait_s = cell.restabilise_wait_s
            return record
        if self._measurer is None:
            raise JournalEndsError
        hooks = [*self._hooks]
        if not continues:
            self.sleep(self._wait_s + self._patience_s(before, attempt, role, cell))
            hooks += run_before_trial(self.hooks, self.run_hooks)
        started_at = datetime.now(UTC).isoformat("T", "milliseconds")
        self.on_event(
            TrialStarted(number, cell.id, repeat, attempt, rate_fps, planned_s(request))
        )
        dropped_before = self._device.drops() if self._device else {}
        taken_ns = self._device.started() if self._device else None
        if self._openings:
            self._openings.used(request, planned_s(request))
        result = self._measurer.measure(
            request, lambda progress: self.on_event(TrialMoved(progress))
        )
        if self._openings:
            self._openings.used(request, 0)
        found = dropped = None
        if self._device and taken_ns:
            found = device_cpu.found_in(request, taken_ns(), self._device.queue_frames)
            dropped = device_cpu.dropped(self._device, dropped_before, result)
        if afterwards:
            hooks += afterwards(result)
        hooks += self.run_hooks(self.hooks.after_trial, "after_trial")
        if judged(result, hooks).verdict.kind != "pass":
            alive = ask_is_alive(self.hooks, self.run_hooks)
            if may_collapse and has_collapsed(judged(result, hooks), alive):
                alive += revive(self.hooks, self.run_hooks)
                if self._openings and self.hooks.restart:
                    self._openings.forget()
            hooks += alive
        self._hooks = []
        # What may collapse has not spoilt the trial by it.
        judging = [h for h in hooks if not (may_collapse and h.moment in _OF_COLLAPSE)]
        result = judged(result, judging)
        # A probe is not the device's: its frames are lost on purpose.
        again = self._invalid < attempts - 1
        if found and role != "probe" and device_cpu.explains(found, request, result):
            result = device_cpu.judged(result, found, again=again)
        if rejudge:
            # Where it says no to the last, its figures are bounds: enough is enough.
            result = rejudge(result, again=self._invalid < ATTEMPTS - 1)
        record = TrialRecord(
            number=number,
            cell=cell.id,
            repeat=repeat,
            attempt=attempt,
            load_fps=rate_fps,
            started_at=started_at,
            request=request,
            result=result,
            hooks=hooks,
            role=role,
            device_cpu=found,
            device_drops=dropped,
            earlier=earlier,
        )
        self._store(record, cell.restabilise_wait_s, may_collapse=may_collapse)
        return record

    def _patience_s(
        self, before: TrialRecord | None, attempt: int, role: TrialRole, cell: Cell
    ) -> float:
        """Of a phase 1 the trial that follows it is the one that is tried again."""
        if role == "phase1":
            before = self._last.get("trial")
            of_cell = before is not None and before.cell == cell.id
            attempt = before.attempt + 1 if before and of_cell else 1
        return _patience_s(before, attempt)

    def _placed(
        self, request: TrialRequest, cell: Cell
    ) -> tuple[TrialRequest, Earlier | None]:
        """With four-tuples that the device does not know, if nobody empties its table.

        What was sent once is told by the journal.
        """
        if cell.stateful is None or cell.stateful.is_emptied:
            return request, None
        if self.replaying:
            return begun_like(request, self._stored[self.finished].request), None
        if self._openings is None or self._measurer is None:
            return request, None
        return self._openings.placed(request, cell, self._wait_until_forgotten)

    def _wait_until_forgotten(self, wait_s: float, connections: int) -> None:
        if wait_s >= _WORTH_TELLING_S:
            self.on_event(
                Notice(
                    f"waiting {wait_s:.0f} s until the device has forgotten enough of "
                    f"{connections:,} connections of earlier tests: no hook empties "
                    "its table"
                )
            )
        self.sleep(wait_s)

    def _next_number(self) -> int:
        """Trials are numbered through all places, in the order of the journal."""
        if self.replaying:
            return self._stored[self.finished].number
        return self._elsewhere + self.finished + 1

    def _take_stored(self, asked: dict[str, Any]) -> TrialRecord:
        record = self._stored[self.finished]
        changes = differences(record.model_dump(include=set(asked)), asked)
        if changes:
            raise InputError(
                f"trial {record.number} of the journal is not the one that this run "
                f"would measure:\n{listed(changes, 3)}",
                "the ports, the lab or dutperf have changed since the run began; give "
                "--output with a new directory to start anew",
            )
        self._done(record)
        self.on_event(TrialReplayed(record))
        return record

    def _done(self, record: TrialRecord) -> None:
        """What the next trials have to know of it."""
        self._last[record.role] = record
        self._invalid += record.result.verdict.kind == "invalid"
        self.finished += 1

    def _store(self, record: TrialRecord, wait_s: float, *, may_collapse: bool) -> None:
        self._journal(record)
        self._done(record)
        # RFC 2544 23 e: the DUT restabilises before the next trial, if there is one.
        self._wait_s = wait_s
        self.on_event(TrialFinished(record))
        if not may_collapse:
            check_alive(record)
        if record.result.verdict.kind != "pass" and not self._dut_alive():
            raise SetupError(
                f"the device under test has gone: {DUT_GONE}, in trial {record.number}",
                DUT_GONE_HINT,
            )


def _opens(record: TrialRecord) -> bool:
    """Whether it is phase 1 of a stateful test."""
    learn = record.request.learn
    return learn is not None and not learn.keep


def _is_same(records: Sequence[TrialRecord], asked: TrialRecord) -> bool:
    """Whether each of them is the trial that ``asked`` is, measured once more."""
    keys = ("cell", "repeat", "load_fps", "role")
    return all(
        all(getattr(record, key) == getattr(asked, key) for key in keys)
        and record.request.duration_ns == asked.request.duration_ns
        for record in records
    )


def _attempt(last: TrialRecord | None, cell: Cell, repeat: int, rate_fps: int) -> int:
    """2 and up when the same trial was invalid just before."""
    if last is None or last.result.verdict.kind != "invalid":
        return 1
    same = (last.cell, last.repeat, last.load_fps) == (cell.id, repeat, rate_fps)
    return last.attempt + 1 if same else 1


def _patience_s(last: TrialRecord | None, attempt: int) -> float:
    """How much longer than usual to wait before a third attempt, and those after it.

    What others do to the CPUs of a shared machine comes in spells of seconds.
    """
    if last is None or attempt <= _IMPATIENT_ATTEMPTS:
        return 0.0
    if not comes_and_goes(last.result.verdict.reasons):
        return 0.0
    return min(2.0 ** (attempt - _IMPATIENT_ATTEMPTS - 1), _LONGEST_PATIENCE_S)


def _may_stop(last: TrialRecord | None, attempt: int) -> bool:
    """Not once an earlier attempt ended early and told nothing."""
    if attempt == 1 or last is None:
        return True
    return last.request.stop_when_lost and not last.result.ended_early
