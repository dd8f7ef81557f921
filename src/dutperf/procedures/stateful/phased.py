"""Trials on open connections (RFC 9693 4.7): phase 1 before each of them.

A procedure asks for its trials as ever. The device's table is emptied by the testbed's
hooks, phase 1 opens the connections and fills the tester's table, and what was asked
for is phase 2. If connections were missing in it, the device is not to blame for being
slow: the trial is invalid and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from dutperf import stats
from dutperf.config.phase2 import Timing, check_timing, timing_at, timing_of
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.specs import ConnectionRateSpec
from dutperf.model.stateful_keys import Stateful
from dutperf.procedures.events import OnEvent
from dutperf.procedures.fixed_load import unknown, unmeasured
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.stateful.connection_diagnosis import (
    Counting,
    expired_reasons,
    forgotten_reasons,
    lost_answers,
    phase1_reasons,
    unexpected_reasons,
)
from dutperf.procedures.stateful.establishing import (
    opened_by,
    opening,
    phase1,
    phase2,
    validation,
)
from dutperf.procedures.trials import Ask, DeviceTrials, Trials
from dutperf.protocol.result_messages import Reason, Verdict
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results.model import CellResult
from dutperf.results.trial_record import TrialRecord

_CHECKS = 2
"""What was lost once may be the device's own work after an overload, as asking for
neighbours whose answers it had dropped; what let a frame back once is there."""


def trials_of(cell: Cell, runner: DeviceTrials) -> Trials:
    """What runs the trials of ``cell``: ``runner`` itself, or phases by it."""
    timing = timing_of(cell)
    if cell.phase2 is None or timing is None:
        return runner
    return PhasedTrials(runner, cell.phase2, timing)


class PhasedTrials:
    """Each trial is phase 1 and phase 2; see ``Trials``.

    Args:
        runner: runs both, and a validation where answers were lost.
        stateful: the connections.
        timing: when phase 2 starts.
    """

    def __init__(
        self, runner: DeviceTrials, stateful: Stateful, timing: Timing
    ) -> None:
        self.finished = 0
        self._runner = runner
        self._stateful = stateful
        self._timing = timing
        self._failures = 0
        self._counting = Counting(runner)
        self._alive: list[tuple[int, int]] = []
        """Rate and duration of trials after which all connections were there."""

    @property
    def on_event(self) -> OnEvent:
        """The runner's."""
        return self._runner.on_event

    def run(self, ask: Ask) -> TrialRecord:
        """Both phases; the record of phase 2, or of what kept it from being run.

        Raises:
            EngineError, SetupError, InputError, JournalEndsError: see ``Trials``.
        """
        self.finished += 1
        record = self._once(ask)
        while record is None:
            record = self._once(ask)
        return record

    def _once(self, ask: Ask) -> TrialRecord | None:
        """None: the run ended between the trial and the check that it needs."""
        first = self._runner.opened(lambda: self._phase1(ask))
        reasons = phase1_reasons(first, self._stateful, self._timing)
        if reasons:
            self._failures += 1
            failed = {"load_fps": ask.rate_fps, "attempt": self._failures}
            return _invalid(first.model_copy(update=failed), reasons)
        self._failures = 0
        self._counting.compare(first, self._stateful)
        on_connections = partial(
            phase2,
            cell=ask.cell,
            stateful=self._stateful,
            timing=self._timing,
            opened_by=opened_by(first.request),
        )

        def shape(request: TrialRequest) -> TrialRequest:
            return on_connections(ask.shape(request) if ask.shape else request)

        record = self._runner.run(replace(ask, shape=shape, continues=True))
        beside = ask.cell.traffic.beside
        if ask.trigger_after_s is not None or (beside and beside.is_flood):
            return record  # what the device then forgets is part of what it does
        missing = self._missing(ask.cell, record)
        if missing is None:
            return None
        return _invalid(record, missing) if missing else record

    def _phase1(self, ask: Ask) -> TrialRecord:
        asked = Ask(
            _only(ask.cell, self._stateful.direction),
            self._timing.rate_fps,
            repeat=ask.repeat,
            shape=partial(phase1, cell=ask.cell, stateful=self._stateful),
            afterwards=self._counting.ask,
            role="phase1",
        )
        if self._stateful.transport == "udp":
            return self._runner.run(asked)
        syns = partial(opening, cell=ask.cell, stateful=self._stateful)
        asks = replace(asked, shape=syns, afterwards=None)
        opened = self._runner.opened(lambda: self._runner.run(asks))
        passed = opened.result.verdict.kind == "pass"
        if not passed or unexpected_reasons(opened, self._stateful):
            return opened
        learns = partial(
            phase1,
            cell=ask.cell,
            stateful=self._stateful,
            opened_by=opened.request.trial_id,
        )
        return self._runner.run(replace(asked, shape=learns, continues=True))

    def _missing(self, cell: Cell, record: TrialRecord) -> list[Reason] | None:
        """Whether the device forgot what the trial needed; None: that is not known."""
        if record.result.verdict.kind == "invalid":
            return []
        forgotten = forgotten_reasons(record, self._stateful, self._timing)
        if forgotten or record.result.verdict.kind == "pass":
            return forgotten
        if not lost_answers(record, self._stateful) or self._were_alive(record):
            return []
        if not self._runner.can_check():
            return None
        reasons: list[Reason] = []
        checks: list[TrialRecord] = []
        for _ in range(_CHECKS):
            checks.append(self._check(cell, record))
            reasons = expired_reasons(checks, self._stateful, self._timing)
            if not reasons:
                break
        if not reasons and checks[-1].result.verdict.kind != "invalid":
            self._alive.append((record.load_fps, record.request.duration_ns))
        return reasons

    def _check(self, cell: Cell, record: TrialRecord) -> TrialRecord:
        """Tries all connections at R, in the order of phase 1, so at the same age."""
        return self._runner.run(
            Ask(
                _only(cell, self._stateful.responder_direction),
                self._timing.rate_fps,
                repeat=record.repeat,
                shape=partial(
                    validation,
                    stateful=self._stateful,
                    opened_by=opened_by(record.request),
                ),
                continues=True,
                role="validation",
            )
        )

    def _were_alive(self, record: TrialRecord) -> bool:
        """After a trial as long, with as many frames that keep them alive or fewer."""
        return any(
            record.load_fps >= rate_fps and record.request.duration_ns <= duration_ns
            for rate_fps, duration_ns in self._alive
        )


