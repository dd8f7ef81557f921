"""Power (draft-ietf-bmwg-powerbench): watts by load, energy per bit and per packet.

    plan       no frames, then loads that rise to the throughput
    measure    a trial for each load and repeat, and beside it the testbed's meter
    conclude   mean watts, with the meter's accuracy and the readings' scatter apart;
               by the frames that the device forwarded: joules of each, and of a bit

What a meter does not tell is not guessed at: where a reading failed, is stale or came
too late, the load has no watts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from statistics import fmean

from dutperf import stats
from dutperf.charts.cells import CellView
from dutperf.charts.chart import Chart, layout, line_trace, numbers
from dutperf.config.flows import ends
from dutperf.config.sizes import mean_size_from
from dutperf.config.testbed import FEWEST_READINGS
from dutperf.model.cell import Cell
from dutperf.model.specs import FULL_PERCENT, PowerSpec
from dutperf.procedures.cell_results import of_cell, of_repeats
from dutperf.procedures.fixed_load import (
    Recorded,
    Repeat,
    load_record,
    load_words,
    run_repeats,
    same_each_time,
)
from dutperf.procedures.loss_criterion import loss_percent, missing, own_drops
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.method import Method, OnStreams, Panel, Section
from dutperf.procedures.trials import Ask, Trials
from dutperf.protocol.result_messages import DirectionResult, Reason, TrialResult
from dutperf.results.bounds import averaged
from dutperf.results.model import CellResult
from dutperf.results.power_results import (
    Energy,
    Metered,
    Power,
    PowerPoint,
    PowerReading,
    Watts,
)
from dutperf.results.rate_results import RepeatResult
from dutperf.results.trial_record import TrialRecord
from dutperf.tables.result_tables import ENDING, TRAFFIC, TRIAL_TIME, title
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import (
    NONE,
    Column,
    Columns,
    Entry,
    Table,
    count,
    heads,
    number,
    percent,
    rows,
)


def measure_power(runner: Trials, cell: Cell, full: MaxRate) -> CellResult:
    """Read the meter without a load, then at each; the figure is that of ``full``.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    spec = cell.spec_of(PowerSpec)
    tried: list[_Tried] = []
    for load_percent in spec.load_percent:
        rate_fps = max(1, int(full.rate_fps * Fraction(str(load_percent)) / 100))
        idle_s = 0.0 if tried else spec.trial_duration_s
        recorded = Recorded(runner)
        ask = Ask(cell, rate_fps, metered=True, idle_s=idle_s)
        repeats = run_repeats(recorded, ask, same_each_time)
        tried.append(_Tried(load_percent, rate_fps, repeats, recorded.of(repeats)))
        if same_each_time(repeats[-1].reasons):
            break
    return _conclude(cell, full, tried)


class _Tried:
    """One load, and what was read in the trial that counts of each repeat."""

    def __init__(
        self,
        load_percent: float,
        load_fps: int,
        repeats: Sequence[Repeat],
        records: Sequence[TrialRecord],
    ) -> None:
        self.load_percent, self.load_fps = load_percent, load_fps
        self.repeats, self.records = repeats, records
        self.valid = [each.result for each in repeats if each.result]
        self.idle = _read(records, "idle")
        self.read: list[Watts | str] = [
            read if repeat.result else "no trial was valid"
            for repeat, read in zip(repeats, _read(records, "trial"), strict=True)
        ]


def _read(records: Sequence[TrialRecord], of: str) -> list[Watts | str]:
    none = "the meter was not read"
    return [
        next((watts_in(told) for told in each.metered if told.of == of), none)
        for each in records
    ]


# What the readings of one trial say.


