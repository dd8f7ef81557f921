"""A soak: what changes under a load that lasts for hours.

    plan       one load, and for how long
    measure    trials in a row, each begun as soon as the one before has ended
    conclude   the share of frames lost, and when; which delays and gauges drift

A trial is one of any procedure, in the journal before the next one starts, so a soak is
resumed where it ended and stores nothing more than its trials. None is run again: an
invalid one is told, and what the device lost in it nobody knows. Times are those under
load: trial n begins n - 1 durations after the first, whatever lies between.

A gauge is what a hook after_trial prints as ``name = number``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Literal, NamedTuple

from dutperf import stats
from dutperf.charts.cells import CellView
from dutperf.charts.run_charts import Line, run_chart
from dutperf.model.cell import Cell
from dutperf.model.specs import SoakSpec
from dutperf.procedures.cell_results import of_cell, of_repeats
from dutperf.procedures.delays import Quantity, Reading, of_delays
from dutperf.procedures.fixed_load import load_record, load_words, same_each_time
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.method import Method, OnStreams, Panel, Section
from dutperf.procedures.stall_filter import rejudged_by
from dutperf.procedures.trials import ATTEMPTS, Ask, Trials, distinct, is_final
from dutperf.protocol.base import DirectionName
from dutperf.protocol.result_messages import Reason, TrialResult, VerdictKind
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results.details import LevelChange, LossyTrial, SeriesDrift, Soak
from dutperf.results.model import CellResult
from dutperf.results.rate_results import RepeatResult
from dutperf.results.trial_record import NOT_KEPT, HookRun, TrialRecord
from dutperf.tables.result_tables import REPEATS, TRAFFIC, TRIAL_TIME, title
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import (
    NONE,
    TIME_DIGITS,
    Column,
    Columns,
    Span,
    Table,
    Value,
    Verdict,
    count,
    duration,
    heads,
    number,
    percent,
    rows,
)

_INTERVALS = 20
"""Of a trial's series over time: a day of finer ones is too much to be kept."""
_LISTED = 100
_MOST_GAUGES = 50
_REASONS = 5
_SURE = 0.95


def _rank(name: str, share: tuple[int, int]) -> Quantity:
    words = f"{name} of the delays of all frames that arrived"
    read = of_delays(lambda d, _least: stats.percentile_bounds(d.buckets, *share))
    return Quantity(name, words, read)


_DRIFTING = (_rank("p50", (50, 100)), _rank("p99", (99, 100)))
QUANTITIES = (
    *_DRIFTING,
    _rank("p99.9", (999, 1000)),
    Quantity(
        "max",
        "largest delay",
        of_delays(lambda delays, least_ns: (delays.max or least_ns,) * 2),
    ),
)


