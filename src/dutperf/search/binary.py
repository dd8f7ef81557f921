"""Binary search for the highest rate without loss (RFC 2544 26.1).

The RFC only says to go up after a trial without loss and down after one with loss;
bisection is how everybody does it. What this one adds:

1. The maximum is tried first, so a perfect DUT gets exactly 100 % in one trial.
2. ``invalid`` is not ``fail``. A trial that tells nothing is repeated, a bounded
   number of times; what stays invalid bounds the search, and the result says so.
3. When the sender cannot keep up, and not just once (``limit``), the rate that it
   managed is the new upper bound, and the search goes on a little below it. Just
   below, the next trial would fall behind as well on a machine where that limit
   wanders, so the margin doubles each time, until it is a plain bisection.
4. The result is a rate that passed, never one between two that were measured.
5. On request a trial with loss is repeated before it counts (ETSI GS NFV-TST 009,
   binary search with loss verification): one rare loss then decides nothing.

Every trial narrows the bounds or is one of a bounded number of repetitions, and no
rate is measured again once it is decided: the search ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from dutperf.search.search_types import (
    Bracket,
    Conclusion,
    Measure,
    Outcome,
    Resolution,
    SearchResult,
    Step,
    Verification,
    sender_limit_fps,
    tells_nothing,
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
    attempts: int = 3,
    max_trials: int = 200,
    begin_fps: int | None = None,
    least_fps: int = 1,
    on_step: OnStep = ignore_step,
) -> SearchResult:
    """The highest rate up to ``max_rate_fps`` that passes, within ``resolution``.

    ``attempts`` bounds the trials at one rate while they are invalid, ``max_trials``
    all trials together; ``begin_fps`` is tried before the maximum, which is tried then
    only if it passed; below ``least_fps`` a rate would tell no more than there, and is
    not tried; ``on_step`` is told of each trial. Whatever ``measure`` raises ends the
    search.

    Raises:
        ValueError: a limit below 1.
    """
    if min(max_rate_fps, attempts, max_trials) < 1:
        raise ValueError("max_rate_fps, attempts and max_trials must be at least 1")
    bounds = _Bounds(max_rate_fps, attempts, verification, begin_fps, least_fps)
    run = _Run(bounds, measure, duration_s, on_step)
    while (rate_fps := bounds.next_rate(resolution)) is not None:
        if not run.decide(rate_fps, max_trials - len(run.steps)):
            return bounds.result("unstable", run.steps)
    return bounds.result(bounds.conclusion(), run.steps)


def confirm(
    measure: Measure,
    ends: Bracket,
    *,
    duration_s: float,
    verification: Verification,
    attempts: int,
    on_step: OnStep = ignore_step,
) -> SearchResult:
    """What a search ends with if its last two rates are its only ones.

    The result is ``ends``, found, if the lower one passes and the upper one fails;
    anything else says that they are not, or no longer, where a search would end.
    """
    bounds = _Bounds(ends.upper_fps, attempts, verification)
    run = _Run(bounds, measure, duration_s, on_step)
    for rate_fps in (ends.lower_fps, ends.upper_fps):
        if bounds.kind == "untested":
            run.decide(rate_fps, attempts + verification.trials)
    return bounds.result(bounds.conclusion(), run.steps)


@dataclass
class _Run:
    """The trials of one search."""

    _bounds: _Bounds
    _measure: Measure
    _duration_s: float
    _on_step: OnStep
    steps: list[Step] = field(default_factory=list)

    def decide(self, rate_fps: int, most: int) -> bool:
        """Trials at one rate until they narrow the bounds; False: ``most`` did not."""
        at_rate: list[Outcome] = []
        decided = False
        while len(at_rate) < most and not decided:
            at_rate.append(self._measure(rate_fps, self._duration_s))
            decided = not self._bounds.undecided(at_rate)
            if decided:
                self._bounds.take(rate_fps, at_rate)
            bounds = (self._bounds.lower, self._bounds.upper)
            self.steps.append(Step(rate_fps, len(at_rate), at_rate[-1], *bounds))
            self._on_step(self.steps[-1])
        return decided


class _Bounds:
    """``lower`` passed (0: nothing did); why ``upper`` is out of reach: ``kind``."""

    def __init__(
        self,
        max_rate_fps: int,
        attempts: int,
        verification: Verification,
        begin_fps: int | None = None,
        least_fps: int = 1,
    ) -> None:
        self.lower = 0
        self.upper = max_rate_fps
        self.kind: Literal["untested", "passed", "fail", "tester", "invalid"]
        self.kind = "untested"
        self._attempts = attempts
        self._verification = verification
        self._margin_percent = 0
        self._begin_fps = begin_fps
        self._least_fps = least_fps

    def next_rate(self, resolution: Resolution) -> int | None:
        """The rate to measure next; None at the end."""
        if self.kind == "untested":
            begin_fps, self._begin_fps = self._begin_fps, None
            return begin_fps or self.upper
        lower, upper = self.lower, self.upper
        if upper - lower <= 1 or resolution.reached(lower, upper):
            return None
        if upper <= self._least_fps:
            return None
        middle = max(lower + (upper - lower) // 2, self._least_fps)
        if self.kind != "tester":
            return middle
        return max(middle, upper * (100 - self._margin_percent) // 100)

    def undecided(self, at_rate: list[Outcome]) -> bool:
        """Whether the trials at one rate so far ask for another one there."""
        last = at_rate[-1]
        if last.verdict == "invalid":
            return tells_nothing(at_rate, self.lower, self._attempts)
        verification = self._verification
        if last.verdict != "fail" or (last.loss_ratio or 0) > verification.hopeless:
            return False
        return sum(o.verdict == "fail" for o in at_rate) < verification.trials

    def _limit_fps(self, at_rate: list[Outcome]) -> float | None:
        return sender_limit_fps(at_rate, self.lower, self._attempts)

    def take(self, rate_fps: int, at_rate: list[Outcome]) -> None:
        """Narrow the bounds by the trials at ``rate_fps``, which decide it."""
        verdict = at_rate[-1].verdict
        if verdict == "pass":
            self.lower = rate_fps
            if rate_fps == self.upper:
                self.kind = "passed"
        elif verdict == "fail":
            self.upper, self.kind = rate_fps, "fail"
        elif (limit_fps := self._limit_fps(at_rate)) is None:
            self.upper, self.kind = rate_fps, "invalid"
        else:
            self._take_tester_limit(rate_fps, limit_fps)

    def _take_tester_limit(self, rate_fps: int, offered_fps: float) -> None:
        limit_fps = int(min(rate_fps, offered_fps))
        self.upper = limit_fps if limit_fps > self.lower else rate_fps
        self.kind = "tester"
        self._margin_percent = 2 * self._margin_percent or _FIRST_MARGIN_PERCENT

    def conclusion(self) -> Conclusion:
        if self.kind == "fail" and self.lower == 0:
            return "nothing_passed"
        return _CONCLUSIONS[self.kind]

    def result(self, conclusion: Conclusion, steps: list[Step]) -> SearchResult:
        upper = None if self.kind in ("passed", "untested") else self.upper
        return SearchResult(self.lower or None, upper, conclusion, steps)
