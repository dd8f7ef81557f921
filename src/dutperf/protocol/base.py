"""What all messages of the protocol are made of: base, units, addresses, names."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]
Nanoseconds = Annotated[int, Field(ge=0)]
Wait = Annotated[int, Field(ge=0, le=2**47)]
"""Nanoseconds in a request: what a 48-bit stamp can tell, with room to spare."""
TAG_BYTES = 18
"""The wire tag: magic 2, trial 2, stream 1, flags 1, sequence 6, stamp 6."""

Side = Literal["left", "right"]
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


def _check_ip(text: str) -> str:
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
