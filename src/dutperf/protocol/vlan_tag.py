"""VLAN tags: what may stand between a frame's MAC addresses and its EtherType."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from dutperf.protocol.base import Message

VLAN_TPID: Final = 0x8100
"""IEEE 802.1Q."""
SERVICE_VLAN_TPID: Final = 0x88A8
"""IEEE 802.1ad: the outer one of two."""
MAX_VLAN_TAGS = 2
_BYTES = 4


class VlanTag(Message):
    """One tag of IEEE 802.1Q or 802.1ad; the drop eligible bit is 0."""

    tpid: Literal[0x8100, 0x88A8, 0x9100, 0x9200] = Field(
        default=VLAN_TPID,
        description="33024 (0x8100): 802.1Q; 34984 (0x88a8): 802.1ad; 37120 and 37376 "
        "(0x9100, 0x9200): before 802.1ad",
    )
    id: Annotated[int, Field(ge=0, le=4094, description="VLAN id; 0: priority only")]
    pcp: Annotated[int, Field(ge=0, le=7)] = Field(
        default=0, description="priority code point; not compared on receive"
    )


VlanTags = Annotated[list[VlanTag], Field(max_length=MAX_VLAN_TAGS)]
"""Outermost first."""


def vlan_bytes(tags: Sequence[VlanTag]) -> int:
    """How much longer they make a frame on the wire (IEEE 802.3ac)."""
    return _BYTES * len(tags)


def vlan_bytes_of_mtu(tags: Sequence[VlanTag]) -> int:
    """What they take of the MTU: a port carries one 802.1Q tag beside it, no more."""
    begins = bool(tags) and tags[0].tpid == VLAN_TPID
    return vlan_bytes(tags) - (_BYTES if begins else 0)
