"""Searches: pure, no I/O; they know rates and outcomes, not frames or devices.

Here is what a search asks for, and what it answers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeVar

from dutperf import stats

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


# What the tester itself can offer, as the trials that it could not offer say.
#
# One such trial says nothing: the sender may have had a stall. A limit is what a sender
# meets each time, so it takes two trials at the same rate to find one. When they do not
# agree about how much it is, a third one is asked, and so on; the most that any of them
# managed is the limit, because a stall only makes it less.


_ABOUT_THE_SAME = 0.95
_FEWEST = 2


def sender_limit_fps(
    outcomes: Iterable[Outcome], passed_fps: float, attempts: int
) -> float | None:
    """The limit by the trials at one rate; None: they do not tell, or not yet.

    Args:
        outcomes: what those trials told; only the invalid ones are asked.
        passed_fps: what the sender offered before. Less than a frame per second more
            is a stall, and is only taken where nothing else is told.
        attempts: how often an invalid trial is run at most.
    """
    invalid = [o for o in outcomes if o.verdict == "invalid"]
    offered = sorted(o.offered_fps for o in invalid if o.offered_fps is not None)
    if len(offered) < min(_FEWEST, attempts):
        return None
    if len(invalid) >= attempts:
        return offered[-1]
    second_fps, most_fps = offered[-2:]
    agree = second_fps >= max(passed_fps + 1, _ABOUT_THE_SAME * most_fps)
    return most_fps if agree else None


def tells_nothing(
    outcomes: Sequence[Outcome], passed_fps: float, attempts: int
) -> bool:
    """Whether trials at one rate, the last of them invalid, ask for another one there.

    What the sender cannot offer, as they say, it will not offer then. For the rest see
    ``sender_limit_fps``.
    """
    invalid = sum(outcome.verdict == "invalid" for outcome in outcomes)
    if outcomes[-1].verdict != "invalid" or invalid >= attempts:
        return False
    return sender_limit_fps(outcomes, passed_fps, attempts) is None


# How often a search is repeated: a number of times, or until the median is settled.
#
# Settled is a median of which the distribution-free confidence interval is narrower
# than asked for. Only the looks of ``stats`` are moments at which that may be decided,
# because they share the 5 % (``stats.confidence``). A pure function of the results so
# far.
#
# Results may be lower bounds (``stats.censored``). An interval of which the upper end
# is one has no known width. If so many are that all of the interval may be infinite,
# the median is a bound, and more results would only say so again.
#
# A search that found a rate knows that the device's limit is between that and another
# rate, up to a resolution above. Results that are all the same know no more: an
# interval is never narrower than the resolution, unless it ends at the highest rate
# that may be.


@dataclass(frozen=True)
class Repeats:
    """``most`` of them; with ``width`` fewer, as soon as the interval is that narrow.

    A relative ``width`` is a share of the median. ``resolution`` is that of each
    result, ``highest_fps`` the highest one that may be.
    """

    most: int
    width: Resolution | None = None
    resolution: Resolution | None = None
    highest_fps: float = math.inf

    def enough(self, values: Sequence[float], at_least: Sequence[bool] = ()) -> bool:
        """Whether these results are all that are needed.

        ``at_least``: which of them are lower bounds; empty: none.
        """
        if len(values) >= self.most or self.reaches_width(values, at_least):
            return True
        return self.width is not None and self._only_bounds(values, at_least)

    def reaches_width(
        self, values: Sequence[float], at_least: Sequence[bool] = ()
    ) -> bool:
        """Whether ``width`` was asked for and is reached."""
        interval = self._of_samples(values)
        if interval is None or self.width is None:
            return False
        highest = self._of_samples(stats.highest(values, at_least))
        if highest is None or highest.upper != interval.upper:
            return False
        median = stats.median(values)
        width = Fraction(interval.upper) - Fraction(interval.lower)
        if self.resolution is not None:
            width = max(width, self.resolution.width_fps(median))
        return width <= self.width.width_fps(median)

    def _only_bounds(self, values: Sequence[float], at_least: Sequence[bool]) -> bool:
        """Whether bounds are all that the interval is made of."""
        highest = self._of_samples(stats.highest(values, at_least))
        return highest is not None and math.isinf(highest.lower)

    def interval(self, values: Sequence[float]) -> stats.Interval | None:
        """That of the median, with 95 % at least; None: too few results to tell."""
        found = self._of_samples(values)
        if found is None or self.resolution is None or math.isinf(found.upper):
            return found
        width_fps = math.ceil(self.resolution.width_fps(stats.median(values)))
        known_fps = found.lower + width_fps
        upper_fps = max(found.upper, min(known_fps, self.highest_fps))
        return replace(found, upper=upper_fps)

    def _of_samples(self, values: Sequence[float]) -> stats.Interval | None:
        if self.width is None:
            return stats.median_interval(values)
        return stats.interval_at_look(values)


# A trial that told nothing is run again: the loop of all who do so.
#
# But for a bisection, in which trials with loss are repeated as well (``binary``).


T = TypeVar("T")


def attempted(trials: Iterable[T], again: Callable[[Sequence[T]], bool]) -> list[T]:
    """The first of ``trials``, and more of them as long as they tell nothing.

    Args:
        trials: as many as may be run, each of which is run when it is taken.
        again: whether those so far, one or more, ask for another one.
    """
    taken: list[T] = []
    for trial in trials:
        taken.append(trial)
        if not again(taken):
            break
    return taken
