"""An outage (RFC 6201 4, RFC 2544 26.6): how long the device forwards nothing.

    plan       one load, and when something is to interrupt the device
    measure    a trial for each repeat, in which a hook or a person acts
    conclude   frames lost / offered rate, and the longest silence, of each direction

The engine sends whatever becomes of the device, so the frame-loss method of RFC 6201
1.3 is the result; the timestamp method stands beside it. Both are of the frames that
the device must forward, so the offered rate is theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dutperf.model.cell import Cell
from dutperf.model.specs import OutageSpec
from dutperf.procedures.cell_results import of_cell, of_repeats
from dutperf.procedures.conclusions import DELAY_LIMITS, search_findings
from dutperf.procedures.events import OnEvent
from dutperf.procedures.fixed_load import (
    Repeat,
    load_record,
    load_words,
    run_repeats,
    same_each_time,
    valid_results,
)
from dutperf.procedures.loss_criterion import own_drops
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.method import Method, OnStreams, Section
from dutperf.procedures.outage import show
from dutperf.procedures.trials import Ask, Trials
from dutperf.protocol.result_messages import (
    DirectionResult,
    Reason,
    TrialResult,
    Verdict,
)
from dutperf.results.bounds import averaged
from dutperf.results.details import Action, DirectionOutage, Outage, OutageTime
from dutperf.results.model import CellResult
from dutperf.results.rate_results import RepeatResult
from dutperf.results.trial_record import TrialRecord
from dutperf.results.units import duration
from dutperf.search import Resolution
from dutperf.standards import Deviation

_LINK = {"link_down", "link_changed"}
"""What an interruption may do to the tester's links; frames are sent nevertheless."""
_LOSSES = {"frames_lost", "frames_late"}


def measure_outage(runner: Trials, cell: Cell, load: MaxRate) -> CellResult:
    """Interrupt the device as often as the cell says; the result is the average.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    spec = cell.spec_of(OutageSpec)
    recorded = _Recorded(runner)
    ask = Ask(
        cell, load.rate_fps, rejudge=_judged, trigger_after_s=spec.trigger_after_s
    )
    repeats = run_repeats(recorded, ask, same_each_time)
    return _conclude(cell, load, repeats, recorded.of(repeats))


@dataclass
class _Recorded:
    """Trials whose records are kept: their hooks tell what was done meanwhile."""

    runner: Trials

    def __post_init__(self) -> None:
        self._records: list[TrialRecord] = []

    @property
    def on_event(self) -> OnEvent:
        return self.runner.on_event

    @property
    def finished(self) -> int:
        return self.runner.finished

    def run(self, ask: Ask) -> TrialRecord:
        self._records.append(self.runner.run(ask))
        return self._records[-1]

    def of(self, repeats: Sequence[Repeat]) -> list[TrialRecord]:
        """The last trial of each repeat."""
        ends = [0]
        for repeat in repeats:
            ends.append(ends[-1] + repeat.trials)
        return [self._records[end - 1] for end in ends[1:]]


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
        **of_repeats(told, found, beside=_remarks(told, actions, spec)),
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
            f"the hook returned, after {duration(took_ns, 3)}: it reset nothing"
            if actions
            else "nobody acted, or the device forwards all the while"
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


def _short_of(load: MaxRate) -> Iterator[Deviation]:
    """A load that is not the throughput; a given one is told already."""
    if load.shortfall:
        rule, actual = "a rate that reaches the throughput", load.shortfall
        told = f"at {load.rate_fps:,} fps, {actual}"
        yield Deviation("RFC 6201 4", rule, told, "text")


METHOD = Method(
    "outage",
    OnStreams(measure_outage),
    table=show.result_table,
    tables=show.tables,
    section=Section("outage", show.panel, "dutperf.procedures.outage"),
)