def watts_in(told: Metered) -> Watts | str:
    """The mean over its time, and how far it may be wrong; or why it cannot be told.

    The first ``averaging_s`` are of what was before. Readings in a row are alike where
    a meter averages or a device drifts (``stats.half_width_of_series``).
    """
    if told.clock_set:
        return "the clock was set meanwhile, so no reading has its time"
    if told.begin_ns is None or told.end_ns is None:
        return "nobody knows when the trial began"
    during = [
        each
        for each in told.readings
        if each.asked_ns < told.end_ns and each.answered_ns > told.begin_ns
    ]
    failed = [each.failed for each in during if each.failed]
    if failed:
        return f"{len(failed)} of {len(during)} readings failed: {failed[0]}"
    begin_ns = told.begin_ns + round(told.averaging_s * 1e9)
    own = [
        each
        for each in during
        if each.asked_ns >= begin_ns and each.answered_ns <= told.end_ns
    ]
    stamps = {each.stamp for each in own}
    if len(own) > 1 and len(stamps) == 1 and None not in stamps:
        return f"the meter had no new value: all {len(own)} are of {stamps.pop()}"
    samples = _samples(own, begin_ns, told.end_ns)
    if len(samples) < FEWEST_READINGS:
        return f"{len(samples)} readings in the trial: {FEWEST_READINGS} are needed"
    if told.end_ns - begin_ns < FEWEST_READINGS * told.averaging_s * 1e9:
        return (
            f"too short a trial for a meter that averages over {told.averaging_s:g} s"
        )
    span_ns = math.fsum(weight_ns for _, weight_ns in samples)
    watts = math.fsum(value * weight_ns for value, weight_ns in samples) / span_ns
    if watts <= 0:
        return "the meter's counter stands still"
    share = told.accuracy_percent / 100
    return Watts(
        watts=watts,
        # By a share of the truth, which may be larger than what was read.
        systematic_w=(share * watts + told.accuracy_w) / (1 - share),
        random_w=stats.half_width_of_series([value for value, _ in samples]),
        readings=len(own),
    )


def _samples(
    own: Sequence[PowerReading], begin_ns: int, end_ns: int
) -> list[tuple[float, float]]:
    """Watts, and for how long: of a counter between two readings."""
    at_ns = [(each.asked_ns + each.answered_ns) / 2 for each in own]
    joules = [each.joules for each in own if each.joules is not None]
    in_order = all(before < after for before, after in pairwise(at_ns))
    if not own or not in_order or len(joules) not in (0, len(own)):
        return []
    if joules:
        return [
            ((after - before) * 1e9 / (then - first), then - first)
            for (first, then), (before, after) in zip(
                pairwise(at_ns), pairwise(joules), strict=True
            )
        ]
    middles = [begin_ns, *((a + b) / 2 for a, b in pairwise(at_ns)), end_ns]
    return [
        (each.watts or 0.0, after - before)
        for each, (before, after) in zip(own, pairwise(middles), strict=True)
    ]


def forwarded(result: TrialResult, cell: Cell) -> tuple[float, float]:
    """Frames a second, and their bits with FCS as they left the device; all ways."""
    fps = bps = 0.0
    for direction in result.directions:
        sender, receiver = ends(direction.name)
        rate_fps = direction.offered_rate_fps * _share(result, direction)
        fps += rate_fps
        bps += rate_fps * 8 * float(mean_size_from(cell, receiver, sender))
    return fps, bps


def _share(result: TrialResult, direction: DirectionResult) -> float:
    """Of its frames; what the tester dropped had left the device."""
    sent = sum(stream.sent for stream in direction.streams)
    lost = max(missing(direction) - own_drops(result, direction), 0)
    return (sent - lost) / sent if sent else 0.0


# What all trials say.


def _conclude(cell: Cell, full: MaxRate, tried: Sequence[_Tried]) -> CellResult:
    idle = _idle(tried[0])
    points = [idle, *(_point(cell, each, idle) for each in tried)]
    top = tried[-1]
    told = [_told(top, place, cell) for place in range(len(top.repeats))]
    return CellResult(
        **of_cell(cell, full),
        **of_repeats(told, averaged(told, 0), beside=_remarks(points)),
        quantity=f"energy per bit forwarded at {load_words(full)}, all of the watts",
        load=load_record(cell, full),
        power=Power(meter=_meter(tried), points=points),
    )


def _idle(first: _Tried) -> PowerPoint:
    watts, why = _mean(first.idle)
    return PowerPoint(
        load_percent=0,
        load_fps=0,
        forwarded_fps=None,
        forwarded_bps=None,
        lost_percent=None,
        watts=watts,
        why=why,
    )


def _point(cell: Cell, tried: _Tried, idle: PowerPoint) -> PowerPoint:
    watts, why = _mean(tried.read)
    rates = [forwarded(result, cell) for result in tried.valid]
    fps, bps = map(fmean, zip(*rates, strict=True)) if rates else (None, None)
    return PowerPoint(
        load_percent=tried.load_percent,
        load_fps=tried.load_fps,
        forwarded_fps=fps,
        forwarded_bps=bps,
        lost_percent=fmean(map(loss_percent, tried.valid)) if tried.valid else None,
        watts=watts,
        why=why,
        total=_energy(watts, None, rates),
        marginal=_energy(watts, idle.watts, rates) if idle.watts else None,
    )


