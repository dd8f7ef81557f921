"""Frames beside a trial's streams: routing updates and management queries."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dutperf.protocol.base import Mac, Message, Side, Wait

MAX_ANNOUNCEMENTS = 4096
_LONGEST_PACKET = 1500


class Announcement(Message):
    """A frame that one port sends once, beside all streams, and that nobody counts.

    RFC 2544 7: routing updates and the like are not among the frames that are offered.
    """

    port: Side = Field(description="which sends it, with its own MAC and VLAN tags")
    at_ns: Wait | None = Field(
        default=None,
        description="after the trial's start; null: before the wait for the device to "
        "settle (RFC 2544 23)",
    )
    dst_mac: Mac | None = Field(
        default=None,
        description="null: of the neighbour whose address the packet is for",
    )
    packet: Annotated[
        str,
        Field(
            pattern=r"^[46]([0-9a-f])([0-9a-f]{2})*$",
            min_length=2 * 20,
            max_length=2 * _LONGEST_PACKET,
            description="from the IP header on, as hexadecimal digits",
        ),
    ]
    answered_from: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None,
        description="UDP port: what comes back from it to this port is kept, two "
        "packets for each such announcement; null: nothing is; the same in all",
    )
