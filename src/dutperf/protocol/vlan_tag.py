"""VLAN tags: what may stand between a frame's MAC addresses and its EtherType."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator

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
    last_id: Annotated[int, Field(ge=0, le=4094)] | None = Field(
        default=None,
        description="the highest id, where they vary from id on; null: there is one",
    )

    @model_validator(mode="after")
    def _rises(self) -> VlanTag:
        if self.last_id is not None and self.last_id < self.id:
            raise ValueError(f"last_id {self.last_id} is below id {self.id}")
        return self


def _outermost_varies(tags: list[VlanTag]) -> list[VlanTag]:
    if any(tag.last_id is not None for tag in tags[1:]):
        raise ValueError("last_id is for the outermost tag")
    return tags


VlanTags = Annotated[
    list[VlanTag], Field(max_length=MAX_VLAN_TAGS), AfterValidator(_outermost_varies)
]
"""Outermost first."""


def vlan_bytes(tags: Sequence[VlanTag]) -> int:
    """How much longer they make a frame on the wire (IEEE 802.3ac)."""
    return _BYTES * len(tags)


def vlan_bytes_of_mtu(tags: Sequence[VlanTag]) -> int:
    """What they take of the MTU: a port carries one 802.1Q tag beside it, no more."""
    begins = bool(tags) and tags[0].tpid == VLAN_TPID
    return vlan_bytes(tags) - (_BYTES if begins else 0)
