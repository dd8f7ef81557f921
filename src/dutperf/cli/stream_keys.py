"""What keys of ``dutperf stream`` mean: from a key to an action; nothing is done."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from dutperf.cli.keyboard import END_OF_FILE
from dutperf.errors import InputError

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

_RATE = re.compile(r"([0-9]{1,15})(\.[0-9]{1,9})?([kKmMgG]?)")
_GROUPED = re.compile(r"[0-9]{1,3}([,_ ][0-9]{3})+")
_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
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
    found = _RATE.fullmatch(plain)
    rate = 0
    if found:
        number = Decimal(f"{found[1]}{found[2] or ''}")
        exact = number * _FACTORS[found[3].lower()]
        rate = int(exact) if exact == int(exact) else 0
    if not 1 <= rate <= 10**12:
        raise InputError(
            f"{text[:40]!r} is no rate",
            "give whole frames per second, from 1 on: 25000, 10k, 1.5M",
        )
    return rate


class StreamKeys:
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
