"""``dutperf worker``: owns testbeds, and measures at them what runs send."""

from __future__ import annotations

import asyncio
import contextlib
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
from dutperf.remote.security import Call, Certificates, Hello, Line, Reply, connect
from dutperf.remote.task import Workshop, measure_ticket
from dutperf.routing.speaker import no_speaker
from dutperf.run.engine_session import EngineStarter, Notify
from dutperf.run.local_executor import Surroundings, no_passport
from dutperf.simulation.fake_engine import FakeEngine, step

_AGAIN_S = 2.0
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