def measure_soak(runner: Trials, cell: Cell, load: MaxRate) -> CellResult:
    """Trials in a row until the device was under load for so long.

    It ends before that where no further trial would tell anything: the first three
    could not be offered, or one is invalid for a reason that stays.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    rejudge = partial(_never_bounds, rejudged_by(_DRIFTING))
    ask = Ask(cell, load.rate_fps, shape=_coarse, rejudge=rejudge, attempts=1)
    minutes: list[Minute] = []
    for place in range(1, cell.spec_of(SoakSpec).trials + 1):
        asked = replace(ask, repeat=place, continues=place > 1)
        minutes.append(minute_of(runner.run(asked)))
        if _is_hopeless(minutes):
            break
    return _conclude(cell, load, minutes)


def _never_bounds(
    judge: Callable[..., TrialResult],
    result: TrialResult,
    *,
    again: bool,  # noqa: ARG001 - no trial is run again, so none has to stand
) -> TrialResult:
    return judge(result, again=True)


def _coarse(request: TrialRequest) -> TrialRequest:
    interval_ns = -(-request.duration_ns // _INTERVALS)
    record = request.record
    interval_ns = max(interval_ns, record.series_interval_ns)
    record = record.model_copy(update={"series_interval_ns": interval_ns})
    return request.model_copy(update={"record": record})


# What is kept in mind of a trial: a day of whole records is a gigabyte.


Place = tuple[DirectionName, str]
"""A direction, and the name of a quantity."""


class Minute(NamedTuple):
    """One trial; ``number`` is its own within the cell."""

    number: int
    seconds: float
    started_at: str
    verdict: VerdictKind
    reasons: tuple[Reason, ...]
    sent: int
    lost: int
    delays: Mapping[Place, Reading]
    gauges: Mapping[str, float]
    unread: tuple[str, ...]

    @property
    def counts(self) -> bool:
        """Whether the tester vouches for it, and sent a frame."""
        return self.verdict != "invalid" and self.sent > 0

    @property
    def loss_percent(self) -> float | None:
        """Of all frames; None: none was sent."""
        return 100 * self.lost / self.sent if self.sent else None

    @property
    def hours(self) -> float:
        """Under load, at its middle."""
        return (self.number - 0.5) * self.seconds / 3600


def minute_of(record: TrialRecord) -> Minute:
    """What counts of a trial of a soak."""
    result = record.result
    streams = [s for d in result.directions for s in d.streams]
    delays: dict[Place, Reading] = {}
    for direction in result.directions:
        for quantity in QUANTITIES:
            reading = quantity.read(direction.streams[0])
            if reading and reading.value is not None:
                delays[direction.name, quantity.name] = reading
    gauges, unread = gauges_of(record.hooks)
    return Minute(
        record.repeat,
        record.request.duration_ns / 1e9,
        record.started_at,
        result.verdict.kind,
        tuple(result.verdict.reasons) if result.verdict.kind == "invalid" else (),
        sum(stream.sent for stream in streams),
        sum(stream.lost for stream in streams),
        delays,
        gauges,
        tuple(unread),
    )


_GAUGE = re.compile(r"^[ \t]*([A-Za-z][\w.-]*)[ \t]+=[ \t]+(\S.*?)[ \t]*$", re.M | re.A)
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def gauges_of(hooks: Sequence[HookRun]) -> tuple[dict[str, float], list[str]]:
    """What hooks after a trial print as ``name = number``; and what is none, and why.

    A line of another shape is no gauge. What was cut is not read, and of a name that
    stands twice nobody knows which it is.
    """
    found: dict[str, float] = {}
    unread: dict[str, str] = {}
    names: Counter[str] = Counter()
    for run in hooks:
        if run.moment != "after_trial" or not run.succeeded:
            continue
        lines = _GAUGE.findall(run.output)
        on = f" on {run.host}" if run.host else ""
        for name, text in [(f"{name}{on}", text) for name, text in lines]:
            names[name] += 1
            if NOT_KEPT in run.output:
                unread[name] = "what its hook prints is too long to be kept whole"
            elif not _NUMBER.fullmatch(text) or math.isinf(float(text)):
                unread[name] = f"{text[:40]!r} is no number"
            elif names[name] > 1:
                unread[name] = "is printed twice"
            else:
                found[name] = float(text)
    gauges = {name: value for name, value in found.items() if name not in unread}
    return gauges, [f"{name}: {why}" for name, why in unread.items()]


def _is_hopeless(minutes: Sequence[Minute]) -> bool:
    last = minutes[-1]
    if last.counts:
        return False
    first = len(minutes) == ATTEMPTS and not any(each.counts for each in minutes)
    same = all(same_each_time(each.reasons) for each in minutes[:ATTEMPTS])
    return is_final(last.reasons) or (first and same)


# What is concluded.


def _conclude(cell: Cell, load: MaxRate, minutes: Sequence[Minute]) -> CellResult:
    """A soak most of whose trials are invalid is so itself."""
    valid = [minute for minute in minutes if minute.counts]
    sent, lost = sum(m.sent for m in valid), sum(m.lost for m in valid)
    stands = 2 * len(valid) > len(minutes)
    spoilt = [reason for minute in minutes for reason in minute.reasons]
    told = RepeatResult(
        value=100 * lost / sent if stands else None,
        verdict="pass" if stands else "invalid",
        reasons=distinct(spoilt)[:_REASONS],
        trials=len(minutes),
    )
    found = _soak(minutes, valid) if valid else None
    return CellResult(
        **of_cell(cell, load),
        **of_repeats([told], beside=_remarks(found) if found else ()),
        quantity=f"frames lost of all that were sent at {load_words(load)}",
        load=load_record(cell, load),
        soak=found,
    )


def _soak(minutes: Sequence[Minute], valid: Sequence[Minute]) -> Soak:
    lossy = [minute for minute in valid if minute.lost]
    worst = sorted(lossy, key=lambda m: (-(m.loss_percent or 0), m.number))[:_LISTED]
    listed = sorted({m.number: m for m in (*lossy[:_LISTED], *worst)}.items())
    unread = dict.fromkeys(line for minute in valid for line in minute.unread)
    last = minutes[-1]
    took = _time(last.started_at) - _time(minutes[0].started_at)
    gauges = list(dict.fromkeys(name for minute in valid for name in minute.gauges))
    left_out = [
        f"{name}: at most {_MOST_GAUGES} gauges" for name in gauges[_MOST_GAUGES:]
    ]
    return Soak(
        trials=len(minutes),
        valid=len(valid),
        spoilt=[m.number for m in minutes if not m.counts][:_LISTED],
        sent=sum(minute.sent for minute in valid),
        lost=sum(minute.lost for minute in valid),
        lossy=len(lossy),
        losses=[
            LossyTrial(number=n, started_at=m.started_at, lost=m.lost, sent=m.sent)
            for n, m in listed
        ],
        under_load_s=math.fsum(minute.seconds for minute in minutes),
        took_s=max(0.0, took + last.seconds),
        series=_drifts(valid, gauges[:_MOST_GAUGES]),
        unread=[*unread, *left_out][:_LISTED],
    )


def _time(started_at: str) -> float:
    return datetime.fromisoformat(started_at).timestamp()


def lines_of(valid: Sequence[Minute], gauges: Sequence[str]) -> Iterator[Line]:
    """All series of a soak that have a value, but for the rarest delays."""
    of_loss = [(m.hours, m.loss_percent or 0.0, 0.0) for m in valid]
    yield Line("loss", None, "percent", of_loss)
    names = dict.fromkeys(place[0] for minute in valid for place in minute.delays)
    for direction in names:
        for quantity in QUANTITIES:
            place = direction, quantity.name
            read = [(m.hours, m.delays[place]) for m in valid if place in m.delays]
            told = [(at, r.value or 0.0, r.rounding) for at, r in read]
            yield Line(quantity.name, direction, "ns", told)
    for name in gauges:
        told = [(m.hours, m.gauges[name], 0.0) for m in valid if name in m.gauges]
        yield Line(name, None, "", told)


def _drifts(valid: Sequence[Minute], gauges: Sequence[str]) -> list[SeriesDrift]:
    lines = list(lines_of(valid, gauges))
    # What never changes raises no false alarm.
    vary = sum(len({value for _, value, _ in line.points}) > 1 for line in lines)
    confidence = 1 - (1 - _SURE) / max(1, vary)
    return [drift_of(line, confidence) for line in lines]


def drift_of(line: Line, confidence: float) -> SeriesDrift:
    """Whether one series drifts; losses are rare: a part of it counts by its mean."""
    hours, values, roundings = (list(each) for each in zip(*line.points, strict=True))
    found = stats.drift(
        hours,
        values,
        confidence,
        roundings=roundings,
        middle=stats.mean if line.unit == "percent" else stats.median,
    )
    return SeriesDrift(
        name=line.name,
        direction=line.direction,
        unit=line.unit,
        trials=len(values),
        median=stats.median(values),
        least=min(values),
        most=max(values),
        per_hour=found.slope if found else None,
        lower_per_hour=found.lower if found else None,
        upper_per_hour=found.upper if found else None,
        seen_from_per_hour=found.seen_from if found else None,
        verdict=_word(found),
        changes=[
            LevelChange(at_s=round(s.at * 3600, 3), before=s.before, after=s.after)
            for s in (found.steps if found else ())
        ],
    )


def _word(
    found: stats.Drift | None,
) -> Literal["grows", "falls", "steps", "no drift seen", "too few trials"]:
    if found is None:
        return "too few trials"
    if found.steps:
        return "steps"
    if found.lower > 0:
        return "grows"
    return "falls" if found.upper < 0 else "no drift seen"


def _remarks(found: Soak) -> Iterator[Reason]:
    if found.lost:
        yield Reason(
            code="frames_lost",
            message=f"{found.lost:,} of {found.sent:,} frames were lost, in "
            f"{found.lossy:,} of {found.valid:,} trials",
            hint="the report has their times",
        )


# How it is shown.


def result_table(key: str, cells: Sequence[Subject]) -> Table:
    """A row for each cell."""
    columns: Columns[Subject] = (
        *TRAFFIC,
        *TRIAL_TIME,
        (
            Column("load", "What each direction sent.", "fps per direction", spared=7),
            lambda cell: count(cell.load_fps),
        ),
        (
            Column("lost", "Of all frames of the valid trials.", tone="strong"),
            lambda cell: cell.figure,
        ),
        (
            Column("lossy", "Valid trials that lost a frame.", "trials"),
            _of(lambda soak: count(soak.lossy)),
        ),
        (
            Column("invalid", "Trials that tell nothing of the device.", "trials"),
            _of(lambda soak: count(soak.trials - soak.valid)),
        ),
        (
            Column("under load", "All trials together.", spared=5),
            _of(lambda soak: duration(soak.under_load_s * 1e9, TIME_DIGITS)),
        ),
        (
            Column(
                "share",
                "Of the time that all took: between two trials the device is idle.",
                spared=6,
            ),
            _of(_share),
        ),
        REPEATS,
        (
            Column("verdict", "Whether it may be quoted.", words=True),
            lambda cell: Verdict(cell.state),
        ),
    )
    made = rows(columns, cells, lambda cell: cell.id)
    return Table(key, title(cells), heads(columns), made)


def _of(entry: Callable[[Soak], Value]) -> Callable[[Subject], Value]:
    def told(cell: Subject) -> Value:
        return entry(cell.result.soak) if cell.result and cell.result.soak else NONE

    return told


def _share(soak: Soak) -> Value:
    known = 0 < soak.under_load_s <= soak.took_s
    return percent(100 * soak.under_load_s / soak.took_s, digits=3) if known else NONE


def tables(cell: Subject) -> Iterator[Table]:
    """What drifted, and when frames were lost."""
    soak = cell.result.soak if cell.result else None
    if soak:
        yield _series_table(cell.id, soak)
        yield _loss_table(cell.id, soak)


def _series_table(name: str, soak: Soak) -> Table:
    columns: Columns[SeriesDrift] = (
        (Column("series", "A value for each trial.", words=True), lambda s: s.name),
        (
            Column("direction", "In which the frames went.", words=True),
            lambda s: s.direction or "",
        ),
        (Column("trials", "That have it.", spared=5), lambda s: count(s.trials)),
        (Column("median", "Of these."), lambda s: in_its_unit(s, s.median)),
        (Column("least", "Of these.", spared=4), lambda s: in_its_unit(s, s.least)),
        (Column("most", "Of these.", spared=3), lambda s: in_its_unit(s, s.most)),
        (
            Column("per hour", "Slope of a straight line, per hour under load."),
            lambda s: in_its_unit(s, s.per_hour),
        ),
        (
            Column(
                "interval",
                "Of the slope: with 95 % of all of a test case together; with less "
                "where values are much alike from trial to trial (docs/soak.md).",
                spared=2,
            ),
            _interval,
        ),
        (
            Column(
                "seen from",
                "A slope so large, up or down, would be told in 4 of 5 such runs.",
                spared=6,
            ),
            lambda s: in_its_unit(s, s.seen_from_per_hour),
        ),
        (
            Column("drift", "What the interval, or steps, say.", words=True),
            lambda s: s.verdict,
        ),
        (
            Column("steps", "When, under load, and from what to what.", words=True),
            lambda s: "; ".join(map(partial(_step, s), s.changes)),
        ),
    )
    return Table(
        key=f"series-{name}",
        title=f"{name}: what drifts",
        columns=heads(columns),
        rows=rows(columns, soak.series),
        notes=tuple(soak.unread),
    )


def in_its_unit(series: SeriesDrift, value: float | None) -> Value:
    """A value of the series, or a slope of it."""
    if value is None:
        return NONE
    if series.unit == "ns":
        return duration(value, TIME_DIGITS)
    if series.unit == "percent":
        return percent(value, digits=4)
    return number(value)


def _interval(series: SeriesDrift) -> Span | Value:
    if series.lower_per_hour is None:
        return NONE
    ends = series.lower_per_hour, series.upper_per_hour
    return Span(*(in_its_unit(series, end) for end in ends))


def _step(series: SeriesDrift, change: LevelChange) -> str:
    ends = (in_its_unit(series, end) for end in (change.before, change.after))
    told = " to ".join(f"{value.digits} {value.unit}".strip() for value in ends)
    return f"{change.at_s / 3600:.4g} h: {told}"


def _loss_table(name: str, soak: Soak) -> Table:
    columns: Columns[LossyTrial] = (
        (Column("trial", "Its number, from 1."), lambda each: count(each.number)),
        (
            Column("began", "By the clock of the machine, UTC.", words=True),
            lambda each: each.started_at,
        ),
        (Column("lost", "", "frames"), lambda each: count(each.lost)),
        (Column("sent", "", "frames"), lambda each: count(each.sent)),
        (
            Column("loss", "Of these.", tone="strong"),
            lambda each: percent(100 * each.lost / each.sent),
        ),
    )
    left_out = soak.lossy - len(soak.losses)
    return Table(
        key=f"losses-{name}",
        title=f"{name}: trials that lost frames",
        columns=heads(columns),
        rows=rows(columns, soak.losses),
        notes=(f"{left_out:,} more are in the journal",) if left_out else (),
        detail=True,
    )


# The run at a glance.


def panel(cell: CellView) -> Panel:
    """One chart of all trials, one part below the other."""
    minutes = [minute_of(t) for t in cell.trials if t.role == "trial"]
    valid = [minute for minute in minutes if minute.counts]
    if not valid or not cell.result or not cell.result.soak:
        return Panel(cell)
    series = cell.result.soak.series
    gauges = [s.name for s in series if not s.unit and s.least < s.most]
    shown = {"loss", *(quantity.name for quantity in _DRIFTING), *gauges}
    lines = [line for line in lines_of(valid, gauges) if line.name in shown]
    spoilt = [minute.hours for minute in minutes if not minute.counts]
    return Panel(cell, charts=(run_chart(cell.id, lines, spoilt),))


METHOD = Method(
    "soak",
    OnStreams(measure_soak),
    table=result_table,
    tables=tables,
    section=Section("soak", panel),
)
