"""A trial, and what the known-answer device says it did in it; the counts of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dutperf.lab.refdut_socket import ClassAccount, NatAccount, TrialAccount
from dutperf.protocol import TrialResult
from dutperf.results import TrialRecord


@dataclass(frozen=True)
class Witnessed:
    """``account`` is None where the device had none to give."""

    record: TrialRecord
    account: TrialAccount | None
    nat: NatAccount | None = None


@dataclass(frozen=True)
class Counts:
    """One direction's frames; ``received`` are distinct ones."""

    sent: int
    received: int
    lost: int = 0
    duplicate: int = 0
    reordered: int = 0


def by_result(result: TrialResult) -> dict[str, Counts]:
    """Direction -> what the tester counted, of all its streams."""
    return {
        direction.name: Counts(
            sent=sum(s.sent for s in direction.streams),
            received=sum(s.received for s in direction.streams),
            lost=sum(s.lost for s in direction.streams),
            duplicate=sum(s.duplicate for s in direction.streams),
            reordered=sum(s.reordered for s in direction.streams),
        )
        for direction in result.directions
    }


def by_account(trial: TrialAccount) -> dict[str, Counts]:
    """What the tester must have counted, if the device speaks the truth.

    A corrupted frame is lost and not received, original or copy.
    """
    return {
        name: _by_class(*direction.classes)
        for name, direction in trial.directions.items()
        if any(c.seen for c in direction.classes)
    }


def contradictions(witnessed: Witnessed) -> Iterator[str]:
    """Where the tester's counts of a trial are not those of the device, in words.

    Frames that found the device's ring full never came in: they are sent and lost, and
    in no account.
    """
    if witnessed.account is None:
        return
    told = by_account(witnessed.account)
    for direction in witnessed.record.result.directions:
        counted = by_result(witnessed.record.result)[direction.name]
        known = told.get(direction.name, Counts(0, 0))
        truth = Counts(
            sent=known.sent + direction.ring_full,
            received=known.received,
            lost=known.lost + direction.ring_full,
            duplicate=known.duplicate,
            reordered=known.reordered,
        )
        for name in ("sent", "received", "lost", "duplicate", "reordered"):
            mine, its = getattr(counted, name), getattr(truth, name)
            if mine != its:
                yield (
                    f"trial {witnessed.record.number}, {direction.name}: {name} "
                    f"{mine:,}, by the device {its:,}"
                )


def _by_class(*classes: ClassAccount) -> Counts:
    """The sum over ``classes``."""
    intact = [c.left - sum(c.corrupted_left.values()) for c in classes]
    copies = [c.copies_left - sum(c.corrupted_copies_left.values()) for c in classes]
    sent = sum(c.seen for c in classes)
    return Counts(
        sent=sent,
        received=sum(intact),
        lost=sent - sum(intact),
        duplicate=sum(copies),
        reordered=sum(c.out_of_order for c in classes),
    )
