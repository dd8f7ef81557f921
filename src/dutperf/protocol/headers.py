"""Headers between IP and UDP: names, and how many bytes they take.

As ``engine/src/net/extra_headers.cc`` writes them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Annotated, Final, Literal, Protocol, Self

from pydantic import AfterValidator, Field, model_validator

from dutperf.protocol.base import Ip, IpVersion, Mac, Message

Ipv6Header = Literal[
    "hop-by-hop",
    "destination-options",
    "routing",
    "fragment",
    "authentication",
    "mobility",
]
"""Extension headers (RFC 8200 4, RFC 4302, RFC 6275 6.1)."""
Ipv4Option = Literal["router-alert", "nop"]
"""Options (RFC 791 3.1, RFC 2113); ``nop`` is four of them."""
MAX_IPV6_HEADERS = 6
MAX_IPV4_OPTIONS = 10
"""As many as the header has room for."""

Ipv6Headers = Annotated[list[Ipv6Header], Field(max_length=MAX_IPV6_HEADERS)]
Ipv4Options = Annotated[list[Ipv4Option], Field(max_length=MAX_IPV4_OPTIONS)]

_BYTES: dict[str, int] = {
    "hop-by-hop": 8,
    "destination-options": 8,
    "routing": 24,
    "fragment": 8,
    "authentication": 24,
    "mobility": 8,
    "router-alert": 4,
    "nop": 4,
}


def header_bytes(names: Sequence[Ipv6Header | Ipv4Option]) -> int:
    """How much longer they make a packet."""
    return sum(_BYTES[name] for name in names)


# MPLS labels: what may stand between a frame's VLAN tags and its IP packet.


MIN_LABEL: Final = 16
"""Those below are reserved (RFC 3032 2.1)."""
MAX_LABEL: Final = 2**20 - 1
MAX_LABELS = 3
_LABEL_BYTES = 4


class MplsLabel(Message):
    """One entry of a label stack (RFC 3032 2.1); the last one has the S bit."""

    label: Annotated[int, Field(ge=MIN_LABEL, le=MAX_LABEL)] = Field(
        description="the label itself; those below 16 have meanings of their own"
    )
    tc: Annotated[int, Field(ge=0, le=7)] = Field(
        default=0, description="traffic class; not compared on receive"
    )
    ttl: Annotated[int, Field(ge=1, le=255)] = Field(
        default=64, description="time to live; not compared on receive"
    )


MplsLabels = Annotated[list[MplsLabel], Field(max_length=MAX_LABELS)]
"""Outermost first."""


def mpls_bytes(labels: Sequence[MplsLabel]) -> int:
    """How much longer they make a frame, and what they take of the MTU."""
    return _LABEL_BYTES * len(labels)


# VLAN tags: what may stand between a frame's MAC addresses and its EtherType.


VLAN_TPID: Final = 0x8100
"""IEEE 802.1Q."""
SERVICE_VLAN_TPID: Final = 0x88A8
"""IEEE 802.1ad: the outer one of two."""
MAX_VLAN_TAGS = 2
_TAG_BYTES = 4


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
    return _TAG_BYTES * len(tags)


def vlan_bytes_of_mtu(tags: Sequence[VlanTag]) -> int:
    """What they take of the MTU: a port carries one 802.1Q tag beside it, no more."""
    begins = bool(tags) and tags[0].tpid == VLAN_TPID
    return vlan_bytes(tags) - (_TAG_BYTES if begins else 0)


# Outer headers: what a frame's IP packet stands in on one side of the device.


TunnelKind = Literal["ip", "gre", "vxlan"]
_BEHIND_IP: dict[TunnelKind, int] = {"ip": 0, "gre": 4, "vxlan": 30}
"""GRE without options 4; UDP 8, VXLAN 8 and the inner Ethernet header 14."""
_IP_BYTES: dict[IpVersion, int] = {4: 20, 6: 40}
VNI_END = 2**24
Bits = Annotated[int, Field(ge=0, le=128)]


class Encapsulation(Message):
    """A tunnel as its end has it: the tester's, of a port (RFC 8219 4.2, single DUT).

    ``ip``: an IP header alone (RFC 2473, RFC 4213); ``gre``: RFC 2784 without key,
    checksum and sequence number; ``vxlan``: RFC 7348. Of what arrives hop limit,
    class, flow label, identification and UDP source port are not compared.
    """

    kind: TunnelKind
    local: Ip = Field(description="the tester's end")
    remote: Ip = Field(description="the device's end, of the same IP version")
    local_bits: Bits | None = Field(
        default=None,
        description="of local that what arrives must have, where it varies; null: all",
    )
    remote_bits: Bits | None = Field(default=None, description="likewise")
    ttl: Annotated[int, Field(ge=1, le=255)] = 64
    vni: Annotated[int, Field(ge=0, lt=VNI_END)] | None = Field(
        default=None, description="of VXLAN, which must have it"
    )
    src_port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None, description="UDP's of VXLAN; null: 49152"
    )
    inner_mac: Mac | None = Field(
        default=None, description="the device's in VXLAN, which must have it"
    )

    @model_validator(mode="after")
    def _ends_fit(self) -> Self:
        local, remote = map(ipaddress.ip_address, (self.local, self.remote))
        if local.version != remote.version:
            raise ValueError("local and remote must be of one IP version")
        is_vxlan = self.kind == "vxlan"
        if is_vxlan and (self.vni is None or self.inner_mac is None):
            raise ValueError("vxlan needs vni and inner_mac")
        if not is_vxlan and any((self.vni, self.src_port, self.inner_mac)):
            raise ValueError("vni, src_port and inner_mac are vxlan's")
        return self

    @property
    def outer_version(self) -> IpVersion:
        """Of the outer IP header."""
        return 6 if ":" in self.remote else 4

    @property
    def bytes(self) -> int:
        """How much longer it makes a frame."""
        return _IP_BYTES[self.outer_version] + _BEHIND_IP[self.kind]


class Headed(Protocol):
    """A port or a side: what its test frames have before their IP packets."""

    @property
    def vlan(self) -> list[VlanTag]: ...  # noqa: D102
    @property
    def mpls(self) -> list[MplsLabel]: ...  # noqa: D102
    @property
    def encapsulation(self) -> Encapsulation | None: ...  # noqa: D102


def bytes_before_ip(port: Headed) -> int:
    """How much longer tags, labels and outer headers make the frames of ``port``."""
    return vlan_bytes(port.vlan) + _behind_tags(port)


def bytes_of_mtu(port: Headed) -> int:
    """What of these the MTU has to carry: a port carries one 802.1Q tag beside it."""
    return vlan_bytes_of_mtu(port.vlan) + _behind_tags(port)


def _behind_tags(port: Headed) -> int:
    outer = port.encapsulation
    return mpls_bytes(port.mpls) + (outer.bytes if outer else 0)