def _mean(read: Sequence[Watts | str]) -> tuple[Watts | None, str]:
    """Of all repeats; if one cannot tell, why."""
    told = [each for each in read if isinstance(each, Watts)]
    if not told or len(told) < len(read):
        whys = [each for each in read if isinstance(each, str)]
        return None, whys[0] if whys else "the meter was not read"
    within = math.sqrt(math.fsum(each.random_w**2 for each in told)) / len(told)
    between = stats.mean_interval([each.watts for each in told])
    if between:
        within = max(within, (between.upper - between.lower) / 2)
    return Watts(
        watts=fmean(each.watts for each in told),
        systematic_w=fmean(each.systematic_w for each in told),
        random_w=within,
        readings=sum(each.readings for each in told),
    ), ""


def _energy(
    watts: Watts | None, idle: Watts | None, rates: Sequence[tuple[float, float]]
) -> Energy | None:
    """Of the watts above those of ``idle``: errors of both may be opposite."""
    if watts is None or not rates or min(fps for fps, _ in rates) <= 0:
        return None
    above_w = watts.watts - (idle.watts if idle else 0.0)
    bound_w = watts.bound_w + (idle.bound_w if idle else 0.0)
    fps, bps = (1e9 * fmean(1 / each for each in of) for of in zip(*rates, strict=True))
    return Energy(
        packet_nj=above_w * fps,
        packet_bound_nj=bound_w * fps,
        bit_nj=above_w * bps,
        bit_bound_nj=bound_w * bps,
    )


def _told(top: _Tried, place: int, cell: Cell) -> RepeatResult:
    """Of full load; where it was not reached the last one was invalid."""
    repeat, read = top.repeats[place], top.read[place]
    bps = forwarded(repeat.result, cell)[1] if repeat.result else 0.0
    value: float | None = None
    reasons = list(repeat.reasons)
    if top.load_percent < FULL_PERCENT:
        reasons.append(_reason(FULL_PERCENT, "it was not measured"))
    elif isinstance(read, str):
        reasons.append(_reason(top.load_percent, read))
    elif not bps:
        reasons.append(_reason(top.load_percent, "nothing was forwarded"))
    else:
        value = read.watts * 1e9 / bps
    return RepeatResult(
        value=value,
        verdict="invalid" if value is None else "pass",
        reasons=reasons,
        trials=repeat.trials,
    )


def _reason(load_percent: float, why: str) -> Reason:
    load = f"at {load_percent:g} % load" if load_percent else "idle"
    return Reason(
        code="no_power",
        message=f"{load}: cannot tell the watts: {why}",
        hint="see power in the testbed",
    )


def _remarks(points: Sequence[PowerPoint]) -> Iterator[Reason]:
    """Below full load the watts are told by the table alone, and so is why not."""
    for point in points[:-1]:
        if point.why:
            yield _reason(point.load_percent, point.why)
    if lossy := [point for point in points if point.lost_percent]:
        loads = ", ".join(f"{point.load_percent:g} %" for point in lossy)
        yield Reason(
            code="frames_lost",
            message=f"frames were lost at {loads}: energy is that of those forwarded",
        )


def _meter(tried: Sequence[_Tried]) -> str:
    told = next((m for each in tried for r in each.records for m in r.metered), None)
    if told is None:
        return ""
    also = f" + {told.accuracy_w:g} W" if told.accuracy_w else ""
    return f"{told.meter}, accurate to {told.accuracy_percent:g} %{also}"


# How it is shown.


def _of(point: PowerPoint | None, value: Callable[[PowerPoint], float | None]) -> Entry:
    if point and point.why:
        return "cannot tell"
    told = value(point) if point else None
    return NONE if told is None else number(float(told), 4)


def _watts(point: PowerPoint) -> float | None:
    return point.watts.watts if point.watts else None


def _points(cell: Subject) -> Sequence[PowerPoint | None]:
    """Idle first, full load last."""
    power = cell.result.power if cell.result else None
    return power.points if power else [None]


def result_table(key: str, cells: Sequence[Subject]) -> Table:
    """A row for each cell: what it takes at full load, and idle."""
    columns: Columns[Subject] = (
        *TRAFFIC,
        *TRIAL_TIME,
        (
            Column("load", "What 100 % is.", "fps per direction", spared=7),
            lambda cell: count(cell.load_fps),
        ),
        (
            Column("energy", "All watts, by bits forwarded.", "nJ/bit", tone="strong"),
            lambda cell: cell.figure,
        ),
        (
            Column(
                "known to", "By the meter's accuracy and the readings.", "nJ/bit", 1
            ),
            lambda cell: _of(
                _points(cell)[-1], lambda p: p.total.bit_bound_nj if p.total else None
            ),
        ),
        (
            Column("per packet", "The same, by frames forwarded.", "nJ", spared=2),
            lambda cell: _of(
                _points(cell)[-1], lambda p: p.total.packet_nj if p.total else None
            ),
        ),
        (
            Column("power", "At full load.", "W"),
            lambda cell: _of(_points(cell)[-1], _watts),
        ),
        (
            Column("idle", "Links up, no frames.", "W"),
            lambda cell: _of(_points(cell)[0], _watts),
        ),
        *ENDING,
    )
    return Table(
        key=key,
        title=title(cells),
        columns=heads(columns),
        rows=rows(columns, cells, lambda cell: cell.id),
    )


