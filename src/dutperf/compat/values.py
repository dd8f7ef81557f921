"""What may stand behind a key of siitperf.conf: each reader refuses with a reason."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

from dutperf.protocol import IpVersion

Mode = Literal["fixed", "increasing", "decreasing", "random"]
MODES: tuple[Mode, ...] = ("fixed", "increasing", "decreasing", "random")
"""What the file calls 0, 1, 2 and 3."""
T = TypeVar("T")
Reader = Callable[[str], T]

_MAC = re.compile(r"[0-9a-fA-F]{1,2}(:[0-9a-fA-F]{1,2}){5}")
_NUMBER = re.compile(r"[0-9]{1,10}")
_NUMBER_OR_HEX = re.compile(r"[0-9]{1,10}|0[xX][0-9a-fA-F]{1,8}")


class Adapted(NamedTuple):
    """A value that siitperf takes; ``used``: what it counts as, in the file's words."""

    value: Any
    used: str


def number(least: int, most: int, *, hexadecimal: bool = False) -> Reader[int]:
    """A whole number from ``least`` to ``most``."""
    form = _NUMBER_OR_HEX if hexadecimal else _NUMBER

    def read(text: str) -> int:
        value = (
            int(text, 16 if text[:2] in ("0x", "0X") else 10)
            if (form.fullmatch(text))
            else None
        )
        if value is None or not least <= value <= most:
            raise ValueError(f"must be a number from {least} to {most}")
        return value

    return read


def at_most(most: int) -> Reader[int | Adapted]:
    """A number from 0 on, also hexadecimal; a larger one counts as ``most``."""
    read_any = number(0, 2**32 - 1, hexadecimal=True)

    def read(text: str) -> int | Adapted:
        value = read_any(text)
        return value if value <= most else Adapted(most, str(most))

    return read


def one_of(*values: T) -> Reader[T]:
    """One of ``values``, as they are written."""
    by_text = {str(value): value for value in values}

    def read(text: str) -> T:
        if text not in by_text:
            raise ValueError(f"must be {_or(list(by_text))}")
        return by_text[text]

    return read


def address(version: IpVersion) -> Reader[str | None]:
    """An IP address of that version; the unspecified one, :: or 0.0.0.0, is none."""
    kind = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address

    def read(text: str) -> str | None:
        try:
            found = kind(text)
        except ValueError:
            raise ValueError(f"must be an IPv{version} address") from None
        return None if found.is_unspecified else str(found)

    return read


def mac(text: str) -> str | None:
    """A MAC address; the zero one is none."""
    if not _MAC.fullmatch(text):
        raise ValueError("must be a MAC address like 24:6e:96:3c:3f:40")
    digits = (byte.zfill(2) for byte in text.lower().split(":"))
    return ":".join(digits) if text.strip("0:") else None


def switch(text: str) -> bool | Adapted:
    """0 or 1; other numbers count as 1."""
    value = number(0, 2**32 - 1)(text)
    return value == 1 if value <= 1 else Adapted(value=True, used="1")


def mode(text: str) -> Mode:
    """0 fixed, 1 increasing, 2 decreasing, 3 pseudorandom."""
    return MODES[one_of(0, 1, 2, 3)(text)]


def _or(texts: list[str]) -> str:
    *first, last = texts
    return f"{', '.join(first)} or {last}" if first else last
