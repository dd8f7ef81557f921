"""From trials to measured quantities: a figure for each repeat, and their summary.

A procedure says what it reads from a stream's result (``Quantity``); everything else is
the same for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dutperf import stats
from dutperf.config.cell import Cell
from dutperf.procedures.cell_results import of_cell
from dutperf.procedures.findings import delay_findings
from dutperf.procedures.fixed_load import (
    Repeat,
    frame_counts,
    remarks,
    run_repeats,
    same_each_time,
    valid_results,
)
from dutperf.procedures.in_light import moved, rejudged_by
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.reference_load import load_deviations, load_record, load_words
from dutperf.procedures.trial_verdicts import distinct
from dutperf.procedures.trials import Ask, Trials
from dutperf.protocol import (
    DirectionResult,
    StreamResult,
    TrialResult,
    VerdictKind,
)
from dutperf.results.delay_results import DelayRecord, Figure, Measure
from dutperf.results.model import CellResult
from dutperf.results.rate_results import RepeatResult
from dutperf.results.spread import spread_of
from dutperf.results.tester_share import rare_share_ns
from dutperf.results.units import in_unit

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


def _figure(reading: Reading | None, at_most: bool) -> Figure:
    if reading is None:
        return Figure(value=None, absent="invalid")
    if reading.value is None:
        return Figure(value=None, absent="undefined")
    return _number(reading.value, at_most)


def _summary(
    ranked: list[float],
    least: list[float],
    summarise: Callable[[list[float]], float],
) -> Figure:
    """Of the figures; an upper bound if it rests on one (``least``: those are 0)."""
    if not ranked:
        return Figure(value=None, absent="undefined")
    return _number(summarise(ranked), summarise(ranked) != summarise(least))


def _number(value: float, at_most: bool) -> Figure:
    if math.isinf(value):
        return Figure(value=None, absent="lost")
    return Figure(value=value, at_most=at_most)


def _worst(figures: list[Figure]) -> float | None:
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
