"""What a side sends around its packets: labels, tags, a tunnel, a MAP rule."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from dutperf.model.fields import KeyedError, Shorthand, Strict
from dutperf.model.hosts import AddressSet, BitField
from dutperf.protocol.base import (
    MAX_LABEL,
    MAX_LABELS,
    MAX_VLAN_TAGS,
    MIN_LABEL,
    SERVICE_VLAN_TPID,
    VNI_END,
    Encapsulation,
    Ip,
    IpVersion,
    Mac,
    MplsLabel,
    SegmentRouting,
    Segments,
    SegmentsLeft,
    SegmentTag,
    TunnelKind,
    VlanTags,
)
from dutperf.protocol.stream_messages import FieldCopy, FieldVariation
from dutperf.protocol.stream_parts import FollowingBits

# MAP (RFC 7597, 7599): which customer edges stand behind a rule, and what they send.
#
# A customer edge (CE) shares an IPv4 address with others: its set of ports is that of
# its PSID. Its IPv6 address has both embedded, so address and ports of a packet must
# belong together, which a border relay checks. The tester is all CEs of a rule at once:
# suffix and port vary at random, and what the IPv6 address says of them follows. That
# address is of the tunnel's end (MAP-E), or the packet's own (MAP-T).
#
# ::
#
#     IPv6    | rule's prefix | EA bits: IPv4 suffix, PSID | 0 | IPv4 address | PSID |
#     port    | A, psid_offset bits, not all 0 | PSID | M |


_INTERFACE_ID = 64
_IPV4_PLACE = 80
"""RFC 7597 6: 16 bits of 0, the IPv4 address, 16 bits with the PSID at their end."""
_PORT_BITS = 16


def _ipv4_network(text: str) -> str:
    return str(ipaddress.IPv4Network(text))


def _ipv6_network(text: str) -> str:
    return str(ipaddress.IPv6Network(text))


class MapRule(Strict):
    """A basic mapping rule, all of whose CEs the tester is (RFC 7597 5)."""

    ipv6_prefix: Annotated[str, AfterValidator(_ipv6_network)] = Field(
        description="the rule's, like 2001:db8::/40"
    )
    ipv4_prefix: Annotated[str, AfterValidator(_ipv4_network)] = Field(
        description="the rule's, like 192.0.2.0/24; the side's ipv4.address is in it"
    )
    ea_bits: Annotated[int, Field(ge=0, le=48)] = Field(
        description="length of the embedded address bits: IPv4 suffix and PSID"
    )
    psid_offset: Annotated[int, Field(ge=0, le=15)] = Field(
        default=6, description="bits of a port before its PSID, not all of them 0"
    )

    @model_validator(mode="after")
    def _bits_fit(self) -> Self:
        if self.psid_bits < 0:
            raise KeyedError(
                ("ea_bits",),
                f"{self.ea_bits} are fewer than the IPv4 suffix has, "
                f"{self.suffix_bits}: CEs with IPv4 prefixes are not simulated",
                "take a longer ipv4_prefix or more ea_bits",
            )
        if self.psid_offset + self.psid_bits > _PORT_BITS:
            raise KeyedError(
                ("psid_offset",),
                f"{self.psid_offset} bits and {self.psid_bits} of the PSID are more "
                "than a port has, 16",
            )
        if self._ipv6.prefixlen + self.ea_bits > _INTERFACE_ID:
            raise KeyedError(
                ("ea_bits",),
                f"{self.ea_bits} behind a prefix of {self._ipv6.prefixlen} reach into "
                "the interface identifier, which begins at bit 64",
            )
        return self

    @property
    def _ipv6(self) -> ipaddress.IPv6Network:
        return ipaddress.IPv6Network(self.ipv6_prefix)

    @property
    def _ipv4(self) -> ipaddress.IPv4Network:
        return ipaddress.IPv4Network(self.ipv4_prefix)

    @property
    def prefix_bits(self) -> int:
        """Of the IPv6 addresses, what all CEs have."""
        return self._ipv6.prefixlen

    @property
    def suffix_bits(self) -> int:
        """Of an IPv4 address, what differs between those of the rule."""
        return 32 - self._ipv4.prefixlen

    @property
    def psid_bits(self) -> int:
        """0: no address is shared."""
        return self.ea_bits - self.suffix_bits

    def holds(self, ipv4: str) -> bool:
        """Whether it is a CE's address."""
        return ipaddress.IPv4Address(ipv4) in self._ipv4

    def address(self, ipv4: str, psid: int) -> str:
        """The MAP IPv6 address of a CE (RFC 7597 5.2, 6)."""
        number = int(ipaddress.IPv4Address(ipv4))
        suffix = number & ((1 << self.suffix_bits) - 1)
        embedded = suffix << self.psid_bits | psid
        shift = 128 - self.prefix_bits - self.ea_bits
        own = int(self._ipv6.network_address)
        return str(ipaddress.IPv6Address(own | embedded << shift | number << 16 | psid))

    def customers(self, base: str) -> AddressSet:
        """All CEs' addresses: of IPv4, or of IPv6 but for what follows."""
        if not self.suffix_bits:
            return AddressSet(base)
        most = (1 << self.suffix_bits) - 1
        offset = self.prefix_bits if ":" in base else 32 - self.suffix_bits
        return AddressSet(
            base, (BitField(offset, self.suffix_bits, 0, most, "random"),)
        )

    def ports(self, field: Literal["src_port", "dst_port"]) -> Iterator[FieldVariation]:
        """Each port that any CE may have, as likely as any other one."""
        offset = 0
        behind = _PORT_BITS - self.psid_offset - self.psid_bits
        for width, least in ((self.psid_offset, 1), (self.psid_bits, 0), (behind, 0)):
            if width:
                most = (1 << width) - 1
                yield FieldVariation(
                    field=field, offset=offset, width=width, min=least, max=most
                )
            offset += width

    def port_of(self, psid: int) -> int:
        """The first port of a CE."""
        behind = _PORT_BITS - self.psid_offset - self.psid_bits
        first = 1 << (_PORT_BITS - self.psid_offset) if self.psid_offset else 0
        return first | psid << behind

    def copies(self, *, translated: bool) -> Iterator[FieldCopy]:
        """What of a CE's packet its IPv6 address has, twice: in prefix and identifier.

        Of the IPv4 address only the suffix: the rest is the same in all.

        Args:
            translated: MAP-T, where the first place of the suffix is what varies.
        """
        for end in self._embedded(translated=translated):
            if not end.is_source:
                yield FieldCopy(
                    field="src_ip" if translated else "outer_src",
                    offset=end.offset,
                    width=end.width,
                    of="src_port" if end.of_port else "src_ip",
                    of_offset=end.of_offset,
                )

    def follows(self, *, translated: bool) -> Iterator[FollowingBits]:
        """The same of what arrives for a CE."""
        for end in self._embedded(translated=translated):
            yield FollowingBits(
                offset=end.offset,
                width=end.width,
                of="dst_port" if end.of_port else "dst_ip",
                of_offset=end.of_offset,
            )

    def _embedded(self, *, translated: bool) -> Iterator[_Embedded]:
        suffix, psid = self.suffix_bits, self.psid_bits
        of_suffix = self.prefix_bits if translated else 32 - suffix
        ends = (
            (self.prefix_bits, self.prefix_bits + suffix),
            (_IPV4_PLACE + 32 - suffix, 128 - psid),
        )
        for suffix_at, psid_at in ends:
            if suffix:
                is_source = translated and suffix_at == of_suffix
                yield _Embedded(suffix_at, suffix, False, of_suffix, is_source)
            if psid:
                yield _Embedded(psid_at, psid, True, self.psid_offset, False)


