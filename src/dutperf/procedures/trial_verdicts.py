"""What the procedures make of a trial's verdict."""

from __future__ import annotations

from collections.abc import Iterable

from dutperf.protocol import Reason, Verdict
from dutperf.results.trial_record import TrialRecord

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
    "connections_expired",
}
_STALLS = {"sender_lag", "sender_burst", "sender_behind", "receiver_lag"}
_PASSING = {*_STALLS, "device_cpu_taken"}
_LOSSES = {"frames_lost", "frames_late"}
_OF_DEVICE = {*_LOSSES, "duplicates"}
_FOR_GOOD = {
    "unexpected_address",
    "not_translated",
    "connections_expired",
    "not_overloaded",
}
"""Another trial would say the same."""


def could_not_offer(reasons: Iterable[Reason]) -> bool:
    """Whether the tester could not offer the load: too slow, or held back."""
    return any(reason.code in {"sender_behind", "held_back"} for reason in reasons)


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
