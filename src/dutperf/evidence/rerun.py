"""Two runs of one campaign: whether the figures of the second are those of the first.

A figure is known to within its repeats: the interval of its median where there is one,
else from the least to the most; and not closer than what a search can tell. Two figures
agree if these ranges touch. Of single values that differ nobody can tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dutperf.model.procedure_keys import SearchedKeys
from dutperf.model.rate_specs import BackToBackSpec
from dutperf.results import CellResult, ResultsFile
from dutperf.results.units import in_unit
from dutperf.search import Resolution


@dataclass(frozen=True)
class TwoRuns:
    """One cell, then and now; ``agrees``: None where nobody can tell."""

    cell: str
    unit: str
    then: float | None
    now: float | None
    difference_percent: float | None
    agrees: bool | None
    words: str


def two_runs(then: ResultsFile, now: ResultsFile) -> list[TwoRuns]:
    """Each cell that either of them has."""
    before = {cell.id: cell for cell in then.cells}
    after = {cell.id: cell for cell in now.cells}
    return [_row(before.get(name), after.get(name)) for name in {**before, **after}]


def _row(then: CellResult | None, now: CellResult | None) -> TwoRuns:
    known = then or now
    assert known is not None, "one of them has it"  # noqa: S101
    one, other = (cell.median if cell else None for cell in (then, now))
    difference = None
    if one and other is not None:
        difference = (other - one) * 100 / abs(one)
    change = "" if difference is None else f" ({difference:+.2g} %)"
    return TwoRuns(
        cell=known.id,
        unit=known.unit,
        then=one,
        now=other,
        difference_percent=difference,
        agrees=_agrees(then, now),
        words=f"{_told(then)} then, {_told(now)} now{change}",
    )


def _told(cell: CellResult | None) -> str:
    if cell is None:
        return "not measured"
    if cell.median is None:
        return cell.verdict
    sign = ">= " if cell.bound else ""
    return f"{sign}{in_unit(cell.median, cell.unit)}"


def _agrees(then: CellResult | None, now: CellResult | None) -> bool | None:
    if then is None or now is None or "invalid" in (then.verdict, now.verdict):
        return None
    if then.median is None or now.median is None:
        return then.median == now.median
    low, high = _range(then)
    other_low, other_high = _range(now)
    if low <= other_high and other_low <= high:
        return True
    alone = any(len(list(_values(cell))) < 2 for cell in (then, now))
    return None if alone else False


def _values(cell: CellResult) -> Iterator[float]:
    return (r.value for r in cell.repeats if r.value is not None)


def _range(cell: CellResult) -> tuple[float, float]:
    """Where the figure may be, as far as its repeats and its search know."""
    values = [*_values(cell), cell.median or 0.0]
    low, high = min(values), max(values)
    spread = cell.spread
    if spread and spread.interval_lower is not None:
        low = spread.interval_lower
        high = math.inf if spread.interval_upper is None else spread.interval_upper
    spec = cell.cell.spec
    told = spec.step if isinstance(spec, BackToBackSpec) else None
    told = spec.resolution if isinstance(spec, SearchedKeys) else told
    if told is not None:
        high += float(Resolution.parse(told).width_fps(high)) if high < math.inf else 0
    return low, math.inf if cell.bound else high
