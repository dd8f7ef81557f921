"""What a search asks for, and what it answers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Verdict = Literal["pass", "fail", "invalid"]
Conclusion = Literal[
    "found", "max_rate_passed", "tester_limited", "nothing_passed", "unstable"
]


@dataclass(frozen=True)
class Outcome:
    """What one trial told. ``invalid``: nothing about the DUT.

    ``offered_fps`` belongs to an invalid outcome of which the reason is that the
    sender could not keep up: what it managed instead, per direction. ``loss_ratio`` is
    the share of all directions' frames that did not arrive, for searches that need it.
    """

    verdict: Verdict
    offered_fps: float | None = None
    loss_ratio: float | None = None

    def __post_init__(self) -> None:
        offered_fps, loss_ratio = self.offered_fps, self.loss_ratio
        if offered_fps is not None and not 0 <= offered_fps < math.inf:
            raise ValueError(f"offered_fps is no rate: {offered_fps}")
        if loss_ratio is not None and not 0 <= loss_ratio <= 1:
            raise ValueError(f"loss_ratio is no ratio: {loss_ratio}")


Measure = Callable[[int, float], Outcome]
"""Runs one trial: (rate_fps, duration_s) -> outcome."""


@dataclass(frozen=True)
class Step:
    """One trial of a search, and the bounds after it.

    All rates from ``upper_fps`` on are taken as not reachable, ``lower_fps`` is the
    highest rate that passed (0: none yet). ``attempt`` counts trials at this rate.
    """

    rate_fps: int
    attempt: int
    outcome: Outcome
    lower_fps: int
    upper_fps: int


@dataclass(frozen=True)
class SearchResult:
    """The end of a search.

    ``rate_fps`` is the highest rate that passed, always one that was measured; None
    when no trial passed. ``upper_fps`` is the lowest rate above it that is known as
    out of reach; None when the maximum passed. The conclusion says how to read them:

    found            upper_fps failed, rate_fps is the DUT's throughput
    max_rate_passed  the DUT may do more than was allowed to be offered
    nothing_passed   even the lowest rate failed (throughput 0, if you must)
    tester_limited   the tester cannot send upper_fps: the DUT does at least rate_fps
    unstable         trials at upper_fps stayed invalid, or max_trials was reached
    """

    rate_fps: int | None
    upper_fps: int | None
    conclusion: Conclusion
    steps: list[Step]


@dataclass(frozen=True)
class Resolution:
    """How close the bounds must come: a share of the upper one, or frames a second."""

    value: Fraction
    relative: bool

    @classmethod
    def parse(cls, text: str) -> Resolution:
        """``"0.1%"`` is relative, ``"1000"`` absolute (frames per second).

        Raises:
            ValueError: neither; zero; or 100 % and more.
        """
        relative = text.endswith("%")
        number = text.removesuffix("%")
        if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", number):
            raise ValueError(f"not a resolution: {text!r}")
        value = Fraction(number) / (100 if relative else 1)
        if value == 0 or (relative and value >= 1):
            raise ValueError(f"no search can use a resolution of {text}")
        return cls(value, relative)

    def reached(self, lower_fps: int, upper_fps: int) -> bool:
        """Whether the bounds are close enough; exact, without rounding."""
        numerator, denominator = self.value.as_integer_ratio()
        allowed = numerator * (upper_fps if self.relative else 1)
        return (upper_fps - lower_fps) * denominator <= allowed

    def width_fps(self, at_fps: float) -> Fraction:
        """How far apart that is, at a rate of ``at_fps``."""
        return self.value * Fraction(at_fps) if self.relative else self.value


@dataclass(frozen=True)
class Bracket:
    """Two rates, ``lower_fps < upper_fps``: one that passed and one that failed."""

    lower_fps: int
    upper_fps: int

    def __post_init__(self) -> None:
        if not 0 < self.lower_fps < self.upper_fps:
            raise ValueError(f"no bracket: {self.lower_fps}..{self.upper_fps}")


@dataclass(frozen=True)
class Verification:
    """How often a trial with loss is repeated before the rate counts as failed.

    ``trials`` at one rate decide together (max(r) of ETSI GS NFV-TST 009): the rate
    passes when any of them does. A loss ratio above ``hopeless`` (its z) decides at
    once: more of the same would be a waste of time.
    """

    trials: int = 1
    hopeless: float = 1.0

    def __post_init__(self) -> None:
        if self.trials < 1 or not 0 <= self.hopeless <= 1:
            raise ValueError(f"no way to verify a loss: {self}")