_POINTS: Columns[PowerPoint] = (
    (Column("load", "Of full load; 0: idle.", "%"), lambda p: number(p.load_percent)),
    (
        Column("rate", "What each direction sent.", "fps per direction", spared=3),
        lambda p: count(p.load_fps),
    ),
    (
        Column("power", "Mean over the trial.", "W", tone="strong"),
        lambda p: _of(p, _watts),
    ),
    (
        Column("by the meter", "Limit of its error, by its accuracy.", "± W", 1),
        lambda p: _of(p, lambda p: p.watts.systematic_w if p.watts else None),
    ),
    (
        Column("by the readings", "Half of their mean's 95 % interval.", "± W", 1),
        lambda p: _of(p, lambda p: p.watts.random_w if p.watts else None),
    ),
    (
        Column("per packet", "All watts, by frames forwarded.", "nJ"),
        lambda p: _of(p, lambda p: p.total.packet_nj if p.total else None),
    ),
    (
        Column("known to", "By both errors, added.", "± nJ", 2),
        lambda p: _of(p, lambda p: p.total.packet_bound_nj if p.total else None),
    ),
    (
        Column("per bit", "Of a frame, FCS included.", "nJ"),
        lambda p: _of(p, lambda p: p.total.bit_nj if p.total else None),
    ),
    (
        Column("above idle", "The watts above idle, by frames.", "nJ per packet", 2),
        lambda p: _of(p, lambda p: p.marginal.packet_nj if p.marginal else None),
    ),
    (
        Column("within", "By both errors of both, added.", "± nJ", 2),
        lambda p: _of(p, lambda p: p.marginal.packet_bound_nj if p.marginal else None),
    ),
    (
        Column("lost", "Frames, of all directions.", spared=2),
        lambda p: percent(p.lost_percent, None, 3),
    ),
)


def tables(cell: Subject) -> Iterator[Table]:
    """Each load, idle first."""
    power = cell.result.power if cell.result else None
    if power:
        whys = [(p.load_percent, p.why) for p in power.points if p.why]
        yield Table(
            key=f"power-{cell.id}",
            title=f"{cell.name}: watts by load",
            columns=heads(_POINTS),
            rows=rows(_POINTS, power.points),
            notes=(
                f"Meter: {power.meter}",
                *(f"Cannot tell at {at:g} %: {why}" for at, why in whys),
            ),
        )


def panel(cell: CellView) -> Panel:
    """Watts over load, and what a frame costs there."""
    power = cell.result.power if cell.result else None
    points = [point for point in power.points if point.watts] if power else []
    if len(points) < 2:
        return Panel(cell)
    watts = _chart(
        cell,
        "watts",
        "power, W",
        [(p.load_percent, p.watts.watts, p.watts.bound_w) for p in points if p.watts],
    )
    energies = [(p.load_percent, p.total) for p in points if p.total]
    packets = _chart(
        cell,
        "packets",
        "energy per packet, nJ",
        [(at, of.packet_nj, of.packet_bound_nj) for at, of in energies],
    )
    return Panel(cell, charts=(watts, packets))


def _chart(
    cell: CellView, of: str, axis: str, points: Sequence[tuple[float, float, float]]
) -> Chart:
    xs, ys = [x for x, _, _ in points], [y for _, y, _ in points]
    bounds = {"type": "data", "array": [bound for *_, bound in points]}
    loads = "load, % of full load"
    trace = line_trace(0, axis, xs, [*ys]) | numbers(axis, loads, axis)
    figure = layout(loads, axis, {"range": [0, 105]}, {"rangemode": "tozero"})
    figure["showlegend"] = False
    words = f"{axis} over load, with bounds, of {cell.title}"
    return Chart(f"power-{cell.id}-{of}", words, [trace | {"error_y": bounds}], figure)


METHOD = Method(
    "power",
    OnStreams(measure_power),
    lambda _: "Of each bit that it forwards at full load, idle watts included",
    table=result_table,
    tables=tables,
    section=Section("power", panel),
)
