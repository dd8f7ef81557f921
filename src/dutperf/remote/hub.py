"""The run's side of the scheduler: who is there, tickets out, messages in.

What comes is handed to the run's own thread, one batch of a worker at a time: the next
is fetched when that is answered, so little waits anywhere. All goes by the scheduler,
so a worker's host need not be reached from here.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import threading
import time
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from dutperf.errors import DutperfError, SetupError
from dutperf.remote.messages import GONE, Mail, Owner, Ticket, claim_of, envelopes_of
from dutperf.remote.security import (
    CONNECT_S,
    Call,
    Certificates,
    Hello,
    Line,
    Members,
    Reply,
    connect,
    no_scheduler,
)

T = TypeVar("T")
_LOOK_AGAIN_S = 1.0
_KEEP_ALIVE_S = 5.0
_SILENT_S = 60.0
"""A worker answers within seconds, also while it measures."""


@dataclass(frozen=True)
class Came:
    """A worker is there."""

    owner: Owner


@dataclass(frozen=True)
class Went:
    """A worker has gone, and what it was doing."""

    address: str


@dataclass(frozen=True)
class Refused:
    """A ticket came to nothing, by its key; ``why`` may be empty."""

    key: str
    why: str


Happening = Came | Went | Refused | Mail


class Hub(Protocol):
    """What a run asks of the scheduler; tests have another one."""

    def owners(self) -> list[Owner]:
        """All workers there are, at the begin; the others are told as they come."""
        ...

    def send(self, ticket: Ticket, to: str) -> None:
        """Have the worker at the address ``to`` measure it."""
        ...

    def take_back(self, key: str, address: str) -> None:
        """Nothing more is wanted of the ticket."""
        ...

    def next(self, timeout_s: float) -> Happening | None:
        """What happened; None: nothing did.

        Raises:
            SetupError: the scheduler has gone.
        """
        ...

    def answer(self, mail: Mail, answers: Mapping[int, str]) -> None:
        """Done with ``mail``; ``answers`` by the numbers of its envelopes."""
        ...

    def close(self) -> None:
        """All is over; what still measures is told to end."""
        ...


@dataclass
class SchedulerHub:
    """``Hub`` of the scheduler at ``address``; its loop runs in a thread of its own."""

    address: str
    certificates: Certificates
    run: str
    _happened: queue.SimpleQueue[Happening | SetupError] = field(
        default_factory=queue.SimpleQueue
    )
    _at: dict[str, str] = field(default_factory=dict)
    _answered: dict[str, asyncio.Future[dict[int, str]]] = field(default_factory=dict)
    _following: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _replies: dict[int, asyncio.Future[Reply]] = field(default_factory=dict)
    _loop: asyncio.AbstractEventLoop = field(init=False)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _line: Line | None = None
    _there: list[str] = field(default_factory=list)
    _begun: bool = False
    _foul: dict[str, str] = field(default_factory=dict)
    """Why a worker at an address is not listened to any more."""

    def owners(self) -> list[Owner]:
        """See ``Hub``.

        Raises:
            SetupError: no scheduler answers.
        """
        self._loop = asyncio.new_event_loop()
        self._turning = threading.Thread(target=self._turn, daemon=True)
        self._turning.start()
        found: list[Owner] = self._start(self._begin()).result()
        return found

    def send(self, ticket: Ticket, to: str) -> None:
        """See ``Hub``."""
        self._at[ticket.key] = to
        self._start(self._measured(ticket, to))

    def take_back(self, key: str, address: str) -> None:
        """See ``Hub``."""
        self._at.pop(key, None)
        self._start(self._stop(address, [key]))

    def next(self, timeout_s: float) -> Happening | None:
        """See ``Hub``."""
        try:
            happened = self._happened.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if isinstance(happened, SetupError):
            raise happened
        return happened

    def answer(self, mail: Mail, answers: Mapping[int, str]) -> None:
        """See ``Hub``."""

        def give() -> None:
            waiting = self._answered.pop(mail.worker, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(dict(answers))

        self._loop.call_soon_threadsafe(give)

    def close(self) -> None:
        """See ``Hub``."""
        with contextlib.suppress(TimeoutError):
            self._start(self._end()).result(CONNECT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._turning.join(CONNECT_S)

    def _turn(self) -> None:
        self._loop.run_forever()
        self._loop.close()

    def _start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    async def _begin(self) -> list[Owner]:
        hello = Hello(name=self.run)
        self._line = await connect(self.address, self.certificates, hello)
        first = await self._line.receive()
        self._there = first.workers if isinstance(first, Members) else []
        self._reading = self._loop.create_task(self._read())
        found = await asyncio.gather(*map(self._owner, self._there))
        for owner in found:
            self._follow(owner.address, owner)
        self._begun = True
        self._look()
        return list(found)

    async def _read(self) -> None:
        """All that the scheduler says, until it has gone."""
        assert self._line  # noqa: S101 - see _begin
        try:
            while True:
                match await self._line.receive():
                    case Reply() as reply:
                        waiting = self._replies.pop(reply.number, None)
                        if waiting is not None and not waiting.done():
                            waiting.set_result(reply)
                    case Members(workers=workers):
                        self._there = workers
                        if self._begun:
                            self._look()
        except OSError:
            self._happened.put(
                SetupError(
                    f"the scheduler at {self.address} has gone",
                    f"start it again, and its workers find it: {self._again}",
                )
            )

    @property
    def _again(self) -> str:
        return no_scheduler(self.address, self.certificates).hint.partition(": ")[2]

    def _look(self) -> None:
        """Fetch from those that are there; forget those that are not."""
        for address in set(self._following) - set(self._there):
            self._following.pop(address).cancel()
            self._happened.put(Went(address))
        for address in self._there:
            if address not in self._following:
                self._follow(address, None)

    def _follow(self, address: str, owner: Owner | None) -> None:
        task = self._loop.create_task(self._meet_and_fetch(address, owner))
        self._following[address] = task

    async def _meet_and_fetch(self, address: str, owner: Owner | None) -> None:
        """As long as the worker is there; one that is silent may speak again."""
        while True:
            if owner is None:
                owner = await self._owner(address)
                self._happened.put(Came(owner))
            if owner.claim is None:
                return
            try:
                await self._fetch(address)
            except DutperfError as error:
                self._foul[address] = why = f"{error.message}\n{error.hint}"
                for key in [key for key, at in self._at.items() if at == address]:
                    self._happened.put(Refused(key, why))
                return
            except (OSError, TimeoutError):
                self._happened.put(Went(address))
                await asyncio.sleep(_LOOK_AGAIN_S)
                owner = None

    async def _owner(self, address: str) -> Owner:
        asked_s = time.time()
        try:
            text = await self._ask(address, "claim")
            claim = claim_of(text, f"the worker at {address}")
        except DutperfError as error:
            return Owner(address, None, trouble=f"{error.message}\n{error.hint}")
        except (OSError, TimeoutError):
            return Owner(address, None, trouble=f"the worker at {address} is silent")
        ahead_s = claim.time_s - (asked_s + time.time()) / 2
        return Owner(address, claim, ahead_s)

    async def _fetch(self, address: str) -> None:
        """One batch after the other."""
        answers: dict[int, str] = {}
        while True:
            text = await self._ask(address, "fetch", run=self.run, answers=answers)
            envelopes = envelopes_of(text, f"the worker at {address}")
            answers = await self._answers(address, Mail(address, envelopes))

    async def _answers(self, address: str, mail: Mail) -> dict[int, str]:
        """Of the run, which may be writing long results: the worker is told to wait."""
        if not mail.envelopes:
            return {}
        waiting = self._loop.create_future()
        self._answered[address] = waiting
        self._happened.put(mail)
        while not waiting.done():
            await asyncio.wait({waiting}, timeout=_KEEP_ALIVE_S)
            if not waiting.done():
                await self._ask(address, "alive", run=self.run)
        told: dict[int, str] = waiting.result()
        return told

    async def _measured(self, ticket: Ticket, to: str) -> None:
        try:
            text = ticket.model_dump_json()
            why = self._foul.get(to) or await self._ask(
                to, "measure", None, ticket=text
            )
        except OSError:  # it has gone, see _look
            return
        except DutperfError as error:
            why = f"{error.message}\n{error.hint}"
        if why:
            self._happened.put(Refused(ticket.key, "" if why == GONE else why))

    async def _ask(
        self,
        to: str,
        what: Literal["claim", "fetch", "alive", "stop", "measure"],
        timeout_s: float | None = _SILENT_S,
        **keys: Any,  # noqa: ANN401 - those of Call
    ) -> str:
        """Raises OSError or TimeoutError if the worker has gone, or says nothing."""
        assert self._line  # noqa: S101 - see _begin
        number = next(self._numbers)
        self._replies[number] = self._loop.create_future()
        try:
            self._line.send(Call(number=number, to=to, what=what, **keys))
            reply = await asyncio.wait_for(self._replies[number], timeout_s)
        finally:
            self._replies.pop(number, None)
        if reply.refused:
            raise ConnectionError(reply.refused)
        return reply.text

    async def _stop(self, address: str, keys: list[str]) -> None:
        with contextlib.suppress(OSError, TimeoutError):  # it has gone, so it has ended
            await self._ask(address, "stop", CONNECT_S, keys=keys)

    async def _end(self) -> None:
        for task in self._following.values():
            task.cancel()
        if self._line and not self._reading.done():
            at = list(self._at.items())
            await asyncio.gather(*(self._stop(address, [key]) for key, address in at))
        if self._line:
            await self._line.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for each in left:
            each.cancel()
        await asyncio.gather(*left, return_exceptions=True)