class _Embedded(NamedTuple):
    """Bits of a CE's IPv6 address, and whence they are: its IPv4 address, or a port."""

    offset: int
    width: int
    of_port: bool
    of_offset: int
    is_source: bool
    """They are themselves what others are copied from."""


SideLabels = Annotated[
    list[MplsLabel],
    Field(max_length=MAX_LABELS),
    Shorthand("label", MIN_LABEL, MAX_LABEL),
]


# The key ``vlan`` of a side: a VLAN id, a range of them, or tags, outermost first.
#
# A number is the id of an 802.1Q tag. Of two tags the outer one is 802.1ad's, unless it
# says otherwise: ``[10, 100]`` is 100 inside the service VLAN 10. The ids of the outer
# one may be a range, ``100-199``: each frame has one of these.


_RANGE = re.compile(r"(\d{1,4})-(\d{1,4})")


def _completed(tags: list[Any]) -> list[Any]:
    tags = [_with_range(tag) for tag in tags]
    if len(tags) == MAX_VLAN_TAGS and isinstance(tags[0], dict):
        tags[0] = {"tpid": SERVICE_VLAN_TPID} | tags[0]
    return tags


def _with_range(tag: Any) -> Any:  # noqa: ANN401 - raw YAML
    found = _RANGE.fullmatch(tag) if isinstance(tag, str) else None
    return {"id": int(found[1]), "last_id": int(found[2])} if found else tag


