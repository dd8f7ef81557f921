"""What a cell found, as samples that can be compared; or why there are none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

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
    """

    name: str
    unit: Unit
    shown: Entry
    samples: tuple[Sample, ...] = ()
    why_not: str = field(default="")


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
        yield from (_of_measure(result, measure) for measure in result.measures)
    else:
        shown: Entry = cell.figure if cell.measured else Verdict(cell.state)
        why_not = _no_single_figure(result)
        samples, unresolved = ([], "") if why_not else samples_of(result)
        why_not = why_not or unresolved
        yield Reading("", unit, shown, tuple(samples), why_not)


def _no_single_figure(result: CellResult) -> str:
    findings = result.findings
    if result.procedure == "frame-loss":
        highest = max(result.points, key=lambda p: p.load_percent, default=None)
        findings = loss_findings([highest] if highest else [])
    if result.goals and not result.goals[0].regular:
        return "its bounds are irregular (RFC 9971 4.6)"
    return _doubt(findings)


_BESIDE = frozenset({"altered", "unanswered", "routing_fell", "misdirected"})


def _doubt(findings: list[Finding]) -> str:
    """What the device did beside forwarding is no doubt of how much it forwarded."""
    kinds = (
        DOUBTS[each.kind]
        for each in findings
        if each.kind in DOUBTS and each.kind not in _BESIDE
    )
    return next(kinds, "")


def _of_measure(result: CellResult, measure: Measure) -> Reading:
    stream = "" if measure.stream == "foreground" else f" {measure.stream}"
    name = f"{measure.name}, {measure.direction}{stream}"
    samples: list[Sample] = []
    why_not = _doubt(delay_findings([measure], result.delays))
    if not why_not and result.delays is None:
        why_not = "the tester's share in it is not stored"
    if not why_not and result.delays:
        samples, why_not = delay_samples(result, result.delays, measure)
    return Reading(
        name, "ns", delay(measure.result), () if why_not else tuple(samples), why_not
    )
