"""The paths of a stream between several ports: which sends, which receives."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    Strict,
    model_serializer,
    model_validator,
)

from dutperf.protocol.base import (
    MAX_PAIRS,
    Count,
    DirectionName,
    Ip,
    IpVersion,
    Mac,
    Message,
    Nanoseconds,
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


# Whose a received frame is: the address of the tester that the rest of it says.


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
    """The address to which the device must send a frame (RFC 7597 6, RFC 7599 6).

    Frames with another one are somebody else's, and count as misdirected. An IPv4
    address stands in the last 32 bits of 128 (RFC 5969 4).
    """

    address: Ip = Field(
        description="of IPv6, or an outer one of IPv4; its bits that follow nothing"
    )
    outer: bool = Field(
        default=False, description="of the outer header; else of the packet's own"
    )
    follows: Annotated[list[FollowingBits], Field(max_length=8)] = Field(default=[])

    @model_validator(mode="after")
    def _is_of_ipv6(self) -> ReceivedEnd:
        if ":" not in self.address and not self.outer:
            raise ValueError("address must be of IPv6")
        return self


# Messages of stateful trials (RFC 9693): which four-tuples are sent and learned.
#
# A four-tuple is source address and port, destination address and port. The initiator's
# stream enumerates tuples, ``generated``; number i of them is what frame i carries when
# each is sent once. A gateway changes them on the way, so the responder learns: its
# receiver stores what it sees under the tuple's number in the engine's table, which
# stays from trial to trial. Its stream sends them back, ``learned``: swapped, source
# for destination.
#
#     phase 1      initiator: generated, once        learn: keep false, a new table
#     phase 2      initiator: generated, random      learn: keep true, refreshed
#                  responder: learned, random
#     validation   responder: learned, increasing    frame k is entry k


MAX_COMBINATIONS = 2**48
MAX_TUPLES = 2**40
MAX_SEQUENCE = 4096
"""Frames after which sizes, or given tuples, begin again."""
MAX_SURVIVAL_BLOCKS = 2**16
MAX_LOST_RANGES = 4096
MAX_TOLD = 2**16

TupleSource = Literal["generated", "learned", "given"]
TupleOrder = Literal["once", "first", "increasing", "decreasing", "random", "shuffled"]
TupleCount = Annotated[int, Field(ge=1, le=MAX_TUPLES)]


class GivenFlow(Message):
    """The addresses and ports of a flow's frames."""

    src_ip: Ip
    dst_ip: Ip
    src_port: Annotated[int, Field(ge=0, le=65535)]
    dst_port: Annotated[int, Field(ge=0, le=65535)]


