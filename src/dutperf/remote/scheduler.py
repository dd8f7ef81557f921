"""``dutperf scheduler``: where workers and runs of many hosts meet.

It knows who is there and who owns which testbed, and passes the runs' calls on. What
is in them it does not read. What a member may be its certificate says.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from dutperf.errors import InputError, SetupError
from dutperf.remote.security import (
    CONNECT_S,
    RUN,
    SCHEDULER,
    WIRE_VERSION,
    WORKER,
    Call,
    Certificates,
    Hello,
    Line,
    Members,
    Reply,
    check_loopback,
)

_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GONE = "it has gone"


def serve(
    host: str, port: int, certificates: Certificates, notify: Callable[[str], None]
) -> None:
    """Bring runs and workers together, until a signal ends it.

    Raises:
        InputError: ``host`` is not the loopback, and there are no certificates.
        SetupError: it cannot listen there.
    """
    check_loopback(host, certificates)
    asyncio.run(_serve(host, port, certificates.or_own(SCHEDULER), notify))


async def _serve(
    host: str, port: int, certificates: Certificates, notify: Callable[[str], None]
) -> None:
    ended = asyncio.Event()
    for signum in _END:
        asyncio.get_running_loop().add_signal_handler(signum, ended.set)
    context = certificates.context(is_server=True)
    try:
        server = await asyncio.start_server(
            _Meeting().join, host, port, ssl=context, backlog=1000
        )
    except OSError as error:
        raise SetupError(
            f"cannot listen at {host}, port {port}: {error.strerror}",
            "another scheduler may be there; --port chooses another one",
        ) from error
    shown, port = server.sockets[0].getsockname()[:2]
    notify(f"tls://[{shown}]:{port}" if ":" in shown else f"tls://{shown}:{port}")
    await ended.wait()
    server.close()


@dataclass
class _Worker:
    line: Line
    hello: Hello
    calls: dict[int, tuple[Line, int]] = field(default_factory=dict)
    """Who waits for a reply, and under which number."""


@dataclass
class _Meeting:
    """Who is there."""

    workers: dict[str, _Worker] = field(default_factory=dict)
    runs: set[Line] = field(default_factory=set)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def join(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """A member, from its first frame to its last."""
        line = Line(reader, writer)
        over = (OSError, TimeoutError, InputError, asyncio.CancelledError)
        try:
            with contextlib.suppress(*over):
                hello = await asyncio.wait_for(line.receive(), CONNECT_S)
                refused = self._refused(line, hello)
                line.send(Reply(refused=refused))
                if isinstance(hello, Hello) and not refused:
                    await (self._work if hello.testbeds else self._run)(line, hello)
        finally:
            await line.close()

    def _refused(self, line: Line, hello: object) -> str:
        if not isinstance(hello, Hello) or hello.version != WIRE_VERSION:
            return "another dutperf\ninstall the same dutperf on all hosts"
        if line.role not in ("", WORKER if hello.testbeds else RUN):
            return (
                f"this is the key of a {line.role}\n"
                "each has its own: see the folders that --make-keys has made"
            )
        for address, there in self.workers.items():
            for name in there.hello.testbeds:
                if name in hello.testbeds:
                    return (
                        f"testbed {name} is owned by the worker {there.hello.name} at "
                        f"{address} already\n"
                        "a testbed has one owner: end that worker, or leave the "
                        "testbed out here; different ones need different names"
                    )
        return ""

    async def _work(self, line: Line, hello: Hello) -> None:
        worker = self.workers[line.peer] = _Worker(line, hello)
        address = line.peer
        self._tell()
        try:
            while True:
                reply = await line.receive()
                if isinstance(reply, Reply) and reply.number in worker.calls:
                    run, number = worker.calls.pop(reply.number)
                    run.send(reply.model_copy(update={"number": number}))
        finally:
            del self.workers[address]
            self._tell()
            for run, number in worker.calls.values():
                run.send(Reply(number=number, refused=_GONE))

    async def _run(self, line: Line, _hello: Hello) -> None:
        self.runs.add(line)
        line.send(Members(workers=list(self.workers)))
        try:
            while True:
                call = await line.receive()
                if isinstance(call, Call):
                    self._pass_on(line, call)
        finally:
            self.runs.remove(line)

    def _pass_on(self, run: Line, call: Call) -> None:
        worker = self.workers.get(call.to)
        if worker is None:
            run.send(Reply(number=call.number, refused=_GONE))
            return
        number = next(self.numbers)
        worker.calls[number] = (run, call.number)
        worker.line.send(call.model_copy(update={"number": number}))

    def _tell(self) -> None:
        for run in self.runs:
            run.send(Members(workers=list(self.workers)))
