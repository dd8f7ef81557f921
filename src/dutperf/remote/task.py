"""What a worker does with a ticket: it measures the jobs, and tells everything.

It is ordinary work of ``run``: the same visit of a testbed as on one machine, whose
store is elsewhere. What the run that sent the ticket has stored already is asked for
first, and taken from there, as in a run that is resumed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dutperf import lab
from dutperf.config import PlannedTestbed, Testbed
from dutperf.errors import DutperfError, InputError, defect
from dutperf.procedures.events import (
    CellStarted,
    Event,
    IntervalNarrowed,
    Notice,
    TrialMoved,
    TrialStarted,
)
from dutperf.remote.messages import (
    GONE,
    Begun,
    Claim,
    Ended,
    Envelope,
    Finished,
    Known,
    Message,
    Moved,
    Narrowed,
    Numbered,
    OnCell,
    OnResult,
    OnTrial,
    Owner,
    TestbedOpened,
    Ticket,
    Told,
    WorkerFailure,
    place_for,
    text_of,
    ticket_of,
)
from dutperf.results import Environment, NotMeasured, TrialRecord
from dutperf.results.journal import counting
from dutperf.run import Job, Outcome
from dutperf.run.local_executor import Surroundings, Visit

# A worker's side of the conversation: threads that measure tell, the run fetches.
#
# Each run fetches its messages and gives the answers to those before. Whoever waits for
# an answer of a run that has not been heard of for long is told that it has gone.


GONE_AFTER_S = 60.0
"""A run fetches every few seconds, also while it writes long results."""
_HOLD_S = 2.0
_MOST_WAITING = 1000
_MOST_AT_ONCE = 500


class RunGoneError(Exception):
    """The run wants no more of this ticket, or has gone; or the worker stops."""


@dataclass
class _Box:
    """What waits for one run; ``heard_s``: when it was last there."""

    heard_s: float
    waiting: deque[Envelope] = field(default_factory=deque)
    fetching: asyncio.Event = field(default_factory=asyncio.Event)


class Post:
    """One of a worker; ``use`` says in which loop ``fetch`` runs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Condition()
        self._boxes: dict[str, _Box] = {}
        self._answers: dict[int, str] = {}
        self._stopped: set[str] = set()
        self._number = 0
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def use(self, loop: asyncio.AbstractEventLoop) -> None:
        """Runs are answered in ``loop``."""
        self._loop = loop

    def open(self) -> None:
        """Begin again after ``close``: what was said before is for nobody."""
        with self._lock:
            self._closing = False
            self._boxes.clear()
            self._answers.clear()
            self._stopped.clear()

    def close(self) -> None:
        """The worker stops: so does what measures, at the next word it says."""
        with self._lock:
            self._closing = True
            self._lock.notify_all()

    def tell(self, run: str, key: str, message: Message) -> int:
        """Say something, without waiting; the number of its envelope.

        Raises:
            RunGoneError: nobody listens any more.
        """
        with self._lock:
            self._check(run, key)
            box = self._box(run)
            if isinstance(message, Moved) and len(box.waiting) > _MOST_WAITING:
                return 0
            self._number += 1
            box.waiting.append(Envelope(key=key, number=self._number, message=message))
            number = self._number
        if self._loop:
            self._loop.call_soon_threadsafe(box.fetching.set)
        return number

    def ask(self, run: str, key: str, message: Message) -> str:
        """Say something and wait for the answer.

        Raises:
            RunGoneError: none came for long, or none will.
        """
        number = self.tell(run, key, message)
        with self._lock:
            while number not in self._answers:
                self._check(run, key)
                self._lock.wait(1.0)
            return self._answers.pop(number)

    def stop(self, keys: list[str]) -> None:
        """Nothing more is wanted of these tickets."""
        with self._lock:
            self._stopped.update(keys)
            self._lock.notify_all()

    def forget(self, key: str) -> None:
        """A ticket has ended."""
        with self._lock:
            self._stopped.discard(key)

    def alive(self, run: str) -> None:
        """The run is there, and will fetch later."""
        with self._lock:
            self._box(run).heard_s = self._clock()

    async def fetch(self, run: str, answers: dict[int, str]) -> str:
        """Give ``answers`` by number; what was said since, after a while if nothing."""
        with self._lock:
            self._forget_long_gone()
            box = self._box(run)
            box.heard_s = self._clock()
            self._answers.update(answers)
            self._lock.notify_all()
        if not box.waiting:
            box.fetching.clear()
            try:
                await asyncio.wait_for(box.fetching.wait(), _HOLD_S)
            except TimeoutError:
                return "[]"
        with self._lock:
            count = min(len(box.waiting), _MOST_AT_ONCE)
            taken = [box.waiting.popleft() for _ in range(count)]
        return text_of(taken)

    def _box(self, run: str) -> _Box:
        return self._boxes.setdefault(run, _Box(self._clock()))

    def _forget_long_gone(self) -> None:
        earliest_s = self._clock() - 10 * GONE_AFTER_S
        self._boxes = {n: b for n, b in self._boxes.items() if b.heard_s > earliest_s}

    def _check(self, run: str, key: str) -> None:
        silent_s = self._clock() - self._box(run).heard_s
        if self._closing or key in self._stopped or silent_s > GONE_AFTER_S:
            raise RunGoneError


