"""What all messages of the protocol are made of: base, units, addresses, names."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)

Count = Annotated[int, Field(ge=0)]
Nanoseconds = Annotated[int, Field(ge=0)]
Wait = Annotated[int, Field(ge=0, le=2**47)]
"""Nanoseconds in a request: what a 48-bit stamp can tell, with room to spare."""
TAG_BYTES = 18
"""The wire tag: magic 2, trial 2, stream 1, flags 1, sequence 6, stamp 6."""

Side = Literal["left", "right"]
MAX_PAIRS = 4
"""Ports on a side, as many on both (RFC 2544 16)."""
PortNumber = Annotated[int, Field(ge=0, lt=MAX_PAIRS)]
"""Of several ports on a side; 0: the first, or the only one."""
DirectionName = Literal["forward", "reverse"]
IpVersion = Literal[4, 6]
RoutingDaemonProtocol = Literal["ospf", "bgp"]
"""By which a daemon beside the tester tells the device routes."""
Driver = Literal["af_packet", "af_xdp", "pci", "memif", "vdev", "ring", "null"]
WhenFull = Literal["wait", "lose"]
"""What becomes of frames for which the queue behind a port has no room."""

_MAC = r"^[0-9a-f]{2}(:[0-9a-f]{2}){5}$"


def _check_mac(text: str) -> str:
    if not re.fullmatch(_MAC, text):
        raise ValueError("must look like 02:00:00:00:00:01 (lower case)")
    return text


@lru_cache(maxsize=1024)
def _check_ip(text: str) -> str:
    """The trials of a run have the same ones, again and again."""
    if "%" in text:
        raise ValueError("must not name an interface (%)")
    return str(ipaddress.ip_address(text))


Mac = Annotated[
    str, AfterValidator(_check_mac), Field(json_schema_extra={"pattern": _MAC})
]
Ip = Annotated[
    str,
    AfterValidator(_check_ip),
    Field(json_schema_extra={"anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}),
]


class Message(BaseModel):
    """Base of all messages: immutable; unknown keys and wrong types are errors."""

    model_config = ConfigDict(
        defer_build=True, extra="forbid", frozen=True, strict=True, allow_inf_nan=False
    )


def port_name(side: Side, number: int = 0) -> str:
    """A port's name for people: left, and of several left 2, left 3, ..."""
    return f"{side} {number + 1}" if number else side


_OF_SEVERAL_PORTS = ("number", "more_paths")


class MayHaveSeveralPorts(Message):
    """A message that says nothing of several ports where a side has only one.

    What is stored of such a tester has no key for what it has not.
    """

    @model_serializer(mode="wrap")
    def _as_of_one(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = plain(self)
        for key in _OF_SEVERAL_PORTS:
            if not written.get(key, True):
                del written[key]
        return written
