"""The tester's own limit: what repeated trials say, never one."""

from __future__ import annotations

import pytest

from dutperf.search import Outcome, sender_limit_fps

Offered = list[float | None]


def limit_fps(
    offered: Offered, passed_fps: float = 0, attempts: int = 3
) -> float | None:
    outcomes = [Outcome("invalid", offered_fps=fps) for fps in offered]
    return sender_limit_fps(outcomes, passed_fps, attempts)


@pytest.mark.parametrize(
    ("offered", "limit"),
    [
        ([], None),
        ([900], None),
        ([900, None], None),
        ([None, 900, None], None),
        ([900, 900], 900),
        ([900, 855], 900),
        ([855, 900], 900),
        ([900, 854.9], None),
        ([900, 100, 899], 900),
        ([100, 200, 300], 300),
        ([None, 100, 300], 300),
        ([None, None, None], None),
    ],
)
def test_two_trials_that_agree_or_the_best_of_all(
    offered: Offered, limit: float | None
) -> None:
    assert limit_fps(offered) == limit


def test_two_stalls_below_what_passed_agree_about_nothing() -> None:
    assert limit_fps([300, 300], passed_fps=300) is None
    assert limit_fps([301, 300.9], passed_fps=300) is None
    assert limit_fps([301, 301], passed_fps=300) == 301


def test_who_asks_once_takes_one_answer() -> None:
    assert limit_fps([900], attempts=1) == 900
    assert limit_fps([None], attempts=1) is None
    assert limit_fps([900, 100], attempts=2) == 900


def test_what_the_device_did_is_no_limit() -> None:
    outcomes = [Outcome("fail"), Outcome("invalid", offered_fps=900), Outcome("fail")]
    assert sender_limit_fps(outcomes, 0, 3) is None
