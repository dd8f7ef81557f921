"""A worker's side of the conversation: threads that measure tell, the run fetches.

Each run fetches its messages and gives the answers to those before. Whoever waits for
an answer of a run that has not been heard of for long is told that it has gone.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from dutperf.remote.messages import Envelope, Message, Moved, text_of

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
