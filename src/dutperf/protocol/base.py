"""What all messages of the protocol are made of: base, units, addresses, names."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, Protocol, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
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
MAX_SHARES = 32
"""Of a direction's work."""
MAX_BINDINGS = 2**20
"""Rows of a binding table."""
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


# Headers around IP: names, how many bytes they take, and what a medium carries.
#
# As ``engine/src/net/extra_headers.cc`` writes them.


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


TunnelKind = Literal["ip", "gre", "vxlan", "srv6"]
_BEHIND_IP: dict[TunnelKind, int] = {"ip": 0, "gre": 4, "vxlan": 30}
"""GRE without options 4; UDP 8, VXLAN 8 and the inner Ethernet header 14."""
MAX_SEGMENTS = 16
_IP_BYTES: dict[IpVersion, int] = {4: 20, 6: 40}
VNI_END = 2**24
FLOW_LABEL_BITS = 20
Bits = Annotated[int, Field(ge=0, le=128)]


def _check_ipv6(text: str) -> str:
    if ":" not in text:
        raise ValueError("must be an IPv6 address")
    return text


Segments = Annotated[
    list[Annotated[Ip, AfterValidator(_check_ipv6)]],
    Field(min_length=1, max_length=MAX_SEGMENTS),
]
"""In the order in which a packet visits them."""
SegmentsLeft = Annotated[int, Field(ge=0, lt=MAX_SEGMENTS)]
SegmentTag = Annotated[int, Field(ge=0, le=65535)]


class SegmentRouting(Message):
    """Segments of an SRv6 packet, and how its header has them (RFC 8754 2)."""

    segments: Segments = Field(
        description="first to last; the header has them reversed"
    )
    segments_left: SegmentsLeft = Field(
        description="how many follow the one that the packet is on its way to"
    )
    reduced: bool = Field(
        default=False,
        description="the header goes without the first segment (RFC 8754 4.1.1); of a "
        "single one there is no header then (RFC 8986 5.2)",
    )
    tag: SegmentTag = 0

    @model_validator(mode="after")
    def _some_are_left(self) -> Self:
        if self.segments_left >= len(self.segments):
            raise ValueError(
                f"segments_left {self.segments_left} must be below the number of "
                f"segments, {len(self.segments)}"
            )
        return self

    @property
    def destination(self) -> str:
        """Of the IPv6 header."""
        return self.segments[-1 - self.segments_left]

    @property
    def bytes(self) -> int:
        """Of the routing header; 0: there is none."""
        entries = len(self.segments) - self.reduced
        return 8 + 16 * entries if entries else 0


