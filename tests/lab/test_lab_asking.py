"""The known-answer device's account in short, as its hook prints it."""

from __future__ import annotations

from typing import Any

from dutperf.lab.asking import told

NOTHING: dict[str, Any] = {
    "dropped_by_rule": 0,
    "left": 0,
    "seen": 0,
    "corrupted_left": {"payload": 0, "checksum": 0},
    "residence_ns": {"count": 0, "min": None},
}


def test_before_any_trial_it_says_so() -> None:
    assert list(told({"trials": []})) == ["no trial yet"]


def test_of_the_last_trial_it_tells_all_counts_that_are_not_zero() -> None:
    forward = NOTHING | {"seen": 10, "left": 8, "dropped_by_rule": 2}
    damaged = {"payload": 0, "checksum": 3}
    behind = NOTHING | {"seen": 3, "left": 3, "corrupted_left": damaged}
    quiet = {"foreground": NOTHING, "background": NOTHING}
    old = {"trial_id": 6, "lasted_ns": 0, "forward": quiet, "reverse": quiet}
    last = {
        "trial_id": 7,
        "lasted_ns": 1_500_000_000,
        "forward": {"foreground": forward, "background": behind},
        "reverse": quiet,
    }
    assert list(told({"trials": [old, last]})) == [
        "trial id 7, 1.500 s",
        "forward foreground: seen 10, left 8, dropped_by_rule 2",
        "forward background: seen 3, left 3, corrupted_left checksum 3",
    ]
