"""The formulas of the RFCs once more, each written as the RFC has it.

What measures has its own (``stats``, ``search``, ``procedures``); nothing here may use
those, and nothing there these. Slow and plain on purpose: sorted lists, fractions, no
shortcuts. Tests hold both against each other on random runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

Buckets = Sequence[Sequence[int]]
"""Lowest and highest value and how many samples, rising, as a histogram is stored."""

LOOKS = (8, 16, 32, 64)
"""The only numbers of repeats at which ``repeats: auto`` looks (docs/repeats.md)."""
_HIGH = Fraction(999, 1000)


def median(values: Sequence[float]) -> float:
    """RFC 2330 11.3: the middle one, or the mean of the two in the middle."""
    ordered, half = sorted(values), len(values) // 2
    if len(ordered) % 2:
        return ordered[half]
    return (ordered[half - 1] + ordered[half]) / 2


def percentile(values: Sequence[float], share: Fraction) -> float:
    """RFC 2330 11.3: the smallest sample that so large a share does not exceed."""
    if not values:
        raise ValueError("a percentile needs a sample")
    return sorted(values)[max(1, math.ceil(share * len(values))) - 1]


def mean(values: Sequence[float]) -> float:
    """RFC 2544 26.2, RFC 9004 6.3: the average."""
    return float(sum(map(Fraction, values)) / len(values))


def standard_deviation(values: Sequence[float]) -> float | None:
    """RFC 9004 6.4: of a sample, so by N - 1."""
    if len(values) < 2:
        return None
    middle = sum(map(Fraction, values)) / len(values)
    squares = sum((Fraction(value) - middle) ** 2 for value in values)
    return math.sqrt(squares / (len(values) - 1))


# --- histograms


def bucket_of(buckets: Buckets, rank: int) -> tuple[int, int]:
    """Both ends of the bucket with the sample of that rank, from 1."""
    for lowest, highest, count in buckets:
        rank -= count
        if rank <= 0:
            return lowest, highest
    raise ValueError("a histogram has no such sample")


def samples_of(buckets: Buckets) -> int:
    """How many there are."""
    return sum(count for _, _, count in buckets)


def high_bucket(buckets: Buckets) -> tuple[int, int]:
    """That of the 99.9th percentile."""
    return bucket_of(buckets, math.ceil(_HIGH * samples_of(buckets)))


def middle_buckets(buckets: Buckets) -> tuple[float, float]:
    """Least and most that the median may be."""
    count = samples_of(buckets)
    one, other = (bucket_of(buckets, n) for n in ((count + 1) // 2, count // 2 + 1))
    return (one[0] + other[0]) / 2, (one[1] + other[1]) / 2


def without(buckets: Buckets, part: Buckets) -> list[tuple[int, int, int]]:
    """``buckets`` less those samples that ``part`` has of them."""
    left = []
    for lowest, highest, count in buckets:
        gone = sum(n for low, _, n in part if lowest <= low <= highest)
        if count > gone:
            left.append((lowest, highest, count - gone))
    return left


# --- repeats


def median_interval(count: int, confidence: Fraction) -> tuple[int, Fraction] | None:
    """Which sample from either end encloses the median so surely, and how surely.

    Of ``count`` independent samples the number below the median is binomial; the
    narrowest pair of ranks k and count + 1 - k that holds it often enough.
    """
    for k in range(count // 2, 0, -1):
        inside = sum(math.comb(count, below) for below in range(k, count - k + 1))
        coverage = Fraction(inside, 2**count)
        if coverage >= confidence:
            return k, coverage
    return None


def mean_interval(
    values: Sequence[float], confidence: Fraction
) -> tuple[float, float] | None:
    """Student's, of an average; None: as few as have no interval of a median."""
    if median_interval(len(values), confidence) is None or math.inf in values:
        return None
    spread = standard_deviation(values) or 0.0
    wide = _student(len(values) - 1, float(confidence)) * spread / len(values) ** 0.5
    return mean(values) - wide, mean(values) + wide


def half_width_of_series(values: Sequence[float]) -> float:
    """Of the mean's 95 % interval, if each value remembers a share of the last."""
    count, middle = len(values), sum(values) / len(values)
    squares = sum((value - middle) ** 2 for value in values)
    if not squares:
        return 0.0
    memory = 0.0
    for place in range(1, count):
        memory += (values[place - 1] - middle) * (values[place] - middle) / squares
    memory += (1 + 4 * memory) / count  # short series remember too little
    memory = max(0.0, min(0.97, memory))
    independent = max(2.0, count * (1 - memory) / (1 + memory))
    spread = (squares / (count - 1) / (independent - 1)) ** 0.5
    return float(_student(int(independent) - 1, 0.95) * spread)


def _student(freedom: int, inside: float) -> float:
    """Bisected over the angle of t / sqrt(freedom): an integral of powers of cosine."""
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    scale = 2 * math.exp(scale) / math.sqrt(math.pi)

    def share(angle: float) -> float:
        sine, cosine = math.sin(angle), math.cos(angle)
        whole = sine if freedom % 2 == 0 else angle
        for n in range(3 - freedom % 2, freedom, 2):
            whole = cosine ** (n - 1) * sine / n + whole * (n - 1) / n
        return scale * whole

    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if share(middle) < inside else (low, middle)
    return math.tan(low) * math.sqrt(freedom)


