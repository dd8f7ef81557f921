"""A comparison as one page of HTML, in the report's look: no script, no network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from dutperf import __version__
from dutperf.comparison.comparison_tables import (
    comparison_tables,
    difference_table,
    outcome_word,
    sentences,
)
from dutperf.comparison.judging import Compared, Comparison, compare
from dutperf.comparison.sides import read_runs
from dutperf.comparison.surroundings import differences_of
from dutperf.report.page import environment
from dutperf.visible import visible

_LEAST_REACH = 1.0
"""Of an axis, in percent or percentage points to either side."""
_MOST_REACH = 100.0


@dataclass(frozen=True)
class Drawn:
    """One interval on an axis from ``-reach`` to ``reach``; places in percent of it.

    ``left`` and ``right`` are the ends, ``dot`` is the estimate, null if there is none.
    """

    compared: Compared
    reach: float
    left: float
    right: float
    dot: float | None

    @property
    def word(self) -> str:
        """What it shows."""
        return outcome_word(self.compared)


def render(directories: Sequence[Path], limit: float | None = None) -> str:
    """The page that compares the runs in ``directories`` with the first of them.

    Args:
        directories: the baseline first.
        limit: of the gate, if there is one; percent, or percentage points of losses.

    Raises:
        InputError: see ``read_sides``.
    """
    return page_of(compare(read_runs(directories)), limit)


def page_of(found: Comparison, limit: float | None) -> str:
    """The same of what was compared already."""
    templates = environment()
    own = jinja2.PackageLoader("dutperf.comparison")
    templates.loader = jinja2.ChoiceLoader([own, *filter(None, [templates.loader])])
    baseline, *others = found.sides
    tables = (difference_table(differences_of(baseline, each)) for each in others)
    page = templates.get_template("comparison.html.j2").render(
        runs=found.runs,
        sides=found.sides,
        said=list(sentences(found, limit)),
        tables=list(comparison_tables(found, limit)),
        drawn=_drawn(found.figures),
        differences=list(tables),
        version=__version__,
    )
    return visible(page)


def _drawn(figures: Sequence[Compared]) -> list[Drawn]:
    """Those with an interval, all on one axis; what is farther ends at its edge."""
    known = [each for each in figures if each.change and each.change.lower is not None]
    ends = [
        abs(end)
        for each in known
        for end in each.change or ()
        if isinstance(end, float | int) and math.isfinite(end)
    ]
    reach = min(_MOST_REACH, max([_LEAST_REACH, *ends]) * 1.1)
    return [_of(each, reach) for each in known]


def _of(each: Compared, reach: float) -> Drawn:
    def place(value: float) -> float:
        return 50 + 50 * max(-1.0, min(1.0, value / reach))

    change = each.change
    assert change is not None, "those without are not drawn"  # noqa: S101
    low = -math.inf if change.lower is None else change.lower
    high = math.inf if change.upper is None else change.upper
    dot = None if change.value is None else place(change.value)
    return Drawn(each, reach, place(low), place(high), dot)
