"""What an invalid trial's reasons say about further trials."""

from __future__ import annotations

import pytest
from planning import Recording, cell, spoilt

from dutperf.procedures.trials import (
    Ask,
    could_not_offer,
    distinct,
    fails_beside_loss,
    is_final,
    is_hopeless,
    no_rate_helps,
    was_disturbed,
    was_held_back,
)
from dutperf.protocol.result_messages import Reason, ReasonCode, Verdict, VerdictKind
from dutperf.results.trial_record import TrialRecord
from dutperf.simulation.fake_engine import FakeEngine, perfect

STALLS: list[ReasonCode] = [
    "sender_lag",
    "sender_burst",
    "sender_behind",
    "receiver_lag",
]


def of(*codes: ReasonCode) -> list[Reason]:
    return [Reason(code=code, message=code) for code in codes]


@pytest.mark.parametrize(
    ("code", "offered", "held_back", "any_rate", "final"),
    [
        ("sender_behind", False, False, False, False),
        ("held_back", False, True, False, False),
        ("receiver_overflow", True, False, False, False),
        ("link_down", True, False, True, False),
        ("hook_failed", True, False, True, False),
        ("unexpected_address", True, False, True, True),
        ("connections_expired", True, False, True, True),
    ],
)
def test_each_reason_says_what_helps(
    code: ReasonCode, offered: bool, held_back: bool, any_rate: bool, final: bool
) -> None:
    for reasons in (of(code), of("receiver_overflow", code)):
        assert could_not_offer(reasons) == (not offered)
        assert was_held_back(reasons) == held_back
        assert no_rate_helps(reasons) == any_rate
        assert is_final(reasons) == final


@pytest.mark.parametrize(
    ("codes", "disturbed"),
    [
        (["sender_burst"], True),
        (["sender_lag", "frames_lost", "duplicates"], True),
        (["device_cpu_taken", "receiver_overflow"], True),
        ([*STALLS, "device_cpu_taken", "receiver_overflow"], True),
        (["receiver_overflow"], False),
        (["sender_burst", "link_changed"], False),
        (["frames_lost"], False),
    ],
)
def test_a_stall_may_overfill_the_testers_buffers(
    codes: list[ReasonCode], disturbed: bool
) -> None:
    assert was_disturbed(of(*codes)) == disturbed


@pytest.mark.parametrize(
    ("kind", "codes", "beside"),
    [
        ("fail", ["frames_lost"], False),
        ("fail", ["frames_lost", "frames_late"], False),
        ("fail", ["frames_lost", "duplicates"], True),
        ("invalid", ["duplicates", "sender_lag"], False),
    ],
)
def test_duplicates_fail_a_trial_beside_loss(
    kind: VerdictKind, codes: list[ReasonCode], beside: bool
) -> None:
    assert fails_beside_loss(Verdict(kind=kind, reasons=of(*codes))) == beside


def test_no_reason_says_nothing() -> None:
    asked = (could_not_offer, was_held_back, no_rate_helps, is_final)
    assert not any(what([]) for what in asked)


def test_each_reason_is_told_once_where_it_came_first() -> None:
    told = distinct(of("link_down", "held_back", "link_down"))
    assert [reason.code for reason in told] == ["link_down", "held_back"]


def record_of(code: ReasonCode, attempt: int, kind: VerdictKind) -> TrialRecord:
    engine = FakeEngine(perfect(), troubles=spoilt(code, 1))
    record = Recording(engine).runner.run(Ask(cell(), 1000))
    verdict = record.result.verdict.model_copy(update={"kind": kind})
    result = record.result.model_copy(update={"verdict": verdict})
    return record.model_copy(update={"attempt": attempt, "result": result})


@pytest.mark.parametrize(
    ("code", "attempt", "kind", "hopeless"),
    [
        ("link_down", 2, "invalid", False),
        ("link_down", 3, "invalid", True),
        ("link_down", 3, "fail", False),
        ("receiver_overflow", 3, "invalid", False),
        ("unexpected_address", 1, "invalid", True),
        ("unexpected_address", 1, "pass", False),
    ],
)
def test_after_three_attempts_at_what_no_rate_helps_there_is_no_hope(
    code: ReasonCode, attempt: int, kind: VerdictKind, hopeless: bool
) -> None:
    assert is_hopeless(record_of(code, attempt, kind)) == hopeless
