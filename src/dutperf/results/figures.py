"""The figures of a cell: all that may be quoted of it, one by one.

A throughput is one figure, a frame loss curve one for each load, delays have one for
each measure, direction and stream. Whoever tells figures (tables, comparisons, rows of
a query, metrics, other people's tests) reads these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dutperf.catalogue import PROCEDURES, Unit
from dutperf.model.rate_specs import RateSearchKeys
from dutperf.model.specs import LatencySpec
from dutperf.results.bounds import overall, valued
from dutperf.results.details import Absent, Measure, MeasuredValue
from dutperf.results.model import CellResult
from dutperf.results.rate_results import (
    BoundCause,
    FindingKind,
    LoadPoint,
    RepeatResult,
    Spread,
)

Limit = Literal["lower", "upper", "below"] | None
"""lower: that much, or more. upper: that much, or less. below: less."""

State = Literal["pass", "unstable", "doubtful", "fail", "invalid"]


@dataclass(frozen=True)
class Figure:
    """One figure of a cell, in ``unit``.

    Attributes:
        result: of whom.
        name: what it is, short: throughput, TL, PDV, ...
        of: which of the cell's several it is, as findings call it; empty: there is one.
        value: None: there is none, ``absent`` says why if that is known. Infinite: so
            many frames were lost.
        stored: its repeats, valid or not, as they are stored.
        bound_cause: of a lower bound, if it is known.
        direction: of the frames that it is of.
        load_fps: at which it was measured, per direction; None: it was searched.
        load_percent: the same of the maximum, or of the throughput.
        doubts: what leaves it no value that all its repeats have, the worst first.
        leads: whether the cell is known by it: of a curve the highest load, of delays
            the first measure in each direction.
    """

    result: CellResult = field(repr=False, compare=False)
    name: str
    of: str
    unit: Unit
    value: float | None
    stored: Measure | tuple[RepeatResult, ...] = field(repr=False)
    limit: Limit = None
    bound_cause: BoundCause = None
    absent: Absent | None = None
    direction: str = ""
    stream: str = ""
    spread: Spread | None = None
    load_fps: float | None = None
    load_percent: float | None = None
    doubts: tuple[FindingKind, ...] = ()
    leads: bool = True

    @property
    def better(self) -> Literal["higher", "lower"]:
        """For which figure a device is the better."""
        return PROCEDURES[self.result.procedure].better

    @property
    def verdict(self) -> State:
        """On it; a load of a curve has its own."""
        return "invalid" if self.absent == "invalid" else state_of(self.result)

    @property
    def repeats(self) -> tuple[float, ...]:
        """Each that has a value; a lost one is infinite."""
        if isinstance(self.stored, Measure):
            told = map(_told, self.stored.repeats)
            return tuple(value for value in told if value is not None)
        return tuple(valued(_valid(self.stored))[0])

    @property
    def repeats_at_least(self) -> int:
        """How many of these are lower bounds."""
        if isinstance(self.stored, Measure):
            return 0
        return sum(valued(_valid(self.stored))[1])

    def interval(
        self, end: Literal["interval_lower", "interval_upper"]
    ) -> float | None:
        """One end of the interval of the median; None if it may be higher, too."""
        known = self.spread
        if known is None or self.value is None or end in known.lower_bounds:
            return None
        told: float | None = getattr(known, end)
        return told

    @property
    def dispersion_percent(self) -> float | None:
        """(99th - 1st percentile) / median of the repeats."""
        known = self.spread if self.value is not None else None
        return known.dispersion_percent if known else None


def figures_of(result: CellResult) -> tuple[Figure, ...]:
    """At least one, which may have no value."""
    if result.points:
        top = max(result.points, key=lambda point: point.load_percent)
        return tuple(_of_point(result, each, each is top) for each in result.points)
    if result.measures:
        first = result.measures[0].name
        return tuple(_of_measure(result, each, first) for each in result.measures)
    return (cell_figure(result),)


def cell_figure(result: CellResult) -> Figure:
    """What stands for the whole cell: its median.

    Of a curve that is the highest load with a loss, of delays the largest first one.
    """
    known, within_ns = PROCEDURES[result.procedure], result.within_ns
    is_measured = state_of(result) not in ("fail", "invalid")
    value = result.median if is_measured else None
    limit: Limit = result.bound if value is not None else None
    if value == 0 and within_ns is not None:
        value, limit = within_ns, "below"
    judged = judged_words(result)
    of_load = result.load.rate_fps if result.load else None
    valid = _valid(result.repeats)
    return Figure(
        result,
        "rate" if judged and known.family == "rate search" else known.noun,
        "",
        result.unit,
        value,
        tuple(result.repeats),
        limit=limit,
        bound_cause=result.bound_cause if limit == "lower" else None,
        absent=None if is_measured else "invalid",
        direction=result.cell.direction,
        spread=(result.spread or overall(valid).spread) if is_measured else None,
        load_fps=result.recovery.overload_fps if result.recovery else of_load,
        doubts=tuple(_doubts(result)),
    )


def _of_point(result: CellResult, point: LoadPoint, leads: bool) -> Figure:
    valid = bool(_valid(point.repeats))
    return Figure(
        result,
        "frame loss",
        "",
        result.unit,
        point.loss_percent if valid else None,
        tuple(point.repeats),
        absent=None if valid else "invalid",
        direction=result.cell.direction,
        spread=point.spread,
        load_fps=point.load_fps,
        load_percent=point.load_percent,
        doubts=tuple(result.doubts(point.words)),
        leads=leads,
    )


def _of_measure(result: CellResult, measure: Measure, first: str) -> Figure:
    found = measure.result
    is_valid = state_of(result) != "invalid"
    value = _told(found) if is_valid else None
    below: Limit = "upper" if found.at_most else None
    return Figure(
        result,
        measure.name,
        measure.words,
        measure.unit,
        value,
        measure,
        limit=None if value is None else below if found.below_ns is None else "below",
        absent=found.absent if is_valid else "invalid",
        direction=measure.direction,
        stream=measure.stream,
        spread=measure.spread,
        load_fps=result.load.rate_fps if result.load else None,
        doubts=tuple(result.doubts(measure.words)),
        leads=measure.name == first and measure.stream != "background",
    )


def _told(found: MeasuredValue) -> float | None:
    if found.absent == "lost":
        return math.inf
    return found.value if found.below_ns is None else found.below_ns


def _valid(repeats: Sequence[RepeatResult]) -> list[RepeatResult]:
    return [repeat for repeat in repeats if repeat.verdict != "invalid"]


# Whether a cell has figures, and what they are: by what it was judged.


def state_of(result: CellResult) -> State:
    """The verdict; a delay has no median when it is infinite: a result, too.

    Of an unstable one, whose repeats scatter or drift, only its range may be quoted;
    so of a doubtful one, which another result denies.
    """
    if result.verdict != "pass":
        return result.verdict
    if result.median is None and not any(each.count for each in result.measures):
        return "invalid"
    doubts = _doubts(result)
    if "contradiction" in doubts:
        return "doubtful"
    return "unstable" if doubts else "pass"


def _doubts(result: CellResult) -> list[FindingKind]:
    """What leaves its first figure no value that all repeats have."""
    first = [m.words for m in result.measures if m.name == result.measures[0].name]
    return next(filter(None, map(result.doubts, first or [""])), [])


def judged_words(result: CellResult) -> str:
    """What makes the result another one than the RFC's."""
    spec, goals = result.cell.spec, result.goals[:1]
    found = []
    if isinstance(spec, LatencySpec) and spec.rfc2544_latency:
        found.append("one tagged frame")
    criterion = spec.loss_criterion
    found += criterion_words(
        criterion.frame_timeout_ms or 0.0, criterion.tolerance_percent
    )
    if isinstance(spec, RateSearchKeys) and spec.verify_trials:
        found.append(f"losses verified by {spec.verify_trials} trials")
    if result.verified_by:
        found.append(f"losses verified by up to {result.verified_by} trials")
    found += [goal.name for goal in goals if goal.loss_ratio or goal.exceed_ratio]
    return ", ".join(found)


def criterion_words(timeout_ms: float, lost_percent: float) -> Iterator[str]:
    """From when on a frame is lost, and how many may be; 0: as the RFC has it."""
    if timeout_ms:
        yield f"frames within {timeout_ms:.12g} ms"
    if lost_percent:
        yield f"losing up to {lost_percent:.12g} %"
