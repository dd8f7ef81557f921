"""What a cell found, as samples that can be compared; or why there are none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dutperf.catalogue import PROCEDURES, Unit
from dutperf.procedures.samples import delay_samples, samples_of
from dutperf.report.cells import CellView
from dutperf.results import CellResult, Measure
from dutperf.stats import Sample
from dutperf.tables import DELAYS, DOUBTS, Entry, Verdict
from dutperf.tables.delay_tables import delay_entry


@dataclass(frozen=True)
class Reading:
    """One figure of a cell.

    Attributes:
        name: which of several it is; empty: the cell's only one.
        unit: of its samples.
        shown: the figure as tables tell it.
        samples: of its repeats; empty if ``why_not`` says why it cannot be compared.
        doubt: in some words why they have no common value, if so.
    """

    name: str
    unit: Unit
    shown: Entry
    samples: tuple[Sample, ...] = ()
    why_not: str = field(default="")
    doubt: str = ""


def readings(cell: CellView) -> Iterator[Reading]:
    """Each figure; one of a cell that has none."""
    result = cell.result
    unit: Unit = PROCEDURES[cell.procedure].unit if cell.procedure else "fps"
    if result is None:
        yield Reading("", unit, Verdict("open"), why_not="the run ended in it")
    elif cell.state == "invalid":
        why = f"invalid: {result.reasons[0].message}" if result.reasons else "invalid"
        yield Reading("", unit, Verdict("invalid"), why_not=why)
    elif cell.procedure in DELAYS:
        yield from (_of_measure(cell, result, each) for each in result.measures)
    else:
        shown: Entry = cell.figure if cell.measured else Verdict(cell.state)
        why_not, doubt = _doubts(result)
        if result.goals and not result.goals[0].regular:
            why_not = "its bounds are irregular (RFC 9971 4.6)"
        samples, unresolved = ([], "") if why_not else samples_of(result)
        why_not = why_not or unresolved
        yield Reading("", unit, shown, tuple(samples), why_not, doubt)


_NO_LEVEL = ("modes", "unstable")
"""Repeats that scatter: ranks can still be compared.

Nothing is known of the ranks of those that depend on others before, nor of a figure
that another one contradicts.
"""


def _doubts(result: CellResult, what: str = "") -> tuple[str, str]:
    """Why a figure cannot be compared, and why only by ranks."""
    kinds = result.doubts(what)
    why_not = (DOUBTS[kind] for kind in kinds if kind not in _NO_LEVEL)
    by_ranks = (DOUBTS[kind] for kind in kinds if kind in _NO_LEVEL)
    return next(why_not, ""), next(by_ranks, "")


def _of_measure(cell: CellView, result: CellResult, measure: Measure) -> Reading:
    samples: list[Sample] = []
    why_not, doubt = _doubts(result, measure.words)
    if not why_not and result.delays is None:
        why_not = "the tester's share in it is not stored"
    if not why_not and result.delays:
        samples, why_not = delay_samples(result, result.delays, measure)
    compared = () if why_not else tuple(samples)
    shown = delay_entry(cell, measure)
    return Reading(measure.words, "ns", shown, compared, why_not, doubt)
