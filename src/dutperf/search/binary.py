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

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from dutperf.search import (
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
    run = _SearchTrials(bounds, measure, duration_s, on_step)
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
    run = _SearchTrials(bounds, measure, duration_s, on_step)
    for rate_fps in (ends.lower_fps, ends.upper_fps):
        if bounds.kind == "untested":
            run.decide(rate_fps, attempts + verification.trials)
    return bounds.result(bounds.conclusion(), run.steps)


@dataclass
class _SearchTrials:
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


# How many connections a gateway holds, found from outside only (RFC 9693 4.9).
#
#     C0 ─ measure its rate ─> double while the rate holds (beta) ─> bisect (gamma) ─> C
#
# A number of connections is held when they can be established and then all be used, at
# some rate that is not far below the rate of fewer connections: so every decision is a
# search for the validated maximum connection establishment rate. It ends as soon as it
# is clear that the rate is too low, which is what a full table looks like. And as soon
# as a table is seen to be full: the same share is missing at two rates (``_is_full``).
# With a service of m a second, a share of a lost at any rate and n of the table's room,
# a - m / r are missing at r: alike within 1 % at r and r / 1.5, it would take a rate
# below r / 30 to lose none, which is below any least rate but that of the first number.
#
# A device that collapses holds too many connections, too. Once it works again the
# search goes on below that number; if it does not come back, the last number that it
# held stays the result.


Establish = Callable[[int, int], Outcome]
"""Establishes and validates: (connections, rate per second) -> outcome.

Raises CollapsedError when the device does not work any more.
"""
Phase = Literal["first", "doubling", "bisection"]
Held = Literal["held", "too_slow", "full", "collapsed", "unstable"]
"""``full``: not held, and as many were missing at two rates, as by a full table."""
Ending = Literal["found", "nothing_held", "most_held", "unstable", "collapsed"]

_SAME_SHARE = 0.01
_SAME_HELD = 1.1
_OTHER_RATE = 1.5
_NO_ACCIDENT = 30  # so many missing by chance are never none at another rate
_NOMINAL_S = 1.0  # how long a test takes is up to whoever establishes


class CollapsedError(Exception):
    """The device under test did not work any more (RFC 9693 4.9).

    ``for_good``: it was not brought back, so that nothing else can be tried.
    """

    def __init__(self, *, for_good: bool = False) -> None:
        super().__init__()
        self.for_good = for_good


@dataclass(frozen=True)
class CapacityStep:
    """One number of connections: its rate, None if none was found, and what it means.

    ``least_per_s`` is the rate that it had to reach.
    """

    phase: Phase
    connections: int
    rate_per_s: int | None
    least_per_s: int
    held: Held
    tests: int


@dataclass(frozen=True)
class CapacityResult:
    """``connections`` are held, ``beyond`` are not; None: not known.

    found         beyond - connections is at most the error that was asked for
    nothing_held  not even the first number is
    most_held     the largest number that may be tried is held
    unstable      tests at some number stayed invalid: the bounds are what was proven
    collapsed     the device did not come back: likewise

    ``spoilt_per_s``: the lowest rate of the last number whose tests told nothing.
    """

    connections: int | None
    beyond: int | None
    rate_per_s: int | None
    ending: Ending
    steps: list[CapacityStep]
    spoilt_per_s: int | None = None


OnCapacityStep = Callable[[CapacityStep], None]


def ignore_capacity_step(_step: CapacityStep) -> None:
    """For callers that do not watch."""


def capacity_search(
    establish: Establish,
    *,
    first: int,
    most: int,
    max_rate_per_s: int,
    rate_resolution: Resolution,
    error: int = 1,
    beta: Fraction = Fraction(1, 10),
    gamma: Fraction = Fraction(1, 2),
    attempts: int = 3,
    on_step: OnCapacityStep = ignore_capacity_step,
) -> CapacityResult:
    """The largest number of connections from ``first`` (C0) to ``most`` that is held.

    Args:
        establish: one elementary test; pure as a search wants it.
        first: a number that is surely held.
        most: as many four-tuples as there are.
        max_rate_per_s: where the first search for a rate begins.
        rate_resolution: of each rate.
        error: how close the two numbers must come (E).
        beta: doubling ends below this share of the rate before.
        gamma: likewise, of the bisection.
        attempts: how often an invalid test is repeated.
        on_step: is told of each number.

    Raises:
        ValueError: a limit that makes no sense.
    """
    if not 1 <= first <= most or error < 1 or attempts < 1 or max_rate_per_s < 1:
        raise ValueError(
            "1 <= first <= most, error, attempts and rate must be positive"
        )
    if not 0 < beta < 1 or not 0 < gamma < 1:
        raise ValueError("beta and gamma must be between 0 and 1")
    search = _Search(establish, rate_resolution, attempts, on_step)
    start = search.try_number("first", first, max_rate_per_s, least_per_s=1)
    if start.held != "held":
        beyond = None if start.held == "unstable" else first
        ending = search.ended_by(start) or "nothing_held"
        return CapacityResult(
            None, beyond, None, ending, search.steps, search.spoilt_per_s
        )
    low, high = start, None
    while high is None:
        if low.connections == most:
            return search.result(low, None, "most_held")
        number = min(2 * low.connections, most)
        step = search.after(low, "doubling", number, beta)
        if ended := search.ended_by(step):
            beyond = number if ended == "collapsed" else None
            return search.result(low, beyond, ended)
        low, high = (step, None) if step.held == "held" else (low, number)
    while high - low.connections > error:
        number = (low.connections + high) // 2
        step = search.after(low, "bisection", number, gamma)
        if ended := search.ended_by(step):
            beyond = number if ended == "collapsed" else high
            return search.result(low, beyond, ended)
        low, high = (step, high) if step.held == "held" else (low, number)
    return search.result(low, high, "found")


class _NotHeldError(Exception):
    """No other rate can matter: one below the least failed, or the table is full."""


class _Search:
    def __init__(
        self,
        establish: Establish,
        resolution: Resolution,
        attempts: int,
        on_step: OnCapacityStep,
    ) -> None:
        self.steps: list[CapacityStep] = []
        self.spoilt_per_s: int | None = None
        self._establish = establish
        self._resolution = resolution
        self._attempts = attempts
        self._on_step = on_step
        self._is_gone = False

    def ended_by(self, step: CapacityStep) -> Ending | None:
        """What ends the search before its time."""
        if self._is_gone:
            return "collapsed"
        return "unstable" if step.held == "unstable" else None

    def after(
        self, low: CapacityStep, phase: Phase, number: int, share: Fraction
    ) -> CapacityStep:
        """Whether ``number`` reaches ``share`` of the rate of ``low``."""
        rate_per_s = low.rate_per_s or 1
        least = math.ceil(share * rate_per_s)
        return self.try_number(phase, number, rate_per_s, least_per_s=least)

    def try_number(
        self, phase: Phase, number: int, max_rate_per_s: int, *, least_per_s: int
    ) -> CapacityStep:
        tests = 0
        missing: dict[int, float] = {}

        def seen_full() -> bool:
            no_accident = number * min(missing.values(), default=0) >= _NO_ACCIDENT
            return phase != "first" and no_accident and _is_full(missing)

        def measure(rate_per_s: int, _duration_s: float) -> Outcome:
            nonlocal tests
            tests += 1
            outcome = self._establish(number, rate_per_s)
            if outcome.verdict == "fail" and outcome.loss_ratio:
                missing[rate_per_s] = outcome.loss_ratio
            if outcome.verdict == "fail" and (rate_per_s <= least_per_s or seen_full()):
                raise _NotHeldError
            return outcome

        rate_per_s: int | None = None
        try:
            found = binary_search(
                measure,
                max_rate_fps=max_rate_per_s,
                duration_s=_NOMINAL_S,
                resolution=self._resolution,
                attempts=self._attempts,
            )
        except _NotHeldError:
            held: Held = "too_slow"
        except CollapsedError as collapsed:
            held, self._is_gone = "collapsed", collapsed.for_good
        else:
            rate_per_s = found.rate_fps
            held = _held(found, least_per_s)
            self.spoilt_per_s = found.upper_fps if held == "unstable" else None
        if held == "too_slow" and _is_full(missing):
            held = "full"
        step = CapacityStep(phase, number, rate_per_s, least_per_s, held, tests)
        self.steps.append(step)
        self._on_step(step)
        return step

    def result(
        self, low: CapacityStep, beyond: int | None, ending: Ending
    ) -> CapacityResult:
        return CapacityResult(
            low.connections,
            beyond,
            low.rate_per_s,
            ending,
            self.steps,
            self.spoilt_per_s,
        )


def _is_full(missing: Mapping[int, float]) -> bool:
    """Whether the same share was missing, and held, at the two lowest rates.

    A device that is too slow holds more of them at the lower one, in proportion.
    """
    (lower, lost), *others = sorted(missing.items()) or [(0, 0.0)]
    for rate_per_s, also_lost in others:
        if rate_per_s >= _OTHER_RATE * lower:
            alike = abs(lost - also_lost) <= _SAME_SHARE * max(lost, also_lost)
            return alike and 1 - lost <= _SAME_HELD * (1 - also_lost) and lost < 1
    return False


def _held(found: SearchResult, least_per_s: int) -> Held:
    if found.rate_fps is not None and found.rate_fps >= least_per_s:
        return "held"
    # What the tester cannot offer says nothing about the device.
    unknown = found.conclusion in ("unstable", "tester_limited")
    return "unstable" if unknown else "too_slow"