SideTags = Annotated[
    VlanTags,
    Shorthand("id", 0, 4094, _completed, r"[0-9]{1,4}-[0-9]{1,4}"),
]


# The key ``encapsulation`` of a side: the tester itself is one end of a tunnel.
#
# RFC 8219 4.2 wants a second device for encapsulation, and recommends tests of each one
# alone. The tester then sends inside outer headers and expects them on that side; on
# the other one it speaks as the packets inside. The key is a name, or an object.
#
# encapsulation: ipv4-in-ipv6     encapsulation: {kind: gre, remote: "2001:db8::1"}


SideKind = Literal["ipv4-in-ipv6", "ipv6-in-ipv4", "gre", "vxlan", "srv6"]
_KINDS: dict[SideKind, TunnelKind] = {
    "ipv4-in-ipv6": "ip",
    "ipv6-in-ipv4": "ip",
    "gre": "gre",
    "vxlan": "vxlan",
    "srv6": "srv6",
}
_OUTER: dict[str, IpVersion] = {"ipv4-in-ipv6": 6, "ipv6-in-ipv4": 4, "srv6": 6}
_INNER: dict[str, IpVersion] = {"ipv4-in-ipv6": 4, "ipv6-in-ipv4": 6}
PER_HOST_BITS = 96
"""Of the tester's outer address that all tunnels have, where each host has its own."""


class SideSegments(Strict):
    """The segments of packets, and how their header has them (RFC 8754 2)."""

    segments: Segments = Field(description="IPv6 addresses, first to last")
    segments_left: SegmentsLeft | None = Field(
        default=None,
        description="how many follow the one that a packet on this link is on its way "
        "to; default: of what the tester sends all but the first, of what arrives none",
    )
    reduced: bool = Field(
        default=False,
        description="the header goes without the first segment, which stands in the "
        "destination alone (RFC 8754 4.1.1); of a single one there is no header then",
    )
    tag: SegmentTag = Field(default=0, description="of the header")

    def on_the_wire(self, left: int) -> SegmentRouting:
        """With ``left`` segments left where it does not say how many."""
        keys = self.model_dump() | {"segments_left": left}
        if self.segments_left is not None:
            keys["segments_left"] = self.segments_left
        return SegmentRouting(**keys)

    @model_validator(mode="after")
    def _some_are_left(self) -> Self:
        if (self.segments_left or 0) >= len(self.segments):
            raise KeyedError(
                ("segments_left",),
                f"{self.segments_left} must be below the number of segments, "
                f"{len(self.segments)}",
            )
        return self


def _listed(value: Any) -> Any:  # noqa: ANN401 - raw YAML
    return {"segments": value} if isinstance(value, list) else value


_SegmentsOfASide = Annotated[
    SideSegments | None,
    BeforeValidator(_listed, json_schema_input_type=SideSegments | Segments | None),
]


