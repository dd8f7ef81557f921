"""Runs one trial after another: numbers, waits, hooks, verdicts, and the journal.

A trial is in the journal before anything else happens, in particular before the next
one starts, so what was measured is never lost to what comes later.

A trial that ended early without telling anything is measured in full when it is asked
for again: this, too, follows from the journal alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from dutperf.config.testbed import Hooks, Testbed
from dutperf.engine.client import Measurer, planned_s
from dutperf.errors import EngineError, SetupError
from dutperf.model.cell import Cell
from dutperf.procedures.cpu_contention import (
    DeviceWatch,
    Watched,
    contended,
    lost_in,
    repeated,
    watched,
)
from dutperf.procedures.events import (
    Notice,
    OnEvent,
    TrialFinished,
    TrialMoved,
    TrialReplayed,
    TrialStarted,
)
from dutperf.procedures.stateful.table_capacity import has_collapsed
from dutperf.procedures.trials import ATTEMPTS, Ask, RunHooks, comes_and_goes
from dutperf.protocol.result_messages import Reason, TrialResult
from dutperf.protocol.trial_messages import TrialProgress, TrialRequest
from dutperf.results.power_results import Lasting, Metered
from dutperf.results.trial_record import (
    Earlier,
    HookRun,
    TrialRecord,
    TrialRole,
)
from dutperf.routing import Speaker
from dutperf.run import JournalEndsError, Replay, opens
from dutperf.run.announcing import with_community, without_community
from dutperf.run.device_log import reading
from dutperf.run.hook_runs import (
    Trigger,
    ask_is_alive,
    check,
    check_alive,
    judged,
    revive,
    run_before_trial,
    run_hooks,
)
from dutperf.run.openings import ConnectionsRemainError, Openings, begun_like, remain
from dutperf.run.trial_request import trial_request

_OF_COLLAPSE = ("is_alive", "restart")
_LONGEST_PATIENCE_S = 4.0
_WORTH_TELLING_S = 1.0
_IMPATIENT_ATTEMPTS = 2

DUT_GONE = "its process ended, or the lab's network namespaces were deleted"
DUT_GONE_HINT = (
    "do not run 'dutperf lab down' or 'ip netns del' while measuring; the logs of "
    "devices that are programs are in /run/dutperf"
)


@contextmanager
def explaining(dut_alive: Callable[[], bool]) -> Iterator[None]:
    """An engine that fails because its device has gone is not to blame."""
    try:
        yield
    except EngineError as error:
        if dut_alive():
            raise
        raise EngineError(
            f"the device under test has gone: {DUT_GONE} ({error.message})",
            DUT_GONE_HINT,
        ) from error


T = TypeVar("T")


class Metering(Protocol):
    """Reads the device's power while something lasts: ``metering.Meter``."""

    def beside(  # noqa: D102
        self, of: Lasting, act: Callable[[], T]
    ) -> tuple[T, Metered]: ...


@dataclass(frozen=True)
class _Next:
    """The trial that comes next, complete.

    ``before``: the last one of its role; ``attempt``: 2 and up when that was the same,
    and invalid; ``earlier``: what the device may know already.
    """

    ask: Ask
    number: int
    attempt: int
    request: TrialRequest
    before: TrialRecord | None
    earlier: Earlier | None


