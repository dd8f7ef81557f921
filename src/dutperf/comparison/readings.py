"""What a cell found, as samples that can be compared; or why there are none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from dutperf.catalogue import PROCEDURES, Unit
from dutperf.charts.cells import CellView
from dutperf.procedures.scalability import delay_samples, samples_of
from dutperf.report.page import cells_of
from dutperf.report.source import Source
from dutperf.results import CellResult, Measure
from dutperf.results.rate_results import FindingKind
from dutperf.stats import Sample
from dutperf.tables import DOUBTS, Entry, Verdict
from dutperf.tables.delay_tables import delay_entry


@dataclass(frozen=True)
class Reading:
    """One figure of a cell.

    Attributes:
        name: which of several it is; empty: the cell's only one.
        unit: of its samples.
        shown: the figure as tables tell it.
        samples: of its repeats; empty if ``why_not`` says why it cannot be compared.
        is_missing: nothing was measured, or it is not proven.
        unsettled: in some words why repeats depend on those before, if so.
        doubt: in some words why they have no common value, if so.
        notes: what to know about it.
    """

    name: str
    unit: Unit
    shown: Entry
    samples: tuple[Sample, ...] = ()
    why_not: str = field(default="")
    is_missing: bool = False
    unsettled: str = ""
    doubt: str = ""
    notes: tuple[str, ...] = ()


def readings(cell: CellView) -> Iterator[Reading]:
    """Each figure; one of a cell that has none."""
    result = cell.result
    unit: Unit = PROCEDURES[cell.procedure].unit if cell.procedure else "fps"
    if result is None:
        why = "the run ended in it"
        yield Reading("", unit, Verdict("open"), why_not=why, is_missing=True)
    elif cell.state == "invalid":
        why = f"invalid: {result.reasons[0].message}" if result.reasons else "invalid"
        yield Reading("", unit, Verdict("invalid"), why_not=why, is_missing=True)
    elif cell.family == "fixed load":
        yield from (_of_measure(cell, result, each) for each in result.measures)
    else:
        shown: Entry = cell.figure if cell.measured else Verdict(cell.state)
        samples, why_not = samples_of(result)
        if result.goals and not result.goals[0].regular:
            samples, why_not = [], "its bounds are irregular (RFC 9971 4.6)"
        found = Reading("", unit, shown, tuple(samples), why_not)
        yield _with_doubts(result.doubts(), found)


_NO_LEVEL = ("modes", "unstable")
"""Repeats that scatter: ranks can still be compared."""
_IN_TIME = ("shift", "drift")
"""Repeats that depend on those before: nothing is known of their ranks."""


def _with_doubts(kinds: Sequence[FindingKind], found: Reading) -> Reading:
    """Nothing can be said of a figure that another one contradicts."""
    if "contradiction" in kinds and not found.why_not:
        found = replace(found, samples=(), why_not=DOUBTS["contradiction"])
    unsettled = next((DOUBTS[kind] for kind in kinds if kind in _IN_TIME), "")
    doubt = next((DOUBTS[kind] for kind in kinds if kind in _NO_LEVEL), "")
    return replace(found, unsettled=unsettled, doubt=doubt)


def _of_measure(cell: CellView, result: CellResult, measure: Measure) -> Reading:
    samples: list[Sample] = []
    why_not = "the tester's share in it is not stored"
    if result.delays:
        samples, why_not = delay_samples(result, result.delays, measure)
    shown = delay_entry(cell, measure)
    found = Reading(measure.words, "ns", shown, tuple(samples), why_not)
    return _with_doubts(result.doubts(measure.words), found)


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
