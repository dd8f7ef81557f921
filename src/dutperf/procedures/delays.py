"""From trials to measured quantities: a figure for each repeat, and their summary.

A procedure says what it reads from a stream's result (``Quantity``); everything else is
the same for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Literal, NamedTuple

from dutperf import stats
from dutperf.catalogue import ProcedureName
from dutperf.model.cell import Cell
from dutperf.model.specs import LatencySpec
from dutperf.procedures.cell_results import of_cell
from dutperf.procedures.conclusions import delay_findings
from dutperf.procedures.fixed_load import (
    Repeat,
    frame_counts,
    load_deviations,
    load_record,
    load_words,
    remarks,
    run_repeats,
    same_each_time,
    valid_results,
)
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.method import Method, OnStreams
from dutperf.procedures.stall_filter import moved, rejudged_by
from dutperf.procedures.trials import Ask, Trials, distinct
from dutperf.protocol.result_messages import (
    DirectionResult,
    Histogram,
    StreamResult,
    TrialResult,
    VerdictKind,
)
from dutperf.results.bounds import spread_of
from dutperf.results.details import DelayRecord, Measure, MeasuredValue
from dutperf.results.model import CellResult
from dutperf.results.rate_results import RepeatResult
from dutperf.results.units import in_unit
from dutperf.results.words import rare_share_ns, usual_share_ns
from dutperf.tables.delay_tables import delay_table, frames_table
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import Table

DEFINITION = (
    "one-way delay of a frame: from right before the tester's call that sent it to "
    "right after the poll that received it, by one clock. That is not the latency of "
    "RFC 1242 3.8 to the bit: the tester's own share is in it"
)


class Reading(NamedTuple):
    """What one trial says: infinite if too much was lost, null if there is nothing.

    ``samples``: how many frames, tags or pairs it is taken from; ``lost``: how many of
    these were lost, and rank as infinite; ``rounding``: how much too large the value is
    at most, as it is read from buckets.
    """

    value: float | None
    samples: int
    lost: int = 0
    rounding: float = 0.0


@dataclass(frozen=True)
class Quantity:
    """Something to read from each trial; ``read`` gives null for a stream without it.

    ``summary`` is what the result is of the repeats; ``share_of_ns`` what the tester
    itself may have put into such a figure, by its direction.
    """

    name: str
    words: str
    read: Callable[[StreamResult], Reading | None]
    summary: Literal["median", "mean"] = "median"
    share_of_ns: Callable[[DirectionResult], float] | None = None


@dataclass(frozen=True)
class DelayPlan:
    """What to read of each stream; the first is what the result is called by.

    ``resolution`` is in words, in which ``{rounding}`` stands for the largest of all.
    """

    quantities: Sequence[Quantity]
    resolution: str


def measure_delays(
    plan_of: Callable[[Cell], DelayPlan], runner: Trials, cell: Cell, limit: MaxRate
) -> CellResult:
    """Measure what the plan for the cell says, ``cell.repeats`` times.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    plan = plan_of(cell)
    ask = Ask(cell, limit.rate_fps, rejudge=rejudged_by(plan.quantities))
    repeats = run_repeats(runner, ask, same_each_time)
    return _cell_result(cell, limit, plan, repeats)


def _cell_result(
    cell: Cell, limit: MaxRate, plan: DelayPlan, repeats: list[Repeat]
) -> CellResult:
    quantities = plan.quantities
    results = valid_results(repeats)
    measures = [m for q in quantities for m in _measures(q, repeats)]
    main = [
        m for m in measures if (m.name, m.stream) == (quantities[0].name, "foreground")
    ]
    rounding_ns = max((m.rounding_ns or 0.0 for m in measures), default=0.0)
    told = plan.resolution.format(rounding=in_unit(rounding_ns, "ns"))
    delays = _delay_record(results, told)
    stayed = [reason for repeat in repeats for reason in repeat.reasons]
    return CellResult(
        **of_cell(cell, limit, load_deviations(cell, limit)),
        quantity=f"{quantities[0].words}, at {load_words(limit)}",
        median=_worst([m.result for m in main]),
        repeats=[_repeat_result(main, n, r) for n, r in enumerate(repeats)],
        verdict="pass" if len(results) == len(repeats) else "invalid",
        reasons=distinct([*stayed, *remarks(results)]),
        measures=measures,
        load=load_record(cell, limit),
        frames=frame_counts(results),
        delays=delays,
        findings=delay_findings(measures, delays),
    )


