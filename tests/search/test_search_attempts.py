"""Trials that tell nothing are run again, and no more of them than are needed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dutperf.search import Outcome, attempted, tells_nothing

PASS, INVALID = Outcome("pass"), Outcome("invalid")
BEHIND = Outcome("invalid", offered_fps=90)


@pytest.mark.parametrize(
    ("told", "taken"),
    [
        ([PASS, PASS], 1),
        ([INVALID, PASS, PASS], 2),
        ([INVALID, INVALID, INVALID, PASS], 3),
        ([INVALID, INVALID], 2),  # there are no more
        ([], 0),
        ([BEHIND, BEHIND, PASS], 2),  # they agree: it will not offer more then
    ],
)
def test_trials_are_run_until_they_tell_something(
    told: list[Outcome], taken: int
) -> None:
    ran: list[Outcome] = []

    def trials() -> Iterator[Outcome]:
        for outcome in told:
            ran.append(outcome)
            yield outcome

    tried = attempted(trials(), lambda tried: tells_nothing(tried, 0, 3))
    assert tried == ran == told[:taken]
