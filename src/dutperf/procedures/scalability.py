"""Overload scalability (RFC 8219 10): how results change with the number of flows.

And over any other number that is swept: where a result reaches its plateau.

Each value of a benchmark is compared with that of one flow. All flows of a direction
are started at once and share its rate evenly (10.2.1), or the rate grows with them as
in 10.2.2, though from cell to cell and not within a trial.

Repeats differ by themselves. So each change has an interval: both values have their
own, of a median or of an average, and together these miss in no more of the cases than
one of the change may. All intervals of a run share the 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from dutperf import stats
from dutperf.catalogue import PROCEDURES
from dutperf.config.sizes import sizes_text
from dutperf.model.procedure_keys import SearchedKeys, Sweep
from dutperf.model.rate_specs import BackToBackSpec, FrameLossSpec
from dutperf.model.specs import (
    CapacitySearchKeys,
    IpdvSpec,
    LoadKeys,
    PdvSpec,
    TeardownRateSpec,
)
from dutperf.procedures.delays import NO_SMALL_PART
from dutperf.procedures.side_by_side import known_range
from dutperf.results import (
    CellResult,
    DelayRecord,
    Measure,
    MeasuredValue,
    RepeatResult,
    SweepResult,
    SweptPoint,
)
from dutperf.results.figures import Figure, cell_figure, figures_of
from dutperf.results.model import Scalability, ScalabilityPoint
from dutperf.results.units import in_unit
from dutperf.search import Resolution
from dutperf.stats import Sample

# Repeats as samples of which two sets can be compared.
#
# Each repeat is a value and the two that the truth lies between. A search knows a rate
# to within its resolution. A delay is too large by the tester's share at most;
# differences of delays (PDV, IPDV) are wrong by so much to either side.


def samples_of(figure: Figure) -> tuple[list[Sample], str]:
    """Of all its repeats, or why there are none."""
    result, stored = figure.result, figure.stored
    if isinstance(stored, Measure):
        return _of_delay(result, stored)
    if result.goals and not result.goals[0].regular:
        return [], "its bounds are irregular (RFC 9971 4.6)"
    if not stored or any(repeat.value is None for repeat in stored):
        return [], "nothing passed" if result.verdict == "fail" else "no value"
    above = _resolution(result)
    return [_sample(repeat, above) for repeat in stored], ""


def _sample(repeat: RepeatResult, above: Callable[[float], float]) -> Sample:
    value = float(repeat.value or 0)
    if repeat.bound:
        return Sample(value, value, math.inf, "lower")
    return Sample(value, value, above(value))


def _resolution(result: CellResult) -> Callable[[float], float]:
    """Which value a search knows to be too high.

    A relative resolution is of the rate that failed; whole rates are one apart.
    """
    if isinstance(result.cell.spec, FrameLossSpec | TeardownRateSpec):
        return lambda value: value
    if (within_ns := result.within_ns) is not None:
        return lambda value: value + within_ns
    spec, stateful = result.cell.spec, result.cell.stateful
    if isinstance(spec, CapacitySearchKeys) and stateful:
        known = Resolution.parse(str(stateful.error))
    elif isinstance(spec, BackToBackSpec):
        known = Resolution.parse(spec.step)
    else:
        known = Resolution.parse(result.cell.spec_of(SearchedKeys).resolution)
    width = max([float(known.value), *(goal.width for goal in result.goals[:1])])
    if known.relative:
        return lambda value: max(value + 1, value / (1 - width))
    return lambda value: value + width


def _of_delay(result: CellResult, measure: Measure) -> tuple[list[Sample], str]:
    if result.delays is None:
        return [], "the tester's share in it is not stored"
    samples = [
        _delay_sample(result, result.delays, measure, told)
        for told in measure.repeats
        if told.value is not None or told.absent == "lost"
    ]
    if not samples:
        return [], "nothing arrived that it could be taken from"
    if any(sample.value < 0 for sample in samples):
        return [], "it has a sign: no percentage"
    return samples, ""


def _delay_sample(
    result: CellResult, known: DelayRecord, measure: Measure, told: MeasuredValue
) -> Sample:
    """Infinite where too much was lost; an upper bound may be next to nothing.

    A delay that is none has no more than a small part of the tester's.
    """
    if told.value is None:
        return Sample(math.inf, math.inf, math.inf)
    value = told.value
    share_ns = float(known.usual_bound_ns or known.bound_ns)
    if not isinstance(result.cell.spec, IpdvSpec):
        share_ns = min(share_ns, NO_SMALL_PART * value)
    above_ns = share_ns if isinstance(result.cell.spec, PdvSpec | IpdvSpec) else 0.0
    if told.below_ns is not None:
        return Sample(value, 0.0, max(value, told.below_ns) + above_ns, "upper")
    if told.at_most:
        return Sample(value, 0.0, value + above_ns, "upper")
    below_ns = share_ns + (measure.rounding_ns or 0.0)
    return Sample(value, min(value, max(0.0, value - below_ns)), value + above_ns)


_TOGETHER = Fraction(5, 100)
_VARIED = {
    "ports": "source ports (in the reverse direction destination ports)",
    "addresses": "source and destination addresses",
    "sources": "source addresses, the hosts of the left side (in the reverse "
    "direction destination addresses)",
}


@dataclass(frozen=True)
class _Value:
    """One value of one cell."""

    cell: CellResult
    name: str
    value: float | None
    samples: tuple[stats.Sample, ...] = ()
    averaged: bool = False

    def within(self, alpha: Fraction) -> stats.Interval | None:
        """What the value lies in, but for half of ``alpha``; None: too few repeats."""
        interval = stats.mean_interval if self.averaged else stats.median_interval
        sure = 1 - alpha / 2
        low = interval([sample.low for sample in self.samples], sure)
        high = interval([sample.high for sample in self.samples], sure)
        if low is None:
            return None
        upper = high.upper if high else math.inf
        return stats.Interval(max(0.0, low.lower), upper, sure)

    @property
    def flows(self) -> int:
        return _flows(self.cell) or 0

    @property
    def at_least(self) -> bool:
        """Whether the device may do more than was asked of it."""
        return self.cell.bound is not None

    @property
    def exactly(self) -> float | None:
        return None if self.at_least else self.value

    @property
    def series(self) -> tuple[str, str, str]:
        return self.cell.series or "", sizes_text(self.cell.cell), self.name

    @property
    def higher_is_better(self) -> bool:
        return PROCEDURES[self.cell.procedure].better == "higher"


class _Change(NamedTuple):
    """Percent, above 0 is worse; ``lower`` and ``upper``: what it lies between."""

    percent: float | None = None
    lower: float | None = None
    upper: float | None = None


def scalability(cells: Iterable[CellResult]) -> list[Scalability]:
    """A series for each benchmark value of the cells with a number of flows.

    What was not measured has its place in those that were.
    """
    series: dict[tuple[str, str, str], list[_Value]] = {}
    unmeasured: list[CellResult] = []
    for cell in cells:
        if cell.series is None or _flows(cell) is None:
            continue
        values = list(_values(cell))
        unmeasured += [cell] if not values else []
        for value in values:
            series.setdefault(value.series, []).append(value)
    for cell in unmeasured:
        for (_, _, name), others in series.items():
            missing = _Value(cell, name, None)
            if missing.series == others[0].series:
                others.append(missing)
    rising = {
        key: sorted(values, key=lambda v: v.flows) for key, values in series.items()
    }
    alpha = _TOGETHER / max(1, sum(map(_intervals, rising.values())))
    return [_compared(key, values, alpha) for key, values in rising.items()]


def degradation_percent(
    one: float | None, several: float | None, *, higher_is_better: bool
) -> float | None:
    """RFC 8219 10.2.1: above 0 is worse than one flow."""
    if not one or several is None:
        return None
    change = one - several if higher_is_better else several - one
    return change * 100 / one


def _intervals(values: Sequence[_Value]) -> int:
    """How many of them have repeats enough for one."""
    one = _of_one(values)
    return sum(
        all(each.within(_TOGETHER) for each in (one, other))
        for other in values
        if one and _percent(one, other) is not None
    )


def _of_one(values: Sequence[_Value]) -> _Value | None:
    return next((each for each in values if each.flows == 1), None)


def _percent(one: _Value, several: _Value) -> float | None:
    if several.flows == 1:
        return None
    return degradation_percent(
        one.exactly, several.exactly, higher_is_better=one.higher_is_better
    )


def _change(one: _Value | None, several: _Value, alpha: Fraction) -> _Change:
    change = _percent(one, several) if one else None
    before = one.within(alpha) if one and change is not None else None
    after = several.within(alpha)
    if one is None or before is None or after is None:
        return _Change(change)
    pairs = ((before.upper, after.lower), (before.lower, after.upper))
    ends = [
        degradation_percent(old, new, higher_is_better=one.higher_is_better)
        for old, new in pairs
    ]
    if one.higher_is_better:
        ends.reverse()
    return _Change(change, *map(_finite, ends))


def _finite(end: float | None) -> float | None:
    return end if end is not None and math.isfinite(end) else None


def _compared(
    key: tuple[str, str, str], values: Sequence[_Value], alpha: Fraction
) -> Scalability:
    series, frame_size, name = key
    first, one = values[0].cell, _of_one(values)
    points = []
    for each in values:
        change = _change(one, each, alpha)
        points.append(
            ScalabilityPoint(
                flows=each.flows,
                cell=each.cell.id,
                rate_fps=_rate_fps(each.cell),
                value=each.value,
                at_least=each.at_least,
                degradation_percent=change.percent,
                lower_percent=change.lower,
                upper_percent=change.upper,
            )
        )
    traffic, spec = first.cell.traffic, first.cell.spec
    per_flow_fps = spec.rate_per_flow_fps if isinstance(spec, LoadKeys) else None
    return Scalability(
        procedure=first.procedure,
        name=name,
        unit=first.unit,
        better=PROCEDURES[first.procedure].better,
        series=series,
        frame_size=frame_size,
        varied=_VARIED[traffic.flows_by],
        rate_per_flow_fps=per_flow_fps,
        points=points,
    )


def _values(cell: CellResult) -> Iterator[_Value]:
    """Delays that were not measured have no names either."""
    valid = cell.verdict != "invalid"
    known = PROCEDURES[cell.procedure]
    if known.value:
        averaged = known.statistic == "average"
        value = cell.median if valid else None
        samples = _samples(cell_figure(cell)) if valid else ()
        yield _Value(cell, known.value, value, samples, averaged)
        return
    streams = {measure.stream for measure in cell.measures}
    for figure in figures_of(cell):
        measure = figure.stored
        if not isinstance(measure, Measure):
            continue
        stream = f", {measure.stream}" if len(streams) > 1 else ""
        name = f"{measure.name}, {measure.direction}{stream}"
        value = measure.result.value if valid else None
        samples = _samples(figure) if valid else ()
        yield _Value(cell, name, value, samples, measure.summary == "mean")


def _samples(figure: Figure) -> tuple[stats.Sample, ...]:
    """None where no single figure stands for all repeats."""
    return () if figure.doubts else tuple(samples_of(figure)[0])


def _rate_fps(cell: CellResult) -> float | None:
    """A throughput is its own rate; bursts are sent at the highest."""
    if cell.family == "rate search":
        return cell.median
    if cell.points:
        return cell.points[0].load_fps
    if cell.recovery:
        return cell.recovery.overload_fps
    return cell.load.rate_fps if cell.load else cell.max_load_fps


def _flows(cell: CellResult) -> int | None:
    return cell.cell.traffic.flows


# Sweeps: one figure over a number, where it reaches its plateau, and where one more
# result tells most of that. What is added follows from results alone, so a run that is
# resumed, or verified, adds the same.


def sweeps(cells: Iterable[CellResult]) -> list[SweepResult]:
    """One for each sweep of ``cells``, its numbers rising."""
    return [_swept(of) for of in _by_sweep(cells)]


def next_of_sweeps(
    cells: Sequence[CellResult], asked: Collection[str]
) -> tuple[str, int] | None:
    """Which sweep is to have one more number: id of one of its cells, and the number.

    Args:
        cells: all results of one testbed so far.
        asked: ids of those that the campaign has; others were added.
    """
    for of in _by_sweep(cells):
        sweep, numbers = _sweep(of[0]), [_sweep(cell).number for cell in of]
        added = sum(cell.id not in asked for cell in of)
        if added < sweep.refine:
            points = [point for cell in of if (point := _curve_point(cell))]
            within, close = sweep.within_percent / 100, sweep.knee_percent / 100
            number = stats.next_number(points, numbers, within, close)
            if number is not None:
                return of[0].id, number
    return None


def _by_sweep(cells: Iterable[CellResult]) -> list[list[CellResult]]:
    found: dict[tuple[str | None, ...], list[CellResult]] = {}
    for cell in cells:
        if sweep := cell.cell.spec.sweep:
            size = None if sweep.key == "frame_size" else sizes_text(cell.cell)
            found.setdefault((cell.series, sweep.key, size), []).append(cell)
    return [sorted(of, key=lambda c: _sweep(c).number) for of in found.values()]


def _sweep(cell: CellResult) -> Sweep:
    sweep = cell.cell.spec.sweep
    assert sweep  # noqa: S101 - it is of one
    return sweep


def _curve_point(cell: CellResult) -> stats.CurvePoint | None:
    figure = cell_figure(cell)
    if figure.value is None:
        return None
    low, high = known_range(figure)
    return stats.CurvePoint(_sweep(cell).number, figure.value, low, high)


def _swept(of: Sequence[CellResult]) -> SweepResult:
    first, sweep = of[0], _sweep(of[0])
    known = {cell.id: _curve_point(cell) for cell in of}
    curve = [point for point in known.values() if point]
    knee = stats.knee(curve, sweep.within_percent / 100)
    return SweepResult(
        procedure=first.procedure,
        name=PROCEDURES[first.procedure].noun,
        unit=first.unit,
        key=sweep.key,
        series=first.series or "",
        within_percent=sweep.within_percent,
        plateau=knee.plateau,
        knee=knee.number,
        knee_above=knee.above,
        knee_until=knee.until,
        words=_knee_words(knee, sweep, first),
        points=[_swept_point(cell, known[cell.id]) for cell in of],
    )


def _swept_point(cell: CellResult, at: stats.CurvePoint | None) -> SweptPoint:
    high = at.high if at and math.isfinite(at.high) else None
    return SweptPoint(
        number=_sweep(cell).number,
        cell=cell.id,
        value=at and at.value,
        low=at and at.low,
        high=high,
        queues=cell.queues,
        unread=cell.unread,
    )


def _knee_words(knee: stats.Knee, sweep: Sweep, of: CellResult) -> str:
    if knee.number is None:
        return f"no knee: {knee.why}"
    above = "" if knee.above is None else f"above {knee.above:,}, "
    return (
        f"knee at {sweep.words(knee.number)} ({above}at most {knee.until:,}): from "
        f"there on within {sweep.within_percent:g} % of "
        f"{in_unit(knee.plateau or 0.0, of.unit)}, the median at the three largest"
    )