class Rounding:
    """How the interval of a search's median is widened to what the search can tell.

    looks: whether it is of ``repeats: auto``, whose looks share the 5 %.
    resolution: "5%" or "1000"; None: the samples are exact.
    highest: the most that a search may find.
    """

    def __init__(
        self, *, looks: bool = False, resolution: str | None = None, highest: float = 0
    ) -> None:
        self._looks = looks
        self._resolution = resolution
        self._highest = highest

    def interval(self, values: Sequence[float]) -> tuple[float, float, float] | None:
        """Lower and upper end and percent; None: too few samples."""
        count, ordered = len(values), sorted(values)
        at_look = self._looks and count in LOOKS
        confidence = 1 - Fraction(5, 100) / (len(LOOKS) if at_look else 1)
        found = median_interval(count, confidence)
        if found is None:
            return None
        k, coverage = found
        lower, upper = ordered[k - 1], ordered[count - k]
        if self._resolution and not math.isinf(upper) and (at_look or not self._looks):
            width = math.ceil(width_at(self._resolution, median(values)))
            upper = max(upper, min(lower + width, self._highest))
        return lower, upper, float(100 * coverage)


EXACT = Rounding()


def width_at(resolution: str, at: float) -> Fraction:
    """How close the bounds of a search come, "5%" of a rate or frames a second."""
    number = Fraction(resolution.removesuffix("%"))
    return number * Fraction(at) / 100 if resolution.endswith("%") else number


def spread(
    values: Sequence[float],
    at_least: Sequence[bool] = (),
    rounding: Rounding = EXACT,
) -> dict[str, Any] | None:
    """RFC 8219 12 of several repeats: median, 1st and 99th percentile, and so on.

    A repeat that is only a lower bound may be any more than it says; a figure that
    would be another one then is a lower bound, too.
    """
    if not values:
        return None
    bounds = at_least or [False] * len(values)
    highest = [
        math.inf if b else value for value, b in zip(values, bounds, strict=True)
    ]
    interval = rounding.interval(values)
    figures: dict[str, Callable[[Sequence[float]], float]] = {
        "median": median,
        "percentile_1": lambda v: percentile(v, Fraction(1, 100)),
        "percentile_99": lambda v: percentile(v, Fraction(99, 100)),
        "minimum": min,
        "maximum": max,
    }
    if interval:
        figures["interval_lower"] = lambda v: (rounding.interval(v) or interval)[0]
        figures["interval_upper"] = lambda v: (rounding.interval(v) or interval)[1]
    known = {name: figure(values) for name, figure in figures.items()}
    open_ends = [n for n, figure in figures.items() if figure(highest) != known[n]]
    told: dict[str, Any] = {"count": len(values), "lower_bounds": open_ends}
    told |= {"interval_lower": None, "interval_upper": None}
    told |= {name: finite(value) for name, value in known.items()}
    told["interval_percent"] = interval[2] if interval else None
    told["dispersion_percent"] = _dispersion(known, open_ends)
    return told


def _dispersion(known: dict[str, float], open_ends: Sequence[str]) -> float | None:
    names = ("percentile_1", "median", "percentile_99")
    low, middle, high = (known[name] for name in names)
    unknown = any(name in open_ends or math.isinf(known[name]) for name in names)
    return None if unknown or middle == 0 else (high - low) * 100 / abs(middle)


def finite(value: float) -> float | None:
    """As it is stored: what is infinite is null."""
    return None if math.isinf(value) else value


# --- rates and times


def line_rate_fps(mbps: int, frame_size: Fraction) -> int:
    """RFC 5180 A.1: with 20 bytes of preamble and gap for each frame."""
    return math.floor(Fraction(mbps * 10**6) / (8 * (frame_size + 20)))


def corrected_buffer_time_s(
    frames: float, maximum_fps: float, throughput_fps: float
) -> float | None:
    """RFC 9004 6.4; None: what is no slower than the bursts fills no buffer."""
    implied = Fraction(frames) / Fraction(maximum_fps)
    if throughput_fps >= maximum_fps:
        return None
    return float(implied - implied * Fraction(throughput_fps) / Fraction(maximum_fps))


# --- distributions


# --- MLRsearch (RFC 9971)


class Goal:
    """What a load has to hold, by the attributes of RFC 9971 4.6; times in seconds."""

    def __init__(
        self, loss: float, exceed: float, sum_s: float, final_s: float, width: float
    ) -> None:
        self.loss = loss
        self.exceed = exceed
        self.sum_s = sum_s
        self.final_s = final_s
        self.width = width

    def _durations(
        self, trials: Sequence[tuple[float, float]]
    ) -> tuple[float, float, float, float]:
        """Of trials (seconds, loss ratio) at a load: full low and high, short both."""
        found = [0.0, 0.0, 0.0, 0.0]
        for seconds, loss in trials:
            short = 2 if seconds < self.final_s else 0
            found[short + (1 if loss > self.loss else 0)] += seconds
        return found[0], found[1], found[2], found[3]

    def _whole(self, trials: Sequence[tuple[float, float]]) -> tuple[float, ...]:
        """Low and high loss of what counts, and the time that decides."""
        low, high, short_low, short_high = self._durations(trials)
        balancing = short_low * self.exceed / (1 - self.exceed)
        high += max(0.0, short_high - balancing)
        return low, high, max(low + high, self.sum_s)

    def classify(self, trials: Sequence[tuple[float, float]]) -> str:
        """A lower bound, an upper bound, or undecided (RFC 9971 4.7)."""
        low, high, whole = self._whole(trials)
        allowed = whole * self.exceed
        if whole - low <= allowed:
            return "lower"
        return "upper" if high > allowed else "undecided"

    def forwarded_share(self, trials: Sequence[tuple[float, float]]) -> float:
        """What arrived in the share of the time that counts: conditional throughput."""
        whole = self._whole(trials)[2]
        left, worst = whole * (1 - self.exceed), None
        full = [(loss, s) for s, loss in trials if s >= self.final_s]
        for loss, seconds in sorted(full):
            if worst is not None and left <= 0:
                break
            worst, left = loss, left - seconds
        return 0.0 if worst is None or left > 0 else 1 - worst
