"""What a cell found, as samples that can be compared; or why there are none.

Each repeat is a value and the two that the truth lies between. A search knows a rate
to within its resolution. A delay is too large by the tester's share at most;
differences of delays (PDV, IPDV) are wrong by so much to either side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dutperf.catalogue import PROCEDURES, Unit
from dutperf.procedures.findings import delay_findings, loss_findings
from dutperf.procedures.measures import NO_SMALL_PART
from dutperf.report.cells import CellView
from dutperf.results import (
    CellResult,
    DelayRecord,
    Figure,
    Finding,
    Measure,
    RepeatResult,
)
from dutperf.search import Resolution
from dutperf.stats import Sample
from dutperf.tables import DELAYS, DOUBTS, Entry, Verdict
from dutperf.tables.figures import delay

_OF_TWO_DELAYS = ("pdv", "ipdv")


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
        samples, unresolved = ([], "") if why_not else _samples(result)
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


def _doubt(findings: list[Finding]) -> str:
    """What the device did to its frames is no doubt of how many there were."""
    kinds = (
        DOUBTS[each.kind]
        for each in findings
        if each.kind in DOUBTS and each.kind != "altered"
    )
    return next(kinds, "")


def _samples(result: CellResult) -> tuple[list[Sample], str]:
    """Of all repeats but those of delays, or why there are none."""
    if not result.repeats or any(repeat.value is None for repeat in result.repeats):
        return [], "nothing passed" if result.verdict == "fail" else "no value"
    above = _resolution(result)
    if above is None:
        return [], "the resolution of its search is not stored"
    return [_sample(repeat, above) for repeat in result.repeats], ""


def _sample(repeat: RepeatResult, above: Callable[[float], float]) -> Sample:
    value = float(repeat.value or 0)
    if repeat.bound:
        return Sample(value, value, math.inf, "lower")
    return Sample(value, value, above(value))


def _resolution(result: CellResult) -> Callable[[float], float] | None:
    """Which value a search knows to be too high; None: nobody knows.

    A relative resolution is of the rate that failed; whole rates are one apart.
    """
    settings = result.parameters
    if result.procedure in ("frame-loss", "teardown-rate"):
        return lambda value: value
    timed = result.recovery or result.outage
    if timed:
        within_ns = timed.within_ns
        return lambda value: value + within_ns
    told = settings.get("step" if result.procedure == "back-to-back" else "resolution")
    if result.procedure == "table-capacity":
        told = settings.get("error")
    try:
        known = Resolution.parse(str(told))
    except ValueError:
        return None
    width = max([float(known.value), *(goal.width for goal in result.goals[:1])])
    if known.relative:
        return lambda value: max(value + 1, value / (1 - width))
    return lambda value: value + width


def _of_measure(result: CellResult, measure: Measure) -> Reading:
    stream = "" if measure.stream == "foreground" else f" {measure.stream}"
    name = f"{measure.name}, {measure.direction}{stream}"
    samples, why_not = [], _doubt(delay_findings([measure], result.delays))
    if not why_not and result.delays is None:
        why_not = "the tester's share in it is not stored"
    if not why_not and result.delays:
        samples = [
            _delay_sample(result, result.delays, measure, figure)
            for figure in measure.repeats
            if figure.value is not None or figure.absent == "lost"
        ]
        if not samples:
            why_not = "nothing arrived that it could be taken from"
        elif any(sample.value < 0 for sample in samples):
            why_not = "it has a sign: no percentage"
    return Reading(
        name, "ns", delay(measure.result), () if why_not else tuple(samples), why_not
    )


def _delay_sample(
    result: CellResult, known: DelayRecord, measure: Measure, figure: Figure
) -> Sample:
    """Infinite where too much was lost; an upper bound may be next to nothing.

    A delay that is none has no more than a small part of the tester's.
    """
    if figure.value is None:
        return Sample(math.inf, math.inf, math.inf)
    value = figure.value
    share_ns = float(known.usual_bound_ns or known.bound_ns)
    if result.procedure != "ipdv":
        share_ns = min(share_ns, NO_SMALL_PART * value)
    above_ns = share_ns if result.procedure in _OF_TWO_DELAYS else 0.0
    if figure.below_ns is not None:
        return Sample(value, 0.0, max(value, figure.below_ns) + above_ns, "upper")
    if figure.at_most:
        return Sample(value, 0.0, value + above_ns, "upper")
    below_ns = share_ns + (measure.rounding_ns or 0.0)
    return Sample(value, min(value, max(0.0, value - below_ns)), value + above_ns)