def _only(cell: Cell, direction: str) -> Cell:
    return cell.model_copy(update={"direction": direction})


def _invalid(record: TrialRecord, reasons: list[Reason]) -> TrialRecord:
    """The record as the procedure gets it; the journal holds what was measured."""
    verdict = Verdict(kind="invalid", reasons=reasons)
    result = record.result.model_copy(update={"verdict": verdict})
    return record.model_copy(update={"result": result})


# How fast phase 1 opens connections: as given, or a share of the rate found before.
#
# What was found is a function of the earlier cell's result, so a run that is resumed
# comes to the same rate.


def with_phase1_rate(
    cell: Cell, limit: MaxRate, done: Sequence[CellResult]
) -> Cell | CellResult:
    """``cell`` with R as a number, if it was one that was to be found.

    Or, when there is none or it does not fit, the result: invalid, without a trial.
    """
    stateful = cell.phase2
    asked = stateful.rate_reference if stateful else None
    if stateful is None or asked is None:
        return cell
    source = next(r for r in done if r.id == cell.connection_cell)
    if source.verdict != "pass" or not source.median:
        return unmeasured(cell, limit, _no_rate(source))
    values = [r.value for r in source.repeats if r.value is not None]
    found = source.median
    if asked.percentile is not None:
        found = stats.percentile(values, asked.percentile)
    rate_fps = max(1, asked.of(found))
    try:
        check_timing(cell, stateful, timing_at(cell, stateful, rate_fps))
    except InputError as error:
        return unmeasured(cell, limit, _does_not_fit(rate_fps, error))
    ready = stateful.model_copy(update={"phase1_rate": rate_fps})
    return cell.model_copy(update={"stateful": ready})


def too_fast(cell: Cell, done: Sequence[CellResult]) -> Iterator[str]:
    """Whether R is not below the connection rate that was found, if one was."""
    rate_fps = cell.phase2.phase1_rate if cell.phase2 else None
    if not isinstance(rate_fps, int):
        return
    for source in done:
        if not source.median or source.bound or not _is_of(source, cell):
            continue
        if rate_fps > source.median:
            yield (
                f"{cell.id}: phase 1 at {rate_fps:,} fps is faster than the maximum "
                f"connection establishment rate, {source.median:,.0f} "
                f"({source.id}): it will lose frames; lower stateful.phase1_rate"
            )


def _is_of(source: CellResult, cell: Cell) -> bool:
    """Whether it is the rate of as many connections, opened in the same way."""
    wanted, known = cell.phase2, source.cell.stateful
    is_rate = isinstance(source.cell.spec, ConnectionRateSpec)
    if not is_rate or wanted is None or known is None:
        return False
    alike = ("connections", "initiator")
    same = all(getattr(known, key) == getattr(wanted, key) for key in alike)
    return same and source.cell.ip == cell.ip


def _no_rate(source: CellResult) -> Reason:
    return Reason(
        code="no_connection_rate",
        message=f"nothing was sent: {unknown(source, 'connection rate')}",
        hint=f"see why in {source.id}; or give phase1_rate in frames per second",
    )


def _does_not_fit(rate_fps: int, error: InputError) -> Reason:
    return Reason(
        code="no_connection_rate",
        message=f"nothing was sent: with phase 1 at {rate_fps:,} fps, {error.message}",
        hint=error.hint,
    )
