"""What whoever watches a stream asks for; it is heeded with the next piece.

Shared by the thread that sends and the one that reads keys: each method takes the lock.
What one says is an answer for whoever asked, in words.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from dutperf.procedures.max_rate import MaxRate

_LEAST_S = 0.05
"""A piece shorter than this tells nothing, so a stream ends earlier by that much."""


@dataclass(frozen=True)
class Piece:
    """What is sent next."""

    rate_fps: int
    duration_s: float


class StreamControl:
    """The rate, and whether the stream goes on.

    Args:
        rate_fps: the first one.
        piece_s: how long a piece is.
        duration_s: after how long the stream ends by itself; None: not at all.
        limit: the highest rate.
        clock: says how many seconds have passed.
    """

    def __init__(
        self,
        rate_fps: int,
        piece_s: float,
        duration_s: float | None,
        limit: MaxRate,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = limit
        self._rate_fps = rate_fps
        self._piece_s = piece_s
        self._duration_s = duration_s
        self._clock = clock
        self._begun_s = clock()
        self._changed = threading.Condition()
        self._paused = False
        self._ending = False
        self._failure: Exception | None = None

    @property
    def rate_fps(self) -> int:
        """What the next piece is to have."""
        return self._rate_fps

    @property
    def paused(self) -> bool:
        """Whether nothing is sent, or nothing more after the piece that runs."""
        return self._paused

    @property
    def ending(self) -> bool:
        """Whether the piece that runs is the last."""
        return self._ending

    @property
    def elapsed_s(self) -> float:
        """Since the stream began."""
        return self._clock() - self._begun_s

    @property
    def is_over(self) -> bool:
        """Whether it has lasted as long as it was to, or somebody ended it."""
        return self._ending or self._left_s() < _LEAST_S

    def set_rate(self, rate_fps: int) -> str:
        """As near to it as the limit allows."""
        limit = self.limit
        with self._changed:
            self._rate_fps = min(max(rate_fps, 1), limit.rate_fps)
        if rate_fps > limit.rate_fps:
            return f"at most {limit.rate_fps:,} fps: {limit.words}"
        return "at least 1 fps" if rate_fps < 1 else ""

    def scale(self, up: int, down: int) -> str:
        """The rate times ``up`` / ``down``, and by one frame a second at least."""
        rate_fps = round(self._rate_fps * up / down)
        step = 1 if up > down else -1
        if rate_fps == self._rate_fps:
            rate_fps += step
        return self.set_rate(rate_fps)

    def pause(self) -> str:
        """Send nothing more; or go on."""
        with self._changed:
            self._paused = not self._paused
            self._changed.notify_all()
        return "paused" if self._paused else "goes on"

    def end(self) -> str:
        """No more pieces."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        return "ends with this piece; Ctrl-C at once"

    def fail(self, error: Exception) -> None:
        """No more pieces: ``next_piece`` raises ``error``."""
        self._failure = error
        self.end()

    def next_piece(self, on_pause: Callable[[], None]) -> Piece | None:
        """What is sent next, once the stream goes on; None: it ends.

        Args:
            on_pause: is called when nothing is sent for a while.
        """
        with self._changed:
            waits = self._paused and not self.is_over
        if waits:
            on_pause()
        with self._changed:
            while self._paused and not self.is_over:
                self._changed.wait(self._left_s() if self._duration_s else None)
            if self._failure:
                raise self._failure
            if self.is_over:
                return None
            return Piece(self._rate_fps, min(self._piece_s, self._left_s()))

    def _left_s(self) -> float:
        if self._duration_s is None:
            return self._piece_s
        return self._duration_s - self.elapsed_s
