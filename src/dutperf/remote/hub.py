"""The run's side of the scheduler: who is there, tickets out, messages in.

All of Dask that a run needs. What comes is handed to the run's own thread, one batch of
a worker at a time: the next is fetched when that is answered, so little waits anywhere.
All goes by the scheduler, so a worker's host need not be reached from here.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from dutperf.errors import DutperfError, SetupError
from dutperf.remote.dask_setup import (
    CONNECT_S,
    load,
    no_scheduler,
    resource,
    workers_of,
)
from dutperf.remote.messages import Claim, Mail, Ticket, claim_of, envelopes_of
from dutperf.remote.security import Certificates
from dutperf.remote.task import GONE, measure_ticket

if TYPE_CHECKING:
    from distributed import Client

_LOOK_EVERY_S = 1.0
_KEEP_ALIVE_S = 5.0


@dataclass(frozen=True)
class Owner:
    """A worker: its claim, or why it cannot be used; ``ahead_s``: of its clock."""

    address: str
    claim: Claim | None
    ahead_s: float = 0.0
    trouble: str = ""

    @property
    def shown(self) -> str:
        """For messages."""
        return f"{self.claim.host} ({self.address})" if self.claim else self.address


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
class DaskHub:
    """``Hub`` of the scheduler at ``address``."""

    address: str
    certificates: Certificates
    run: str
    _happened: queue.SimpleQueue[Happening | SetupError] = field(
        default_factory=queue.SimpleQueue
    )
    _tasks: dict[str, Any] = field(default_factory=dict)
    _at: dict[str, str] = field(default_factory=dict)
    _answered: dict[str, asyncio.Future[dict[str, str]]] = field(default_factory=dict)
    _fetching: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _looking: Future[None] | None = None
    _client: Client | None = None
    _gone: bool = False

    def owners(self) -> list[Owner]:
        """See ``Hub``.

        Raises:
            SetupError: no scheduler answers.
        """
        load()
        from distributed import Client  # noqa: PLC0415 - see load

        asyncio.run(workers_of(self.address, self.certificates))
        try:
            self._client = Client(
                self.address,
                security=self.certificates.security(),
                timeout=CONNECT_S,
                set_as_default=False,
                name=f"dutperf-{self.run}",
            )
        except (OSError, TimeoutError) as error:
            raise no_scheduler(self.address, self.certificates) from error
        found: list[Owner] = self._call(self._look())
        self._looking = self._start(self._keep_looking())
        return found

    def send(self, ticket: Ticket, to: str) -> None:
        """See ``Hub``."""
        future = self._there.submit(
            measure_ticket,
            ticket.model_dump_json(),
            key=ticket.key,
            resources={resource(ticket.testbed): 1},
            workers=[to],
            allow_other_workers=False,
            pure=False,
        )
        key = ticket.key
        self._tasks[key], self._at[key] = future, to
        future.add_done_callback(lambda done: self._done(key, done))

    def take_back(self, key: str, address: str) -> None:
        """See ``Hub``."""
        future = self._tasks.pop(key, None)
        self._at.pop(key, None)
        if future is not None:
            with contextlib.suppress(Exception):  # Dask's own, of any kind
                future.cancel(force=True)
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
        told = {str(number): text for number, text in answers.items()}

        def give() -> None:
            waiting = self._answered.pop(mail.worker, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(told)

        self._loop.call_soon_threadsafe(give)

    def close(self) -> None:
        """See ``Hub``."""
        if self._client is None:
            return
        with contextlib.suppress(Exception):  # it may have gone, in any of Dask's ways
            self._call(self._stop_all(), CONNECT_S)
        with contextlib.suppress(Exception):
            self._client.close(timeout=1 if self._gone else CONNECT_S)

    @property
    def _there(self) -> Client:
        assert self._client is not None  # noqa: S101 - owners() comes first
        return self._client

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        loop: asyncio.AbstractEventLoop = self._there.loop.asyncio_loop  # type: ignore[union-attr]
        return loop

    def _call(self, coroutine: Any, timeout_s: float | None = None) -> Any:  # noqa: ANN401
        return self._start(coroutine).result(timeout_s)

    def _start(self, coroutine: Any) -> Future[Any]:  # noqa: ANN401
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _done(self, key: str, future: Any) -> None:  # noqa: ANN401
        """In a thread of Dask's: a task that came to an end, or to nothing."""
        if future.status == "finished":
            why = future.result()
            if why:
                self._happened.put(Refused(key, "" if why == GONE else why))
        elif future.status == "error" and key in self._tasks:
            self._happened.put(Refused(key, ""))

    async def _keep_looking(self) -> None:
        """Tell who comes and goes, until the scheduler has gone."""
        try:
            while True:
                await asyncio.sleep(_LOOK_EVERY_S)
                await self._look(tell=True)
        except asyncio.CancelledError:
            raise
        except Exception:  # noqa: BLE001 - Dask's own, of any kind
            self._gone = True
            self._happened.put(
                SetupError(
                    f"the scheduler at {self.address} has gone",
                    f"start it again, and its workers find it: {self._again}",
                )
            )

    @property
    def _again(self) -> str:
        return no_scheduler(self.address, self.certificates).hint.partition(": ")[2]

    async def _look(self, *, tell: bool = False) -> list[Owner]:
        """Fetch from those that are there; forget those that are not."""
        scheduler = self._there.scheduler
        told = await asyncio.wait_for(scheduler.identity(n_workers=-1), 30)  # type: ignore[union-attr]
        there = [
            address
            for address, worker in told["workers"].items()
            if any(name.startswith(resource("")) for name in worker["resources"])
        ]
        for address in set(self._fetching) - set(there):
            self._fetching.pop(address).cancel()
            self._happened.put(Went(address))
        came = [address for address in there if address not in self._fetching]
        found = await asyncio.gather(*(self._owner(address) for address in came))
        for owner in found:
            task = asyncio.ensure_future(self._fetch(owner.address))
            self._fetching[owner.address] = task
            if tell:
                self._happened.put(Came(owner))
        return list(found)

    async def _owner(self, address: str) -> Owner:
        asked_s = time.time()
        try:
            text = await self._to(address, op="dutperf_claim")
            claim = claim_of(text, f"the worker at {address}")
        except DutperfError as error:
            return Owner(address, None, trouble=f"{error.message}\n{error.hint}")
        except Exception:  # noqa: BLE001 - Dask's own, of any kind
            return Owner(address, None, trouble=f"the worker at {address} is silent")
        ahead_s = claim.time_s - (asked_s + time.time()) / 2
        return Owner(address, claim, ahead_s)

    async def _fetch(self, address: str) -> None:
        """One batch after the other, as long as the worker is there."""
        answers: dict[str, str] = {}
        while True:
            try:
                text = await self._to(
                    address, op="dutperf_fetch", run=self.run, answers=answers
                )
                envelopes = envelopes_of(text, f"the worker at {address}")
            except DutperfError as error:
                self._happened.put(SetupError(error.message, error.hint))
                return
            except Exception:  # noqa: BLE001 - of any kind: it has gone, see _look
                self._happened.put(Went(address))
                await asyncio.sleep(_LOOK_EVERY_S)
                self._fetching.pop(address, None)
                return
            answers = await self._answers(address, Mail(address, envelopes))

    async def _answers(self, address: str, mail: Mail) -> dict[str, str]:
        """Of the run, which may be writing long results: the worker is told to wait."""
        if not mail.envelopes:
            return {}
        waiting = asyncio.get_running_loop().create_future()
        self._answered[address] = waiting
        self._happened.put(mail)
        while not waiting.done():
            await asyncio.wait({waiting}, timeout=_KEEP_ALIVE_S)
            if not waiting.done():
                with contextlib.suppress(Exception):  # it is fetched from again
                    await self._to(address, op="dutperf_alive", run=self.run)
        told: dict[str, str] = waiting.result()
        return told

    async def _to(self, address: str, **message: Any) -> Any:  # noqa: ANN401
        return await self._there.scheduler.proxy(worker=address, msg=message)  # type: ignore[union-attr]

    async def _stop(self, address: str, keys: list[str]) -> None:
        with contextlib.suppress(Exception):  # it has gone, so it has ended
            await self._to(address, op="dutperf_stop", keys=keys)

    async def _stop_all(self) -> None:
        if self._looking:
            self._looking.cancel()
        for task in self._fetching.values():
            task.cancel()
        for key, address in () if self._gone else self._at.items():
            await self._stop(address, [key])
