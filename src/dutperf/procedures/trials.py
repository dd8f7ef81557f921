"""What a procedure asks for, and of whom: one trial at a time, by one door.

A procedure makes an ``Ask`` and gets the trial's record; that it may come from the
journal of a run that is resumed is nothing that it has to know. Procedures about
connections (RFC 9693) do things with the device between trials, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from dutperf.config.testbed import Hook, Hooks
from dutperf.model.cell import Cell
from dutperf.procedures.events import OnEvent
from dutperf.procedures.stall_filter import Rejudge
from dutperf.protocol.result_messages import Reason, TrialResult, Verdict, VerdictKind
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results.trial_record import HookMoment, HookRun, TrialRecord, TrialRole

# What the procedures make of a trial's verdict.


ATTEMPTS = 3
"""How often an invalid trial is run at most."""
PATIENT_ATTEMPTS = 6
"""The same at a load that is given, while what spoils its trials comes and goes.

No search can go round such a load, and on a machine that others use too three trials
in a row are spoilt often enough.
"""

_NOT_THE_RATE = {
    "link_down",
    "flow_control",
    "neighbour_missing",
    "nothing_sent",
    "hook_failed",
    "phase1_failed",
    "unexpected_address",
    "not_translated",
    "renumbered",
    "connections_expired",
    "answers_not_cached",
}
_STALLS = {"sender_lag", "sender_burst", "sender_behind", "receiver_lag"}
_PASSING = {*_STALLS, "device_cpu_taken"}
_LOSSES = {"frames_lost", "frames_late"}
_OF_DEVICE = {
    *_LOSSES,
    "duplicates",
    "segments_lost",
    "segments_strange",
    "connections_reset",
    "queries_refused",
    "answers_wrong",
}
_NOT_OFFERED = {"sender_behind", "held_back", "answers_not_sent"}
_FOR_GOOD = {
    "unexpected_address",
    "not_translated",
    "renumbered",
    "connections_expired",
    "not_overloaded",
    "answers_cached",
}
"""Another trial would say the same."""


def best_and_next(trials: Iterable[TrialRecord]) -> Iterator[TrialRecord]:
    """Of a search the highest rate that passed, and the lowest above that failed."""
    asked = [t for t in trials if t.role == "trial"]
    passed = [t for t in asked if t.result.verdict.kind == "pass"]
    best = max(passed, key=lambda t: t.load_fps, default=None)
    above = best.load_fps if best else 0
    failed = [
        t for t in asked if t.result.verdict.kind == "fail" and t.load_fps > above
    ]
    yield from filter(None, (best, min(failed, key=lambda t: t.load_fps, default=None)))


def could_not_offer(reasons: Iterable[Reason]) -> bool:
    """Whether the tester could not offer the load: too slow, or held back."""
    return any(reason.code in _NOT_OFFERED for reason in reasons)


def was_disturbed(reasons: Iterable[Reason]) -> bool:
    """Whether a trial is invalid for nothing but what others on the machine did.

    A stall overfills the tester's own buffers, too; alone that is no disturbance.
    """
    codes = {reason.code for reason in reasons} - _OF_DEVICE
    return bool(codes & _PASSING) and codes <= {*_PASSING, "receiver_overflow"}


def comes_and_goes(reasons: Iterable[Reason]) -> bool:
    """Whether others on the machine spoilt a trial: a later one may tell something."""
    codes = {reason.code for reason in reasons}
    return bool(codes & _PASSING) and not codes & _NOT_THE_RATE


def fails_beside_loss(verdict: Verdict) -> bool:
    """Whether a trial failed by more than lost and late frames: by duplicates."""
    codes = {reason.code for reason in verdict.reasons}
    return verdict.kind == "fail" and not codes <= _LOSSES


def fails_without_loss(verdict: Verdict) -> list[Reason]:
    """Why a trial failed of whose frames none is missing; empty: it did not."""
    lost = any(reason.code in _LOSSES for reason in verdict.reasons)
    return verdict.reasons if verdict.kind == "fail" and not lost else []


def was_held_back(reasons: Iterable[Reason]) -> bool:
    """Whether something behind a port stopped the tester."""
    return any(reason.code == "held_back" for reason in reasons)


def distinct(reasons: Iterable[Reason]) -> list[Reason]:
    """Each reason once, in the order of their first appearance."""
    return list(dict.fromkeys(reasons))


def no_rate_helps(reasons: Iterable[Reason]) -> bool:
    """Whether a reason for an invalid trial holds at any other rate as well."""
    return any(reason.code in _NOT_THE_RATE for reason in reasons)


def is_final(reasons: Iterable[Reason]) -> bool:
    """Whether an invalid trial need not be repeated, not even at another rate."""
    return any(reason.code in _FOR_GOOD for reason in reasons)


def is_hopeless(record: TrialRecord) -> bool:
    """Whether more trials, at whatever rate, would be as invalid as this one."""
    reasons = record.result.verdict.reasons
    if record.result.verdict.kind != "invalid":
        return False
    return is_final(reasons) or (record.attempt == ATTEMPTS and no_rate_helps(reasons))


Shape = Callable[[TrialRequest], TrialRequest]
Afterwards = Callable[[TrialResult], list[HookRun]]
RunHooks = Callable[[Sequence[Hook], HookMoment], list[HookRun]]

PASSED: frozenset[VerdictKind] = frozenset({"pass"})


@dataclass(frozen=True)
class Ask:
    """One trial as a procedure asks for it.

    cell: what the trial is for.
    rate_fps: intended load, frames per second and direction.
    repeat: number of the repeat in the cell, from 1.
    duration_s: other than the cell's.
    stop_when_lost: end the trial once it is certain to fail; for callers that need no
        more than the verdict. One that ended and told nothing is repeated, by the
        caller, in full.
    shape: makes another request of the cell's.
    continues: the trial before belongs to it: the device neither rests nor is prepared
        anew.
    afterwards: what is to be done with the device right after the trial; its record
        tells of it.
    may_collapse: a device that does not work any more is brought back, by its hooks;
        the record tells whether it was.
    role: what it is for in a test of several trials.
    rejudge: has the last word on whether the trial tells anything, and is told whether
        it may be run again.
    attempts: how often it is run at most while it is invalid; 1: nobody repeats it.
    trigger_after_s: when hooks during_trial are run, or a person is asked to act.
    log_within_s: the record has what the device logs meanwhile of its mappings; what
        comes so long after the end is in time, in as long again late; None: it has not.
    metered: the testbed's power meter is read meanwhile.
    idle_s: how long it is read before, while nothing is sent.
    """

    cell: Cell
    rate_fps: int
    repeat: int = 1
    duration_s: float | None = None
    stop_when_lost: bool = False
    shape: Shape | None = None
    continues: bool = False
    afterwards: Afterwards | None = None
    may_collapse: bool = False
    role: TrialRole = "trial"
    rejudge: Rejudge | None = None
    attempts: int = ATTEMPTS
    trigger_after_s: float | None = None
    log_within_s: float | None = None
    metered: bool = False
    idle_s: float = 0


class Trials(Protocol):
    """What runs the trials of a procedure."""

    @property
    def on_event(self) -> OnEvent:
        """Is told what happens."""
        ...

    @property
    def finished(self) -> int:
        """How many there were."""
        ...

    def run(self, ask: Ask) -> TrialRecord:
        """Let the DUT restabilise, run one trial, store it; or take a stored one.

        Raises:
            EngineError: the engine refused the trial or died.
            SetupError: the device under test has gone or does not work, or the
                journal cannot be written.
            InputError: the stored trial is not the one that is asked for.
            ConnectionsRemainError: the device knows too many connections already.
        """
        ...


class DeviceTrials(Trials, Protocol):
    """Trials, what is done with the device between them, and what the journal holds."""

    @property
    def hooks(self) -> Hooks:
        """Those of the testbed."""
        ...

    @property
    def run_hooks(self) -> RunHooks:
        """Runs some of them."""
        ...

    @property
    def clock(self) -> Callable[[], float]:
        """How many seconds have passed."""
        ...

    @property
    def sleep(self) -> Callable[[float], None]:
        """Waits so many seconds."""
        ...

    @property
    def replaying(self) -> bool:
        """Whether the next trial is in the journal already."""
        ...

    def opened(
        self,
        phase1: Callable[[], TrialRecord],
        goes_on: Collection[VerdictKind] = PASSED,
    ) -> TrialRecord:
        """What ``phase1`` gives, with connections that are still there.

        Those of a run that ended right after it are gone: they are opened once more,
        if its verdict is one of those after which the test ``goes_on`` with them.
        """
        ...

    def can_check(self) -> bool:
        """Whether the connections of the trial before are there to be checked.

        After a run that ended right after it they are not, and it is measured once
        more.
        """
        ...
