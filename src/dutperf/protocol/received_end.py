"""Whose a received frame is: the address of the tester that the rest of it says."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from dutperf.protocol.base import Ip, Message

_BITS = {"dst_ip": 128, "dst_port": 16}


class FollowingBits(Message):
    """``width`` bits of the end's address are those of the packet's destination.

    Of its address or its port. Bits of ``dst_ip`` that are those of themselves may have
    any value.
    """

    offset: Annotated[int, Field(ge=0, le=127)] = 0
    width: Annotated[int, Field(ge=1, le=32)]
    of: Literal["dst_ip", "dst_port"]
    of_offset: Annotated[int, Field(ge=0, le=127)] = 0

    @model_validator(mode="after")
    def _bits_are_there(self) -> FollowingBits:
        if self.offset + self.width > 128:
            raise ValueError("an address has 128 bits")
        if self.of_offset + self.width > _BITS[self.of]:
            raise ValueError(f"{self.of} has {_BITS[self.of]} bits")
        return self


class ReceivedEnd(Message):
    """The IPv6 address to which the device must send a frame (RFC 7597 6, RFC 7599 6).

    Frames with another one are somebody else's, and count as misdirected.
    """

    address: Ip = Field(description="of IPv6; its bits that follow nothing")
    outer: bool = Field(
        default=False, description="of the outer header; else of the packet's own"
    )
    follows: Annotated[list[FollowingBits], Field(max_length=8)] = Field(default=[])

    @model_validator(mode="after")
    def _is_of_ipv6(self) -> ReceivedEnd:
        if ":" not in self.address:
            raise ValueError("address must be of IPv6")
        return self