def _measures(quantity: Quantity, repeats: list[Repeat]) -> Iterator[Measure]:
    """One for each direction and stream that has the quantity."""
    results = valid_results(repeats)
    places = [
        (d, s)
        for d, direction in enumerate(results[0].directions if results else [])
        for s, stream in enumerate(direction.streams)
        if quantity.read(stream)
    ]
    for d, s in places:
        readings = [
            quantity.read(r.result.directions[d].streams[s]) if r.result else None
            for r in repeats
        ]
        at_most = [
            bool(r.result and _at_most(quantity, r.result.directions[d], s))
            for r in repeats
        ]
        direction = results[0].directions[d]
        figures = [_figure(*each) for each in zip(readings, at_most, strict=True)]
        ranked = [r.value for r in readings if r and r.value is not None]
        least = [
            0.0 if most else r.value
            for r, most in zip(readings, at_most, strict=True)
            if r and r.value is not None
        ]
        yield Measure(
            name=quantity.name,
            quantity=quantity.words,
            direction=direction.name,
            stream=direction.streams[s].name,
            summary=quantity.summary,
            repeats=figures,
            samples=[reading.samples if reading else 0 for reading in readings],
            lost=[reading.lost if reading else 0 for reading in readings],
            rounding_ns=max((r.rounding for r in readings if r), default=0.0),
            count=len(ranked),
            result=_summary(ranked, least, _SUMMARIES[quantity.summary]),
            percentile_1=_summary(ranked, least, lambda v: stats.percentile(v, 1)),
            percentile_99=_summary(ranked, least, lambda v: stats.percentile(v, 99)),
            spread=spread_of(ranked),
        )


_SUMMARIES: dict[str, Callable[[list[float]], float]] = {
    "median": stats.median,
    "mean": stats.mean,
}


NO_SMALL_PART = 0.25
"""Of a delay: if the tester's share may be as much, the delay is an upper bound."""


def _at_most(quantity: Quantity, direction: DirectionResult, stream: int) -> bool:
    """Whether what the device has of the figure may be a good deal less."""
    reading = quantity.read(direction.streams[stream])
    if reading is None or reading.value is None or math.isinf(reading.value):
        return False
    if moved(quantity, direction, direction.streams[stream]):
        return True
    if quantity.share_of_ns is None or reading.value == 0:
        return False
    return quantity.share_of_ns(direction) > NO_SMALL_PART * reading.value


def _figure(reading: Reading | None, at_most: bool) -> MeasuredValue:
    if reading is None:
        return MeasuredValue(value=None, absent="invalid")
    if reading.value is None:
        return MeasuredValue(value=None, absent="undefined")
    return _number(reading.value, at_most)


def _summary(
    ranked: list[float],
    least: list[float],
    summarise: Callable[[list[float]], float],
) -> MeasuredValue:
    """Of the figures; an upper bound if it rests on one (``least``: those are 0)."""
    if not ranked:
        return MeasuredValue(value=None, absent="undefined")
    return _number(summarise(ranked), summarise(ranked) != summarise(least))


def _number(value: float, at_most: bool) -> MeasuredValue:
    if math.isinf(value):
        return MeasuredValue(value=None, absent="lost")
    return MeasuredValue(value=value, at_most=at_most)


def _worst(figures: list[MeasuredValue]) -> float | None:
    """The largest; null if one of them is infinite or missing."""
    values = [figure.value for figure in figures]
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None


