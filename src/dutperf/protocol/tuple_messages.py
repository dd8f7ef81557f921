"""Messages of stateful trials (RFC 9693): which four-tuples are sent and learned.

A four-tuple is source address and port, destination address and port. The initiator's
stream enumerates tuples, ``generated``; number i of them is what frame i carries when
each is sent once. A gateway changes them on the way, so the responder learns: its
receiver stores what it sees under the tuple's number in the engine's table, which
stays from trial to trial. Its stream sends them back, ``learned``: swapped, source for
destination.

    phase 1      initiator: generated, once        learn: keep false, a new table
    phase 2      initiator: generated, random      learn: keep true, refreshed
                 responder: learned, random
    validation   responder: learned, increasing    frame k is entry k
"""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import Field, Strict, model_validator

from dutperf.protocol.base import (
    Count,
    DirectionName,
    Ip,
    IpVersion,
    Message,
    Nanoseconds,
)

MAX_COMBINATIONS = 2**48
MAX_TUPLES = 2**40
MAX_SURVIVAL_BLOCKS = 2**16
MAX_LOST_RANGES = 4096

TupleSource = Literal["generated", "learned"]
TupleOrder = Literal["once", "first", "increasing", "decreasing", "random", "shuffled"]
TupleCount = Annotated[int, Field(ge=1, le=MAX_TUPLES)]


class Tuples(Message):
    """Which tuple each frame of a stream carries, of the numbers from 0 to count - 1.

    Of generated ones ``first`` is added: number 0 is that of the whole enumeration.
    ``once`` and ``shuffled`` take each once, in order or in a random one; there may be
    fewer frames. ``increasing`` and ``decreasing`` go round, ``random`` draws anew for
    each frame, ``first`` stays with number 0.
    """

    source: TupleSource
    count: TupleCount
    order: TupleOrder = "random"
    first: Annotated[int, Field(ge=0, lt=MAX_COMBINATIONS)] = 0

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
