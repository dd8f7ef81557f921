"""Order statistics by RFC 2330 11.3, in integer arithmetic.

The empirical distribution function F(x) is the fraction of samples that are <= x. The
p-th percentile is the smallest sample x with F(x) >= p: always a value that was really
measured, never an interpolated one. The median of an even number of samples is the mean
of the middle two, so it may differ from the 50th percentile. A sample may be infinite.

Fractions are given as ``numerator / denominator`` (999, 1000 for 99.9 %), because
``ceil(0.999 * n)`` in binary floating point picks the wrong sample for some n.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import fmean, stdev
from typing import NamedTuple


def median(values: Iterable[float]) -> float:
    """Middle sample, or the mean of the middle two (RFC 2330 11.3).

    Raises:
        ValueError: there are no samples.
    """
    ordered = _sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def mean(values: Iterable[float]) -> float:
    """Arithmetic mean, rounded once: what RFC 2544 26.2 calls the average.

    Raises:
        ValueError: there are no samples.
    """
    samples = _sorted(values)
    return math.fsum(samples) / len(samples)


def percentile(
    values: Iterable[float], numerator: int, denominator: int = 100
) -> float:
    """Smallest sample x with F(x) >= numerator / denominator (RFC 2330 11.3).

    Raises:
        ValueError: there are no samples, or the fraction is not in (0, 1].
    """
    ordered = _sorted(values)
    return ordered[_rank(len(ordered), numerator, denominator) - 1]


def histogram_percentile(
    buckets: Sequence[tuple[int, int, int]], numerator: int, denominator: int = 100
) -> int:
    """Upper end of the bucket that holds the percentile.

    Args:
        buckets: ``(lowest, highest, count)`` in rising order, both ends included.
        numerator: of the fraction wanted.
        denominator: of the fraction wanted.

    Returns:
        A value that the true percentile does not exceed, in the buckets' unit.

    Raises:
        ValueError: the histogram is empty, or the fraction is not in (0, 1].
    """
    return percentile_bounds(buckets, numerator, denominator)[1]


def percentile_bounds(
    buckets: Sequence[tuple[int, int, int]], numerator: int, denominator: int = 100
) -> tuple[int, int]:
    """Both ends of that bucket: the true percentile lies between them.

    Args:
        buckets: as of ``histogram_percentile``.
        numerator: of the fraction wanted.
        denominator: of the fraction wanted.

    Raises:
        ValueError: the histogram is empty, or the fraction is not in (0, 1].
    """
    samples = sum(count for _, _, count in buckets)
    return _at_rank(buckets, _rank(samples, numerator, denominator))


def merged_histogram(
    histograms: Iterable[Sequence[tuple[int, int, int]]],
) -> list[tuple[int, int, int]]:
    """All samples of several histograms with the same buckets, in rising order."""
    counts: Counter[tuple[int, int]] = Counter()
    for buckets in histograms:
        for lowest, highest, count in buckets:
            counts[highest, lowest] += count
    return [(low, high, counts[high, low]) for high, low in sorted(counts)]


def histogram_median(buckets: Sequence[tuple[int, int, int]]) -> float:
    """Median by the upper ends of the buckets that hold the middle samples.

    Args:
        buckets: as of ``histogram_percentile``.

    Raises:
        ValueError: the histogram is empty.
    """
    return median_bounds(buckets)[1]


def median_bounds(buckets: Sequence[tuple[int, int, int]]) -> tuple[float, float]:
    """The true median lies between these; the second is ``histogram_median``.

    Args:
        buckets: as of ``histogram_percentile``.

    Raises:
        ValueError: the histogram is empty.
    """
    samples = sum(count for _, _, count in buckets)
    if samples == 0:
        raise ValueError("order statistics need at least one sample")
    first = _at_rank(buckets, (samples + 1) // 2)
    second = _at_rank(buckets, samples // 2 + 1)
    return (first[0] + second[0]) / 2, (first[1] + second[1]) / 2


def _at_rank(buckets: Sequence[tuple[int, int, int]], rank: int) -> tuple[int, int]:
    """Ends of the bucket that holds the sample at a 1-based position."""
    seen = 0
    for lowest, highest, count in buckets:
        seen += count
        if seen >= rank:
            return lowest, highest
    raise AssertionError("a rank never exceeds the number of samples")


def _sorted(values: Iterable[float]) -> list[float]:
    ordered = sorted(values)
    if not ordered:
        raise ValueError("order statistics need at least one sample")
    return ordered


def _rank(samples: int, numerator: int, denominator: int) -> int:
    """1-based position k = ceil(p * N) of the percentile among sorted samples."""
    if samples == 0:
        raise ValueError("order statistics need at least one sample")
    if not 0 < numerator <= denominator:
        raise ValueError(f"{numerator}/{denominator} is not in (0, 1]")
    return -(-numerator * samples // denominator)


# Order statistics of samples of which some are only lower bounds (right-censored).
#
# A search that ends at the tester's limit has found "at least so much": the true value
# is that or any higher one. A figure made of such samples is exact if it does not
# depend on how much higher they are: if it is the same with all bounds taken at their
# value and with all of them taken as infinite. Otherwise it is a lower bound itself.


Statistic = Callable[[Sequence[float]], float]


class Estimate(NamedTuple):
    """A figure; ``at_least``: it is a lower bound."""

    value: float
    at_least: bool


def estimate(
    statistic: Statistic, values: Sequence[float], at_least: Sequence[bool] = ()
) -> Estimate:
    """``statistic`` of ``values``, bounds taken at their value, and what it is.

    Args:
        statistic: must not fall when a sample rises; percentiles, medians and their
            intervals do not.
        values: the samples.
        at_least: which of them are lower bounds; empty: none.
    """
    value = statistic(values)
    return Estimate(value, statistic(highest(values, at_least)) != value)


def highest(values: Sequence[float], at_least: Sequence[bool]) -> list[float]:
    """The most that the samples may be: bounds are infinite.

    Raises:
        ValueError: ``at_least`` is neither empty nor as long as ``values``.
    """
    marks = at_least or [False] * len(values)
    return [
        math.inf if bound else value for value, bound in zip(values, marks, strict=True)
    ]


# Confidence intervals: of a median whatever the distribution, and of an average.
#
# Of n independent samples the number below the median is binomial (n, 1/2). So the k-th
# smallest and the k-th largest sample enclose the median with a probability that needs
# no assumption about the samples; values that occur twice only make it larger. Sums are
# integers, so nothing is rounded.
#
# Who looks after every few samples and stops when the interval is narrow enough stops
# too often at a lucky one. ``LOOKS`` are the only sample counts at which
# ``interval_at_look`` answers, and they share the 5 %: all of its intervals together
# miss the median in at most 5 % of the cases, so the one that somebody stops at does as
# well.
#
# Nothing can be said of an average without any assumption: one sample in a million may
# be a million times as large. Its interval is Student's, right for normal averages.


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
    t = student(len(samples) - 1, float(confidence))
    wide = t * stdev(samples, middle) / math.sqrt(len(samples))
    return Interval(middle - wide, middle + wide, confidence)


def half_width_of_series(
    values: Sequence[float], confidence: Fraction = _CONFIDENCE
) -> float:
    """Half of an interval of the average of readings that may be like those before.

    ``n`` of which neighbours correlate by ``r`` tell as much as ``n (1 - r) / (1 + r)``
    that are independent (a first-order autoregression); ``r`` is made larger by what a
    short series has it too small, ``(1 + 4 r) / n``, and so is the variance. What
    drifts all the time is one reading, and the interval wide.

    Raises:
        ValueError: fewer than two.
    """
    middle, number = fmean(values), len(values)
    if not (spread := stdev(values, middle)):
        return 0.0
    off = [value - middle for value in values]
    products = (before * after for before, after in pairwise(off))
    alike = math.fsum(products) / (spread**2 * (number - 1))
    alike = min(max(alike + (1 + 4 * alike) / number, 0.0), _MOST_ALIKE)
    told = max(2.0, number * (1 - alike) / (1 + alike))
    t = student(int(told) - 1, float(confidence))
    return t * spread / math.sqrt(told - 1)


_MOST_ALIKE = 0.97


def student(freedom: int, inside: float) -> float:
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
