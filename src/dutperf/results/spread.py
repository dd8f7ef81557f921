"""The repeats of one value in numbers: what RFC 8219 12 and the papers tell of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from dutperf import stats
from dutperf.results.rate_results import Spread, SpreadFigure

IntervalOf = Callable[[Sequence[float]], stats.Interval | None]
"""An interval of the median; by the number of samples only it has one or none."""


def spread_of(
    values: Iterable[float],
    interval_of: IntervalOf = stats.median_interval,
    *,
    at_least: Sequence[bool] = (),
) -> Spread | None:
    """The spread of ``values``, which may be infinite; None: there are no values.

    Args:
        values: of the repeats that count.
        interval_of: for who stopped repeating because of it; where it has none, the
            one of all values with 95 %.
        at_least: which of them are lower bounds; empty: none.
    """
    known = list(values)
    if not known:
        return None
    interval = interval_of(known)
    if interval is None:
        interval_of, interval = stats.median_interval, stats.median_interval(known)
    found = {
        name: stats.estimate(statistic, known, at_least)
        for name, statistic in _figures(interval_of if interval else None).items()
    }
    bounds: list[SpreadFigure] = [name for name, of in found.items() if of.at_least]
    return Spread(
        count=len(known),
        median=_finite(found["median"].value),
        percentile_1=_finite(found["percentile_1"].value),
        percentile_99=_finite(found["percentile_99"].value),
        minimum=_finite(found["minimum"].value),
        maximum=_finite(found["maximum"].value),
        dispersion_percent=_dispersion_percent(
            *(found[name] for name in ("percentile_1", "median", "percentile_99"))
        ),
        interval_lower=_finite(found["interval_lower"].value) if interval else None,
        interval_upper=_finite(found["interval_upper"].value) if interval else None,
        interval_percent=float(100 * interval.coverage) if interval else None,
        lower_bounds=bounds,
    )


def _figures(interval_of: IntervalOf | None) -> dict[SpreadFigure, stats.Statistic]:
    found: dict[SpreadFigure, stats.Statistic] = {
        "median": stats.median,
        "percentile_1": partial(stats.percentile, numerator=1),
        "percentile_99": partial(stats.percentile, numerator=99),
        "minimum": min,
        "maximum": max,
    }
    if interval_of is not None:
        found["interval_lower"] = lambda values: _interval(interval_of, values).lower
        found["interval_upper"] = lambda values: _interval(interval_of, values).upper
    return found


def _interval(interval_of: IntervalOf, values: Sequence[float]) -> stats.Interval:
    interval = interval_of(values)
    assert interval is not None, "as many samples had one before"  # noqa: S101
    return interval


def _dispersion_percent(
    low: stats.Estimate, middle: stats.Estimate, high: stats.Estimate
) -> float | None:
    """As in the papers on siitperf; in percent of a median of 0 nothing can be told."""
    ends = (low, middle, high)
    if middle.value == 0 or any(e.at_least or math.isinf(e.value) for e in ends):
        return None
    return (high.value - low.value) * 100 / abs(middle.value)


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value