_LOG_BYTES = 200_000


@dataclass
class Workshop:
    """What a worker has: its testbeds, what is around them, and the post."""

    post: Post
    around: Surroundings
    testbeds: Sequence[Testbed]
    labs: Sequence[str]
    is_simulated: bool = False

    def __post_init__(self) -> None:
        names = [*(testbed.name for testbed in self.testbeds), *self.labs]
        self.held = {name: threading.Lock() for name in names}
        """Runs queue for a testbed."""

    def claim(self, time_s: float) -> Claim:
        """What it says of itself, at ``time_s`` since 1970."""
        return Claim(
            host=socket.gethostname(),
            is_root=os.geteuid() == 0,
            is_simulated=self.is_simulated,
            time_s=time_s,
            testbeds=list(self.testbeds),
            labs=list(self.labs),
        )


def measure_ticket(workshop: Workshop, text: str) -> str:
    """Measure the jobs of a ticket; all that comes of it is told by the post.

    The text that it returns is empty, or why nothing was measured, or ``GONE``.
    """
    try:
        ticket = ticket_of(text, "the run")
        _check_owned(workshop, ticket)
    except DutperfError as error:
        return f"{error.message}\n{error.hint}"
    with workshop.held[ticket.testbed]:
        return "" if _measure(workshop, ticket) else GONE


def _check_owned(workshop: Workshop, ticket: Ticket) -> None:
    """A run says what is measured, not where or what is executed there: that is ours.

    Raises:
        InputError: the testbed is another one than the worker's own file or lab says.
    """
    own = [Owner("here", workshop.claim(0.0))]
    for planned in (job.planned for job in ticket.jobs):
        place = place_for(planned, own)
        if place is None or (place.testbed, place.stands_in) != (
            ticket.testbed,
            ticket.stands_in is not None,
        ):
            raise InputError(f"it does not own {planned.name}", "see its --testbed")
        if planned.lab and _does(planned.testbed) != _does(
            planned.as_asked(lab.plan(planned.lab.name))
        ):
            raise InputError(
                f"the hooks of {planned.name} are not those of the lab",
                "install the same dutperf on all hosts",
            )


def _does(testbed: Testbed) -> tuple[object, ...]:
    """What a lab's testbed does on its machine beside frames."""
    return testbed.hooks, testbed.nat_log, testbed.power


def _measure(workshop: Workshop, ticket: Ticket) -> bool:
    """Whether the run heard of the end."""
    line = _Line(workshop.post, ticket)
    failure: WorkerFailure | None = None
    folder = Path(tempfile.mkdtemp(prefix="dutperf-worker-"))
    try:
        with suppress(RunGoneError):
            known = Known.model_validate_json(line.ask(Begun()))
            if known.stop:
                return True
            store = _Store(line, known, folder, ticket.stands_in)
            _visit(workshop, ticket, store, line)
    except KeyboardInterrupt:  # the run has gone, see _Line: all ends as by Ctrl-C
        failure = WorkerFailure(message="its worker was stopped", left=True)
    except DutperfError as error:
        failure = WorkerFailure(
            message=error.message, hint=error.hint, exit_code=error.exit_code
        )
    except Exception as error:  # noqa: BLE001 - told to the run as what it is
        found = defect(error, None)
        failure = WorkerFailure(message=found.message, hint=found.hint)
    finally:
        log = _log(folder)
        shutil.rmtree(folder, ignore_errors=True)
    try:
        line.tell(Ended(failure=failure, log=log))
    except RunGoneError:
        return False
    finally:
        workshop.post.forget(ticket.key)
    return True


def _visit(workshop: Workshop, ticket: Ticket, store: _Store, line: _Line) -> None:
    visit = Visit(
        workshop.around,
        store,
        line.on_event,
        _jobs(workshop, ticket),
        ticket.before,
        ticket.count,
    )
    visit.measure(line.on_outcome, visit.answer_from_journal())


