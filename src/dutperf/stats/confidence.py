"""Confidence intervals: of a median whatever the distribution, and of an average.

Of n independent samples the number below the median is binomial (n, 1/2). So the k-th
smallest and the k-th largest sample enclose the median with a probability that needs no
assumption about the samples; values that occur twice only make it larger. Sums are
integers, so nothing is rounded.

Who looks after every few samples and stops when the interval is narrow enough stops too
often at a lucky one. ``LOOKS`` are the only sample counts at which ``interval_at_look``
answers, and they share the 5 %: all of its intervals together miss the median in at
most 5 % of the cases, so the one that somebody stops at does as well.

Nothing can be said of an average without any assumption: one sample in a million may be
a million times as large. Its interval is Student's, right for normal averages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean, stdev

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


def mean_interval(
    values: Iterable[float], confidence: Fraction = _CONFIDENCE
) -> Interval | None:
    """Of the average, by Student's t; None: infinite, or too few for a median's.

    Few samples that are equal by chance have no spread: so it takes as many as there.

    Raises:
        ValueError: ``confidence`` is not in [0, 1).
    """
    samples = list(values)
    if median_interval(samples, confidence) is None or math.inf in samples:
        return None
    middle = fmean(samples)
    t = _student(len(samples) - 1, float(confidence))
    wide = t * stdev(samples, middle) / math.sqrt(len(samples))
    return Interval(middle - wide, middle + wide, confidence)


def _student(freedom: int, inside: float) -> float:
    """How far from 0, in either direction, that share of Student's t is.

    By the finite sums of Abramowitz and Stegun (26.7.3 and 26.7.4) over the angle whose
    tangent is t / sqrt(freedom), bisected.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        sine, cosine = math.sin(angle), math.cos(angle)
        odd = freedom % 2
        term = total = cosine if odd and freedom > 1 else float(not odd)
        for n in range(3 if odd else 2, freedom - 1, 2):
            term *= (n - 1) / n * cosine**2
            total += term
        share = sine * total
        if odd:
            share = (angle + share) * 2 / math.pi
        low, high = (angle, high) if share < inside else (low, angle)
    return math.tan(low) * math.sqrt(freedom)


def interval_at_look(values: Iterable[float]) -> Interval | None:
    """For who repeats until it is narrow enough; None where ``LOOKS`` has no look.

    The coverage is that of this look; of any stopping rule it is 95 % at least.
    """
    samples = list(values)
    if len(samples) not in LOOKS:
        return None
    return median_interval(samples, _CONFIDENCE_AT_LOOK)
