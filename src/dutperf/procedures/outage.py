"""An outage (RFC 6201 4, RFC 2544 26.6): how long the device forwards nothing.

    plan       one load, and when something is to interrupt the device
    measure    a trial for each repeat, in which a hook or a person acts
    conclude   frames lost / offered rate, and the longest silence, of each direction

The engine sends whatever becomes of the device, so the frame-loss method of RFC 6201
1.3 is the result; the timestamp method stands beside it. Both are of the frames that
the device must forward, so the offered rate is theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from statistics import fmean

from dutperf import stats
from dutperf.charts.cells import CellView
from dutperf.charts.chart import Chart, Figure, layout, line_trace
from dutperf.charts.time_charts import marked, time_charts, upright
from dutperf.model.cell import Cell
from dutperf.model.specs import OutageSpec
from dutperf.procedures.cell_results import of_cell, of_repeats
from dutperf.procedures.conclusions import DELAY_LIMITS, search_findings
from dutperf.procedures.fixed_load import (
    Recorded,
    Repeat,
    load_record,
    load_words,
    run_repeats,
    same_each_time,
    valid_results,
)
from dutperf.procedures.loss_criterion import own_drops
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.method import Method, OnStreams, Panel, Section
from dutperf.procedures.trials import Ask, Trials
from dutperf.protocol.result_messages import (
    DirectionResult,
    NamedConnection,
    Reason,
    TrialResult,
    Verdict,
)
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import units
from dutperf.results.bounds import averaged
from dutperf.results.details import (
    Action,
    ConnectionOutage,
    ConnectionTenth,
    DirectionOutage,
    LostConnection,
    Outage,
    OutageTime,
)
from dutperf.results.model import CellResult
from dutperf.results.rate_results import RepeatResult
from dutperf.results.trial_record import TrialRecord
from dutperf.search import Resolution
from dutperf.standards import Deviation
from dutperf.tables.result_tables import (
    ENDING,
    EXTREMES,
    TRAFFIC,
    TRIAL_TIME,
    of_directions,
    repeats_table,
    title,
)
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import (
    NONE,
    TIME_DIGITS,
    Column,
    Columns,
    Table,
    Value,
    count,
    duration,
    heads,
    rows,
)

_LINK = {"link_down", "link_changed"}
"""What an interruption may do to the tester's links; frames are sent nevertheless."""
_LOSSES = {"frames_lost", "frames_late"}
_BLOCKS = 512
"""Steps of the picture of how many connections are out."""


