"""Figures of a result as the tables on standard output show them."""

from __future__ import annotations

from dutperf.results import Bound, CellResult, SpreadFigure
from dutperf.results.units import about, whole

NONE = "-"


def at_least(bound: Bound) -> str:
    """Stands before every figure that is a lower bound."""
    return ">= " if bound else ""


def rate(value: float | None, bound: Bound = None) -> str:
    """A rate, or a number of connections."""
    return NONE if value is None else f"{at_least(bound)}{whole(value)}"


def of_spread(cell: CellResult, name: SpreadFigure) -> str:
    """One figure of all repeats, in the cell's unit."""
    spread = cell.spread
    if spread is None:
        return NONE
    bound: Bound = "lower" if name in spread.lower_bounds else None
    return rate(getattr(spread, name), bound)


def interval(cell: CellResult) -> str:
    """Of the median; five repeats and less have none.

    Where already its lower end is a lower bound, the upper one says nothing more.
    """
    low, high = of_spread(cell, "interval_lower"), of_spread(cell, "interval_upper")
    bounds = cell.spread.lower_bounds if cell.spread else []
    if NONE in (low, high) or "interval_lower" in bounds:
        return low
    return f"{low}{' to ' if 'interval_upper' in bounds else '-'}{high}"


def dispersion(cell: CellResult) -> str:
    """Percent of the median; none if one of its figures is a lower bound."""
    percent = cell.spread.dispersion_percent if cell.spread else None
    return NONE if percent is None else about(percent)