class Encapsulation(Message):
    """A tunnel as its end has it: the tester's, of a port (RFC 8219 4.2, single DUT).

    ``ip``: an IP header alone (RFC 2473, RFC 4213); ``gre``: RFC 2784 without key,
    checksum and sequence number; ``vxlan``: RFC 7348; ``srv6``: an IPv6 header and a
    Segment Routing Header (RFC 8986 5.1, 5.2). Of what arrives hop limit, class, flow
    label, identification and UDP source port are not compared.
    """

    kind: TunnelKind
    local: Ip = Field(
        description="the tester's end; of srv6 the source of what is sent"
    )
    remote: Ip = Field(
        description="the device's end, of the same IP version; of srv6 the source of "
        "what arrives"
    )
    local_bits: Bits | None = Field(
        default=None,
        description="of local that what arrives must have, where it varies; null: all",
    )
    remote_bits: Bits | None = Field(default=None, description="likewise")
    ttl: Annotated[int, Field(ge=1, le=255)] = 64
    flow_label: Annotated[int, Field(ge=0, lt=2**FLOW_LABEL_BITS)] = Field(
        default=0, description="of outer headers of IPv6, of what is sent"
    )
    vni: Annotated[int, Field(ge=0, lt=VNI_END)] | None = Field(
        default=None, description="of VXLAN, which must have it"
    )
    src_port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None, description="UDP's of VXLAN; null: 49152"
    )
    inner_mac: Mac | None = Field(
        default=None, description="the device's in VXLAN, which must have it"
    )
    srh: SegmentRouting | None = Field(
        default=None, description="of srv6, which must have it: of what is sent"
    )
    received_srh: SegmentRouting | None = Field(
        default=None, description="likewise, as what arrives has it"
    )

    @model_validator(mode="after")
    def _ends_fit(self) -> Self:
        local, remote = map(ipaddress.ip_address, (self.local, self.remote))
        if local.version != remote.version:
            raise ValueError("local and remote must be of one IP version")
        if self.flow_label and local.version == 4:
            raise ValueError("flow_label is a field of IPv6")
        is_vxlan = self.kind == "vxlan"
        if is_vxlan and (self.vni is None or self.inner_mac is None):
            raise ValueError("vxlan needs vni and inner_mac")
        if not is_vxlan and any((self.vni, self.src_port, self.inner_mac)):
            raise ValueError("vni, src_port and inner_mac are vxlan's")
        for key, path in (("srh", self.srh), ("received_srh", self.received_srh)):
            if (path is not None) != (self.kind == "srv6"):
                raise ValueError(f"{key} is srv6's, which needs it")
        if self.kind == "srv6" and local.version != 6:
            raise ValueError("srv6 has outer headers of IPv6")
        return self

    @property
    def outer_version(self) -> IpVersion:
        """Of the outer IP header."""
        return 6 if ":" in self.remote else 4

    @property
    def bytes(self) -> int:
        """How much longer it makes a frame that is sent."""
        return self._bytes(self.srh)

    @property
    def received_bytes(self) -> int:
        """How much longer it makes a frame that arrives: by other segments."""
        return self._bytes(self.received_srh)

    def _bytes(self, path: SegmentRouting | None) -> int:
        behind = path.bytes if path else _BEHIND_IP.get(self.kind, 0)
        return _IP_BYTES[self.outer_version] + behind


class Headed(Protocol):
    """A port or a side: what its test frames have before their IP packets."""

    @property
    def vlan(self) -> list[VlanTag]: ...  # noqa: D102
    @property
    def mpls(self) -> list[MplsLabel]: ...  # noqa: D102
    @property
    def encapsulation(self) -> Encapsulation | None: ...  # noqa: D102


def bytes_before_ip(port: Headed, *, sends: bool = True, receives: bool = True) -> int:
    """How much longer tags, labels and outer headers make the frames of ``port``.

    The longest that it has: of those that it sends, and of those that it receives.
    """
    outer = outer_bytes(port.encapsulation, sends=sends, receives=receives)
    return vlan_bytes(port.vlan) + mpls_bytes(port.mpls) + outer


def bytes_of_mtu(port: Headed) -> int:
    """What of these the MTU has to carry: a port carries one 802.1Q tag beside it."""
    outer = outer_bytes(port.encapsulation)
    return vlan_bytes_of_mtu(port.vlan) + mpls_bytes(port.mpls) + outer


def outer_bytes(
    outer: Encapsulation | None, *, sends: bool = True, receives: bool = True
) -> int:
    """How much longer outer headers make frames, where both lengths count."""
    if outer is None:
        return 0
    return max(sends * outer.bytes, receives * outer.received_bytes)


# What the medium can carry, and what frames take of it (RFC 5180 A.1, RFC 2544 B).


PREAMBLE_AND_GAP_BYTES = 20
"""Preamble and start of frame 8, interframe gap 12."""


def line_rate_fps(link_speed_mbps: int, frame_size: int | Fraction) -> int:
    """Frames per second and direction that Ethernet carries, rounded down.

    ``frame_size`` is in bytes and includes the FCS; the mean where sizes differ.
    """
    return int(link_speed_mbps * 1_000_000 / _bits(frame_size))


def wire_mbps(rate_fps: float, frame_size: int | Fraction) -> float:
    """What so many frames take of the medium, preambles and gaps included, 10^6/s."""
    return float(Fraction(rate_fps) * _bits(frame_size) / 1_000_000)


def _bits(frame_size: int | Fraction) -> Fraction:
    return 8 * (Fraction(frame_size) + PREAMBLE_AND_GAP_BYTES)
