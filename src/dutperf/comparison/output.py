"""A comparison as ``dutperf compare --json`` prints it (docs/json.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from dutperf import __version__
from dutperf.comparison.comparison_tables import (
    change_words,
    comparison_tables,
    difference_table,
    differences_of,
    finding,
    in_a_sentence,
    interval_words,
    outcome_word,
    sentences,
)
from dutperf.comparison.judging import Compared, Comparison, compare
from dutperf.comparison.sides import read_runs
from dutperf.procedures import requirements
from dutperf.report.page import environment
from dutperf.visible import visible


def as_data(found: Comparison, limit: float | None) -> dict[str, Any]:
    """All of it; what is infinite, or not known, is null.

    Args:
        found: what was compared.
        limit: of the gate; null: there is none.
    """
    baseline, *others = found.sides
    return {
        "runs": [
            {
                "run": run.letter,
                "side": side.letter,
                "directory": str(run.directory),
                "name": run.source.name,
                "created_at": run.source.created_at,
                "dutperf_version": run.source.written_by,
                "interruption": run.source.interruption or None,
            }
            for side in found.sides
            for run in side.runs
        ],
        "claims_about": "devices" if found.by_runs else "runs",
        "comparisons": found.family,
        "interval_percent": found.interval_percent,
        "limit": limit,
        "figures": [_figure(each, limit) for each in found.figures],
        "differences": [
            {
                "run": told.run,
                "environment": [change._asdict() for change in told.environment],
                "configuration": [change._asdict() for change in told.configuration],
            }
            for told in (differences_of(baseline, each) for each in others)
        ],
    }


def _figure(each: Compared, limit: float | None) -> dict[str, Any]:
    change, number = each.change, list(each.samples)
    return {
        "cell": each.key.words,
        "run": each.run,
        "procedure": each.cell.procedure or None,
        "figure": each.name or None,
        "repeats": None if each.by_runs else number,
        "runs": number if each.by_runs else None,
        "outcome": each.outcome,
        "why": each.why or None,
        "better": each.better,
        "unit": each.unit,
        "change": _number(change.value) if change else None,
        "bound": change.bound if change else None,
        "lower": _number(change.lower) if change else None,
        "upper": _number(change.upper) if change else None,
        "judgement": None if limit is None else each.judged(limit),
    }


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


# A comparison as JUnit's XML, which CI systems show: one test case for each cell.


def junit(found: Comparison, limit: float) -> str:
    """The XML; a case failed if one of its figures is worse than ``limit``.

    It is skipped if that cannot be told of one. Cells that the baseline does not have
    are no cases.
    """
    cases: dict[tuple[str, str], list[Compared]] = {}
    for each in found.figures:
        if each.before is not None:
            cases.setdefault((each.run, each.key.words), []).append(each)
    told = []
    for (run, cell), figures in cases.items():
        worse = [f for f in figures if f.judged(limit) == "worse"]
        open_ = [f for f in figures if f.judged(limit) == "cannot_tell"]
        told.append(
            requirements.Case(
                cell,
                f"dutperf.compare.{run}",
                failure=_words(worse) if worse else "",
                skipped=f"cannot tell: {_words(open_)}" if open_ else "",
            )
        )
    return requirements.junit("dutperf compare", told)


def _words(figures: Iterable[Compared]) -> str:
    told = []
    for each in figures:
        name = f"{each.name}: " if each.name else ""
        told.append(f"{name}{finding(each)}{interval_words(each)}")
    return "; ".join(told)


# A comparison as one page of HTML, in the report's look: no script, no network.


_REACHES = (1, 2, 5, 10, 20, 50, 100)
"""Of an axis, in percent or percentage points to either side."""


@dataclass(frozen=True)
class Drawn:
    """One interval on an axis from ``-reach`` to ``reach``; places in percent of it.

    ``left`` and ``right`` are the ends, ``dot`` is the estimate, null if there is none;
    ``gate`` is how much worse it may be, null: there is no gate.
    """

    compared: Compared
    reach: float
    left: float
    right: float
    dot: float | None
    gate: float | None

    @property
    def word(self) -> str:
        """What it shows."""
        return outcome_word(self.compared)

    @property
    def told(self) -> str:
        """The difference and its interval."""
        return change_words(self.compared)


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
    light = in_a_sentence(found, limit)
    page = templates.get_template("comparison.html.j2").render(
        runs=found.runs,
        sides=found.sides,
        names=_names(found),
        light=light,
        said=[each for each in sentences(found, limit) if light.words not in each],
        tables=list(comparison_tables(found, limit)),
        drawn=_drawn(found.figures, limit),
        limit=limit,
        differences=list(tables),
        version=__version__,
    )
    return visible(page)


def _names(found: Comparison) -> list[str]:
    """What each side is called; of namesakes by the directories of their runs."""
    names = [side.runs[0].source.name for side in found.sides]
    if len(set(names)) < len(names):
        names = [side.runs[0].directory.name for side in found.sides]
    return [
        f"{name} ({len(side.runs)} runs)" if side.runs[1:] else name
        for name, side in zip(names, found.sides, strict=True)
    ]


def _drawn(figures: Sequence[Compared], limit: float | None) -> list[Drawn]:
    """Those with an interval, all on one axis; what is farther ends at its edge."""
    known = [each for each in figures if each.change and each.change.lower is not None]
    ends = [
        abs(end)
        for each in known
        for end in each.change or ()
        if isinstance(end, float | int) and math.isfinite(end)
    ]
    most = max([*ends, limit or 0])
    reach = next((each for each in _REACHES if each >= most), _REACHES[-1])
    return [_of(each, reach, limit) for each in known]


def _of(each: Compared, reach: float, limit: float | None) -> Drawn:
    def place(value: float) -> float:
        return 50 + 50 * max(-1.0, min(1.0, value / reach))

    change = each.change
    assert change is not None, "those without are not drawn"  # noqa: S101
    low = -math.inf if change.lower is None else change.lower
    high = math.inf if change.upper is None else change.upper
    dot = None if change.value is None else place(change.value)
    gate = None
    if limit is not None:
        gate = place(-limit if each.better == "higher" else limit)
    return Drawn(each, reach, place(low), place(high), dot, gate)
