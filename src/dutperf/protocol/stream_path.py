"""The paths of a stream between several ports: which sends, which receives."""

from __future__ import annotations

import ipaddress
from typing import Annotated

from pydantic import Field

from dutperf.protocol.base import (
    MAX_PAIRS,
    Ip,
    IpVersion,
    Mac,
    Message,
    PortNumber,
)


class StreamPath(Message):
    """A way of a stream's frames through the DUT beside its first one.

    The first one, from port 0 to port 0, has the stream's own addresses.
    """

    sent_by: PortNumber = Field(description="of the side that sends")
    received_by: PortNumber = Field(
        description="of the side that receives; a frame that comes in by another port "
        "is not received, and misdirected there"
    )
    src_ip: Ip
    dst_ip: Ip
    next_hop: Ip = Field(description="whose MAC the frames carry; resolved before")
    src_mac: Mac | None = Field(default=None, description="default: the port's")
    dst_mac: Mac | None = Field(default=None, description="default: the next hop's")

    def check_version(self, ip_version: IpVersion) -> None:
        """Refuse addresses of another IP version (ValueError)."""
        for key in ("src_ip", "dst_ip"):
            if ipaddress.ip_address(getattr(self, key)).version != ip_version:
                raise ValueError(f"{key} is not an IPv{ip_version} address")


MorePaths = Annotated[list[StreamPath], Field(max_length=MAX_PAIRS**2 - 1)]


def differing_bits(addresses: list[str]) -> int:
    """A mask of the bits in which addresses of one version are not all the same."""
    first, *others = (int(ipaddress.ip_address(each)) for each in addresses)
    mask = 0
    for other in others:
        mask |= first ^ other
    return mask