def _repeat_result(main: list[Measure], number: int, repeat: Repeat) -> RepeatResult:
    verdict: VerdictKind = "pass" if repeat.result else "invalid"
    return RepeatResult(
        value=_worst([measure.repeats[number] for measure in main]),
        verdict=verdict,
        reasons=repeat.reasons,
        trials=repeat.trials,
    )


def _delay_record(results: list[TrialResult], resolution: str) -> DelayRecord | None:
    directions = [d for result in results for d in result.directions]
    if not directions:
        return None
    return DelayRecord(
        definition=DEFINITION,
        resolution=resolution,
        floor_ns=min(d.delay_floor_ns for d in directions),
        bound_ns=max(d.delay_bound_ns for d in directions),
        usual_bound_ns=max(round(rare_share_ns(d)) for d in directions),
    )


# Latency (RFC 8219 7.2, RFC 2544 26.2): how long tagged frames take.
#
# RFC 8219: of 500 tagged frames or more the median is the typical latency TL, the
# 99.9th percentile the worst-case latency WCL; the result is the median over the
# repeats. RFC 2544: one tagged frame, the result is the average over the repeats; kept
# to show what it misses (paper 004). A tagged frame that is lost takes infinitely long.


def typical(stream: StreamResult) -> Reading | None:
    """Median of the tags' delays."""
    return _reading(stream, stats.median)


def worst_case(stream: StreamResult) -> Reading | None:
    """99.9th percentile of the tags' delays: with up to 1000 of them, the largest."""
    return _reading(stream, lambda delays: stats.percentile(delays, 999, 1000))


def _reading(
    stream: StreamResult, figure: Callable[[list[float]], float]
) -> Reading | None:
    """Null for a stream without tags; a tag that was lost ranks last."""
    tags = stream.tags
    if tags is None:
        return None
    delays = [math.inf if delay is None else delay for delay in tags.delays_ns]
    if not delays:
        return Reading(None, 0)
    return Reading(figure(delays), len(delays), tags.lost)


TYPICAL = Quantity(
    "TL",
    "typical latency, median of tags (RFC 8219 7.2)",
    typical,
    share_of_ns=usual_share_ns,
)
WORST_CASE = Quantity(
    "WCL",
    "worst-case latency, 99.9th percentile of tags (RFC 8219 7.2)",
    worst_case,
    share_of_ns=rare_share_ns,
)
SINGLE = Quantity(
    "latency",
    "latency of one tagged frame (RFC 2544 26.2)",
    typical,
    summary="mean",
    share_of_ns=usual_share_ns,
)


def latency_plan(cell: Cell) -> DelayPlan:
    """TL and WCL, or what RFC 2544 has instead."""
    spec = cell.spec_of(LatencySpec)
    if spec.rfc2544_latency:
        return DelayPlan((SINGLE,), "exact, in nanoseconds")
    others = map(_percentile, spec.percentiles)
    return DelayPlan((TYPICAL, WORST_CASE, *others), "exact, in nanoseconds")


def _percentile(percent: float) -> Quantity:
    """Of the tags' delays; lost ones rank last, as in TL and WCL."""
    share = Fraction(str(percent)) / 100

    def read(stream: StreamResult) -> Reading | None:
        return _reading(
            stream,
            lambda delays: stats.percentile(delays, share.numerator, share.denominator),
        )

    words = f"percentile {percent:.12g} of the delays of tags"
    return Quantity(f"p{percent:.12g}", words, read, share_of_ns=rare_share_ns)


# Packet delay variation (RFC 8219 7.3.1): how far the delays of a stream spread.
#
# PDV = D99.9 - Dmin over all frames that arrive: the 99.9th percentile of their delays
# less the smallest. A frame that is lost has no delay; losses are counted beside it.


