"""Within what a value lies by its repeats, each known between two values, once more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from oracle import formulas

Json = dict[str, Any]
_NO_COMMON_VALUE = ("modes", "shift", "drift", "unstable")


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
    """Of a loss curve, what is found of its highest load; of several, of the one."""
    if cell.get("points") and of is None:
        highest = max(point["load_percent"] for point in cell["points"])
        of = f"share of frames that arrived at {highest:g} % load"
    return any(
        finding["kind"] == "contradiction"
        or (finding["kind"] in _NO_COMMON_VALUE and of in (None, finding["of"]))
        for finding in cell.get("findings") or []
    )


def within(repeats: Sequence[Known], averaged: bool, alpha: Fraction) -> Known | None:
    """What median or average lie in, but for half of ``alpha``; None: too few."""
    sure = 1 - alpha / 2
    place = formulas.median_interval(len(repeats), sure)
    if place is None:
        return None
    lows, highs = (sorted(each[end] for each in repeats) for end in (0, 1))
    if not averaged:
        k = place[0]
        return Known(lows[k - 1], highs[-k])
    low = formulas.mean_interval(lows, sure)
    high = formulas.mean_interval(highs, sure)
    upper = math.inf if high is None else high[1]
    return None if low is None else Known(max(0.0, low[0]), upper)
