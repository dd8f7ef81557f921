"""What one measurement found, and whether that is enough."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dutperf.catalogue import Unit
from dutperf.errors import InputError
from dutperf.query.figures import StoredFigure, figures_of, leading_figures
from dutperf.results import ResultsFile
from dutperf.results.units import in_unit
from dutperf.tables.subject import subjects

_TIMES_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_SIGNS = {None: "", "lower": ">= ", "upper": "<= ", "below": "< "}


@dataclass(frozen=True)
class Measured:
    """The results of one measurement.

    Attributes:
        results: all that was found.
        directory: where it is stored.
        report: the report of it.
    """

    results: ResultsFile
    directory: Path
    report: Path

    @property
    def value(self) -> float | None:
        """The only figure, in its unit; None: there is no valid one.

        Raises:
            InputError: there are several: ``figures`` has them.
        """
        found = self.figures()
        if len(found) > 1:
            raise InputError(
                f"there are {len(found)} figures: {', '.join(map(_name, found))}",
                "ask for one cell, or take figures() apart",
            )
        return found[0].value

    def figures(self, name: str = "") -> list[StoredFigure]:
        """Those that the cells are known by, or all that are called ``name``.

        Raises:
            InputError: none is.
        """
        cells = list(subjects(self.results))
        if not name:
            return [figure for cell in cells for figure in leading_figures(cell)]
        every = [figure for cell in cells for figure in figures_of(cell)]
        found = [figure for figure in every if figure.name == name]
        if not found:
            known = dict.fromkeys(figure.name for figure in every)
            raise InputError(f"no figure {name!r} here: {', '.join(known)}")
        return found

    def assert_at_least(self, bound: float | str, figure: str = "") -> None:
        """Each figure is as much as ``bound``, or more.

        Args:
            bound: in the figure's unit, or with it: ``"100000 fps"``, ``"2 ms"``.
            figure: which ones, where a cell has several: ``TL``, ``WCL``, ``PDV``.

        Raises:
            AssertionError: one is less, may be less, or is invalid; it says which.
            InputError: there is no such figure, or the bound is of another unit.
        """
        __tracebackhide__ = True
        self._assert("at least", bound, figure, lambda v, b: v >= b, (None, "lower"))

    def assert_at_most(self, bound: float | str, figure: str = "") -> None:
        """Each figure is as much as ``bound``, or less; see ``assert_at_least``.

        Raises:
            AssertionError, InputError: as there.
        """
        __tracebackhide__ = True  # of pytest: who asked is what matters
        sides = (None, "upper", "below")
        self._assert("at most", bound, figure, lambda v, b: v <= b, sides)

    def _assert(
        self,
        words: str,
        bound: float | str,
        name: str,
        holds: Callable[[float, float], bool],
        limits: Sequence[str | None],
    ) -> None:
        __tracebackhide__ = True
        short = []
        for figure in self.figures(name):
            asked = in_figures_unit(bound, figure.unit)
            value = figure.value
            if value is None or figure.limit not in limits or not holds(value, asked):
                short.append(
                    f"{_name(figure)}: found {_told(figure)}, asked for {words} "
                    f"{in_unit(asked, figure.unit)}; {_verdict(figure)}"
                )
        if short:
            raise AssertionError("\n".join([*short, f"report: {self.report}"]))


def in_figures_unit(bound: float | str, unit: Unit) -> float:
    """A bound as it was given, in a figure's unit.

    Raises:
        InputError: it is no number, or of another unit.
    """
    told = re.fullmatch(r"\s*([-+0-9.,_eE]+)\s*(.*?)\s*", str(bound))
    number = told[1].replace(",", "").replace("_", "") if told else ""
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not told or not math.isfinite(value):
        raise InputError(f"{bound!r} is no bound", "for example 100000, or '2 ms'")
    if unit == "ns" and told[2] in _TIMES_NS:
        return value * _TIMES_NS[told[2]]
    if told[2] in ("", unit) or (told[2], unit) == ("%", "percent"):
        return value
    raise InputError(f"{bound!r} is of another unit: the figure is in {unit}")


def _name(figure: StoredFigure) -> str:
    cell = figure.cell
    which = f"{figure.name} {figure.direction}" if figure.unit == "ns" else ""
    at = f"at {cell.testbed}" if cell.testbed else ""
    return ", ".join(part for part in (cell.id, which, cell.judged, at) if part)


def _told(figure: StoredFigure) -> str:
    if figure.value is None:
        return "no valid figure"
    if math.isinf(figure.value):
        return "infinite: too many frames were lost"
    return f"{_SIGNS[figure.limit]}{in_unit(figure.value, figure.unit)}"


def _verdict(figure: StoredFigure) -> str:
    """The verdict, and what led to it or to a bound."""
    result = figure.cell.result
    told = f"verdict {'invalid' if figure.absent == 'invalid' else figure.cell.state}"
    if result and result.reasons:
        told += f" ({', '.join(reason.message for reason in result.reasons)})"
    if result and figure.limit == "lower" and result.bound_cause:
        told += f", a lower bound ({result.bound_cause})"
    return told
