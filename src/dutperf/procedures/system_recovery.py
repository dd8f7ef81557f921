"""System recovery (RFC 2544 26.5, 5180 7.5, 8219 7.6): how long losses outlast a load.

    plan       the overload, a share of the throughput; then half of it
    measure    a trial for each repeat, whose load falls at time stamp A
    conclude   from A to B, when the last lost frame was due; the average of the repeats

RFC 2544 subtracts B from A, which are in the order A, B. Nothing tells when a device
recovered between a lost frame and the next one, so each time is known to within that;
a recovery of 0 is one that is shorter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dutperf.charts.cells import CellView
from dutperf.charts.time_charts import marked, time_charts, upright
from dutperf.model.cell import Cell
from dutperf.model.specs import SystemRecoverySpec
from dutperf.procedures.bursts import with_steps
from dutperf.procedures.cell_results import of_cell, of_repeats
from dutperf.procedures.conclusions import DELAY_LIMITS, search_findings
from dutperf.procedures.fixed_load import Repeat, run_repeats, unmeasured, valid_results
from dutperf.procedures.loss_criterion import own_drops
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.method import Method, OnStreams, Panel, Section
from dutperf.procedures.tester_limit import reach_maximum
from dutperf.procedures.trials import Ask, Trials
from dutperf.protocol.result_messages import (
    DirectionResult,
    LossRun,
    Reason,
    Shadow,
    Stall,
    TrialResult,
    Verdict,
)
from dutperf.protocol.stream_messages import RateStep
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import units
from dutperf.results.bounds import averaged
from dutperf.results.details import DirectionRecovery, Recovery, RecoveryTime
from dutperf.results.model import CellResult
from dutperf.results.rate_results import Load, RepeatResult
from dutperf.results.trial_record import TrialRecord
from dutperf.search import Resolution
from dutperf.standards import Deviation
from dutperf.tables.result_tables import (
    ENDING,
    EXTREMES,
    TRAFFIC,
    of_directions,
    repeats_table,
    title,
)
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import (
    TIME_DIGITS,
    Column,
    Columns,
    Table,
    count,
    duration,
    heads,
    rows,
)

_RFC = "RFC 2544 26.5"
_LAST_PART = 10
"""What is lost in the last tenth of the reduced load may not have been the last."""

_SERIES_NS = 10_000_000
"""A recovery may take as little; a tenth of what other trials have, however long."""


def measure_system_recovery(runner: Trials, cell: Cell, load: MaxRate) -> CellResult:
    """Overload the device as often as the cell says; the result is the average.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    loads = _Loads(cell, load)
    if not loads.overload:
        return unmeasured(cell, loads.throughput, loads.not_applicable)
    reached, first = reach_maximum(runner, load, lambda most: _Loads(cell, most).ask)
    loads = _Loads(cell, reached)
    if not loads.overload:
        return unmeasured(cell, loads.throughput, loads.not_applicable)
    # One repeat that nobody can vouch for spoils the average: no more are made.
    repeats = run_repeats(runner, loads.ask, bool, first)
    return _conclude(loads, repeats)