class Tuples(Message):
    """Which tuple each frame of a stream carries, of the numbers from 0 to count - 1.

    Of generated ones ``first`` is added: number 0 is that of the whole enumeration.
    ``once`` and ``shuffled`` take each once, in order or in a random one; there may be
    fewer frames. ``increasing`` and ``decreasing`` go round, ``random`` draws anew for
    each frame, ``first`` stays with number 0. Of given ones number k is that of flow
    ``sequence[k]``, and they go round.
    """

    source: TupleSource
    count: TupleCount
    order: TupleOrder = "random"
    first: Annotated[int, Field(ge=0, lt=MAX_COMBINATIONS)] = 0
    port_added: Annotated[int, Field(ge=0, le=65535)] = Field(
        default=0,
        description="of learned ones: the frames come from another port than that to "
        "which the connection was opened, which is so much higher (RFC 4787 5)",
    )
    address_added: Ip | None = Field(
        default=None,
        description="likewise from another address; as an address, from 0 on",
    )

    flows: Annotated[list[GivenFlow], Field(max_length=MAX_SEQUENCE)] = Field(
        default=[], description="of given ones"
    )
    sequence: Annotated[list[Count], Field(max_length=MAX_SEQUENCE)] = Field(
        default=[], description="of given ones: numbers of flows, as many as count"
    )

    @model_serializer(mode="wrap")
    def _without_keys_of_others(
        self, handler: SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        for key in () if self.source == "given" else ("flows", "sequence"):
            data.pop(key, None)
        return data

    @model_validator(mode="after")
    def _given_in_order(self) -> Tuples:
        if self.source != "given":
            if self.flows or self.sequence:
                raise ValueError("flows and sequence are of source given")
            return self
        if self.order != "increasing" or len(self.sequence) != self.count:
            raise ValueError(
                "given tuples are increasing, and sequence has count numbers"
            )
        if max(self.sequence) >= len(self.flows):
            raise ValueError("sequence has the number of a flow that is not given")
        return self

    @model_validator(mode="after")
    def _was_learned(self) -> Tuples:
        if self.source != "learned" and (self.port_added or self.address_added):
            raise ValueError("port_added and address_added are of learned tuples")
        return self

    @property
    def takes_each_once(self) -> bool:
        """Whether more frames than tuples cannot be."""
        return self.order in {"once", "shuffled"}


class ExpectedAddresses(Message):
    """The addresses from first to last."""

    first: Ip
    last: Ip

    @model_validator(mode="after")
    def _ordered(self) -> ExpectedAddresses:
        first, last = map(ipaddress.ip_address, (self.first, self.last))
        if first.version != last.version or int(first) > int(last):
            raise ValueError("last must not be before first")
        return self

    @property
    def version(self) -> int:
        """4 or 6."""
        return ipaddress.ip_address(self.first).version

    @property
    def count(self) -> int:
        """How many they are."""
        first, last = map(ipaddress.ip_address, (self.first, self.last))
        return int(last) - int(first) + 1

    def holds(self, address: str) -> bool:
        """Whether ``address`` is one of them."""
        first, last, asked = map(ipaddress.ip_address, (self.first, self.last, address))
        return first.version == asked.version and int(first) <= int(asked) <= int(last)


class Learn(Message):
    """Store the tuples that arrive of a direction's foreground stream.

    Tuple number i goes to entry i mod ``entries``; of a stream without ``tuples`` that
    is the frame's number. The memory of a new table is taken before the first frame is
    sent.
    """

    direction: DirectionName = Field(description="the initiator's")
    ip_version: IpVersion = Field(description="as it arrives; others are unexpected")
    entries: TupleCount
    keep: bool = Field(
        default=False, description="refresh the table of earlier trials, not a new one"
    )
    told: Annotated[int, Field(ge=0, le=MAX_TOLD)] = Field(
        default=0, description="so many of the first entries stand in the result"
    )
    expected: ExpectedAddresses | None = Field(
        default=None,
        description="where learned source addresses, the device's public ones, must be",
    )

    @model_validator(mode="after")
    def _versions(self) -> Learn:
        expected = self.expected
        if expected and expected.version != self.ip_version:
            raise ValueError(f"expected holds no IPv{self.ip_version} addresses")
        return self


class Survival(Message):
    """Which frames of a stream arrived, in blocks of consecutive numbers."""

    block_frames: Annotated[int, Field(ge=1)]
    received: list[Count] = Field(description="of each block; the last may be shorter")
    lost_ranges: Annotated[
        list[Annotated[tuple[Count, Count], Strict(strict=False)]],
        Field(max_length=MAX_LOST_RANGES),
    ] = Field(description="[first, how many] of frames sent and lost in a row")
    more_ranges: Count = Field(description="how many there are beside lost_ranges")


LearnedTuple = Annotated[tuple[Ip, Count, Ip, Count], Strict(strict=False)]
"""From whom, and to whom, a frame came: source address and port, destination's."""


class TableResult(Message):
    """The engine's table after a trial that used it."""

    ip_version: IpVersion
    entries: Count
    filled: Count
    bytes_per_entry: Count
    memory_bytes: Count
    hugepages: bool
    allocation_ns: Nanoseconds = Field(description="when the table was new")
    learned: Count = Field(description="frames whose tuples were stored")
    changed: Count = Field(
        description="of those, another tuple than the entry's: a new mapping"
    )
    unexpected: Count = Field(
        description="of learn.expected or ip_version not the source address"
    )
    unexpected_example: Ip | None
    source_example: Ip | None = Field(
        default=None,
        description="whom the responder saw send the first frame that it learned; "
        "null: nobody",
    )
    unlearned_sent: Count = Field(
        description="learned frames sent of empty entries: with the stream's addresses"
    )
    since_learning_ns: Nanoseconds = Field(
        description="this trial's start less the start of the one that made the table"
    )
    told: Annotated[list[LearnedTuple | None], Field(max_length=MAX_TOLD)] = Field(
        default=[], description="as many as learn.told asks for; null: an empty entry"
    )
