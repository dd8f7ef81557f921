"""Keys as they are pressed, read by a thread; the terminal is given back in any case.

While keys are read the terminal sends each at once and shows none. Ctrl-C stays what it
is. What would stop or kill the program with the terminal as it is then (Ctrl-Z, and
Ctrl with a backslash) and what would stop its output (Ctrl-S) are keys like others.
"""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dutperf.interruption import postponed_signals

END_OF_FILE = "end of file"
"""The terminal has gone."""
_NAMES = {
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x1b": "escape",
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[C": "right",
    "\x1b[D": "left",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1bOC": "right",
    "\x1bOD": "left",
}
# A whole sequence is one key: the bracket of an arrow key is none of ours.
_KEY = re.compile(r"\x1b\[[0-?]*[ -/]*(?:[@-~]|\Z)|\x1bO.|\x1b[^\[O\x1b]|.", re.DOTALL)
_IFLAG, _LFLAG, _CC = 0, 3, 6
"""Places in what termios tells."""
_READ_BYTES = 1024
_DISABLED = b"\0"

OnKey = Callable[[str], None]
OnError = Callable[[Exception], None]


def has_keyboard() -> bool:
    """Whether standard input is a terminal, and it is ours to read."""
    try:
        descriptor = sys.stdin.fileno()
        return os.isatty(descriptor) and os.tcgetpgrp(descriptor) == os.getpgrp()
    except (OSError, ValueError, AttributeError):  # closed, or replaced
        return False


def keys_in(data: bytes) -> list[str]:
    """What was pressed: a character, or the name of a key that has none."""
    found = _KEY.findall(data.decode(errors="replace"))
    return [_NAMES.get(key, key) for key in found]


@contextmanager
def keyboard(
    on_key: OnKey, on_error: OnError, descriptor: int | None = None
) -> Iterator[None]:
    """Within, a thread tells ``on_key`` each key.

    Args:
        on_key: called with one key at a time, see ``keys_in``; ``END_OF_FILE`` is last.
        on_error: what ``on_key`` raised; no more keys are read.
        descriptor: of the terminal; None: standard input.
    """
    terminal = sys.stdin.fileno() if descriptor is None else descriptor
    before = termios.tcgetattr(terminal)
    ended, end = os.pipe()
    thread = threading.Thread(
        target=_listen, args=(terminal, ended, on_key, on_error), daemon=True
    )
    try:
        termios.tcsetattr(terminal, termios.TCSANOW, _by_key(before))
        thread.start()
        yield
    finally:
        with postponed_signals():
            _give_back(terminal, before)
            os.close(end)  # the thread sees that
            if thread.ident:
                thread.join()
            os.close(ended)


def _by_key(before: list[Any]) -> list[Any]:
    """Settings in which each key arrives at once, and is not shown."""
    settings = [*before]
    settings[_IFLAG] &= ~termios.IXON
    settings[_LFLAG] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
    characters = [*before[_CC]]
    for stops in (termios.VSUSP, termios.VQUIT):
        characters[stops] = _DISABLED
    characters[termios.VMIN], characters[termios.VTIME] = 1, 0
    settings[_CC] = characters
    return settings


def _give_back(terminal: int, before: list[Any]) -> None:
    """As it was; what was typed and not read must not reach the shell."""
    try:
        termios.tcsetattr(terminal, termios.TCSANOW, before)
        termios.tcflush(terminal, termios.TCIFLUSH)
    except termios.error:  # the terminal has gone
        pass


def _listen(terminal: int, ended: int, on_key: OnKey, on_error: OnError) -> None:
    try:
        while True:
            ready, _, _ = select.select([terminal, ended], [], [])
            if ended in ready:
                return
            data = _read(terminal)
            for key in keys_in(data):
                on_key(key)
            if not data:
                on_key(END_OF_FILE)
                return
    except Exception as error:  # noqa: BLE001 - told where it can be raised
        on_error(error)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, _READ_BYTES)
    except OSError:  # it was hung up
        return b""