def measure_outage(runner: Trials, cell: Cell, load: MaxRate) -> CellResult:
    """Interrupt the device as often as the cell says; the result is the average.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    spec = cell.spec_of(OutageSpec)
    recorded = Recorded(runner)
    ask = Ask(
        cell,
        load.rate_fps,
        shape=_by_connection if spec.by_connection else None,
        rejudge=_judged,
        trigger_after_s=spec.trigger_after_s,
    )
    repeats = run_repeats(recorded, ask, same_each_time)
    return _conclude(cell, load, repeats, recorded.of(repeats))


def _by_connection(request: TrialRequest) -> TrialRequest:
    """``request`` as one that tells of each connection; phase 2 gives it these."""
    record = request.record.model_copy(update={"connection_blocks": _BLOCKS})
    return request.model_copy(update={"record": record})


def _judged(result: TrialResult, *, again: bool) -> TrialResult:  # noqa: ARG001 - a link is no reason, first or last
    """A link that went down with the device spoils nothing if all frames were sent."""
    verdict = result.verdict
    codes = {reason.code for reason in verdict.reasons}
    sent = all(s.sent == s.intended for d in result.directions for s in d.streams)
    if verdict.kind != "invalid" or not codes & _LINK or not sent:
        return result
    if not codes <= _LINK | _LOSSES:
        return result
    lost = any(s.lost for d in result.directions for s in d.streams)
    told = (
        Verdict(kind="fail", reasons=verdict.reasons) if lost else Verdict(kind="pass")
    )
    return result.model_copy(update={"verdict": told})


def _conclude(
    cell: Cell,
    load: MaxRate,
    repeats: Sequence[Repeat],
    records: Sequence[TrialRecord],
) -> CellResult:
    """The average; of two directions the one that is out for longer."""
    spec = cell.spec_of(OutageSpec)
    results = [repeat.result for repeat in repeats]
    valid = valid_results(repeats)
    names = [direction.name for direction in valid[0].directions] if valid else []
    directions = [
        DirectionOutage(
            direction=name,
            repeats=[
                _time_of(result, result.directions[place], spec) if result else None
                for result in results
            ],
            by_connection=[
                _connections_of(result, place, cell) if result else None
                for result in results
            ]
            if spec.by_connection
            else None,
        )
        for place, name in enumerate(names)
    ]
    told = [
        _told(repeat, [t for d in directions if (t := d.repeats[n])])
        for n, repeat in enumerate(repeats)
    ]
    actions = [action for record in records for action in _actions(record)]
    within = [t.within_ns for d in directions for t in d.repeats if t]
    found = averaged(told, max(within, default=0))
    return CellResult(
        **of_cell(cell, load, _short_of(load)),
        **of_repeats(
            told,
            found,
            beside=chain(_remarks(told, actions, spec), _of_connections(directions)),
        ),
        quantity=f"outage at {load_words(load)}, frames lost / offered rate "
        "(RFC 6201 1.3)",
        load=load_record(cell, load),
        outage=Outage(
            trigger_ns=round(spec.trigger_after_s * 1e9),
            actions=actions,
            within_ns=max(within),
            directions=directions,
        )
        if within
        else None,
        findings=search_findings(
            told,
            Resolution(Fraction(max(within, default=1)), relative=False),
            "outage",
            "ns",
            DELAY_LIMITS,
        ),
    )


def _time_of(
    result: TrialResult, direction: DirectionResult, spec: OutageSpec
) -> OutageTime:
    """By frames lost and by time stamps (RFC 6201 1.3)."""
    lost = sum(s.lost for s in direction.streams)
    shaded = sum(s.lost_in_shadow for s in direction.streams)
    each_ns = 1e9 / (direction.offered_rate_fps * _share(direction))
    # Of frames between which others stand, an outage meets one more or less.
    uneven_ns = 1e9 / direction.offered_rate_fps if direction.beside else 0
    doubtful = min(lost, shaded + own_drops(result, direction))
    runs = [s.longest_loss for s in direction.streams if s.longest_loss]
    longest = max(runs, key=lambda run: run.last_ns - run.begin_ns, default=None)
    last = [s.last_loss for s in direction.streams if s.last_loss]
    silence = direction.longest_silence
    silence_end_ns = round(spec.trial_duration_s * 1e9)
    if silence and silence.end_ns is not None:
        silence_end_ns = silence.end_ns
    return OutageTime(
        value_ns=lost * each_ns,
        within_ns=each_ns * (1 + doubtful) + uneven_ns + (direction.lag_ns.max or 0),
        bound="lower" if any(run.end_ns is None for run in last) else None,
        lost=lost,
        longest_lost=longest.frames if longest else 0,
        begin_ns=longest.begin_ns if longest else None,
        end_ns=longest.end_ns if longest else None,
        silence_ns=max(0, silence_end_ns - silence.begin_ns) if silence else None,
    )


def _connections_of(
    result: TrialResult, place: int, cell: Cell
) -> ConnectionOutage | None:
    """Of each connection by its own frames, which come a turn apart."""
    direction = result.directions[place]
    stream = direction.streams[0]
    told = stream.connections
    if told is None or cell.phase2 is None:
        return None
    frame_ns = cell.spec_of(OutageSpec).trial_duration_s * 1e9 / stream.intended
    turn_frames = cell.phase2.connections
    turn_ns = turn_frames * frame_ns
    asked = sum(connections for connections, _, _ in told.tenths)
    unclear = sum(count for _, highest, count in told.open_lost.buckets if highest == 1)
    learns = direction.name == cell.phase2.direction

    def longest_of(percent: int) -> float | None:
        buckets = told.back_lost.buckets
        if not buckets:
            return None
        return stats.histogram_percentile(buckets, percent) * turn_ns

    return ConnectionOutage(
        connections=asked,
        turn_ns=turn_ns,
        whole=asked - told.back_lost.count - told.open_lost.count,
        back=told.back_lost.count,
        died=told.open_lost.count - unclear,
        unclear=unclear,
        moved=result.table.changed if result.table and learns else None,
        median_ns=longest_of(50),
        p99_ns=longest_of(99),
        longest_ns=longest_of(100),
        last_back_ns=None if told.last_back is None else told.last_back * frame_ns,
        tenths=[
            ConnectionTenth(connections=connections, back=back, open=still)
            for connections, back, still in told.tenths
        ],
        named=[
            LostConnection(
                connection=each.connection,
                begin_ns=round(_first_lost(each, stream.sent, turn_frames) * frame_ns),
                ends=each.ends,
            )
            for each in told.named
            if each.lost > 1
        ],
        block_ns=told.block_frames * frame_ns,
        out=told.out,
    )


def _first_lost(lost: NamedConnection, sent: int, turn_frames: int) -> int:
    """The first frame of those that are missing at its end."""
    before_last = (sent - 1 - lost.connection) // turn_frames
    return lost.connection + (before_last + 1 - lost.lost) * turn_frames


def _share(direction: DirectionResult) -> float:
    """How many of the frames the device must forward."""
    own = sum(stream.sent for stream in direction.streams)
    return own / (own + (direction.beside.sent if direction.beside else 0))


def _actions(record: TrialRecord) -> Iterator[Action]:
    """What hooks did while frames were sent."""
    for run in record.hooks:
        if run.moment == "during_trial":
            yield Action(
                command=run.command,
                host=run.host,
                repeat=record.repeat,
                started_ns=None if run.after_s is None else round(run.after_s * 1e9),
                duration_ns=round(run.duration_s * 1e9),
            )


def _told(repeat: Repeat, times: Sequence[OutageTime]) -> RepeatResult:
    """The longer one of both directions."""
    longest = max(times, key=lambda time: time.value_ns, default=None)
    return RepeatResult(
        value=longest.value_ns if longest else None,
        verdict="pass" if longest else "invalid",
        bound="lower" if any(time.bound for time in times) else None,
        reasons=repeat.reasons,
        trials=repeat.trials,
    )


def _remarks(
    repeats: Sequence[RepeatResult], actions: Sequence[Action], spec: OutageSpec
) -> Iterator[Reason]:
    """That nothing was lost, or that the outage had not ended."""
    none = sum(repeat.value == 0 for repeat in repeats)
    if none:
        took_ns = max((action.duration_ns for action in actions), default=0)
        acted = (
            f"the hook returned, after {units.duration(took_ns, 3)}: it reset nothing"
            if actions
            else "no trigger fired, or forwarding was not interrupted"
        )
        yield Reason(
            code="no_outage",
            message=f"no outage seen in {none} of {len(repeats)} repeats: nothing was "
            f"lost; {acted}",
            hint="look whether the command does what it should, and when "
            "(trigger_after_s, trial_duration_s)",
        )
    still = sum(repeat.bound is not None for repeat in repeats)
    if still:
        yield Reason(
            code="frames_lost",
            message=f"the outage had not ended when the trial did, after "
            f"{spec.trial_duration_s:g} s, in {still} of {len(repeats)} repeats: it "
            "takes that long, or longer",
            hint="send for longer (--trial-duration)",
        )


def _of_connections(directions: Sequence[DirectionOutage]) -> Iterator[Reason]:
    """How many died, which was the first of them, and what cannot be told."""
    for direction in directions:
        found = [each for each in direction.by_connection or [] if each]
        died, unclear = (
            max((getattr(each, key) for each in found), default=0)
            for key in ("died", "unclear")
        )
        if died:
            worst = next(each for each in found if each.died == died)
            first = f": {_name(worst.named[0])}" if worst.named else ""
            yield Reason(
                code="connections_lost",
                message=f"{direction.direction}: {died:,} of {worst.connections:,} "
                f"connections were not back when the trial ended{first}"
                f"{' is the first of them' if first and died > 1 else ''}",
                hint="send for longer to see whether they come back (--trial-duration)",
            )
        if unclear:
            yield Reason(
                code="connections_lost",
                message=f"{direction.direction}: of {unclear:,} connections the last "
                "frame is missing, and none before it: nobody can tell whether they "
                "died",
                hint="send for longer (--trial-duration), or faster (--rate)",
            )


def _name(lost: LostConnection) -> str:
    number = f"connection {lost.connection:,}"
    if lost.ends is None:
        return number
    source, source_port, destination, port = lost.ends
    return f"{number}, {source} port {source_port} to {destination} port {port},"


def _short_of(load: MaxRate) -> Iterator[Deviation]:
    """A load that is not the throughput; a given one is told already."""
    if load.shortfall:
        rule, actual = "a rate that reaches the throughput", load.shortfall
        told = f"at {load.rate_fps:,} fps, {actual}"
        yield Deviation("RFC 6201 4", rule, told, "text")


# How it is shown: by frames lost and by time stamps (RFC 6201 1.3), and what was done.


def tables(cell: Subject) -> Iterator[Table]:
    """Each repeat, and what was done meanwhile."""
    if cell.result and cell.result.outage:
        what = Column("outage", "Frames lost / offered rate.", tone="strong")
        known = "How far it may be wrong."
        yield repeats_table(cell, what, known, _REPEATS, cell.result.outage.directions)
        yield action_table(cell)
        if any(each.by_connection for each in cell.result.outage.directions):
            yield _connection_table(cell)


def result_table(key: str, cells: Sequence[Subject]) -> Table:
    """A row for each cell (RFC 6201 1.4)."""
    repeated = any(cell.several for cell in cells)
    both = any(cell.bidirectional for cell in cells)
    columns: Columns[Subject] = (
        *TRAFFIC,
        *TRIAL_TIME,
        (
            Column("load", "What each direction sent.", "fps per direction", spared=7),
            lambda cell: count(cell.load_fps),
        ),
        (
            Column(
                f"outage{', average' if repeated else ''}",
                "Frames lost / offered rate (RFC 6201 1.3); of both directions the "
                "longer one.",
                tone="strong",
            ),
            lambda cell: cell.figure,
        ),
        (
            Column("known to", "How far it may be wrong.", spared=5),
            lambda cell: duration(cell.within_ns, TIME_DIGITS),
        ),
        (
            Column(
                "by time stamps",
                "The longest time without a frame (RFC 6201 1.3), average; of both "
                "directions the longer one.",
                spared=2,
            ),
            _silence,
        ),
        (
            Column("lost", "Average; of both directions the more.", "frames", 4),
            lambda cell: _most(cell, lambda time: time.lost, count),
        ),
        *(of_directions("Outage") if both else ()),
        *(EXTREMES[:2] if repeated else ()),
        *ENDING,
    )
    return Table(
        key=key,
        title=title(cells),
        columns=heads(columns),
        rows=rows(columns, cells, lambda cell: cell.id),
    )


def _directions(cell: Subject) -> Sequence[DirectionOutage]:
    outage = cell.result.outage if cell.result and cell.measured else None
    return outage.directions if outage else ()


def _times(direction: DirectionOutage) -> list[OutageTime]:
    return [time for time in direction.repeats if time]


def _most(
    cell: Subject,
    of: Callable[[OutageTime], float],
    shown: Callable[[float], Value],
) -> Value:
    """The larger average of both directions."""
    averages = [fmean(map(of, _times(d))) for d in _directions(cell) if _times(d)]
    return shown(max(averages)) if averages else NONE


def _silence(cell: Subject) -> Value:
    return _most(
        cell,
        lambda time: time.silence_ns or 0,
        lambda value_ns: duration(value_ns, TIME_DIGITS),
    )


_REPEATS: Columns[OutageTime] = (
    (
        Column("by time stamps", "The longest time without a frame."),
        lambda time: duration(time.silence_ns, TIME_DIGITS),
    ),
    (Column("lost", "In the whole trial.", "frames"), lambda time: count(time.lost)),
    (
        Column("in a row", "The longest run of lost frames.", "frames"),
        lambda time: count(time.longest_lost),
    ),
    (
        Column("began", "When the first of these was due, since the first frame."),
        lambda time: duration(time.begin_ns, 6),
    ),
)


def action_table(cell: Subject) -> Table:
    """What hooks did while frames were sent."""
    columns: Columns[Action] = (
        (Column("repeat", "Its number."), lambda each: count(each.repeat)),
        (
            Column("command", "Of the hook during_trial.", words=True),
            lambda each: " ".join(each.command),
        ),
        (
            Column("at", "Where it ran.", words=True),
            lambda each: each.host or "this machine",
        ),
        (
            Column("began", "Since the first frame was due."),
            lambda each: duration(each.started_ns, 6),
        ),
        (
            Column("took", "Until it returned."),
            lambda each: duration(each.duration_ns, TIME_DIGITS),
        ),
    )
    outage = cell.result.outage if cell.result else None
    return Table(
        key=f"actions-{cell.id}",
        title=f"{cell.id}: what was done meanwhile",
        columns=heads(columns),
        rows=rows(columns, outage.actions if outage else []),
        detail=True,
    )


@dataclass(frozen=True)
class _Connections:
    repeat: int
    direction: str
    found: ConnectionOutage


_CONNECTIONS: Columns[_Connections] = (
    (Column("repeat", "Its number."), lambda line: count(line.repeat)),
    (
        Column("direction", "In which the frames went.", words=True),
        lambda line: line.direction,
    ),
    (
        Column("connections", "Each has a frame in each turn."),
        lambda line: count(line.found.connections),
    ),
    (
        Column("turn", "To which an outage is known; a shorter one may not be seen."),
        lambda line: duration(line.found.turn_ns, TIME_DIGITS),
    ),
    (
        Column("back", "Lost frames, and were back when the trial ended."),
        lambda line: count(line.found.back),
    ),
    (
        Column("died", "Were not back when the trial ended.", tone="strong"),
        lambda line: count(line.found.died),
    ),
    (
        Column("unclear", "Only the last frame is missing: nobody can tell."),
        lambda line: count(line.found.unclear),
    ),
    (
        Column("moved", "Arrived with another four-tuple, counted each time."),
        lambda line: NONE if line.found.moved is None else count(line.found.moved),
    ),
    (
        Column("median", "Of the longest outages of those back."),
        lambda line: duration(line.found.median_ns, TIME_DIGITS),
    ),
    (
        Column("p99", "Of the same."),
        lambda line: duration(line.found.p99_ns, TIME_DIGITS),
    ),
    (
        Column("longest", "Of the same."),
        lambda line: duration(line.found.longest_ns, TIME_DIGITS),
    ),
    (
        Column("all back", "The last of those back, since the first frame was due."),
        lambda line: duration(line.found.last_back_ns, TIME_DIGITS),
    ),
    (
        Column(
            "died by age",
            "Of each tenth of the connections, in the order of opening.",
            words=True,
        ),
        lambda line: " ".join(f"{tenth.open:,}" for tenth in line.found.tenths),
    ),
)


def _connection_table(cell: Subject) -> Table:
    """What became of each connection."""
    lines = [
        _Connections(repeat, direction.direction, found)
        for direction in _directions(cell)
        for repeat, found in enumerate(direction.by_connection or [], 1)
        if found
    ]
    return Table(
        key=f"connections-{cell.id}",
        title=f"{cell.id}: what became of each connection",
        columns=heads(_CONNECTIONS),
        rows=rows(_CONNECTIONS, sorted(lines, key=lambda line: line.repeat)),
        detail=True,
    )


def _out_chart(trial: TrialRecord, direction: DirectionOutage) -> Chart | None:
    """How many connections had lost their last frame, over time."""
    found = direction.by_connection and direction.by_connection[trial.repeat - 1]
    if not found:
        return None
    times_s = [n * found.block_ns / 1e9 for n in range(len(found.out))]
    shares: list[float | None] = [
        round(100 * (1 - out / found.connections), 3) for out in found.out
    ]
    figure = layout(
        "since the first frame, s",
        "connections that pass, %",
        {"range": [0, trial.request.duration_ns / 1e9]},
        {"range": [-3, 103], "dtick": 25},
    )
    figure["height"] = 280
    name = f"{found.died:,} of {found.connections:,} died"
    return Chart(
        f"passing-{trial.number}-{direction.direction}",
        f"Connections that pass, {direction.direction}: {name}",
        [line_trace(0, name, times_s, shares) | {"mode": "lines"}],
        figure,
    )


def panel(cell: CellView) -> Panel:
    """The trial that was out for longest over time, and what was done meanwhile."""
    outage = cell.result.outage if cell.result else None
    valid = [t for t in cell.trials if t.result.verdict.kind != "invalid"]
    if not valid or outage is None:
        return Panel(cell)
    trial = max(valid, key=lambda trial: _longest_ns(outage, trial.repeat))
    around = 0.0, trial.request.duration_ns / 1e9
    charts = (
        marked(chart, "outage", around, list(_acts(outage, trial.repeat)))
        for chart in time_charts(trial)
    )
    passing = (_out_chart(trial, direction) for direction in outage.directions)
    return Panel(cell, trial, (*charts, *filter(None, passing)))


def _longest_ns(outage: Outage, repeat: int) -> float:
    times = [direction.repeats[repeat - 1] for direction in outage.directions]
    return max((time.value_ns for time in times if time), default=0)


def _acts(outage: Outage, repeat: int) -> Iterator[Figure]:
    """When each hook began and returned."""
    for action in outage.actions:
        if action.repeat == repeat and action.started_ns is not None:
            yield upright(action.started_ns / 1e9)
            yield upright((action.started_ns + action.duration_ns) / 1e9)


METHOD = Method(
    "outage",
    OnStreams(measure_outage),
    table=result_table,
    tables=tables,
    section=Section("outage", panel),
)
