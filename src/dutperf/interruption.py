"""Signals: however a program is stopped, a lab goes down and files stay whole."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import FrameType

TERMINATE = (signal.SIGTERM, signal.SIGHUP)
_LOOK_EVERY_S = 0.05


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt within the block, as SIGINT does.

    A handler that somebody else installed stays: what it does is not ours to change.
    Outside the main thread, which never sees signals, this does nothing.
    """
    ours = [s for s in TERMINATE if _in_main_thread() and _is_default(s)]
    for signum in ours:
        signal.signal(signum, _interrupt)
    try:
        yield
    finally:
        for signum in ours:
            signal.signal(signum, signal.SIG_DFL)


@contextmanager
def postponed_signals(telling: str = "") -> Iterator[None]:
    """Nothing interrupts the block; what arrived meanwhile is raised at its end.

    ``telling`` is said on standard error at once, for blocks that take seconds.

    The signals are blocked because the lab's pyroute2 forks: an exception raised by a
    handler in its child would run the rest of this program there, a second time. They
    get another handler as well because any other thread may take them while this one
    does not. A process that is to outlive the block must be started outside: it
    inherits the mask.
    """
    arrived: list[int] = []
    to_tell = [telling] if telling else []

    def arrive(signum: int) -> None:
        with suppress(IndexError, OSError):  # only one thread gets it
            os.write(sys.stderr.fileno(), f"{to_tell.pop()}\n".encode())
        arrived.append(signum)

    def remember(signum: int, _frame: FrameType | None) -> None:
        arrive(signum)

    signals = (signal.SIGINT, *TERMINATE)
    ours = signals if _in_main_thread() else ()
    before = {s: signal.getsignal(s) for s in ours if signal.getsignal(s) is not None}
    for signum in before:
        signal.signal(signum, remember)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        with _answering(signals, arrive) if telling else nullcontext():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for signum, handler in before.items():
            signal.signal(signum, handler)
        for number in arrived:
            signal.raise_signal(number)


@contextmanager
def _answering(
    signals: Collection[signal.Signals], arrive: Callable[[int], None]
) -> Iterator[None]:
    """A thread takes the signals that are blocked."""
    ended = threading.Event()

    def answer() -> None:
        while not ended.is_set():
            taken = signal.sigtimedwait(signals, _LOOK_EVERY_S)
            if taken is not None:
                arrive(taken.si_signo)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _interrupt(_signum: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _is_default(signum: signal.Signals) -> bool:
    return signal.getsignal(signum) is signal.SIG_DFL


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
