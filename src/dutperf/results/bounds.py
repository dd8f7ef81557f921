"""Results that are lower bounds: what repeats make of them, and in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dutperf import stats
from dutperf.results.rate_results import Bound, BoundCause, RepeatResult, Spread
from dutperf.results.spread import IntervalOf, spread_of

_LIMITS: dict[BoundCause, str] = {
    "tester": "the tester's limit",
    "disturbed": "the test was disturbed",
    "held_back": "held back behind a port",
    "set": "the maximum that was set",
    "nominal": "the nominal rate of a virtual link",
    "short_tests": "tests too short to prove more",
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