def of_delays(
    bounds: Callable[[Histogram, int], tuple[int, int]],
) -> Callable[[StreamResult], Reading]:
    """What to read of a histogram and its smallest delay: where it lies for certain."""

    def read(stream: StreamResult) -> Reading:
        delays = stream.delay_ns
        if delays.min is None:
            return Reading(None, 0)
        low, high = bounds(delays, delays.min)
        return Reading(high, delays.count, rounding=high - low)

    return read


def _high(delays: Histogram, _least_ns: int) -> tuple[int, int]:
    return stats.percentile_bounds(delays.buckets, 999, 1000)


def _spread(delays: Histogram, least_ns: int) -> tuple[int, int]:
    low, high = _high(delays, least_ns)
    return low - least_ns, high - least_ns


PDV = Quantity(
    "PDV",
    "packet delay variation, D99.9 - Dmin of the frames that arrived (RFC 8219 7.3.1)",
    of_delays(_spread),
    share_of_ns=rare_share_ns,
)
PDV_LEAST = Quantity(
    "Dmin",
    "smallest delay (RFC 8219 7.3.1)",
    of_delays(lambda _delays, least_ns: (least_ns, least_ns)),
    share_of_ns=lambda direction: direction.delay_floor_ns,
)
HIGH = Quantity(
    "D99.9",
    "99.9th percentile of the delays (RFC 8219 7.3.1)",
    of_delays(_high),
    share_of_ns=rare_share_ns,
)


def pdv_plan(_cell: Cell) -> DelayPlan:
    """The same of every cell."""
    return DelayPlan(
        (PDV, PDV_LEAST, HIGH),
        "smallest and largest exact, others rounded up by {rounding} at most",
    )


# Inter-packet delay variation (RFC 8219 7.3.2): how delays change from frame to frame.
#
# IPDV(i) = D(i) - D(i-1) of frames sent one after the other, with its sign. A pair of
# which a frame was lost has none. Its smallest, median and largest value are reported.


def _of_pairs(
    bounds: Callable[[Histogram], tuple[float, float]],
) -> Callable[[StreamResult], Reading | None]:
    """What to read of a histogram: where it lies for certain."""

    def read(stream: StreamResult) -> Reading | None:
        pairs = stream.ipdv_ns
        if pairs is None:
            return None
        if not pairs.count:
            return Reading(None, 0)
        low, high = bounds(pairs)
        return Reading(high, pairs.count, rounding=high - low)

    return read


MOST = Quantity(
    "IPDV max",
    "largest inter-packet delay variation (RFC 8219 7.3.2)",
    _of_pairs(lambda pairs: (pairs.buckets[-1][1],) * 2),
)
MEDIAN = Quantity(
    "IPDV median",
    "median inter-packet delay variation (RFC 8219 7.3.2)",
    _of_pairs(lambda pairs: stats.median_bounds(pairs.buckets)),
)
IPDV_LEAST = Quantity(
    "IPDV min",
    "smallest inter-packet delay variation (RFC 8219 7.3.2)",
    _of_pairs(lambda pairs: (pairs.buckets[0][0],) * 2),
)


def ipdv_plan(_cell: Cell) -> DelayPlan:
    """The same of every cell."""
    return DelayPlan(
        (MOST, MEDIAN, IPDV_LEAST),
        "smallest and largest exact, the median rounded up by {rounding} at most",
    )


def _method(
    name: ProcedureName, plan: Callable[[Cell], DelayPlan], samples: str
) -> Method:
    return Method(
        name,
        OnStreams(partial(measure_delays, plan)),
        table=partial(delay_table, samples=samples),
        tables=_tables,
    )


def _tables(cell: Subject) -> Iterator[Table]:
    if cell.result and cell.result.frames:
        yield frames_table(cell)


LATENCY_METHOD = _method("latency", latency_plan, "tags")
PDV_METHOD = _method("pdv", pdv_plan, "frames")
IPDV_METHOD = _method("ipdv", ipdv_plan, "pairs")
