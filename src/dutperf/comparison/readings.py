"""What a cell found, as samples that can be compared; or why there are none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from dutperf.catalogue import PROCEDURES, Unit
from dutperf.procedures.findings import delay_findings, loss_findings
from dutperf.procedures.samples import delay_samples, samples_of
from dutperf.report.cells import CellView
from dutperf.results import CellResult, Finding, Measure
from dutperf.stats import Sample
from dutperf.tables import DELAYS, DOUBTS, Entry, Verdict
from dutperf.tables.figures import delay


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
    elif cell.procedure in DELAYS:
        yield from (_of_measure(result, measure) for measure in result.measures)
    else:
        shown: Entry = cell.figure if cell.measured else Verdict(cell.state)
        findings = _findings(result)
        samples, why_not = samples_of(result)
        if result.goals and not result.goals[0].regular:
            samples, why_not = [], "its bounds are irregular (RFC 9971 4.6)"
        yield _with_doubts(findings, Reading("", unit, shown, tuple(samples), why_not))


def _findings(result: CellResult) -> list[Finding]:
    """Those of the repeats that are compared."""
    if result.procedure != "frame-loss":
        return result.findings
    highest = max(result.points, key=lambda p: p.load_percent, default=None)
    return loss_findings([highest] if highest else [])


_NO_LEVEL = ("modes", "unstable")
"""Repeats that scatter: ranks can still be compared."""
_IN_TIME = ("shift", "drift")
"""Repeats that depend on those before: nothing is known of their ranks."""


def _with_doubts(findings: list[Finding], found: Reading) -> Reading:
    unsettled, doubt = _doubt(findings, _IN_TIME), _doubt(findings, _NO_LEVEL)
    return replace(found, unsettled=unsettled, doubt=doubt)


def _doubt(findings: list[Finding], kinds: tuple[str, ...]) -> str:
    return next((DOUBTS[each.kind] for each in findings if each.kind in kinds), "")


def _of_measure(result: CellResult, measure: Measure) -> Reading:
    stream = "" if measure.stream == "foreground" else f" {measure.stream}"
    name = f"{measure.name}, {measure.direction}{stream}"
    samples: list[Sample] = []
    findings = delay_findings([measure], result.delays)
    why_not = "the tester's share in it is not stored"
    if result.delays:
        samples, why_not = delay_samples(result, result.delays, measure)
    shown = delay(measure.result)
    found = Reading(name, "ns", shown, tuple(samples), why_not)
    return _with_doubts(findings, found)
