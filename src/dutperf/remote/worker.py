"""``dutperf worker`` measures at its testbeds what runs send; ``dutperf scheduler``."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from dutperf import busy
from dutperf.config import PlannedTestbed, Testbed
from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.errors import InputError, SetupError
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialRequest
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
    connect,
)
from dutperf.remote.task import Workshop, measure_ticket
from dutperf.routing import no_speaker
from dutperf.run.engine_session import EngineStarter, Notify
from dutperf.run.local_executor import Surroundings, no_passport
from dutperf.simulation.fake_engine import FakeEngine, step

_AGAIN_S = 2.0
_LAST_WORDS_S = 30.0
_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class WorkerHost:
    """This one, as a worker of the scheduler at ``address``.

    ``notify`` is told what a user should know.
    """

    address: str
    certificates: Certificates
    workshop: Workshop
    notify: Callable[[str], None]
    _calls: set[asyncio.Task[None]] = field(default_factory=set)

    def serve(self) -> None:
        """Measure what comes, until a signal ends it; a scheduler may come again.

        Raises:
            SetupError: there is no scheduler to begin with.
            InputError: another worker owns a testbed of this one.
        """
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for signum in _END:
            loop.add_signal_handler(signum, ended.set)
        self.workshop.post.use(loop)
        line: Line | None = await self._connect()
        while line:
            await self._connected(line, ended)
            if ended.is_set():
                break
            self.notify(f"the scheduler at {self.address} has gone; waiting for it")
            line = await self._until_it_is_back(ended)

    async def _connect(self) -> Line:
        hello = Hello(
            name=f"{socket.gethostname()}-{os.getpid()}",
            testbeds=list(self.workshop.held),
        )
        return await connect(self.address, self.certificates, hello)

    async def _until_it_is_back(self, ended: asyncio.Event) -> Line | None:
        while not ended.is_set():
            with contextlib.suppress(SetupError):
                return await self._connect()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), _AGAIN_S)
        return None

    async def _connected(self, line: Line, ended: asyncio.Event) -> None:
        """Work for the scheduler until it has gone, or ``ended``."""
        self.workshop.post.open()
        busy.give_up_waiting(now=False)
        owned = ", ".join(self.workshop.held)
        self.notify(f"connected to {self.address}; owns {owned}")
        reading = asyncio.create_task(self._read(line))
        ending = asyncio.create_task(ended.wait())
        await asyncio.wait({reading, ending}, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        await self._last_words()
        reading.cancel()
        await line.close()

    async def _last_words(self) -> None:
        """What measures ends in order: frames, labs; and the runs hear of it."""
        self.workshop.post.close()
        busy.give_up_waiting(now=True)
        if self._calls:
            await asyncio.wait(self._calls, timeout=_LAST_WORDS_S)

    async def _read(self, line: Line) -> None:
        with contextlib.suppress(OSError):
            while True:
                call = await line.receive()
                if isinstance(call, Call):
                    task = asyncio.create_task(self._answer(line, call))
                    self._calls.add(task)
                    task.add_done_callback(self._calls.discard)

    async def _answer(self, line: Line, call: Call) -> None:
        text, post = "", self.workshop.post
        match call.what:
            case "claim":
                text = self.workshop.claim(time.time()).model_dump_json()
            case "fetch":
                text = await post.fetch(call.run, call.answers)
            case "alive":
                post.alive(call.run)
            case "stop":
                post.stop(call.keys)
            case "measure":
                text = await self._measured(call.ticket)
        try:
            line.send(Reply(number=call.number, text=text))
        except InputError as error:
            line.send(Reply(number=call.number, refused=error.message))

    async def _measured(self, ticket: str) -> str:
        """In a thread of its own: those that wait for a testbed hold nobody up."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[str] = loop.create_future()

        def measure() -> None:
            text = measure_ticket(self.workshop, ticket)
            with contextlib.suppress(RuntimeError):  # all is over
                loop.call_soon_threadsafe(told.set_result, text)

        threading.Thread(target=measure, daemon=True).start()
        return await told


# A worker without hardware: its devices are simulated, and no frame is sent.


def _forgetful(rate_fps: int) -> FakeEngine:
    """Of tens of thousands of trials it does not remember any."""
    engine = FakeEngine(step(rate_fps))
    measure = engine.measure

    def measured(
        trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        result = measure(trial, on_progress)
        engine.trials.clear()
        return result

    vars(engine)["measure"] = measured
    return engine


def simulating(around: Surroundings, rate_fps: int) -> Surroundings:
    """``around``, with devices that forward up to ``rate_fps`` in each direction.

    No time passes in a trial. What is stored says that it was simulated.
    """

    @contextlib.contextmanager
    def opened(planned: PlannedTestbed) -> Iterator[Testbed]:
        told = f"simulated, forwards {rate_fps:,} fps; no frame was sent"
        yield planned.testbed.model_copy(update={"description": told})

    def prepare(_testbed: Testbed, _notify: Notify) -> EngineStarter:
        return lambda _log: contextlib.nullcontext(_forgetful(rate_fps))

    return replace(
        around,
        open_engine=prepare,
        open_testbed=opened,
        dut_alive=lambda _planned: True,
        watch_dut=lambda _planned: None,
        sleep=lambda _seconds: None,
        openings=lambda _testbed: None,
        examine=lambda _testbed, _ns: (),
        passport=no_passport,
        speaking=no_speaker,
    )


# ``dutperf scheduler``: where workers and runs of many hosts meet.
#
# It knows who is there and who owns which testbed, and passes the runs' calls on. What
# is in them it does not read. What a member may be its certificate says.


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
