"""The same for programs on asyncio: what takes time is awaited, and can be cancelled.

    async with dutperf.AsyncTester(lab="linux-router") as tester:
        async with tester.traffic(ip=4, frame_size=64) as traffic:
            trial = await traffic.trial(100_000)

All happens in one thread beside the loop, as an engine is for one thread. Who cancels
ends the trial that runs, as Ctrl-C does: what was opened is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from dutperf.api.tester import Measured, Tester
from dutperf.api.traffic import Found, Traffic, Trial
from dutperf.procedures.events import Event, OnEvent

T = TypeVar("T")


class _StoppedError(Exception):
    """The thread did as it was told: it stopped."""


class _Worker:
    """One thread, and whether it is to stop."""

    def __init__(self, on_event: OnEvent | None) -> None:
        self._pool = ThreadPoolExecutor(1, "dutperf")
        self._then = on_event
        self._stops = False

    def on_event(self, event: Event) -> None:
        """Comes twice a second at least while a trial runs, from the thread."""
        if self._stops:
            raise KeyboardInterrupt
        if self._then:
            self._then(event)

    async def call(self, call: Callable[[], T]) -> T:
        """``call`` in the thread; who is cancelled waits until it has stopped."""

        def guarded() -> T:
            try:
                return call()
            except KeyboardInterrupt:
                raise _StoppedError from None

        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._pool, guarded)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            self._stops = True
            with contextlib.suppress(_StoppedError):
                await asyncio.shield(done)
            raise
        finally:
            self._stops = False

    def close(self) -> None:
        self._pool.shutdown(wait=False)


class AsyncTester:
    """A ``Tester`` whose methods are awaited; arguments and errors are its own."""

    def __init__(
        self,
        *,
        testbed: Path | str | None = None,
        lab: str | None = None,
        simulated_fps: float | None = None,
        results: Path | str = "results",
        on_event: OnEvent | None = None,
    ) -> None:
        self._worker = _Worker(on_event)
        self._tester = Tester(
            testbed=testbed,
            lab=lab,
            simulated_fps=simulated_fps,
            results=results,
            on_event=self._worker.on_event,
        )

    async def __aenter__(self) -> Self:
        """Bring the lab up, if it is one."""
        await self._worker.call(self._tester.__enter__)
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Take it down."""
        try:
            await self._worker.call(self._tester.__exit__)
        finally:
            self._worker.close()

    @contextlib.asynccontextmanager
    async def traffic(self, **keys: object) -> AsyncIterator[AsyncTraffic]:
        """See ``Tester.traffic``."""
        opening = self._tester.traffic(**keys)
        there = await self._worker.call(opening.__enter__)
        try:
            yield AsyncTraffic(there, self._worker)
        finally:
            await self._worker.call(partial(opening.__exit__, None, None, None))

    async def measure(
        self, procedure: str, *, preset: str | None = None, **keys: object
    ) -> Measured:
        """See ``Tester.measure``."""
        measure = partial(self._tester.measure, procedure, preset=preset, **keys)
        return await self._worker.call(measure)

    async def run(self, campaign: Path | str) -> Measured:
        """See ``Tester.run``."""
        return await self._worker.call(partial(self._tester.run, campaign))


class AsyncTraffic:
    """``Traffic`` whose methods are awaited."""

    def __init__(self, traffic: Traffic, worker: _Worker) -> None:
        self.name = traffic.name
        self.max_rate_fps = traffic.max_rate_fps
        self._traffic, self._worker = traffic, worker

    async def trial(
        self, rate_fps: int, duration_s: float = 1.0, *, attempts: int = 1
    ) -> Trial:
        """See ``Traffic.trial``."""
        trial = partial(self._traffic.trial, rate_fps, duration_s, attempts=attempts)
        return await self._worker.call(trial)

    async def find(self, **keys: object) -> Found:
        """See ``Traffic.find``."""
        return await self._worker.call(partial(self._traffic.find, **keys))
