"""Measures at testbeds of many hosts at once: an ``Executor`` by way of a scheduler.

Each testbed's jobs are one ticket. Trials are numbered and stored here, one after the
other as they come, before the worker that measured one goes on. A worker that goes
costs what it was measuring: the ticket is sent again, and begins with what is stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dutperf.errors import DutperfError, InputError, SetupError
from dutperf.model.cell import Cell
from dutperf.procedures.events import (
    At,
    CellMeasured,
    CellStarted,
    Event,
    IntervalNarrowed,
    Notice,
    OnEvent,
    TestbedStarted,
    TestbedState,
    TrialFinished,
    TrialMoved,
    TrialStarted,
)
from dutperf.remote.hub import Came, Hub, Refused, Went
from dutperf.remote.messages import (
    Begun,
    Ended,
    Finished,
    Known,
    Mail,
    Message,
    Moved,
    Narrowed,
    Numbered,
    OnCell,
    OnResult,
    OnTrial,
    Owner,
    Place,
    TestbedOpened,
    Ticket,
    Told,
    WorkerFailure,
    nobody_owns,
    place_for,
)
from dutperf.results import Environment, ResultsDirectory, TrialRecord
from dutperf.results.storage import write_atomically
from dutperf.run import Job, OnOutcome
from dutperf.run.local_executor import Surroundings, Visit, joined, visits_of

PATIENCE_S = 600.0
"""How long a testbed whose worker has gone is waited for."""
_MOST_ATTEMPTS = 20
_TOO_FAR_S = 2.0
"""Between two clocks: NTP keeps them closer than a tenth of that."""


@dataclass
class _Stay:
    """A testbed's visit, and where it is measured at this moment."""

    visit: Visit
    place: Place | None = None
    key: str = ""
    attempts: int = 0
    missed_since_s: float | None = None
    told: set[str] = field(default_factory=set)
    number: int = 0
    """Of its trial that runs."""

    @property
    def name(self) -> str:
        return self.visit.planned.name


