"""How many connections a gateway holds, found from outside only (RFC 9693 4.9).

    C0 ─ measure its rate ─> double while the rate holds (beta) ─> bisect (gamma) ─> C

A number of connections is held when they can be established and then all be used, at
some rate that is not far below the rate of fewer connections: so every decision is a
search for the validated maximum connection establishment rate. It ends as soon as it is
clear that the rate is too low, which is what a full table looks like.

A device that collapses holds too many connections, too. Once it works again the search
goes on below that number; if it does not come back, the last number that it held stays
the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dutperf.search.binary import binary_search
from dutperf.search.search_types import Outcome, Resolution, SearchResult

Establish = Callable[[int, int], Outcome]
"""Establishes and validates: (connections, rate per second) -> outcome.

Raises CollapsedError when the device does not work any more.
"""
Phase = Literal["first", "doubling", "bisection"]
Held = Literal["held", "too_slow", "full", "collapsed", "unstable"]
"""``full``: not held, and as many were missing at any rate: the table has no room."""
Ending = Literal["found", "nothing_held", "most_held", "unstable", "collapsed"]

_SAME_SHARE = 0.01
_OTHER_RATE = 1.5
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


OnStep = Callable[[CapacityStep], None]


def ignore_step(_step: CapacityStep) -> None:
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
    on_step: OnStep = ignore_step,
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


class _TooSlowError(Exception):
    """A rate below the least one failed: no higher one can matter."""


class _Search:
    def __init__(
        self,
        establish: Establish,
        resolution: Resolution,
        attempts: int,
        on_step: OnStep,
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

        def measure(rate_per_s: int, _duration_s: float) -> Outcome:
            nonlocal tests
            tests += 1
            outcome = self._establish(number, rate_per_s)
            if outcome.verdict == "fail" and outcome.loss_ratio:
                missing[rate_per_s] = outcome.loss_ratio
            if outcome.verdict == "fail" and rate_per_s <= least_per_s:
                raise _TooSlowError
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
        except _TooSlowError:
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
    """Whether the same share was missing at rates that differ."""
    if not missing or max(missing) < _OTHER_RATE * min(missing):
        return False
    shares = missing.values()
    return max(shares) - min(shares) <= _SAME_SHARE * max(shares)


def _held(found: SearchResult, least_per_s: int) -> Held:
    if found.rate_fps is not None and found.rate_fps >= least_per_s:
        return "held"
    # What the tester cannot offer says nothing about the device.
    unknown = found.conclusion in ("unstable", "tester_limited")
    return "unstable" if unknown else "too_slow"