class TrialRunner:
    """Runs a campaign's trials at one testbed; ``DeviceTrials`` says what it offers.

    Args:
        measurer: what measures; None: the journal alone answers.
        testbed: addresses, next hops and hooks.
        journal: stores a record; returns when it is on disk, with the record as it
            was stored, if that is not as it was given.
        on_event: is told what happens.
        sleep: waits a number of seconds.
        dut_alive: whether the device under test is still there; asked when a trial
            did not pass.
        stored: what the journal of the run that is resumed holds of the testbed, in
            order.
        elsewhere: how many trials of other testbeds it holds.
        hooks: runs the testbed's hooks.
        device: tells who else had the device's CPU in a trial; None: nobody knows.
        openings: what was opened on these ports, if no hook empties the table; None:
            nothing remembers it.
        speaker: tells the device routes; None: nobody does.
        meter: tells the device's power; None: no procedure asks.
        clock: says how many seconds have passed.
        ended: cells that ended as the device knew their connections, if the journal
            alone answers: it does not tell.
    """

    def __init__(
        self,
        measurer: Measurer | None,
        testbed: Testbed,
        *,
        journal: Callable[[TrialRecord], TrialRecord | None],
        on_event: OnEvent,
        sleep: Callable[[float], None] = time.sleep,
        dut_alive: Callable[[], bool] = lambda: True,
        stored: Sequence[TrialRecord] = (),
        elsewhere: int = 0,
        hooks: RunHooks = run_hooks,
        device: DeviceWatch | None = None,
        openings: Openings | None = None,
        speaker: Speaker | None = None,
        meter: Metering | None = None,
        clock: Callable[[], float] = time.monotonic,
        ended: Mapping[str, Reason] | None = None,
    ) -> None:
        self.on_event = on_event
        self.run_hooks = hooks
        self.sleep = sleep
        self.clock = clock
        self._replay = Replay(stored, elsewhere)
        self.opened = self._replay.opened
        self.can_check = self._replay.can_check
        self._measurer = measurer
        self._testbed = testbed
        self._journal = journal
        self._dut_alive = dut_alive
        self._device = device
        self._openings = openings
        self._ended = ended or {}
        self._speaker = speaker
        self._meter = meter
        self._metered: list[Metered] = []
        self._hooks: list[HookRun] = []
        self._last: dict[TrialRole, TrialRecord] = {}
        self._wait_s = 0.0
        self._asked_for: tuple[str, int, int, int] | None = None
        self._invalid = 0
        """How many of the trials were since then, and of those that continued them."""
        self._lost: list[int] = []
        """Frames that those of them lost which others may have cost the device."""

    def prepare(self) -> None:
        """Run the hooks before the campaign; the next trial's record tells of them.

        Raises:
            SetupError: one failed.
        """
        self._hooks = self.run_hooks(self.hooks.before_campaign, "before_campaign")
        check(self._hooks)

    @property
    def hooks(self) -> Hooks:
        """Those of the testbed."""
        return self._testbed.hooks

    @property
    def finished(self) -> int:
        """How many trials there were, taken or measured."""
        return self._replay.finished

    @property
    def replaying(self) -> bool:
        """Whether the next trial is in the journal already."""
        return self._replay.replaying

    def run(self, ask: Ask) -> TrialRecord:
        """See ``Trials``.

        Raises:
            EngineError, SetupError, InputError, ConnectionsRemainError: see there.
            JournalEndsError: it is not stored, and nothing measures.
        """
        coming = self._next(ask)
        asked_for = (
            ask.cell.id,
            ask.repeat,
            ask.rate_fps,
            coming.request.duration_ns,
        )
        if not ask.continues and asked_for != self._asked_for:
            self._asked_for, self._invalid, self._lost = asked_for, 0, []
        if self.replaying:
            return self._taken(coming)
        if self._measurer is None:
            raise JournalEndsError
        return self._store(self._measured(self._measurer, coming), ask)

    def _next(self, ask: Ask) -> _Next:
        number = self._replay.next_number
        before = self._last.get(ask.role)
        attempt = _attempt(before, ask)
        request = trial_request(
            self._testbed,
            ask.cell,
            ask.rate_fps,
            self._replay.next_id,
            ask.duration_s,
            stop_when_lost=ask.stop_when_lost and _may_stop(before, attempt),
        )
        request = ask.shape(request) if ask.shape else request
        request, earlier = self._placed(request, ask.cell)
        return _Next(ask, number, attempt, request, before, earlier)

    def _taken(self, coming: _Next) -> TrialRecord:
        ask = coming.ask
        record = self._replay.take(
            {
                "cell": ask.cell.id,
                "repeat": ask.repeat,
                "attempt": coming.attempt,
                "load_fps": ask.rate_fps,
                "request": coming.request.model_dump(),
                "role": ask.role,
            }
        )
        self._done(record)
        self._wait_s = ask.cell.spec.restabilise_wait_s
        self.on_event(TrialReplayed(record))
        return record

    def _measured(self, measurer: Measurer, coming: _Next) -> TrialRecord:
        """The device made ready, the trial, and what the device is asked afterwards."""
        ask = coming.ask
        hooks = [*self._hooks, *self._made_ready(coming)]
        self._metered = []
        if ask.idle_s:
            text = f"reading the power meter for {ask.idle_s:g} s without frames"
            self.on_event(Notice(text))
            self._read_beside("idle", lambda: self.sleep(ask.idle_s))
        started_at = datetime.now(UTC).isoformat("T", "milliseconds")
        trigger = self._trigger(ask)
        with reading(self._testbed.nat_log, ask, self.sleep) as log:
            seen = self._run(measurer, coming, trigger)
            logged = log()
        result = seen.result
        routing = self._speaker.sessions() if self._speaker else []
        hooks += trigger.finished(result) if trigger else []
        if ask.afterwards:
            hooks += ask.afterwards(result)
        hooks += self.run_hooks(self.hooks.after_trial, "after_trial")
        hooks += self._looked_after(result, hooks, ask)
        self._hooks = []
        return TrialRecord(
            number=coming.number,
            cell=ask.cell.id,
            procedure=ask.cell.procedure,
            place=ask.cell.testbed,
            repeat=ask.repeat,
            attempt=coming.attempt,
            load_fps=ask.rate_fps,
            started_at=started_at,
            request=coming.request,
            result=self._judged(hooks, seen, coming),
            hooks=hooks,
            role=ask.role,
            device_cpu=seen.cpu,
            device_drops=seen.drops,
            earlier=coming.earlier,
            routing=routing,
            log=logged,
            metered=self._metered,
        )

    def _made_ready(self, coming: _Next) -> list[HookRun]:
        if coming.ask.continues:
            return []
        self.sleep(self._wait_s + self._patience_s(coming))
        hooks = run_before_trial(self.hooks, self.run_hooks)
        if self._speaker:
            self._speaker.tell(coming.ask.cell)
        return hooks

    def _trigger(self, ask: Ask) -> Trigger | None:
        if ask.trigger_after_s is None:
            return None
        return Trigger(
            self.hooks.during_trial,
            self.run_hooks,
            ask.trigger_after_s,
            lambda text: self.on_event(Notice(text)),
        )

    def _run(
        self, measurer: Measurer, coming: _Next, trigger: Trigger | None
    ) -> Watched:
        ask, request = coming.ask, coming.request
        planned = planned_s(request)
        self.on_event(
            TrialStarted(
                coming.number,
                ask.cell.id,
                ask.repeat,
                coming.attempt,
                ask.rate_fps,
                planned,
            )
        )
        if self._openings:
            self._openings.used(request, planned)

        def moved(progress: TrialProgress) -> None:
            self.on_event(TrialMoved(progress))
            if trigger:
                trigger.watch(progress)

        asked = with_community(request, self._testbed, ask.cell)

        def sent() -> TrialResult:
            return measurer.measure(asked, moved)

        def measure() -> TrialResult:
            result = self._read_beside("trial", sent) if ask.metered else sent()
            if asked is request:
                return result
            return without_community(result, self._testbed)

        seen = watched(self._device, request, measure)
        if self._openings:
            self._openings.used(request, 0)
        return seen

    def _read_beside(self, of: Lasting, act: Callable[[], T]) -> T:
        """What ``act`` gives; of a trial the time between its frames' ends counts."""
        if self._meter is None:
            raise SetupError("the testbed has no power meter", "add power to it")
        found, metered = self._meter.beside(of, act)
        if isinstance(found, TrialResult):
            begin_ns = found.begin_unix_ns
            sent_ns = [each.sending_ns for each in found.directions]
            end_ns = None if begin_ns is None else begin_ns + min(sent_ns, default=0)
            window = {"begin_ns": begin_ns, "end_ns": end_ns}
            metered = metered.model_copy(update=window)
        self._metered.append(metered)
        return found

    def _looked_after(
        self, result: TrialResult, hooks: Sequence[HookRun], ask: Ask
    ) -> list[HookRun]:
        """Unless it passed: whether the device lives, and if not, its revival."""
        if judged(result, hooks).verdict.kind == "pass":
            return []
        alive = ask_is_alive(self.hooks, self.run_hooks)
        if ask.may_collapse and has_collapsed(judged(result, hooks), alive):
            alive += revive(self.hooks, self.run_hooks)
            if self._openings and self.hooks.restart:
                self._openings.forget()
        return alive

    def _judged(
        self, hooks: Sequence[HookRun], seen: Watched, coming: _Next
    ) -> TrialResult:
        """With what the plan knows beside the engine: hooks, CPUs, the procedure.

        In this order; what a rule costs is in docs/verdicts.md. ``seen`` has no frames
        that the tester's kernel did not take in (``cpu_contention.counted``).
        """
        ask = coming.ask
        # What may collapse has not spoilt the trial by it.
        judging = [
            run
            for run in hooks
            if not (ask.may_collapse and run.moment in _OF_COLLAPSE)
        ]
        result = judged(seen.result, judging)
        if ask.role != "probe":
            result = contended(
                result,
                coming.request,
                seen.cpu,
                attempts=ask.attempts,
                lost_before=self._lost,
                invalid_before=self._invalid,
            )
        if ask.rejudge:
            # Where it says no to the last, its figures are bounds: enough is enough.
            result = ask.rejudge(result, again=self._invalid < ATTEMPTS - 1)
        return result

    def _patience_s(self, coming: _Next) -> float:
        """Of a phase 1 the trial that follows it is the one that is tried again."""
        before, attempt = coming.before, coming.attempt
        if coming.ask.role == "phase1":
            before = self._last.get("trial")
            of_cell = before is not None and before.cell == coming.ask.cell.id
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
        if opens(request) and not self._replay.is_of(cell):
            reason = self._ended.get(cell.id)
            if reason or self.replaying:  # the journal goes on with another cell
                raise ConnectionsRemainError(reason or remain(None))
        if self.replaying:
            return begun_like(request, self._replay.next.request), None
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

    def _done(self, record: TrialRecord) -> None:
        """What the next trials have to know of it."""
        self._last[record.role] = record
        self._invalid += record.result.verdict.kind == "invalid"
        if repeated(record):
            self._lost.append(lost_in(record.result))
        self._replay.finished += 1

    def _store(self, record: TrialRecord, ask: Ask) -> TrialRecord:
        record = self._journal(record) or record
        self._done(record)
        # RFC 2544 23 e: the DUT restabilises before the next trial, if there is one.
        self._wait_s = ask.cell.spec.restabilise_wait_s
        self.on_event(TrialFinished(record))
        if not ask.may_collapse:
            check_alive(record)
        if record.result.verdict.kind != "pass" and not self._dut_alive():
            raise SetupError(
                f"the device under test has gone: {DUT_GONE}, in trial {record.number}",
                DUT_GONE_HINT,
            )
        return record


def _attempt(last: TrialRecord | None, ask: Ask) -> int:
    """2 and up when the same trial was invalid just before."""
    if last is None or last.result.verdict.kind != "invalid":
        return 1
    asked = (ask.cell.id, ask.repeat, ask.rate_fps)
    return last.attempt + 1 if (last.cell, last.repeat, last.load_fps) == asked else 1


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
