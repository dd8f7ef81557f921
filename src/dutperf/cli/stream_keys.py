"""What keys of ``dutperf stream`` mean: from a key to an action; nothing is done."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from dutperf.errors import InputError
from dutperf.model.fields import written_number
from dutperf.programs import postponed_signals

# Keys as they are pressed, read by a thread; the terminal is given back in any case.
#
# While keys are read the terminal sends each at once and shows none. Ctrl-C stays what
# it is. What would stop or kill the program with the terminal as it is then (Ctrl-Z,
# and Ctrl with a backslash) and what would stop its output (Ctrl-S) are keys like
# others.


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


HELP = (
    ("+ -", "10 % up, down (arrow keys up, down)"),
    ("] [", "1 % up, down (arrow keys right, left)"),
    ("r, 1-9", "type a rate: 25000, 10k, 1.5M; Enter takes it, Esc leaves it"),
    ("space", "pause, go on"),
    ("0 c", "clear the counters (the summary at the end has all)"),
    ("q", "end after the running piece; Ctrl-C ends at once"),
    ("?", "show or hide these lines"),
)
SHORT_HELP = "+ - 10 %   ] [ 1 %   r rate   space pause   0 clear   ? help   q end"

_GROUPED = re.compile(r"[0-9]{1,3}([,_ ][0-9]{3})+")
_OF_RATES = set("0123456789.,_kKmMgG")
_LONGEST_TYPED = 20


@dataclass(frozen=True)
class Scale:
    """The rate times ``up`` / ``down``."""

    up: int
    down: int


@dataclass(frozen=True)
class SetRate:
    """A rate that was typed."""

    rate_fps: int


@dataclass(frozen=True)
class Say:
    """Nothing happens; ``text`` says why."""

    text: str


Simple = Literal["pause", "clear", "help", "end", "typing"]
Action = Scale | SetRate | Say | Simple

_ACTIONS: dict[str, Action] = {
    "+": Scale(11, 10),
    "=": Scale(11, 10),  # the same key without shift
    "up": Scale(11, 10),
    "-": Scale(10, 11),
    "_": Scale(10, 11),
    "down": Scale(10, 11),
    "]": Scale(101, 100),
    "right": Scale(101, 100),
    "[": Scale(100, 101),
    "left": Scale(100, 101),
    " ": "pause",
    "0": "clear",
    "c": "clear",
    "?": "help",
    "h": "help",
    "q": "end",
    END_OF_FILE: "end",
}
_STOPPED = {
    "\x1a": "Ctrl-Z would leave the stream alone: space pauses, q ends",
    "\x1c": "Ctrl-\\ does nothing here: q ends, Ctrl-C ends at once",
    "\x13": "Ctrl-S does nothing here: space pauses",
}


def parse_rate(text: str) -> int:
    """Frames per second: ``25000``, ``25,000``, ``10k``, ``1.5M``.

    Raises:
        InputError: it is none.
    """
    plain = text.strip()
    if _GROUPED.fullmatch(plain):
        plain = re.sub(r"[,_ ]", "", plain)
    exact = written_number(plain.replace("K", "k").replace("m", "M").replace("g", "G"))
    rate = int(exact) if exact and exact.denominator == 1 else 0
    if not 1 <= rate <= 10**12:
        raise InputError(
            f"{text[:40]!r} is no rate",
            "give whole frames per second, from 1 on: 25000, 10k, 1.5M",
        )
    return rate


class TypedKeys:
    """Remembers what is being typed; ``typed``: None if nothing is."""

    def __init__(self) -> None:
        self.typed: str | None = None

    def press(self, key: str) -> Action:
        """What ``key`` asks for."""
        if key == END_OF_FILE:
            return "end"
        if self.typed is not None:
            return self._type(self.typed, key)
        if key == "r" or (key.isascii() and key.isdigit() and key != "0"):
            self.typed = "" if key == "r" else key
            return "typing"
        known = _ACTIONS.get(key)
        if known is not None:
            return known
        if key in {"escape", "enter", "backspace"}:
            return Say("")
        told = _STOPPED.get(key)
        return Say(
            told or f"{_shown(key)} is no key of this program; ? tells which are"
        )

    def _type(self, typed: str, key: str) -> Action:
        if key in _OF_RATES and len(typed) < _LONGEST_TYPED:
            self.typed = typed + key
            return "typing"
        if key == "backspace":
            self.typed = typed[:-1]
            return "typing"
        if key in {"escape", "q"} or (key == "enter" and not typed):
            self.typed = None
            return Say("the rate stays")
        if key != "enter":
            return Say("Enter takes the rate, Esc leaves it as it was")
        self.typed = None
        try:
            return SetRate(parse_rate(typed))
        except InputError as error:
            return Say(f"{error.message}: {error.hint}")


def _shown(key: str) -> str:
    """A key as a short word."""
    return repr(key) if len(key) == 1 else "that"