@dataclass(frozen=True)
class _Loads:
    """What all trials of a cell have in common.

    load: the throughput that was found, with the most that may be offered; or, where
    the throughput was given, that most.
    """

    cell: Cell
    load: MaxRate

    @property
    def spec(self) -> SystemRecoverySpec:
        return self.cell.spec_of(SystemRecoverySpec)

    @property
    def throughput(self) -> MaxRate:
        given = self.spec.throughput_fps
        return MaxRate(given, "load") if isinstance(given, int) else self.load

    @property
    def most(self) -> MaxRate:
        return self.load.most or self.load

    @property
    def wanted_fps(self) -> int:
        share = Fraction(str(self.spec.overload_percent)) / 100
        return int(self.throughput.rate_fps * share)

    @property
    def overload_fps(self) -> int:
        return min(self.wanted_fps, self.most.rate_fps)

    @property
    def overload(self) -> bool:
        """Whether it is one: above what the device forwards without loss."""
        return self.overload_fps > self.throughput.rate_fps

    @property
    def reduced_fps(self) -> int:
        return max(1, self.overload_fps // 2)

    @property
    def fell_ns(self) -> int:
        """Time stamp A, since the trial's start."""
        return round(self.spec.overload_duration_s * 1e9)

    @property
    def reduced_ns(self) -> int:
        return round(self.spec.trial_duration_s * 1e9) - self.fell_ns

    @property
    def ask(self) -> Ask:
        return Ask(
            self.cell, self.overload_fps, shape=self._falling, rejudge=self._judged
        )

    @property
    def not_applicable(self) -> Reason:
        found, most = self.throughput, self.most
        return Reason(
            code="not_overloaded",
            message=f"nothing overloads the device: its throughput is "
            f"{found.rate_fps:,} fps, and {most.words} is {most.rate_fps:,} fps",
            hint="choose frames of which the device forwards less than that, or a "
            "faster port driver; else system recovery does not apply",
        )

    def _falling(self, request: TrialRequest) -> TrialRequest:
        steps = [
            RateStep(rate_fps=self.overload_fps, duration_ns=self.fell_ns),
            RateStep(rate_fps=self.reduced_fps, duration_ns=self.reduced_ns),
        ]
        record = request.record
        interval_ns = max(_SERIES_NS, record.series_interval_ns // 10)
        record = record.model_copy(update={"series_interval_ns": interval_ns})
        return with_steps(request.model_copy(update={"record": record}), steps)

    def _judged(self, result: TrialResult, *, again: bool) -> TrialResult:  # noqa: ARG002 - nor does the last attempt count
        """A trial whose last loss may be the tester's tells nothing of a recovery."""
        if result.verdict.kind == "invalid":
            return result
        reasons = [
            reason
            for direction in result.directions
            for reason in self._spoilt(result, direction)
        ]
        if not any(self._lost(each)[0] for each in result.directions):
            reasons = [self._not_overloaded]
        if not reasons:
            return result
        verdict = Verdict(kind="invalid", reasons=[*reasons, *result.verdict.reasons])
        return result.model_copy(update={"verdict": verdict})

    @property
    def _not_overloaded(self) -> Reason:
        return Reason(
            code="not_overloaded",
            message=f"not overloaded: nothing was lost at {self.overload_fps:,} fps in "
            f"{self.spec.overload_duration_s:g} s",
            hint="the throughput was found too low, or the device takes turns: raise "
            "overload_percent (--overload), or measure the throughput anew",
        )

    def _spoilt(
        self, result: TrialResult, direction: DirectionResult
    ) -> Iterator[Reason]:
        """Why nobody knows whether the device lost the last of its lost frames."""
        name = direction.name
        if any(s.lost and s.last_loss is None for s in direction.streams):
            yield Reason(
                code="unstable",
                message=f"{name}: there are more frames than the engine keeps apart, "
                "so it is not known which was lost last",
                hint="take a shorter overload, or larger frames",
            )
        behind_ns = max(map(self._behind_ns, direction.stalls), default=0)
        if behind_ns > self.spec.lag_limit_ms * 1e6:
            yield Reason(
                code="sender_lag",
                message=f"{name}: the tester was up to {units.duration(behind_ns, 3)} "
                "late when the load fell: frames of the overload left after it",
                hint="isolate the tester's cores, or lower the overload (--max-rate)",
            )
        last = self.last_loss(direction)
        if last is None:
            return
        for shadow in direction.shadows:
            if _covers(shadow, last.last_ns):
                yield Reason(
                    code="sender_burst" if shadow.of == "sender" else "receiver_lag",
                    message=f"{name}: the last frame was lost in the recovery window "
                    f"of a stall of the tester's {shadow.of}",
                    hint="isolate the tester's cores; the trial is worth repeating",
                )
        if own_drops(result, direction):
            yield Reason(
                code="receiver_overflow",
                message=f"{name}: the tester may have dropped "
                f"{own_drops(result, direction):,} frames itself, the last one among "
                "them",
                hint="give the testbed more cores, or keep other work off them",
            )

    def _behind_ns(self, stall: Stall) -> int:
        """How late a sender was that made up for it only when the load had fallen."""
        is_at = stall.begin_ns < self.fell_ns < stall.caught_up_ns
        return stall.max_lag_ns if is_at else 0

    def last_loss(self, direction: DirectionResult) -> LossRun | None:
        """The last run of lost frames that does not end before the load fell."""
        runs = [s.last_loss for s in direction.streams if s.last_loss]
        after = [run for run in runs if run.last_ns >= self.fell_ns]
        return max(after, key=lambda run: run.last_ns, default=None)

    def _lost(self, direction: DirectionResult) -> tuple[int, int]:
        """Frames sent until the load fell, to the interval of the series; and later."""
        overload, every = 0, 0
        for stream in direction.streams:
            lost = stream.series.lost
            intervals = -(-self.fell_ns // stream.series.interval_ns)
            overload += sum(lost[:intervals])
            every += sum(lost)
        return overload, every - overload

    @property
    def _apart_ns(self) -> int:
        """From a frame of the stream to its next one, with one beside it between."""
        intervals = 2 if self.cell.traffic.beside else 1
        return -(-intervals * 10**9 // self.reduced_fps)

    def time_of(self, direction: DirectionResult) -> RecoveryTime:
        """From A to B, and how much longer it may have taken."""
        overload_lost, reduced_lost = self._lost(direction)
        last = self.last_loss(direction)
        value_ns, next_ns, still = 0, None, False
        if last:
            value_ns = last.last_ns - self.fell_ns
            still = (self.reduced_ns - value_ns) * _LAST_PART < self.reduced_ns
            next_ns = last.end_ns and last.end_ns - last.last_ns
        return RecoveryTime(
            value_ns=value_ns,
            within_ns=(next_ns or self._apart_ns) + (direction.lag_ns.max or 0),
            bound="lower" if still else None,
            overload_lost=overload_lost,
            reduced_lost=reduced_lost,
        )


def _covers(shadow: Shadow, at_ns: int) -> bool:
    end_ns = shadow.end_ns
    return shadow.may_lose and shadow.begin_ns <= at_ns <= (end_ns or at_ns)


def _conclude(loads: _Loads, repeats: Sequence[Repeat]) -> CellResult:
    """The average; of two directions the one that takes longer."""
    results = valid_results(repeats)
    names = [d.name for d in results[0].directions] if results else []
    directions = [
        DirectionRecovery(
            direction=name,
            repeats=[
                loads.time_of(repeat.result.directions[place])
                if repeat.result
                else None
                for repeat in repeats
            ],
        )
        for place, name in enumerate(names)
    ]
    told = [
        _told(repeat, [t for d in directions if (t := d.repeats[n])])
        for n, repeat in enumerate(repeats)
    ]
    within = [t.within_ns for d in directions for t in d.repeats if t]
    found = averaged(told, max(within, default=0))
    recovery = Recovery(
        throughput_fps=loads.throughput.rate_fps,
        overload_fps=loads.overload_fps,
        reduced_fps=loads.reduced_fps,
        overload_ns=loads.fell_ns,
        reduced_ns=loads.reduced_ns,
        within_ns=max(within, default=0),
        directions=directions,
    )
    return CellResult(
        **of_cell(loads.cell, loads.throughput, _short_of(loads)),
        **of_repeats(told, found, beside=_remarks(told, results)),
        quantity=f"recovery after {loads.overload_fps:,} fps per direction, average "
        f"({_RFC})",
        load=Load(
            rate_fps=loads.throughput.rate_fps,
            asked=str(loads.spec.throughput_fps),
            cell=loads.cell.throughput_cell,
            words=loads.throughput.words,
        ),
        recovery=recovery if directions else None,
        findings=search_findings(
            told,
            Resolution(Fraction(max(within, default=1)), relative=False),
            "recovery",
            "ns",
            DELAY_LIMITS,
        ),
    )


def _told(repeat: Repeat, times: Sequence[RecoveryTime]) -> RepeatResult:
    """The longer one of both directions."""
    longest = max(times, key=lambda time: time.value_ns, default=None)
    return RepeatResult(
        value=longest.value_ns if longest else None,
        verdict="pass" if longest else "invalid",
        bound=longest.bound if longest else None,
        reasons=repeat.reasons,
        trials=repeat.trials,
    )


def _remarks(
    repeats: Sequence[RepeatResult], results: Sequence[TrialResult]
) -> Iterator[Reason]:
    """What a user should know of trials that count nevertheless."""
    still = sum(repeat.bound is not None for repeat in repeats)
    if still:
        yield Reason(
            code="frames_lost",
            message="frames were still lost in the last tenth of the reduced load, in "
            f"{still} of {len(repeats)} repeats: the recovery takes that long, or "
            "longer",
            hint="send the reduced load for longer (--reduced-duration)",
        )
    streams = [s for r in results for d in r.directions for s in d.streams]
    damaged = sum(stream.corrupt for stream in streams)
    if damaged:
        yield Reason(
            code="frames_lost",
            message=f"{damaged:,} frames arrived damaged: they count as lost, and one "
            "of them may have been the last",
        )


def _short_of(loads: _Loads) -> Iterator[Deviation]:
    """What of the loads is not the RFC's; what was asked for is told already."""
    found = loads.throughput
    if found.shortfall:
        actual = f"{found.rate_fps:,} fps, {found.shortfall}"
        yield Deviation(_RFC, "an overload of the throughput", actual, "text")
    most = loads.most
    if loads.overload_fps < loads.wanted_fps and most.kind != "media":
        percent = loads.overload_fps * 100 / found.rate_fps
        rule = "110 % of the throughput, or the maximum rate of the media"
        actual = f"{percent:.4g} %: {most.words}, {most.rate_fps:,} fps"
        yield Deviation(_RFC, rule, actual, "text")


# How it is shown: the table of RFC 2544 26.5, each repeat and direction, one trial.


def tables(cell: Subject) -> Iterator[Table]:
    """Each repeat and direction."""
    if cell.result and cell.result.recovery:
        what = Column("recovery", "From A to the last lost frame.", tone="strong")
        known, directions = (
            "How much longer it may be.",
            cell.result.recovery.directions,
        )
        yield repeats_table(cell, what, known, _REPEATS, directions)


def result_table(key: str, cells: Sequence[Subject]) -> Table:
    """A row for each cell: its throughput, the overload, and the recovery time."""
    repeated = any(cell.several for cell in cells)
    both = any(cell.bidirectional for cell in cells)
    columns: Columns[Subject] = (
        *TRAFFIC,
        (
            Column(
                "throughput",
                "What the overload is a share of.",
                "fps per direction",
                spared=5,
            ),
            lambda cell: count(cell.load_fps),
        ),
        (
            Column(
                "overload",
                "What was sent before the load fell to half of it.",
                "fps per direction",
                spared=7,
            ),
            lambda cell: count(cell.full_load_fps),
        ),
        (
            Column(
                f"recovery{', average' if repeated else ''}",
                "From when the load fell to when the last lost frame was due; of both "
                "directions the longer one.",
                tone="strong",
            ),
            lambda cell: cell.figure,
        ),
        (
            Column(
                "known to",
                "How much longer it may be: nobody knows when a device recovered "
                "between a lost frame and the next one.",
                spared=2,
            ),
            lambda cell: duration(cell.within_ns, TIME_DIGITS),
        ),
        *(of_directions("Recovery") if both else ()),
        *(EXTREMES[:2] if repeated else ()),
        *ENDING,
    )
    return Table(
        key=key,
        title=title(cells),
        columns=heads(columns),
        rows=rows(columns, cells, lambda cell: cell.id),
    )


_REPEATS: Columns[RecoveryTime] = (
    (
        Column("lost until A", "Of the overload.", "frames"),
        lambda time: count(time.overload_lost),
    ),
    (
        Column("lost after A", "Of the reduced load.", "frames"),
        lambda time: count(time.reduced_lost),
    ),
)


_INTERVALS_SHOWN = 10
"""To either side of the fall at least; a longer recovery has as much room again."""


def panel(cell: CellView) -> Panel:
    """The trial whose recovery took longest, around time stamp A."""
    recovery = cell.result.recovery if cell.result else None
    valid = [t for t in cell.trials if t.result.verdict.kind != "invalid"]
    if not valid or recovery is None:
        return Panel(cell)
    longest_ns = [
        max((t.value_ns for d in recovery.directions if (t := d.repeats[n])), default=0)
        for n in range(len(recovery.directions[0].repeats))
    ]
    trial = max(valid, key=lambda trial: longest_ns[trial.repeat - 1])
    around = _around(trial, recovery, longest_ns[trial.repeat - 1])
    fell = upright(recovery.overload_ns / 1e9)
    charts = (marked(chart, "recovery", around, [fell]) for chart in time_charts(trial))
    return Panel(cell, trial, tuple(charts))


def _around(
    trial: TrialRecord, recovery: Recovery, longest_ns: float
) -> tuple[float, float]:
    """What of the trial is shown, in seconds."""
    room_ns = _INTERVALS_SHOWN * trial.request.record.series_interval_ns
    begin_ns = max(0, recovery.overload_ns - room_ns)
    end_ns = recovery.overload_ns + max(room_ns, 2 * longest_ns)
    return begin_ns / 1e9, min(end_ns, trial.request.duration_ns) / 1e9


METHOD = Method(
    "system-recovery",
    OnStreams(measure_system_recovery),
    table=result_table,
    tables=tables,
    section=Section("recovery", panel),
)
