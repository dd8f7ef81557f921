"""Binary search for the highest rate without loss (RFC 2544 26.1).

The RFC only says to go up after a trial without loss and down after one with loss;
bisection is how everybody does it. What this one adds:

1. The maximum is tried first, so a perfect DUT gets exactly 100 % in one trial.
2. ``invalid`` is not ``fail``. A trial that tells nothing is repeated, a bounded
   number of times; what stays invalid bounds the search, and the result says so.
3. When the sender cannot keep up, the rate that it managed is the new upper bound,
   and the search goes on a little below it. Just below, the next trial would fall
   behind as well on a machine where that limit wanders, so the margin doubles each
   time, until it is a plain bisection. A sender that managed less than in a trial
   that passed had a stall: that is an invalid trial as in 2.
4. The result is a rate that passed, never one between two that were measured.
5. On request a trial with loss is repeated before it counts (ETSI GS NFV-TST 009,
   binary search with loss verification): one rare loss then decides nothing.
6. A search may start between two expected rates. That is where it looks first, never
   what it believes: an end that its result rests on is measured, and when it was
   wrong, the search goes on beyond it in growing strides.

Every trial narrows the bounds or is one of a bounded number of repetitions, and no
rate is measured again once it is decided: the search ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from dutperf.search.model import (
    Bracket,
    Conclusion,
    Measure,
    Outcome,
    Resolution,
    SearchResult,
    Step,
    Verification,
)

OnStep = Callable[[Step], None]

_UNVERIFIED = Verification()
_FIRST_MARGIN_PERCENT = 5
_CONCLUSIONS: dict[str, Conclusion] = {
    "passed": "max_rate_passed",
    "fail": "found",
    "tester": "tester_limited",
    "invalid": "unstable",
}


def ignore_step(_step: Step) -> None:
    """For callers that do not watch."""


def binary_search(
    measure: Measure,
    *,
    max_rate_fps: int,
    duration_s: float,
    resolution: Resolution,
    verification: Verification = _UNVERIFIED,
    expected: Bracket | None = None,
    attempts: int = 3,
    max_trials: int = 200,
    on_step: OnStep = ignore_step,
) -> SearchResult:
    """The highest rate up to ``max_rate_fps`` that passes, within ``resolution``.

    ``attempts`` bounds the trials at one rate while they are invalid, ``max_trials``
    all trials together; ``on_step`` is told of each. Whatever ``measure`` raises ends
    the search.

    Raises:
        ValueError: a limit below 1.
    """
    if min(max_rate_fps, attempts, max_trials) < 1:
        raise ValueError("max_rate_fps, attempts and max_trials must be at least 1")
    bounds = _Bounds(max_rate_fps, expected or Bracket(0, max_rate_fps))
    steps: list[Step] = []
    at_rate: list[Outcome] = []
    while (rate_fps := bounds.next_rate(resolution)) is not None:
        if len(steps) == max_trials:
            return bounds.result("unstable", steps)
        outcome = measure(rate_fps, duration_s)
        at_rate.append(outcome)
        again = bounds.undecided(at_rate, attempts, verification)
        if not again:
            bounds.take(rate_fps, outcome)
        lower, upper = bounds.lower, bounds.upper
        steps.append(Step(rate_fps, len(at_rate), outcome, lower, upper))
        on_step(steps[-1])
        if not again:
            at_rate = []
    return bounds.result(bounds.conclusion(), steps)


class _Bounds:
    """``lower`` passed (0: nothing did); why ``upper`` is out of reach: ``kind``.

    Between ``low`` and ``high`` the result is expected; ``edge`` is a new end of that,
    to be measured next.
    """

    def __init__(self, max_rate_fps: int, expected: Bracket) -> None:
        self.lower = 0
        self.upper = max_rate_fps
        self.kind: Literal["untested", "passed", "fail", "tester", "invalid"]
        self.kind = "untested"
        self.margin_percent = 0
        self.high = min(expected.upper_fps, max_rate_fps)
        self.low = min(expected.lower_fps, self.high - 1)
        self.stride = self.high - self.low
        self.edge: int | None = None

    def next_rate(self, resolution: Resolution) -> int | None:
        """The rate to measure next, between the bounds; None at the end."""
        if self.kind == "untested" and self.high >= self.upper:
            return self.upper
        if self.edge is not None:
            return self.edge
        low, high = max(self.lower, self.low), min(self.upper, self.high)
        if high - low > 1 and not resolution.reached(low, high):
            return self._between(low, high)
        if low > self.lower:
            return low
        return high if high < self.upper else None

    def _between(self, low: int, high: int) -> int:
        middle = low + (high - low) // 2
        if self.kind != "tester" or high < self.upper:
            return middle
        return max(middle, self.upper * (100 - self.margin_percent) // 100)

    def undecided(
        self, at_rate: list[Outcome], attempts: int, verification: Verification
    ) -> bool:
        """Whether the trials at one rate so far ask for another one there."""
        last = at_rate[-1]
        if self.tells_nothing(last):
            return sum(map(self.tells_nothing, at_rate)) < attempts
        if last.verdict != "fail" or (last.loss_ratio or 0) > verification.hopeless:
            return False
        return sum(o.verdict == "fail" for o in at_rate) < verification.trials

    def tells_nothing(self, outcome: Outcome) -> bool:
        """Whether ``outcome`` is neither about the DUT nor the tester's limit.

        A sender that managed less than what passed before had a stall; that is not
        its limit.
        """
        if outcome.verdict != "invalid":
            return False
        return outcome.offered_fps is None or outcome.offered_fps < self.lower + 1

    def take(self, rate_fps: int, outcome: Outcome) -> None:
        """Narrow the bounds by the outcome at ``rate_fps``."""
        if outcome.verdict == "pass":
            self.lower = rate_fps
            if rate_fps == self.upper:
                self.kind = "passed"
        elif outcome.verdict == "fail":
            self.upper, self.kind = rate_fps, "fail"
        elif outcome.offered_fps is None:
            self.upper, self.kind = rate_fps, "invalid"
        else:
            self._take_tester_limit(rate_fps, outcome.offered_fps)
        self._expect_anew()

    def _expect_anew(self) -> None:
        """Look further out where the outcome was not as expected."""
        self.edge = None
        if self.upper <= self.low:
            self.high = self.upper
            self.low = max(self.lower, self.upper - self.stride)
            self.edge = self.low if self.low > self.lower else None
        elif self.lower >= self.high and self.lower < self.upper:
            self.low = self.lower
            self.high = min(self.upper, self.lower + self.stride)
            self.edge = self.high if self.high < self.upper else None
        else:
            return
        self.stride *= 2

    def _take_tester_limit(self, rate_fps: int, offered_fps: float) -> None:
        limit_fps = int(min(rate_fps, offered_fps))
        self.upper = limit_fps if limit_fps > self.lower else rate_fps
        self.kind = "tester"
        self.margin_percent = min(100, 2 * self.margin_percent or _FIRST_MARGIN_PERCENT)

    def conclusion(self) -> Conclusion:
        if self.kind == "fail" and self.lower == 0:
            return "nothing_passed"
        return _CONCLUSIONS[self.kind]

    def result(self, conclusion: Conclusion, steps: list[Step]) -> SearchResult:
        upper = None if self.kind in ("passed", "untested") else self.upper
        return SearchResult(self.lower or None, upper, conclusion, steps)