@dataclass
class RemoteExecutor:
    """An ``Executor``; its journal is that of the results directory.

    run: the name of the run among those of the scheduler.
    patience_s: how long to wait for a worker that has gone.
    """

    hub: Hub
    around: Surroundings
    directory: ResultsDirectory
    on_event: OnEvent
    run_name: str
    patience_s: float = PATIENCE_S
    clock: Callable[[], float] = time.monotonic
    _owners: dict[str, Owner] = field(default_factory=dict)
    _open: dict[str, _Stay] = field(default_factory=dict)
    _failed: dict[str, DutperfError] = field(default_factory=dict)

    def run(self, jobs: Sequence[Job], on_outcome: OnOutcome) -> None:
        """See ``Executor``.

        Raises:
            InputError: the journal is of another run; or not every testbed has a
                worker that can measure there. Nothing was sent.
            SetupError: the scheduler is not there, or went.
        """
        if any(job.cell.grows for job in jobs):
            raise InputError(
                "on many hosts a sweep cannot be refined: each is told beforehand what "
                "it measures",
                "set sweep.refine to 0, or run it on one host",
            )
        visits = visits_of(jobs, self.around, self.directory, self.on_event)
        known = [visit.answer_from_journal() for visit in visits]
        self._cells = {job.cell.id: job.cell for job in jobs}
        self._on_outcome = on_outcome
        for visit, results in zip(visits, known, strict=True):
            if results is not None:
                visit.measure(on_outcome, results)
        left = [v for v, results in zip(visits, known, strict=True) if results is None]
        if left:
            self._measure(left, alone=len(visits) == 1)

    def _measure(self, visits: Sequence[Visit], *, alone: bool) -> None:
        try:
            self._meet(self.hub.owners())
            self._open = {visit.planned.name: _Stay(visit) for visit in visits}
            for stay in self._open.values():
                if self._place(stay) is None:
                    raise nobody_owns(stay.visit.planned, list(self._owners.values()))
            self._assign()
            while self._open:
                self._happened(self.hub.next(1.0))
                self._assign()
        finally:
            self.hub.close()
        if self._failed:
            raise next(iter(self._failed.values())) if alone else joined(self._failed)

    def _meet(self, owners: Sequence[Owner]) -> None:
        for owner in owners:
            self._owners[owner.address] = owner
            if owner.trouble:
                self.on_event(Notice(owner.trouble.partition("\n")[0]))
            elif abs(owner.ahead_s) > _TOO_FAR_S:
                way = "ahead of" if owner.ahead_s > 0 else "behind"
                self.on_event(
                    Notice(
                        f"the clock of {owner.shown} is {_span(abs(owner.ahead_s))} "
                        f"{way} this machine's: both times are stored with each trial; "
                        "have NTP set them"
                    )
                )

    def _place(self, stay: _Stay) -> Place | None:
        return place_for(stay.visit.planned, self._owners.values())

    def _assign(self) -> None:
        """Send each ticket that is nowhere to where it can be measured."""
        for stay in list(self._open.values()):
            if stay.place is not None:
                continue
            try:
                place = self._place(stay)
            except InputError as error:
                self._give_up(stay, error)
                continue
            if place is None:
                self._miss(stay)
            else:
                self._send(stay, place)

    def _send(self, stay: _Stay, place: Place) -> None:
        stay.place, stay.missed_since_s = place, None
        stay.attempts += 1
        stay.key = f"dutperf-{self.run_name}-{stay.name}-{stay.attempts}"
        if place.stands_in:
            self.on_event(
                Notice(
                    f"{stay.name}: measured at {place.testbed}, which is equal to it"
                )
            )
        ticket = Ticket(
            run=self.run_name,
            key=stay.key,
            testbed=place.testbed,
            stands_in=place.testbed if place.stands_in else None,
            before=stay.visit.before,
            count=stay.visit.count,
            jobs=list(stay.visit.jobs),
        )
        self.hub.send(ticket, place.owner.address)
        self._state(stay, "queued")

    def _state(self, stay: _Stay, state: str) -> None:
        self.on_event(At(stay.name, TestbedState(state)))

    def _miss(self, stay: _Stay) -> None:
        now_s = self.clock()
        if stay.missed_since_s is None:
            stay.missed_since_s = now_s
            self._state(stay, "away")
            self.on_event(
                Notice(
                    f"{stay.name}: its worker has gone; waiting for it to come back, "
                    f"up to {_span(self.patience_s)}"
                )
            )
        elif now_s - stay.missed_since_s > self.patience_s:
            waited = _span(self.patience_s)
            error = SetupError(
                f"its worker has gone, and did not come back within {waited}",
                "start it again on the testbed's host",
            )
            self._give_up(stay, error)

    def _give_up(self, stay: _Stay, error: DutperfError) -> None:
        del self._open[stay.name]
        self._failed[stay.name] = error
        self._state(stay, "failed")
        stay.visit.give_up(self._on_outcome, error)

    def _happened(self, happened: object) -> None:
        match happened:
            case Came(owner):
                self._meet([owner])
            case Went(address):
                self._went(address)
            case Refused(key, why):
                self._refused(key, why)
            case Mail():
                self.hub.answer(happened, dict(self._answers(happened)))

    def _went(self, address: str) -> None:
        owner = self._owners.pop(address, None)
        for stay in self._open.values():
            if stay.place and stay.place.owner.address == address:
                self._again(stay)
        if owner and owner.claim and any(s.place is None for s in self._open.values()):
            self.on_event(Notice(f"the worker on {owner.shown} has gone"))

    def _again(self, stay: _Stay) -> None:
        """What it was measuring is lost, what is stored is not."""
        assert stay.place  # noqa: S101 - it was sent there
        self.hub.take_back(stay.key, stay.place.owner.address)
        stay.place = None

    def _refused(self, key: str, why: str) -> None:
        stay = self._by_key(key)
        if stay is None or stay.place is None:
            return
        if not why and stay.attempts < _MOST_ATTEMPTS:
            self._again(stay)  # the worker died under it, or its run seemed to
            return
        why = why or "it failed too often\nsee the worker's machine"
        message, _, hint = why.partition("\n")
        shown = stay.place.owner.shown
        self._give_up(stay, InputError(f"the worker on {shown}: {message}", hint))

    def _by_key(self, key: str) -> _Stay | None:
        return next((s for s in self._open.values() if s.key == key), None)

    def _answers(self, mail: Mail) -> Iterator[tuple[int, str]]:
        finished: list[tuple[int, _Stay, TrialRecord]] = []
        for envelope in mail.envelopes:
            number, message = envelope.number, envelope.message
            stay = self._by_key(envelope.key)
            if stay and stay.place is None:
                stay = None
            if stay and not _may_say(stay, mail.worker, message):
                self._foul(stay, mail.worker)
                stay = None
            if stay and isinstance(message, Finished):
                finished.append((number, stay, message.record))
                continue  # nothing of it follows before the answer
            answer = self._taken(stay, message)
            if answer:
                yield number, answer
        if finished:
            yield from self._stored(finished)

    def _foul(self, stay: _Stay, worker: str) -> None:
        """Only its own testbed suffers from a worker that tells of what is not its."""
        owner = self._owners.get(worker)
        error = InputError(
            f"the worker on {owner.shown if owner else worker} tells of test cases "
            "that it was not asked to measure",
            "see that host: its dutperf is not what it should be",
        )
        if stay.place and stay.place.owner.address == worker:
            self.hub.take_back(stay.key, worker)
            self._give_up(stay, error)
        else:
            self.on_event(Notice(error.message))

    def _taken(self, stay: _Stay | None, message: Message) -> str:
        """Do what a message says; the answer to it, if it waits for one."""
        if stay is None:  # an attempt that was given up
            match message:
                case Begun():
                    return Known(stop=True).model_dump_json()
                case Finished():
                    return Numbered(stop=True).model_dump_json()
            return ""
        match message:
            case Begun():
                return self._known(stay).model_dump_json()
            case TestbedOpened(environment=environment):
                self._keep(stay, environment)
            case OnResult(result=result) if result.id not in stay.told:
                stay.told.add(result.id)
                stay.visit.tell(self._on_outcome, result)
                self.on_event(At(stay.name, CellMeasured(result)))
            case Ended():
                self._ended(stay, message)
            case _:
                self._show(stay, message)
        return ""

    def _known(self, stay: _Stay) -> Known:
        records = self.directory.records
        stored = records.of(job.cell.id for job in stay.visit.jobs)
        if stay.visit.name and stay.attempts == 1:
            self.on_event(TestbedStarted(stay.name, len(stay.visit.jobs)))
        return Known(
            records=stored,
            environment=self.directory.environment(stay.visit.name),
            trials=len(records),
        )

    def _stored(
        self, finished: Sequence[tuple[int, _Stay, TrialRecord]]
    ) -> Iterator[tuple[int, str]]:
        """All that came at once are on disk before any of them is answered."""
        now = datetime.now(UTC).isoformat("T", "milliseconds")
        first = len(self.directory.records) + 1
        records = [
            record.model_copy(update={"number": first + n, "stored_at": now})
            for n, (_, _, record) in enumerate(finished)
        ]
        records = self.directory.append_all(records)
        for (number, stay, _), record in zip(finished, records, strict=True):
            self.on_event(At(stay.name, TrialFinished(record)))
            told = Numbered(number=record.number, stored_at=now)
            yield number, told.model_dump_json()

    def _keep(self, stay: _Stay, environment: Environment) -> None:
        assert stay.place  # noqa: S101 - it came from there
        if environment.clock_ahead_s is None:  # else it is of the part before this
            ahead_s = round(stay.place.owner.ahead_s, 3)
            update = {"clock_ahead_s": ahead_s}
            environment = environment.model_copy(update=update)
        self.directory.write_environment(environment)

    def _ended(self, stay: _Stay, message: Ended) -> None:
        if message.log:
            write_atomically(self.directory.engine_log(stay.visit.name), message.log)
        failure = message.failure
        if failure is None and len(stay.told) < len(stay.visit.jobs):
            failure = WorkerFailure(
                message="its worker ended before its test cases did", left=True
            )
        if failure is None:
            del self._open[stay.name]
            self._state(stay, "done")
        elif failure.left:
            self._again(stay)
        else:
            kind = (
                InputError if failure.exit_code == InputError.exit_code else SetupError
            )
            self._give_up(stay, kind(failure.message, failure.hint))

    def _show(self, stay: _Stay, message: Message) -> None:
        event = self._event(stay, message)
        if event is None:
            return
        self.on_event(event if isinstance(event, Notice) else At(stay.name, event))

    def _event(self, stay: _Stay, message: Message) -> Event | None:
        match message:
            case Told(text=text):
                return Notice(text)
            case OnCell(cell=cell, index=index, safe_fps=safe_fps):
                return CellStarted(self._cell(cell), index, stay.visit.count, safe_fps)
            case OnTrial():
                return TrialStarted(
                    len(self.directory.records) + 1,
                    message.cell,
                    message.repeat,
                    message.attempt,
                    message.rate_fps,
                    message.planned_s,
                )
            case Moved(progress=progress):
                return TrialMoved(progress)
            case Narrowed(lower_fps=lower, upper_fps=upper):
                return IntervalNarrowed(lower, upper)
        return None

    def _cell(self, name: str) -> Cell:
        return self._cells[name]


def _may_say(stay: _Stay, worker: str, message: Message) -> bool:
    """Whether it is of the testbed that ``worker`` was asked to measure."""
    if stay.place is None or stay.place.owner.address != worker:
        return False
    cells = [job.cell.id for job in stay.visit.jobs]
    match message:
        case Finished(record=record):
            return record.cell in cells and record.place in (stay.name, stay.visit.name)
        case OnResult(result=result):
            return result.id in cells
        case OnCell(cell=cell) | OnTrial(cell=cell):
            return cell in cells
        case TestbedOpened(environment=environment):
            return environment.place == stay.visit.name
    return True


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
