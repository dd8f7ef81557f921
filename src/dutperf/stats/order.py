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
from collections.abc import Iterable, Sequence


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
