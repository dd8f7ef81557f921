"""The known-answer device in a trial: what it is told, and what must come out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from livetools import BOTH, MS, RefDut, Trial, odd_frames

from dutperf.engine.client import Engine
from dutperf.lab.refdut_socket import Behaviour, ClassAccount, TrialAccount
from dutperf.protocol.result_messages import Damage, TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from tools.calibrate.truth import Counts, by_account
from tools.calibrate.truth import by_result as counts

FRAMES = 3001
"""Per direction: a prime, so no k divides it."""
TRIAL = Trial(fps=FRAMES * 10, ms=100, extra={"residual_wait_ns": 300 * MS})


class Bench:
    """The engine, its ports open, and the device between them."""

    def __init__(self, engine: Engine, device: RefDut) -> None:
        self.engine = engine
        self.device = device
        self.trials = 0

    def measure(
        self, behaviour: Behaviour, trial: Trial = TRIAL
    ) -> tuple[TrialResult, TrialAccount]:
        """One trial; the result and the device's account of it."""
        self.trials += 1
        return self.run(behaviour, trial.request(self.trials))

    def run(
        self, behaviour: Behaviour, request: TrialRequest
    ) -> tuple[TrialResult, TrialAccount]:
        self.device.client.configure(behaviour)
        result = self.engine.measure(request)
        return result, self.device.account(request.trial_id)


def forward(*rules: dict[str, Any], **more: Any) -> Behaviour:  # noqa: ANN401 - JSON
    return {"forward": {"rules": list(rules), **more}}


def both(*rules: dict[str, Any]) -> Behaviour:
    return {name: {"rules": list(rules)} for name in BOTH}


def assert_agree(
    result: TrialResult, account: TrialAccount, *, ordered: bool = True
) -> None:
    """All counts of the engine are those of the device, which did as it was told.

    ``ordered``: the order, too. Not of several queues, which the device polls in turn.
    """
    found, told = counts(result), by_account(account)
    if not ordered:
        found, told = _without_order(found), _without_order(told)
    assert found == told
    for direction in account.directions.values():
        assert [c.failures for c in direction.classes] == [0, 0]
    arrived = (account.reverse, account.forward)  # on the left, on the right
    damaged = [[_damaged(c) for c in d.classes] for d in arrived]
    assert [port.damaged for port in result.ports] == [_kinds(side) for side in damaged]
    assert odd_frames(result) == [(0, 0, 0, _kinds(side).total) for side in damaged]


def _without_order(by_direction: dict[str, Counts]) -> dict[str, Counts]:
    return {name: replace(each, reordered=0) for name, each in by_direction.items()}


def _damaged(counted: ClassAccount) -> dict[str, int]:
    """Kind of damage -> frames and copies that left with it."""
    copies = counted.corrupted_copies_left
    return {kind: n + copies[kind] for kind, n in counted.corrupted_left.items()}


def _kinds(classes: list[dict[str, int]]) -> Damage:
    """What a tester calls it, over foreground and background."""
    return Damage(
        checksum_zero=sum(c["checksum_zero"] for c in classes),
        checksum_wrong=sum(c["payload"] + c["checksum"] for c in classes),
        length=sum(c["length"] for c in classes),
        truncated=sum(c["truncation"] for c in classes),
        never_sent=sum(c["number"] for c in classes),
    )


PATIENT_20 = {"distance": 20, "at_most_ns": 250 * MS}
"""The machine may stop the sender for longer than the default 10 ms."""
GRID: dict[str, Behaviour] = {
    "a wire": {},
    "every 7th lost": both({"every": 7, "do": "drop"}),
    "all lost": forward({"do": "drop"}),
    "one way only": {"reverse": {"rules": [{"every": 3, "do": "drop"}]}},
    "1 % lost at random": both({"probability": 0.01, "do": "drop"}),
    "half lost at random": both({"probability": 0.5, "do": "drop"}),
    "an outage": forward(
        {"when": {"from_ns": 30 * MS, "to_ns": 60 * MS}, "do": "drop"}
    ),
    "every 5th twice": both({"every": 5, "do": "duplicate"}),
    "three of each": forward({"do": "duplicate"}, {"do": "duplicate"}),
    "lost and twice": both({"every": 2, "do": "drop"}, {"every": 3, "do": "duplicate"}),
    "swapped": forward({"every": 10, "do": {"reorder": {"distance": 1}}}),
    "out of order by 20": both({"every": 50, "do": {"reorder": {"distance": 20}}}),
    "overtaken by delay": both({"every": 10, "do": {"delay_ns": 2 * MS}}),
    "delayed at random": both(
        {"probability": 0.3, "do": {"delay_ns": {"from": 0, "to": 5 * MS}}}
    ),
    "delayed all": both({"do": {"delay_ns": 20 * MS}}),
    "delay jumps back": forward(
        {"when": {"to_ns": 50 * MS}, "do": {"delay_ns": 10 * MS}}
    ),
    "bits flip": both({"every": 10, "do": {"corrupt": "payload"}}),
    "wrong checksums": both({"probability": 0.1, "do": {"corrupt": "checksum"}}),
    "truncated": both({"every": 13, "do": {"corrupt": "truncation"}}),
    "wrong lengths": both({"every": 11, "do": {"corrupt": "length"}}),
    "wrong numbers": both({"every": 8, "do": {"corrupt": "number"}}),
    "no checksums": both({"every": 9, "do": {"corrupt": "checksum_zero"}}),
    "corrupt copies": forward(
        {"every": 4, "do": {"corrupt": "checksum"}}, {"every": 6, "do": "duplicate"}
    ),
    "served slowly": {
        name: {"service": {"rate_fps": 20_000, "queue_frames": 50}} for name in BOTH
    },
    "frozen": forward(freezes=[{"at_ns": 20 * MS, "for_ns": 40 * MS}]),
    "frozen with a short queue": forward(
        service={"rate_fps": 100_000, "queue_frames": 100},
        freezes=[{"at_ns": 20 * MS, "for_ns": 40 * MS}],
    ),
    "everything": {
        "seed": 9,
        **forward(
            {"probability": 0.05, "do": "drop"},
            {"probability": 0.05, "do": "duplicate"},
            {"probability": 0.05, "do": {"corrupt": "payload"}},
            {"every": 9, "do": {"reorder": {"distance": 4}}},
            {"probability": 0.2, "do": {"delay_ns": {"from": 1000, "to": 3 * MS}}},
            service={"rate_fps": 25_000, "queue_frames": 40},
        ),
    },
}


DAMAGED = [name for name, told in GRID.items() if "corrupt" in str(told)]
"""Where a frame's length matters; among them is everything at once."""
