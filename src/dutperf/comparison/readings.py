"""What a cell found, as samples that can be compared; or why there are none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dutperf.catalogue import Unit
from dutperf.charts.cells import CellView
from dutperf.procedures.scalability import samples_of
from dutperf.report.page import cells_of
from dutperf.report.source import Source
from dutperf.results.figures import Figure, cell_figure, figures_of
from dutperf.results.rate_results import FindingKind
from dutperf.stats import Sample
from dutperf.tables import DOUBTS, Entry, Verdict
from dutperf.tables.table_model import of_figure

_NO_LEVEL: Sequence[FindingKind] = ("modes", "unstable")
"""Repeats that scatter: ranks can still be compared."""
_IN_TIME: Sequence[FindingKind] = ("shift", "drift")
"""Repeats that depend on those before: nothing is known of their ranks."""


@dataclass(frozen=True)
class Reading:
    """One figure of a cell, to be compared.

    Attributes:
        cell: of whom.
        figure: None: the run ended in the cell.
        samples: of its repeats; empty if ``why_not`` says why it cannot be compared.
        notes: what to know about it.
    """

    cell: CellView
    figure: Figure | None
    samples: tuple[Sample, ...] = ()
    why_not: str = ""
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Which of several it is; empty: the cell's only one."""
        return self.figure.of if self.figure else ""

    @property
    def unit(self) -> Unit:
        """Of its samples."""
        return self.figure.unit if self.figure else self.cell.unit or "fps"

    @property
    def shown(self) -> Entry:
        """The figure as tables tell it."""
        if self.figure is None or self.figure.absent == "invalid":
            return Verdict(self.cell.state)
        return of_figure(self.figure)

    @property
    def is_missing(self) -> bool:
        """Nothing was measured, or it is not proven."""
        return self.cell.state in ("open", "invalid")

    @property
    def unsettled(self) -> str:
        """In some words why repeats depend on those before, if so."""
        return self._doubt(_IN_TIME)

    @property
    def doubt(self) -> str:
        """In some words why they have no common value, if so."""
        return self._doubt(_NO_LEVEL)

    def _doubt(self, kinds: Sequence[FindingKind]) -> str:
        doubts = self.figure.doubts if self.figure else ()
        return next((DOUBTS[kind] for kind in doubts if kind in kinds), "")


def readings(cell: CellView) -> Iterator[Reading]:
    """Each figure; one of a cell that has none."""
    result = cell.result
    if result is None:
        yield Reading(cell, None, why_not="the run ended in it")
    elif cell.state == "invalid":
        why = f"invalid: {result.reasons[0].message}" if result.reasons else "invalid"
        yield Reading(cell, cell.found, why_not=why)
    else:
        compared = (cell_figure(result),) if result.points else figures_of(result)
        yield from (_reading(cell, figure) for figure in compared)


def _reading(cell: CellView, figure: Figure) -> Reading:
    """Nothing can be said of a figure that another one contradicts."""
    samples, why_not = samples_of(figure)
    if "contradiction" in figure.doubts and not why_not:
        samples, why_not = [], DOUBTS["contradiction"]
    return Reading(cell, figure, tuple(samples), why_not)


# A run that is compared, and their cells by what two runs have in common.


class Key(NamedTuple):
    """What a cell is called in all runs; ``place`` is empty where each has only one."""

    cell: str
    place: str

    @property
    def words(self) -> str:
        """As a cell's id has it."""
        return f"{self.cell}@{self.place}" if self.place else self.cell


@dataclass(frozen=True)
class Run:
    """One run; ``letter`` is what it is called beside the others, A the baseline."""

    letter: str
    directory: Path
    source: Source
    cells: dict[Key, CellView]

    def why_without(self, key: Key) -> str:
        """Why it has no such cell."""
        failures = (f for f in self.source.failures if key.words in f.cells)
        failed = next(failures, None)
        if failed:
            return f"not measured in {self.letter}: {failed.message}"
        stopped = ", which was stopped" if self.source.interruption else ""
        return f"not in {self.letter}{stopped}"


def cells_by_key(source: Source, *, several: bool) -> dict[Key, CellView]:
    """Its cells. Where no run has several testbeds, what each has does not matter."""
    found = {}
    for cell in cells_of(source):
        place = cell.testbed or source.testbeds[0].name
        own = cell.id.removesuffix(f"@{place}")
        found[Key(own, place if several else "")] = cell
    return found
