"""How surely one cell's repeats are above another's, once more (Hodges and Lehmann).

All pairs of one repeat of each, their ratios, and how often Mann and Whitney's U is as
small as the rank that ends the interval: counted order by order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from dutperf.evidence.rederive import formulas

Json = dict[str, Any]
_NO_COMMON_VALUE = ("modes", "shift", "drift", "unstable")
_MOST_COUNTED = 40_000
"""Pairs; above it the normal distribution stands in (docs/compare.md)."""


class Known(NamedTuple):
    """Between which values the truth of one repeat lies."""

    low: float
    high: float


def rate_repeats(cell: Json, told: Json) -> list[Known]:
    """Of what is no delay; empty: no figure stands for all repeats.

    Args:
        cell: as stored, for settings and findings.
        told: what follows of it.
    """
    goals = cell.get("goals") or []
    if _is_doubtful(cell) or (goals and not goals[0]["regular"]):
        return []
    values = [repeat["value"] for repeat in told["repeats"]]
    if None in values:
        return []
    found = []
    for repeat in told["repeats"]:
        value = float(repeat["value"])
        high = math.inf if repeat.get("bound") else _failed(cell, told, value)
        if high is None:
            return []
        found.append(Known(value, high))
    return found


def _failed(cell: Json, told: Json, value: float) -> float | None:
    """What is known to be too much."""
    if cell["procedure"] == "frame-loss":
        return value
    timed = told.get("recovery") or told.get("outage")
    if timed:
        return value + float(timed["within_ns"])
    key = "step" if cell["procedure"] == "back-to-back" else "resolution"
    asked = str(cell["parameters"].get(key))
    wide = [float(goal["width"]) for goal in (cell.get("goals") or [])[:1]]
    try:
        if not asked.endswith("%"):
            return value + max([float(Fraction(asked)), *wide])
        width = max([float(Fraction(asked.removesuffix("%")) / 100), *wide])
    except ValueError:
        return None
    return max(value + 1, value / (1 - width))


def delay_repeats(cell: Json, told: Json, measure: Json) -> list[Known]:
    """Of a delay of one stream; empty: as above, or it has a sign."""
    stream = "" if measure["stream"] == "foreground" else f" {measure['stream']}"
    of = f"{measure['name']}, {measure['direction']}{stream}"
    tester = told["delays"]
    if tester is None or _is_doubtful(cell, of):
        return []
    most = float(tester["usual_bound_ns"] or tester["bound_ns"])
    found = []
    for figure in measure["repeats"]:
        value = figure["value"]
        if value is None:
            found += [Known(math.inf, math.inf)] if figure["absent"] == "lost" else []
            continue
        if value < 0:
            return []
        share = most if cell["procedure"] == "ipdv" else min(most, value / 4)
        high = value + (share if cell["procedure"] in ("pdv", "ipdv") else 0.0)
        low = max(0.0, value - (share + measure["rounding_ns"]))
        found.append(Known(0.0 if figure["at_most"] else min(value, low), high))
    return found


def _is_doubtful(cell: Json, of: str | None = None) -> bool:
    return any(
        finding["kind"] in _NO_COMMON_VALUE and of in (None, finding["of"])
        for finding in cell.get("findings") or []
    )


def end_of_interval(before: int, after: int, alpha: Fraction) -> int:
    """Which pair from either end; 0: there are too few repeats."""
    if before * after > _MOST_COUNTED:
        wide = math.sqrt(before * after * (before + after + 1) / 12)
        z = formulas.normal_quantile(float(alpha / 2))
        return max(0, math.floor(before * after / 2 + z * wide + 0.5))
    orders, outside = math.comb(before + after, before), 0
    for u, as_small in enumerate(_orders(before, after)):
        outside += as_small
        if Fraction(2 * outside, orders) > alpha:
            return u
    return before * after // 2


@cache
def _orders(before: int, after: int) -> list[int]:
    """In how many orders of both U is 0, 1, ... up to its middle.

    The highest of all is one before, above all those after, or one after, above none:
    N(m, n, u) = N(m - 1, n, u - n) + N(m, n - 1, u). All u at once are one whole number
    with as many digits, each of ``width`` bits.
    """
    width = math.comb(before + after, before).bit_length()
    row = [1] * (after + 1)
    for _ in range(before):
        for n in range(1, after + 1):
            row[n] = (row[n] << (n * width)) + row[n - 1]
    digit = (1 << width) - 1
    return [row[-1] >> (u * width) & digit for u in range(before * after // 2 + 1)]


def shift_percent(
    before: Sequence[Known], after: Sequence[Known], alpha: Fraction
) -> tuple[float, float] | None:
    """How much more the repeats after are, at least and at most; maybe infinite."""
    place = end_of_interval(len(before), len(after), alpha)
    if not place:
        return None
    lows = sorted(_ratio(new.low, old.high, 0.0) for old in before for new in after)
    highs = sorted(
        _ratio(new.high, old.low, math.inf) for old in before for new in after
    )
    return (lows[place - 1] - 1) * 100, (highs[-place] - 1) * 100


def _ratio(new: float, old: float, unknown: float) -> float:
    """Of 0 to 0, and of infinite to infinite, nobody knows."""
    if new == old and new in (0, math.inf):
        return unknown
    return new / old if old else math.inf
