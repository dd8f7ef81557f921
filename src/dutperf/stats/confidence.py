"""Confidence interval of a median, whatever the distribution (order statistics).

Of n independent samples the number below the median is binomial (n, 1/2). So the k-th
smallest and the k-th largest sample enclose the median with a probability that needs no
assumption about the samples; values that occur twice only make it larger. Sums are
integers, so nothing is rounded.

Who looks after every few samples and stops when the interval is narrow enough stops too
often at a lucky one. ``LOOKS`` are the only sample counts at which ``interval_at_look``
answers, and they share the 5 %: all of its intervals together miss the median in at
most 5 % of the cases, so the one that somebody stops at does as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

LOOKS = (8, 16, 32, 64)
_CONFIDENCE = Fraction(95, 100)
_CONFIDENCE_AT_LOOK = 1 - (1 - _CONFIDENCE) / len(LOOKS)


@dataclass(frozen=True)
class Interval:
    """Two samples that enclose the median with probability ``coverage`` at least."""

    lower: float
    upper: float
    coverage: Fraction


def median_interval(
    values: Iterable[float], confidence: Fraction = _CONFIDENCE
) -> Interval | None:
    """The narrowest symmetric interval; None: too few samples for ``confidence``.

    Raises:
        ValueError: ``confidence`` is not in [0, 1).
    """
    if not 0 <= confidence < 1:
        raise ValueError(f"no confidence: {confidence}")
    ordered = sorted(values)
    samples = len(ordered)
    allowed = (1 - confidence) * 2**samples
    outside, found = 0, None
    for k in range(1, samples // 2 + 1):
        outside += 2 * math.comb(samples, k - 1)
        if outside > allowed:
            break
        coverage = 1 - Fraction(outside, 2**samples)
        found = Interval(ordered[k - 1], ordered[samples - k], coverage)
    return found


def interval_at_look(values: Iterable[float]) -> Interval | None:
    """For who repeats until it is narrow enough; None where ``LOOKS`` has no look.

    The coverage is that of this look; of any stopping rule it is 95 % at least.
    """
    samples = list(values)
    if len(samples) not in LOOKS:
        return None
    return median_interval(samples, _CONFIDENCE_AT_LOOK)