class SideEncapsulation(Strict):
    """The tunnel of one side (RFC 8219 4.2; RFC 2473, 4213, 2784, 7348, 8986)."""

    kind: SideKind = Field(
        description="ipv4-in-ipv6 (DS-Lite, lw4o6, MAP-E), ipv6-in-ipv4 (6in4, 6rd), "
        "gre without options, vxlan, or srv6"
    )
    remote: Ip | None = Field(
        default=None,
        description="the DUT's end; default: the side's gateway of the outer version. "
        "gre and vxlan must have it; of srv6 the source address of what arrives",
    )
    local: Ip | None = Field(
        default=None,
        description="the tester's end; default: its own address on this side",
    )
    srh: _SegmentsOfASide = Field(
        default=None,
        description="of srv6, which must have it: the segments that the tester's "
        "packets visit, first to last, or an object",
    )
    received_srh: _SegmentsOfASide = Field(
        default=None,
        description="of srv6: the same of what arrives; default: a header with the "
        "tester's end alone",
    )
    tunnel_per_host: bool = Field(
        default=False,
        description="each host of traffic.addresses on this side is at the end of a "
        "tunnel of its own: the bits of its address that vary stand at the same "
        "place, counted from the end, of an outer IPv6 address",
    )
    map: MapRule | None = Field(
        default=None,
        description="the tester is all customer edges of a MAP-E rule (RFC 7597) on "
        "this side: addresses and ports vary together, and the outer address follows",
    )
    ttl: Annotated[int, Field(ge=1, le=255)] = Field(
        default=64, description="hop limit of the outer header"
    )
    vni: Annotated[int, Field(ge=0, lt=VNI_END)] | None = Field(
        default=None, description="of vxlan, which must have it"
    )
    inner_mac: Mac | None = Field(
        default=None, description="the DUT's in vxlan, which must have it"
    )

    @model_validator(mode="after")
    def _keys_fit_the_kind(self) -> Self:
        if self.kind in ("gre", "vxlan") and self.remote is None:
            raise KeyedError(("remote",), f"{self.kind} needs the DUT's end, remote")
        if self.remote and self.local and (":" in self.remote) != (":" in self.local):
            raise KeyedError(("local",), "is not of the IP version of remote")
        outer = _OUTER.get(self.kind)
        for key, end in (("remote", self.remote), ("local", self.local)):
            if end and outer and (":" in end) != (outer == 6):
                raise KeyedError((key,), f"{self.kind} has outer headers of IPv{outer}")
        for key, given in (("vni", self.vni), ("inner_mac", self.inner_mac)):
            if (given is not None) != (self.kind == "vxlan"):
                needs = "needs" if self.kind == "vxlan" else "has no"
                raise KeyedError((key,), f"{self.kind} {needs} {key}")
        if self.kind == "srv6":
            if self.srh is None:
                raise KeyedError(
                    ("srh",), "srv6 needs the segments of its packets, srh"
                )
            if self.tunnel_per_host:
                raise KeyedError(("tunnel_per_host",), "does not go with srv6")
        for key, path in (("srh", self.srh), ("received_srh", self.received_srh)):
            if path and self.kind != "srv6":
                raise KeyedError((key,), f"{self.kind} has no {key}")
        if self.map:
            if self.kind != "ipv4-in-ipv6":
                raise KeyedError(("map",), f"is ipv4-in-ipv6, not {self.kind}")
            for key, there in (
                ("local", self.local),
                ("tunnel_per_host", self.tunnel_per_host),
            ):
                if there:
                    raise KeyedError((key,), "does not go with map, which says it")
        if self.tunnel_per_host and self.outer_version == 4:
            raise KeyedError(
                ("tunnel_per_host",), "needs outer headers of IPv6: nothing else varies"
            )
        return self

    @property
    def outer_version(self) -> IpVersion:
        """Of the outer header."""
        known = _OUTER.get(self.kind)
        return known or (6 if self.remote and ":" in self.remote else 4)

    @classmethod
    def at_other_end(cls, devices: Encapsulation, rule: MapRule | None) -> Self:
        """Of the tester, where the known-answer device has ``devices``.

        ``rule``: whose border relay it is.
        """
        if rule:
            return cls(kind="ipv4-in-ipv6", remote=devices.local, map=rule)
        kind: SideKind = (
            devices.kind
            if devices.kind != "ip"
            else "ipv4-in-ipv6"
            if devices.outer_version == 6
            else "ipv6-in-ipv4"
        )
        sent, received = (
            path and SideSegments(**path.model_dump())
            for path in (devices.received_srh, devices.srh)
        )
        return cls(
            kind=kind,
            local=devices.remote,
            remote=devices.local,
            tunnel_per_host=devices.remote_bits is not None,
            vni=devices.vni,
            inner_mac=devices.inner_mac,
            srh=sent,
            received_srh=received,
        )

    def carries(self, version: IpVersion) -> bool:
        """Whether packets of ``version`` may be inside."""
        return _INNER.get(self.kind, version) == version

    def between(self, local: str, remote: str, inner: str | None) -> Encapsulation:
        """The tunnel, with the side's addresses where it does not name its own.

        ``inner``: the side's own IPv4 address, which a CE has.
        """
        bits = PER_HOST_BITS if self.tunnel_per_host else None
        if self.map and inner:
            local, bits = self.map.address(inner, 0), self.map.prefix_bits
        local = self.local or local
        sent = received = None
        if self.srh:
            at_tester = self.received_srh or SideSegments(segments=[local])
            sent = self.srh.on_the_wire(len(self.srh.segments) - 1)
            received = at_tester.on_the_wire(0)
        return Encapsulation(
            kind=_KINDS[self.kind],
            local=local,
            remote=self.remote or remote,
            local_bits=bits,
            ttl=self.ttl,
            vni=self.vni,
            inner_mac=self.inner_mac,
            srh=sent,
            received_srh=received,
        )


def _named(value: Any) -> Any:  # noqa: ANN401 - raw YAML
    return {"kind": value} if isinstance(value, str) else value


KeyOfASide = Annotated[
    SideEncapsulation | None,
    BeforeValidator(_named, json_schema_input_type=SideEncapsulation | SideKind | None),
]
