"""Frame sizes as campaigns name them, mixes of them, and IP versions."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)

from dutperf.model.fields import Short, Strict
from dutperf.protocol.base import IpVersion, Side
from dutperf.protocol.stream_messages import FrameSize

_ALL_SIZES = "all"
_RANGE = r"([0-9]{2,5})-([0-9]{2,5})"


def _check_all(text: str) -> str:
    if text != _ALL_SIZES and not re.fullmatch(_RANGE, text):
        raise ValueError(
            f"must be a number of bytes, a range like 64-512, or all, not {text[:40]!r}"
        )
    return text


def standard_range(given: list[int | str]) -> tuple[int, int] | None:
    """Between which sizes all of the RFCs' are asked for; None: they are listed."""
    for each in given:
        if isinstance(each, str):
            ends = re.fullmatch(_RANGE, each)
            return (int(ends[1]), int(ends[2])) if ends else (0, _LARGEST)
    return None


def _kind(value: Any) -> str:  # noqa: ANN401 - raw YAML
    return "all" if isinstance(value, str) else "bytes"


_All = Annotated[
    str,
    AfterValidator(_check_all),
    WithJsonSchema({"pattern": f"^({_ALL_SIZES}|{_RANGE})$", "type": "string"}),
]
SizeOrAll = Annotated[
    Annotated[FrameSize, Tag("bytes")] | Annotated[_All, Tag("all")],
    Discriminator(_kind),
]


# IMIX: a repeating sequence of frame sizes, named by RFC 6985.


NAMED_SIZES = {
    "a": 64,
    "b": 128,
    "c": 256,
    "d": 512,
    "e": 1024,
    "f": 1280,
    "g": 1518,
    "h": 2112,
    "i": 9000,
    "j": 16000,
}
"""RFC 6985 4; z stands for the largest frame that the MTU allows."""
MTU_LETTER = "z"
_LARGEST = 9720
_LONGEST = 64
_SEQUENCE = f"[A-Za-z]{{1,{_LONGEST}}}"


def _check_sequence(text: str) -> str:
    if not re.fullmatch(_SEQUENCE, text):
        raise ValueError(
            f"must be 1 to {_LONGEST} letters like aaafg (RFC 6985), not {text[:70]!r}"
        )
    return text


def _check_letters(sizes: dict[str, int]) -> dict[str, int]:
    for letter in sizes:
        if not re.fullmatch("[A-Za-z]", letter):
            raise ValueError(f"must have single letters as keys, not {letter[:20]!r}")
    return sizes


class Imix(Strict):
    """The sizes of consecutive frames: those named by RFC 6985, or a table's."""

    sequence: Annotated[str, AfterValidator(_check_sequence)] = Field(
        description="one letter for each frame, then from the start again: aaafg; "
        "a=64 b=128 c=256 d=512 e=1024 f=1280 g=1518 h=2112 i=9000 z=MTU",
        json_schema_extra={"pattern": f"^{_SEQUENCE}$"},
    )
    sizes: Annotated[dict[str, FrameSize], AfterValidator(_check_letters)] = Field(
        default={},
        description="sizes in bytes with FCS of the letters of a custom IMIX, like "
        "{A: 64, G: 1400}; empty: RFC 6985's",
    )

    @model_validator(mode="after")
    def _letters_known(self) -> Self:
        known = set(self.sizes) or {*NAMED_SIZES, MTU_LETTER}
        for letter in self.sequence:
            if letter not in known:
                raise ValueError(_unknown(letter, custom=bool(self.sizes)))
            if not self.sizes and NAMED_SIZES.get(letter, 0) > _LARGEST:
                raise ValueError(
                    f"the {NAMED_SIZES[letter]}-byte frames of letter {letter} are "
                    f"larger than this tester's largest, {_LARGEST}"
                )
        return self

    def frame_sizes(self, mtu: int, *, ipv6: bool) -> list[int]:
        """The sizes in bytes with FCS, one for each letter.

        Args:
            mtu: of the ports, bytes; what z stands for.
            ipv6: whether there is any IPv6 frame, so that RFC 6985's 64 bytes have to
                be 84 (RFC 8219 5.1.1).
        """
        if self.sizes:
            return [self.sizes[letter] for letter in self.sequence]
        smallest = {"a": 84} if ipv6 else {}
        named = NAMED_SIZES | smallest | {MTU_LETTER: mtu + 18}
        return [named[letter] for letter in self.sequence]

    def __str__(self) -> str:
        if not self.sizes:
            return f"IMIX - {self.sequence}"
        table = ", ".join(f"{letter}={size}" for letter, size in self.sizes.items())
        return f"CUSTOM IMIX - {self.sequence} ({table})"


def _unknown(letter: str, *, custom: bool) -> str:
    if custom:
        return f"the letter {letter} of sequence has no size: add it to sizes"
    known = ", ".join(f"{name}={size}" for name, size in NAMED_SIZES.items())
    return (
        f"RFC 6985 names no size {letter}: {known}, z=MTU; for others write a table: "
        f"{{sequence: {letter}, sizes: {{{letter}: 200}}}}"
    )


def _expand(text: str) -> dict[str, Any]:
    return {"sequence": text}


ImixSizes = Annotated[
    Imix, Short(str, _expand, {"type": "string", "pattern": f"^{_SEQUENCE}$"})
]


# Which IP version each side sends: 4, 6, or one on each side (left-right).


IpVersions = Literal[4, 6, "6-4", "4-6"]
"""4 and 6: the same on both sides; 6-4: IPv6 on the left, IPv4 on the right."""

SIDES: dict[IpVersions, dict[Side, IpVersion]] = {
    4: {"left": 4, "right": 4},
    6: {"left": 6, "right": 6},
    "6-4": {"left": 6, "right": 4},
    "4-6": {"left": 4, "right": 6},
}
TRANSLATIONS: tuple[IpVersions, ...] = ("6-4", "4-6")


def version_of(ip: IpVersions, side: Side) -> IpVersion:
    """The IP version that ``side`` sends and receives."""
    return SIDES[ip][side]


def translates(ip: IpVersions) -> bool:
    """Whether the device under test makes one IP version of the other."""
    return ip in TRANSLATIONS