def _jobs(workshop: Workshop, ticket: Ticket) -> list[Job]:
    """At an equal testbed as if it were theirs."""
    if ticket.stands_in is None:
        return ticket.jobs
    used = next(t for t in workshop.testbeds if t.name == ticket.testbed)
    planned = [standing_in(used, job.planned) for job in ticket.jobs]
    return [
        job.model_copy(update={"planned": at})
        for job, at in zip(ticket.jobs, planned, strict=True)
    ]


def standing_in(used: Testbed, planned: PlannedTestbed) -> PlannedTestbed:
    """``used`` under the name of the testbed that it stands in for."""
    told = ", ".join(filter(None, [used.description, f"in place of {planned.name}"]))
    named = {"name": planned.testbed.name, "description": told, "equal_to": None}
    return PlannedTestbed(testbed=used.model_copy(update=named))


def _log(folder: Path) -> str:
    for log in folder.iterdir():
        with suppress(OSError):
            return log.read_bytes()[-_LOG_BYTES:].decode(errors="replace")
    return ""


class _Line:
    """What one ticket has to say."""

    def __init__(self, post: Post, ticket: Ticket) -> None:
        self._post, self._ticket = post, ticket

    def tell(self, message: Message) -> None:
        self._post.tell(self._ticket.run, self._ticket.key, message)

    def ask(self, message: Message) -> str:
        return self._post.ask(self._ticket.run, self._ticket.key, message)

    def on_outcome(self, outcome: Outcome) -> None:
        """Tell a result; see ``on_event``."""
        if not isinstance(outcome, NotMeasured):
            self._say(OnResult(result=outcome))

    def on_event(self, event: Event) -> None:
        """What the run cannot know by itself.

        Raises:
            KeyboardInterrupt: the run has gone.
        """
        message = _message(event)
        if message is not None:
            self._say(message)

    def _say(self, message: Message) -> None:
        try:
            self.tell(message)
        except RunGoneError:
            raise KeyboardInterrupt from None


def _message(event: Event) -> Message | None:
    match event:
        case Notice(text):
            return Told(text=text)
        case CellStarted(cell, index, _, safe_fps):
            return OnCell(cell=cell.id, index=index, safe_fps=safe_fps)
        case TrialStarted(_, cell, repeat, attempt, rate_fps, planned_s):
            return OnTrial(
                cell=cell,
                repeat=repeat,
                attempt=attempt,
                rate_fps=rate_fps,
                planned_s=planned_s,
            )
        case TrialMoved(progress):
            return Moved(progress=progress)
        case IntervalNarrowed(lower_fps, upper_fps):
            return Narrowed(lower_fps=lower_fps, upper_fps=upper_fps)
    return None


class _Trials:
    """``Trials``: those of one testbed; how many there are is known of the whole run.

    Only its last cell is kept: earlier ones have their results.
    """

    def __init__(self, known: Known) -> None:
        self._of_cell: dict[str, list[TrialRecord]] = {}
        self._count = known.trials
        for record in known.records:
            self._of_cell.setdefault(record.cell, []).append(record)

    @property
    def cells(self) -> Collection[str]:
        return self._of_cell.keys()

    def of(self, cells: Iterable[str]) -> list[TrialRecord]:
        found = [r for cell in cells for r in self._of_cell.get(cell, ())]
        return counting(sorted(found, key=lambda record: record.number))

    def add(self, record: TrialRecord) -> None:
        if record.cell not in self._of_cell:
            self._of_cell.clear()
        self._of_cell.setdefault(record.cell, []).append(record)
        self._count = record.number

    def __len__(self) -> int:
        return self._count


class _Store:
    """A ``RunStore`` whose files are where the run is."""

    def __init__(
        self, line: _Line, known: Known, folder: Path, stands_in: str | None
    ) -> None:
        self.stands_in = stands_in
        self._line, self._folder = line, folder
        self._records = _Trials(known)
        self._environment = known.environment

    @property
    def records(self) -> _Trials:
        return self._records

    def environment(self, _testbed: str | None) -> Environment | None:
        return self._environment

    def write_environment(self, env: Environment) -> None:
        self._environment = env
        self._line.tell(TestbedOpened(environment=env))

    def engine_log(self, _testbed: str | None) -> Path:
        return self._folder / "engine.log"

    def append(self, record: TrialRecord) -> TrialRecord:
        """Raises KeyboardInterrupt if the run has gone, and cannot store it."""
        record = record.model_copy(update={"stands_in": self.stands_in})
        try:
            answer = self._line.ask(Finished(record=record))
        except RunGoneError:
            raise KeyboardInterrupt from None
        stored = Numbered.model_validate_json(answer)
        if stored.stop:
            raise KeyboardInterrupt
        update = {"number": stored.number, "stored_at": stored.stored_at}
        record = record.model_copy(update=update)
        self._records.add(record)
        return record
