"""Whether two cells of one name measured the same: if not, no figures are compared."""

from __future__ import annotations

from dutperf.results import CellResult
from dutperf.results.by_the_book import OTHER_MEASURE, TRAFFIC, TRAFFIC_IF_SET
from dutperf.results.units import whole

_JUDGED = (*OTHER_MEASURE, "rfc2544_latency", "goals", *TRAFFIC_IF_SET)
"""Not set is a setting, too."""
_TRIED = (
    "search",
    "max_verify_loss_percent",
    "trial_duration_s",
    "tags",
    "first_tag_s",
    "longest_burst_s",
)
"""How long, of how many frames, and how often tried: longer trials lose more often."""
_SENT = (
    *_TRIED,
    "frame_sizes",
    *TRAFFIC,
    "alpha",
    "beta",
    "gamma",
    "first",
    "overload_percent",
    "overload_duration_s",
)
"""Compared where both have it."""


def another_measure(one: CellResult, other: CellResult) -> str:
    """What makes ``other`` another measure than ``one``; empty: nothing does."""
    before, after = one.parameters, other.parameters
    for key in _JUDGED:
        if (before.get(key) or None) != (after.get(key) or None):
            return _words(key, before.get(key), after.get(key))
    for key in _SENT:
        known = key in before and key in after
        if known and before[key] != after[key]:
            return _words(key, before[key], after[key])
    if one.load and other.load and one.load.asked != other.load.asked:
        return f"measured at {one.load.asked} and at {other.load.asked}"
    rates = _rate_of(one), _rate_of(other)
    if None not in rates and rates[0] != rates[1]:
        return f"measured at {whole(rates[0] or 0)} and at {whole(rates[1] or 0)} fps"
    return ""


def _words(key: str, old: object, new: object) -> str:
    told = ("not set" if value is None else str(value) for value in (old, new))
    return f"another measure: {key}: {' and '.join(told)}"


def _rate_of(cell: CellResult) -> float | None:
    """The rate that a loss or a burst is of; None: it is of none."""
    if cell.procedure == "frame-loss" and cell.points:
        return max(cell.points, key=lambda point: point.load_percent).load_fps
    rate = cell.parameters.get("max_load_fps")
    is_rate = cell.procedure == "back-to-back" and isinstance(rate, int | float)
    return float(rate) if is_rate and rate is not None else None
