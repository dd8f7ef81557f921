"""Repeats as samples of which two sets can be compared.

Each repeat is a value and the two that the truth lies between. A search knows a rate
to within its resolution. A delay is too large by the tester's share at most;
differences of delays (PDV, IPDV) are wrong by so much to either side.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dutperf.procedures.measures import NO_SMALL_PART
from dutperf.results import CellResult, DelayRecord, Figure, Measure, RepeatResult
from dutperf.search import Resolution
from dutperf.stats import Sample

_OF_TWO_DELAYS = ("pdv", "ipdv")


def samples_of(result: CellResult) -> tuple[list[Sample], str]:
    """Of all repeats of what is no delay, or why there are none."""
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


def delay_samples(
    result: CellResult, known: DelayRecord, measure: Measure
) -> tuple[list[Sample], str]:
    """Of all repeats of a delay, or why there are none."""
    samples = [
        _delay_sample(result, known, measure, figure)
        for figure in measure.repeats
        if figure.value is not None or figure.absent == "lost"
    ]
    if not samples:
        return [], "nothing arrived that it could be taken from"
    if any(sample.value < 0 for sample in samples):
        return [], "it has a sign: no percentage"
    return samples, ""


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
