"""The repeats of one value in numbers: what RFC 8219 12 and the papers tell of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from dutperf import stats
from dutperf.results.rate_results import (
    Bound,
    BoundCause,
    RepeatResult,
    Spread,
    SpreadFigure,
)

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


# Results that are lower bounds: what repeats make of them, and in words.


_LIMITS: dict[BoundCause, str] = {
    "tester": "the tester's limit",
    "disturbed": "the test was disturbed",
    "held_back": "held back behind a port",
    "set": "the maximum that was set",
    "nominal": "the nominal rate of a virtual link",
    "short_tests": "tests too short to prove more",
    "kept": "no connection was forgotten",
    None: "not proven further",
}


class Overall(NamedTuple):
    """What all repeats of a cell say together."""

    median: float | None
    bound: Bound
    bound_cause: BoundCause
    spread: Spread | None


def overall(
    repeats: Sequence[RepeatResult], interval_of: IntervalOf = stats.median_interval
) -> Overall:
    """Median and spread of the repeats with a value; which of that is a lower bound.

    ``interval_of``: see ``spread_of``.
    """
    values, at_least = valued(repeats)
    spread = spread_of(values, interval_of, at_least=at_least)
    if spread is None or "median" not in spread.lower_bounds:
        return Overall(spread.median if spread else None, None, None, spread)
    return Overall(spread.median, "lower", _cause(repeats, values), spread)


def averaged(repeats: Sequence[RepeatResult], width: float) -> Overall:
    """The same where repeats are averaged: one lower bound makes the average one.

    The interval is the average's own, and reaches ``width`` further up: no repeat is
    known more closely; nothing that is averaged is below 0. With a lower bound among
    them it has none.
    """
    found, (values, _) = overall(repeats), valued(repeats)
    bounded = [repeat for repeat in repeats if repeat.bound]
    interval = None if bounded else stats.mean_interval(values)
    spread = found.spread and found.spread.model_copy(
        update={
            "interval_lower": max(0.0, interval.lower) if interval else None,
            "interval_upper": interval.upper + width if interval else None,
            "interval_percent": float(100 * interval.coverage) if interval else None,
            "lower_bounds": [
                name
                for name in found.spread.lower_bounds
                if not name.startswith("interval")
            ],
        }
    )
    return found._replace(
        spread=spread,
        median=stats.mean(values) if values else None,
        bound=bounded[0].bound if bounded else None,
        bound_cause=bounded[0].bound_cause if bounded else None,
    )


def _cause(repeats: Sequence[RepeatResult], values: Sequence[float]) -> BoundCause:
    """What bounds the median: the repeat with a bound that is nearest to it.

    A bound above the median does not make it one.
    """
    middle = sorted(values)[len(values) // 2]
    bounds = [
        (repeat.value, repeat.bound_cause)
        for repeat in repeats
        if repeat.bound and repeat.value is not None and repeat.value <= middle
    ]
    return max(bounds, key=lambda bound: (bound[0], bound[1] is not None))[1]


def valued(repeats: Sequence[RepeatResult]) -> tuple[list[float], list[bool]]:
    """The values of the repeats that have one, and which of them are lower bounds."""
    known = [(r.value, r.bound is not None) for r in repeats if r.value is not None]
    return [value for value, _ in known], [bound for _, bound in known]


def limit_words(cause: BoundCause) -> str:
    """What a lower bound ends at, to stand behind it."""
    return _LIMITS[cause]
