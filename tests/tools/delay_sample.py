"""Made-up delays of realistic shapes, in log-linear buckets.

A device that usually answers at once and sometimes a polling interval later (two
modes), whose CPU is taken away for up to 8 ms now and then, and that loses a burst of
frames in the middle of a trial.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable
from statistics import NormalDist

from dutperf.protocol.result_messages import Histogram, Series, TagResult

NOTHING = Histogram(count=0, min=None, max=None, buckets=[])
_QUANTILES = 2_000
_PREEMPTED_NS = 8_000_000


def histogram(values: Iterable[tuple[int, int]], bits: int = 10) -> Histogram:
    """``(value, times)`` in buckets of 2^-bits relative width."""
    counted: Counter[int] = Counter()
    for value, times in values:
        counted[value] += times
    present = sorted(value for value, times in counted.items() if times)
    if not present:
        return NOTHING
    least, most = present[0], present[-1]
    buckets: dict[tuple[int, int], int] = {}
    for value in present:
        shift = max(abs(value).bit_length() - bits - 1, 0)
        low = abs(value) >> shift << shift
        high = low + (1 << shift) - 1
        ends = (low, high) if value >= 0 else (-high, -low)
        key = max(ends[0], least), min(ends[1], most)
        buckets[key] = buckets.get(key, 0) + counted[value]
    ordered = [(low, high, buckets[low, high]) for low, high in sorted(buckets)]
    return Histogram(count=counted.total(), min=least, max=most, buckets=ordered)


def two_modes(frames: int, seed: int, *, fast_us: float = 34.0) -> Histogram:
    """85 % around ``fast_us``, 15 % around 3.4 times that, 1 in 4,000 up to 8 ms."""
    draw = random.Random(seed)  # noqa: S311 - test data
    stalled = frames // 4_000
    body = frames - stalled
    found: list[tuple[int, int]] = []
    for share, middle_us, width in ((0.85, fast_us, 0.13), (0.15, 3.4 * fast_us, 0.2)):
        normal = NormalDist(math.log(middle_us * 1_000), width)
        each = int(body * share / _QUANTILES)
        found += [
            (round(math.exp(normal.inv_cdf((i + 0.5) / _QUANTILES))), each)
            for i in range(_QUANTILES)
        ]
    # What rounding left over.
    found.append((round(fast_us * 1_000), body - sum(times for _, times in found)))
    waits = (draw.random() ** 1.3 for _ in range(stalled))
    found += [(round(fast_us * 1_000 + wait * _PREEMPTED_NS), 1) for wait in waits]
    return histogram(found)


def variation(frames: int, seed: int) -> Histogram:
    """Mostly a few microseconds either way, now and then milliseconds."""
    draw = random.Random(seed)  # noqa: S311 - test data
    pairs = [
        (round(draw.gauss(0, 3_000)), max(1, frames // 5_000)) for _ in range(4_000)
    ]
    pairs += [(sign * 80_000 + round(draw.gauss(0, 9_000)), frames // 40_000)
              for sign in (-1, 1) for _ in range(900)]  # fmt: skip
    for _ in range(max(1, frames // 60_000)):
        stall = round(draw.random() * _PREEMPTED_NS)
        pairs += [(stall, 1), *((-stall // 9, 1) for _ in range(9))]
    return histogram(pairs)


def series(
    frames: int, lost: dict[int, int], intervals: int, interval_ns: int
) -> Series:
    """``lost`` frames by interval; all others arrive."""
    ends = [frames * i // intervals for i in range(intervals + 1)]
    sent = [ends[i + 1] - ends[i] for i in range(intervals)]
    received = [count - lost.get(i, 0) for i, count in enumerate(sent)]
    return Series(interval_ns=interval_ns, sent=sent, received=received)


def evenly(lost: int, intervals: int) -> dict[int, int]:
    """Loss of an overloaded device: the same in every interval."""
    ends = [lost * i // intervals for i in range(intervals + 1)]
    return {i: ends[i + 1] - ends[i] for i in range(intervals)}


def tags(count: int, seed: int, lost: Iterable[int] = ()) -> TagResult:
    """Delays of tagged frames, two modes and a rare stall."""
    draw = random.Random(seed)  # noqa: S311 - test data
    gone = set(lost)
    delays: list[int | None] = []
    for tag in range(count):
        middle = 34_000 if draw.random() < 0.85 else 116_000
        stall = draw.random() * _PREEMPTED_NS if draw.random() < 1 / 4_000 else 0
        delay = round(middle * math.exp(draw.gauss(0, 0.13)) + stall)
        delays.append(None if tag in gone else delay)
    return TagResult(lost=len(gone), delays_ns=delays)
