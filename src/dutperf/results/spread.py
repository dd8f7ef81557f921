"""The repeats of one value in numbers: what RFC 8219 12 and the papers tell of them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from dutperf import stats
from dutperf.results.model import Spread


def spread_of(
    values: Iterable[float], interval: stats.Interval | None = None
) -> Spread | None:
    """The spread of ``values``, which may be infinite; None: there are no values.

    Args:
        values: of the repeats that count.
        interval: of the median, for who stopped repeating because of it; else the one
            of all values with 95 %.
    """
    known = list(values)
    if not known:
        return None
    interval = interval or stats.median_interval(known)
    low, high = stats.percentile(known, 1), stats.percentile(known, 99)
    middle = stats.median(known)
    return Spread(
        count=len(known),
        median=_finite(middle),
        percentile_1=_finite(low),
        percentile_99=_finite(high),
        minimum=_finite(min(known)),
        maximum=_finite(max(known)),
        dispersion_percent=_finite(_dispersion_percent(low, middle, high)),
        interval_lower=_finite(interval.lower) if interval else None,
        interval_upper=_finite(interval.upper) if interval else None,
        interval_percent=float(100 * interval.coverage) if interval else None,
    )


def _dispersion_percent(low: float, middle: float, high: float) -> float:
    """As in the papers on siitperf; in percent of a median of 0 nothing can be told."""
    if middle == 0 or math.isinf(high) or math.isinf(middle):
        return math.inf
    return (high - low) * 100 / abs(middle)


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value
