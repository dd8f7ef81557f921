"""``dutperf worker``: a Dask worker that owns testbeds and measures at them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dutperf import busy
from dutperf.errors import InputError, SetupError
from dutperf.remote.dask_setup import (
    CONNECT_S,
    load,
    no_scheduler,
    resource,
    workers_of,
)
from dutperf.remote.messages import Claim
from dutperf.remote.security import Certificates
from dutperf.remote.task import Workshop, set_up

if TYPE_CHECKING:
    from distributed import Worker

_AGAIN_S = 2.0
_LOOK_EVERY_S = 0.2
_LAST_WORDS_S = 30.0
_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Host:
    """This one, as a worker of the scheduler at ``address``.

    ``notify`` is told what a user should know.
    """

    address: str
    certificates: Certificates
    workshop: Workshop
    notify: Callable[[str], None]
    is_simulated: bool = False

    def serve(self) -> None:
        """Measure what comes, until a signal ends it; a scheduler may come again.

        Raises:
            SetupError: there is no scheduler to begin with.
            InputError: another worker owns a testbed of this one.
        """
        self._dask_version = load()
        set_up(self.workshop)
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for signum in _END:
            loop.add_signal_handler(signum, ended.set)
        await self._check_unclaimed()
        while not ended.is_set():
            await self._connected(ended)
            if ended.is_set():
                break
            self.notify(f"the scheduler at {self.address} has gone; waiting for it")
            await self._until_it_is_back(ended)

    async def _connected(self, ended: asyncio.Event) -> None:
        """Work for the scheduler until it has gone, or ``ended``."""
        from distributed.core import Status  # noqa: PLC0415 - see load

        self.workshop.post.use(asyncio.get_running_loop())
        self.workshop.post.open()
        busy.give_up_waiting(now=False)
        folder = tempfile.mkdtemp(prefix="dutperf-dask-")
        worker = self._worker(folder)
        try:
            try:
                await asyncio.wait_for(worker, CONNECT_S)
            except (OSError, TimeoutError, RuntimeError, ValueError) as error:
                raise no_scheduler(self.address, self.certificates) from error
            await self._check_unclaimed(worker.address)
            owned = ", ".join(self.workshop.held)
            self.notify(f"connected to {self.address}; owns {owned}")
            while worker.status is Status.running and not ended.is_set():
                await _passed(ended, _LOOK_EVERY_S)
            await self._last_words()
        finally:
            with contextlib.suppress(OSError, TimeoutError, RuntimeError):
                await worker.close(timeout=5)
            shutil.rmtree(folder, ignore_errors=True)

    async def _last_words(self) -> None:
        """What measures ends in order: frames, labs; and the runs hear of it."""
        self.workshop.post.close()
        busy.give_up_waiting(now=True)
        until = time.monotonic() + _LAST_WORDS_S
        held = self.workshop.held.values()
        while any(lock.locked() for lock in held) and time.monotonic() < until:
            await asyncio.sleep(0.05)

    async def _until_it_is_back(self, ended: asyncio.Event) -> None:
        while not ended.is_set():
            with contextlib.suppress(SetupError):
                await workers_of(self.address, self.certificates)
                return
            await _passed(ended, _AGAIN_S)

    async def _check_unclaimed(self, me: str = "") -> None:
        """Refuse what another worker owns; of two that come at once, one gives way.

        Raises:
            InputError: it does.
        """
        workers = await workers_of(self.address, self.certificates)
        for address, told in workers.items():
            if address == me:
                break  # those that came later see this one
            for name in self.workshop.held:
                if resource(name) in told["resources"]:
                    raise InputError(
                        f"testbed {name} is owned by the worker {told['name']} at "
                        f"{address} already",
                        "a testbed has one owner: end that worker, or leave the "
                        "testbed out here; different ones need different names",
                    )

    def _worker(self, folder: str) -> Worker:
        from distributed import Worker  # noqa: PLC0415 - see load

        class Silent(Worker):
            def start_http_server(self, *_: object, **__: object) -> None:
                """See the scheduler's."""

        names = list(self.workshop.held)
        worker = Silent(
            self.address,
            nthreads=len(names),
            name=f"{socket.gethostname()}-{os.getpid()}-{time.monotonic_ns()}",
            resources={resource(name): 1 for name in names},
            host=_own_address(self.address),
            security=self.certificates.security(),
            dashboard=False,
            memory_limit=0,
            local_directory=folder,
        )
        worker.handlers.update(
            dutperf_claim=self._claim,
            dutperf_fetch=self._fetch,
            dutperf_alive=self._alive,
            dutperf_stop=self._stop,
        )
        return worker

    async def _claim(self) -> str:
        return Claim(
            dask_version=self._dask_version,
            host=socket.gethostname(),
            is_root=os.geteuid() == 0,
            is_simulated=self.is_simulated,
            time_s=time.time(),
            testbeds=list(self.workshop.testbeds),
            labs=list(self.workshop.labs),
        ).model_dump_json()

    async def _fetch(self, run: str, answers: dict[str, str]) -> str:
        return await self.workshop.post.fetch(run, answers)

    async def _alive(self, run: str) -> None:
        self.workshop.post.alive(run)

    async def _stop(self, keys: list[str]) -> None:
        self.workshop.post.stop(keys)


def _own_address(scheduler: str) -> str:
    """Of the interface that leads to the scheduler; no other one is listened at."""
    parts = urlsplit(scheduler)
    try:
        kind, _, _, _, to = socket.getaddrinfo(
            parts.hostname, parts.port, type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(kind, socket.SOCK_DGRAM) as towards:
            towards.connect(to)  # sends nothing
            return str(towards.getsockname()[0])
    except OSError as error:
        raise SetupError(
            f"{scheduler}: {error.strerror}", "no route leads there"
        ) from error


async def _passed(ended: asyncio.Event, seconds: float) -> None:
    """Wait for so long, or until ``ended``."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(ended.wait(), seconds)
