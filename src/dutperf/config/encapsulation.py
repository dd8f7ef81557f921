"""What a side sends around its packets: labels, tags, a tunnel, many edges' rule."""

from __future__ import annotations

import ipaddress
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from dutperf.config.bindings import Bindings, absolute, read_bindings
from dutperf.errors import InputError
from dutperf.model.fields import (
    KeyedError,
    NumberAsText,
    Shorthand,
    Strict,
    label_or,
    label_schema,
)
from dutperf.model.hosts import AddressSet, BitField
from dutperf.protocol.base import (
    FLOW_LABEL_BITS,
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
from dutperf.protocol.stream_messages import TUPLE_FIELDS, FieldCopy, FieldVariation
from dutperf.protocol.stream_parts import FollowingBits

# MAP (RFC 7597, 7599), lw4o6 (RFC 7596): which customer edges stand behind a rule.
#
# A customer edge (CE; of lw4o6: B4) shares an IPv4 address with others: its set of
# ports is that of its PSID. Its IPv6 address belongs to both: MAP has them embedded in
# it, a binding table of lw4o6 counts. So address and ports of a packet must belong
# together, which a border relay (lwAFTR) checks. The tester is all CEs of a rule at
# once: suffix and port vary at random, and what the IPv6 address says of them follows.
# That address is of the tunnel's end (MAP-E, lw4o6), or the packet's own (MAP-T).
#
# 6rd (RFC 5969) is the other way round: the IPv6 packets are inside, and the prefix of
# a CE has its IPv4 address, the tunnel's end.
#
# ::
#
#     MAP     | rule's prefix | EA bits: IPv4 suffix, PSID | 0 | IPv4 address | PSID |
#     lw4o6   | first B4's | its number: IPv4 suffix, PSID | first B4's |
#     6rd     | domain's prefix | IPv4 suffix | the CE's own networks and hosts |
#     port    | A, psid_offset bits, not all 0 | PSID | M |


_INTERFACE_ID = 64
_IPV4_PLACE = 80
"""RFC 7597 6: 16 bits of 0, the IPv4 address, 16 bits with the PSID at their end."""
_PORT_BITS = 16
_SYSTEM_PORTS = 1024
"""Nobody's, as long as a CE has others: RFC 6335 6, RFC 7597 5.1."""


def _ipv4_network(text: str) -> str:
    return str(ipaddress.IPv4Network(text))


def _ipv6_network(text: str) -> str:
    return str(ipaddress.IPv6Network(text))


def _ipv6_interface(text: str) -> str:
    return str(ipaddress.IPv6Interface(text))


class EdgeRule(Strict, ABC):
    """Which addresses the customer edges have that the tester is."""

    inner_version: ClassVar[IpVersion] = 4
    """Of their packets; of MAP-T on the other side of the relay."""

    @property
    @abstractmethod
    def common_bits(self) -> int:
        """How many bits of the tunnels' ends are the same before the first others."""

    @property
    @abstractmethod
    def own_prefix(self) -> str:
        """Of the addresses of their packets."""

    @property
    @abstractmethod
    def can_be_spoofed(self) -> bool:
        """Whether there are two of which one can say that it is the other one."""

    @abstractmethod
    def edge_of(self, own: str) -> str:
        """The other address of a CE, the first one that has ``own``."""

    @abstractmethod
    def customers(self, base: str) -> AddressSet:
        """All CEs' addresses of the version of ``base``, but for what follows."""

    @abstractmethod
    def _embedded(self, *, translated: bool) -> Iterator[_Embedded]: ...

    def holds(self, own: str) -> bool:
        """Whether a CE may send from that address."""
        network = ipaddress.ip_network(self.own_prefix)
        return ipaddress.ip_address(own) in network

    def copies(self, *, translated: bool) -> Iterator[FieldCopy]:
        """What of a CE's packet its other address has.

        By MAP it has that twice, in its prefix and in its interface identifier.
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


class PrefixRule(EdgeRule, ABC):
    """Of edges whose IPv4 addresses are those of a prefix."""

    ipv4_prefix: Annotated[str, AfterValidator(_ipv4_network)] = Field(
        description="the rule's, like 192.0.2.0/24; the side's ipv4.address is in it"
    )

    @property
    def _ipv4(self) -> ipaddress.IPv4Network:
        return ipaddress.IPv4Network(self.ipv4_prefix)

    @property
    def suffix_bits(self) -> int:
        """Of an IPv4 address, what differs between those of the rule."""
        return 32 - self._ipv4.prefixlen


class SharingRule(PrefixRule):
    """IPv4 addresses, who shares each by port, and their IPv6 addresses (RFC 7597)."""

    psid_offset: Annotated[int, Field(ge=0, le=15)] = Field(
        default=6,
        description="bits of a port before its PSID, not all of them 0 (RFC 7597 5.1); "
        "with 0 of them nobody sends whose set has a port below 1024",
    )

    @model_validator(mode="after")
    def _ports_fit(self) -> Self:
        if self.psid_offset + self.psid_bits > _PORT_BITS:
            raise KeyedError(
                ("psid_offset",),
                f"{self.psid_offset} bits and {self.psid_bits} of the PSID are more "
                "than a port has, 16",
            )
        return self

    @property
    @abstractmethod
    def psid_bits(self) -> int:
        """0: no address is shared."""

    @property
    @abstractmethod
    def _common(self) -> int:
        """Of the IPv6 addresses, what all CEs have."""

    @property
    @abstractmethod
    def _ends(self) -> Sequence[tuple[int, int]]:
        """Where in an IPv6 address IPv4 suffix and PSID begin, each time they do."""

    @property
    def own_prefix(self) -> str:
        """Of the addresses of their packets."""
        return self.ipv4_prefix

    @property
    def can_be_spoofed(self) -> bool:
        """Whether two share an address."""
        return self.psid_bits > 0

    @property
    def first_psid(self) -> int:
        """The first one of a CE: none has a system port if it can be helped."""
        if self.psid_offset or not self.psid_bits:
            return 0
        return -(-_SYSTEM_PORTS >> self._bits_behind)

    @property
    def _bits_behind(self) -> int:
        """Of a port, behind its PSID."""
        return _PORT_BITS - self.psid_offset - self.psid_bits

    def edge_of(self, own: str) -> str:
        """The IPv6 address of the first CE that has an IPv4 address."""
        return self.address(own, self.first_psid)

    def address(self, ipv4: str, psid: int) -> str:
        """The IPv6 address of a CE."""
        number = int(ipaddress.IPv4Address(ipv4))
        suffix = number & ((1 << self.suffix_bits) - 1)
        found = self._common
        for suffix_at, psid_at in self._ends:
            found |= suffix << (128 - suffix_at - self.suffix_bits)
            found |= psid << (128 - psid_at - self.psid_bits)
        return str(ipaddress.IPv6Address(found))

    def customers(self, base: str) -> AddressSet:
        """All CEs' addresses: of IPv4, or of IPv6 but for what follows."""
        offset = self.common_bits if ":" in base else 32 - self.suffix_bits
        return _varied(base, offset, self.suffix_bits)

    def ports(self, field: Literal["src_port", "dst_port"]) -> Iterator[FieldVariation]:
        """Each port that any CE may have, as likely as any other one."""
        offset = 0
        behind = self._bits_behind
        all_own = not self.psid_offset and not self.psid_bits
        for width, least in (
            (self.psid_offset, 1),
            (self.psid_bits, self.first_psid),
            (behind, _SYSTEM_PORTS if all_own else 0),
        ):
            if width:
                most = (1 << width) - 1
                yield FieldVariation(
                    field=field, offset=offset, width=width, min=least, max=most
                )
            offset += width

    def spoofed_port(self) -> int:
        """One of another CE than the first: the last of its first range."""
        first = 1 << (_PORT_BITS - self.psid_offset) if self.psid_offset else 0
        behind = self._bits_behind
        return first | (self.first_psid ^ 1) << behind | ((1 << behind) - 1)

    def _embedded(self, *, translated: bool) -> Iterator[_Embedded]:
        suffix, psid = self.suffix_bits, self.psid_bits
        of_suffix = self.common_bits if translated else 32 - suffix
        for suffix_at, psid_at in self._ends:
            if suffix:
                is_source = translated and suffix_at == of_suffix
                yield _Embedded(suffix_at, suffix, False, of_suffix, is_source)
            if psid:
                yield _Embedded(psid_at, psid, True, self.psid_offset, False)


def _varied(base: str, offset: int, width: int) -> AddressSet:
    """All addresses of so many bits."""
    if not width:
        return AddressSet(base)
    return AddressSet(base, (BitField(offset, width, 0, (1 << width) - 1, "random"),))


class MapRule(SharingRule):
    """A basic mapping rule, all of whose CEs the tester is (RFC 7597 5)."""

    ipv6_prefix: Annotated[str, AfterValidator(_ipv6_network)] = Field(
        description="the rule's, like 2001:db8::/40"
    )
    ea_bits: Annotated[int, Field(ge=0, le=48)] = Field(
        description="length of the embedded address bits: IPv4 suffix and PSID"
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
        if self.common_bits + self.ea_bits > _INTERFACE_ID:
            raise KeyedError(
                ("ea_bits",),
                f"{self.ea_bits} behind a prefix of {self.common_bits} reach into "
                "the interface identifier, which begins at bit 64",
            )
        return self

    @property
    def psid_bits(self) -> int:
        """0: no address is shared."""
        return self.ea_bits - self.suffix_bits

    @property
    def common_bits(self) -> int:
        """How many bits of the tunnels' ends are the same before the first others."""
        return ipaddress.IPv6Network(self.ipv6_prefix).prefixlen

    @property
    def _common(self) -> int:
        prefix = int(ipaddress.IPv6Network(self.ipv6_prefix).network_address)
        return prefix | int(self._ipv4.network_address) << 16

    @property
    def _ends(self) -> Sequence[tuple[int, int]]:
        """RFC 7597 5.2 and 6."""
        suffix = self.suffix_bits
        return (
            (self.common_bits, self.common_bits + suffix),
            (_IPV4_PLACE + 32 - suffix, 128 - self.psid_bits),
        )


class BindingRule(SharingRule):
    """The binding table of an lwAFTR, all of whose B4s the tester is (RFC 7596).

    B4 n has the IPv4 address ``ipv4_prefix`` + n / 2^psid_length, the PSID n modulo
    2^psid_length, and the IPv6 address n prefixes behind that of ``first_b4``.
    """

    first_b4: Annotated[str, AfterValidator(_ipv6_interface)] = Field(
        description="IPv6 address of B4 0, and how long a prefix each B4 has of its "
        "own: 2001:db8::1/64 is followed by 2001:db8:0:1::1, 2001:db8::1000/128 by "
        "2001:db8::1001"
    )
    psid_length: Annotated[int, Field(ge=0, le=16)] = Field(
        description="bits of a port that say which of the B4s of an address has it"
    )
    psid_offset: Annotated[int, Field(ge=0, le=15)] = Field(
        default=0,
        description="bits of a port before its PSID, not all of them 0 (RFC 7597 5.1); "
        "with 0 of them nobody sends whose set has a port below 1024",
    )

    @model_validator(mode="after")
    def _numbers_fit(self) -> Self:
        own = ipaddress.IPv6Interface(self.first_b4)
        bits = self.suffix_bits + self.psid_bits
        length = own.network.prefixlen
        if bits > length:
            raise KeyedError(
                ("first_b4",),
                f"a prefix of {length} bits has no room for numbers of 2^{bits} B4s",
            )
        place = ((1 << bits) - 1) << 128 - length
        if int(own.ip) & place:
            raise KeyedError(
                ("first_b4",),
                f"the last {bits} bits of its prefix are the number of 2^{bits} B4s, "
                "and must be 0",
                f"begin at {ipaddress.IPv6Address(int(own.ip) & ~place)}/{length}",
            )
        return self

    @property
    def psid_bits(self) -> int:
        """0: no address is shared."""
        return self.psid_length

    @property
    def common_bits(self) -> int:
        """How many bits of the tunnels' ends are the same before the first others."""
        own = ipaddress.IPv6Interface(self.first_b4)
        return own.network.prefixlen - self.suffix_bits - self.psid_bits

    @property
    def _common(self) -> int:
        return int(ipaddress.IPv6Interface(self.first_b4).ip)

    @property
    def _ends(self) -> Sequence[tuple[int, int]]:
        return ((self.common_bits, self.common_bits + self.suffix_bits),)


class BindingFile(EdgeRule):
    """The binding table of an lwAFTR in a file, any mapping (RFC 7596).

    The file is read before the first frame, and not to look at a model: results have
    its path and digest, and may be where it is not.
    """

    file: Annotated[str, Field(min_length=1)] = Field(
        description="CSV with the columns ipv4, psid_length, psid, b4 and, unless it "
        "is 0, psid_offset; relative to the file that names it"
    )
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = Field(
        default=None,
        description="the file's; another one is refused. Results have it",
    )

    def table(self) -> Bindings:
        """What the file holds.

        Raises:
            InputError: it is no binding table, or another one than before.
        """
        found = read_bindings(Path(self.file))
        if self.sha256 not in (None, found.digest):
            raise InputError(
                f"{self.file}: is another table than before: its SHA-256 is "
                f"{found.digest}, not {self.sha256}",
                "give the table that it was, or leave out sha256 for another one",
            )
        return found

    def located(self, folder: Path) -> Self:
        """With the whole path, where it is relative to ``folder``, and the digest.

        Raises:
            InputError: see ``table``.
        """
        found = self.model_copy(update={"file": absolute(self.file, folder)})
        return found.model_copy(update={"sha256": found.table().digest})

    @property
    def common_bits(self) -> int:
        """The table says all of them."""
        return 0

    @property
    def own_prefix(self) -> str:
        """The table says which: see ``Bindings.holds``."""
        return "0.0.0.0/0"

    @property
    def can_be_spoofed(self) -> bool:
        """Whether two B4s are in the table."""
        return self.table().can_be_spoofed

    def edge_of(self, own: str) -> str:
        """Any: each frame has the address of its entry."""
        del own
        return "::"

    def customers(self, base: str) -> AddressSet:
        """One of them: each frame has the address of its entry."""
        return AddressSet(base)

    def _embedded(self, *, translated: bool) -> Iterator[_Embedded]:
        del translated
        yield from ()


class SixRdDomain(PrefixRule):
    """A 6rd domain, all of whose CEs the tester is (RFC 5969 4)."""

    inner_version: ClassVar[IpVersion] = 6

    ipv6_prefix: Annotated[str, AfterValidator(_ipv6_network)] = Field(
        description="the domain's 6rd prefix, like 2001:db8::/32; the side's "
        "ipv6.address is in it"
    )
    ipv4_prefix: Annotated[str, AfterValidator(_ipv4_network)] = Field(
        description="of the CEs' IPv4 addresses, like 10.0.0.0/8; its length is the "
        "domain's IPv4MaskLen"
    )

    @model_validator(mode="after")
    def _bits_fit(self) -> Self:
        length = ipaddress.IPv6Network(self.ipv6_prefix).prefixlen
        if length + self.suffix_bits > _INTERFACE_ID:
            raise KeyedError(
                ("ipv6_prefix",),
                f"{length} bits and {self.suffix_bits} of an IPv4 address are more "
                "than the 64 before the interface identifier",
                "take a shorter ipv6_prefix or a longer ipv4_prefix",
            )
        return self

    @property
    def common_bits(self) -> int:
        """How many bits of the tunnels' ends are the same before the first others."""
        return self._ipv4.prefixlen

    @property
    def own_prefix(self) -> str:
        """Of the addresses of their packets."""
        return self.ipv6_prefix

    @property
    def can_be_spoofed(self) -> bool:
        """Whether there are two."""
        return self.suffix_bits > 0

    @property
    def _suffix_at(self) -> int:
        return ipaddress.IPv6Network(self.ipv6_prefix).prefixlen

    def edge_of(self, own: str) -> str:
        """The IPv4 address of the CE whose prefix an IPv6 address has."""
        number = int(ipaddress.IPv6Address(own))
        suffix = number >> 128 - self._suffix_at - self.suffix_bits
        suffix &= (1 << self.suffix_bits) - 1
        return str(self._ipv4.network_address + suffix)

    def has_edge(self, ipv4: str) -> bool:
        """Whether a CE has that address."""
        return ipaddress.IPv4Address(ipv4) in self._ipv4

    def spoofed_source(self, own: str) -> str:
        """An address of another CE than ``own`` is of."""
        other = 1 << 128 - self._suffix_at - self.suffix_bits
        return str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(own)) ^ other))

    def customers(self, base: str) -> AddressSet:
        """The host of each CE that has the bits of ``base`` behind its prefix."""
        return _varied(base, self._suffix_at, self.suffix_bits)

    def _embedded(self, *, translated: bool) -> Iterator[_Embedded]:
        assert not translated, "6rd has tunnels"  # noqa: S101
        width = self.suffix_bits
        if width:
            yield _Embedded(128 - width, width, False, self._suffix_at, False)


class _Embedded(NamedTuple):
    """Bits of a CE's other address, and whence they are: of a packet or of its port.

    Of an IPv4 address they are counted as of the last 32 bits of 128.
    """

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
_KIND_OF: dict[IpVersion, SideKind] = {4: "ipv4-in-ipv6", 6: "ipv6-in-ipv4"}
_OF_FLOWS = "flow"
EDGE_KEYS = ("map", "binding_table", "sixrd")
"""Each says whose customer edges the tester is."""
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


def _table_kind(value: Any) -> str:  # noqa: ANN401 - raw YAML
    in_file = isinstance(value, BindingFile) or (
        isinstance(value, dict) and "file" in value
    )
    return "file" if in_file else "first_b4"


_BindingTable = Annotated[
    Annotated[BindingRule, Tag("first_b4")] | Annotated[BindingFile, Tag("file")],
    Discriminator(_table_kind),
]


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
    binding_table: _BindingTable | None = Field(
        default=None,
        description="the tester is all B4s of an lwAFTR's binding table (RFC 7596) on "
        "this side, as with map: numbered, or as a file has them",
    )
    sixrd: SixRdDomain | None = Field(
        default=None,
        description="the tester is all customer edges of a 6rd domain (RFC 5969) on "
        "this side: the IPv6 addresses vary, and the outer IPv4 address follows",
    )
    ttl: Annotated[int, Field(ge=1, le=255)] = Field(
        default=64, description="hop limit of the outer header"
    )
    flow_label: Annotated[
        str, NumberAsText, label_or(_OF_FLOWS), label_schema(_OF_FLOWS)
    ] = Field(
        default="0",
        description="of the outer header, if it is one of IPv6: a number, or flow: "
        "each flow inside has one of its own, made of the bits in which its addresses "
        "and ports differ from others' (RFC 6437 3, RFC 8986 5.1)",
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
        if self.flow_label != "0" and self.outer_version == 4:
            raise KeyedError(("flow_label",), "needs outer headers of IPv6")
        if self.flow_label == _OF_FLOWS and any(getattr(self, k) for k in EDGE_KEYS):
            raise KeyedError(
                ("flow_label",), "flow does not go with customer edges; take a number"
            )
        for rule_key in EDGE_KEYS:
            rule: EdgeRule | None = getattr(self, rule_key)
            if rule is None:
                continue
            if self.kind != _KIND_OF[rule.inner_version]:
                kind = _KIND_OF[rule.inner_version]
                raise KeyedError((rule_key,), f"is {kind}, not {self.kind}")
            for key in ("local", "tunnel_per_host", *EDGE_KEYS):
                if key != rule_key and getattr(self, key):
                    raise KeyedError(
                        (key,), f"does not go with {rule_key}, which says it"
                    )
        if self.tunnel_per_host and self.outer_version == 4:
            raise KeyedError(
                ("tunnel_per_host",), "needs outer headers of IPv6: nothing else varies"
            )
        return self

    @property
    def edge_rule(self) -> EdgeRule | None:
        """Whose customer edges the tester is."""
        return self.map or self.binding_table or self.sixrd

    @property
    def edge_key(self) -> str:
        """The key of that rule."""
        return next(key for key in EDGE_KEYS if getattr(self, key))

    @property
    def outer_version(self) -> IpVersion:
        """Of the outer header."""
        known = _OUTER.get(self.kind)
        return known or (6 if self.remote and ":" in self.remote else 4)

    @classmethod
    def at_other_end(cls, devices: Encapsulation, rules: dict[str, Any]) -> Self:
        """Of the tester, where the known-answer device has ``devices``.

        ``rules``: whose border relay it is, by the key that says it here, too.
        """
        if rules:
            of_rule = _KIND_OF[6 if "sixrd" in rules else 4]
            return cls(kind=of_rule, remote=devices.local, **rules)
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

        ``inner``: the side's own address of the other version, which a CE has.
        """
        bits = PER_HOST_BITS if self.tunnel_per_host else None
        rule = self.edge_rule
        if rule and inner:
            local, bits = rule.edge_of(inner), rule.common_bits
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
            flow_label=0 if self.flow_label == _OF_FLOWS else int(self.flow_label),
            vni=self.vni,
            inner_mac=self.inner_mac,
            srh=sent,
            received_srh=received,
        )

    def flow_labels(self, of: Sequence[FieldVariation]) -> Iterator[FieldCopy]:
        """What of the packet inside the outer flow label has, if each flow has its own.

        Of each field as many of the last bits as the others leave: a label is as long
        as it is, and flows that differ in more bits share some.
        """
        if self.flow_label != _OF_FLOWS:
            return
        fields = [
            ((each.min ^ each.max).bit_length(), each)
            for each in of
            if each.field in TUPLE_FIELDS
        ]
        left = FLOW_LABEL_BITS
        for number, (bits, each) in enumerate(sorted(fields, key=lambda f: f[0])):
            width = min(bits, left // (len(fields) - number))
            if width:
                left -= width
                yield FieldCopy(
                    field="outer_flow_label",
                    offset=left,
                    width=width,
                    of=each.field,
                    of_offset=each.offset + each.width - width,
                )


def _named(value: Any) -> Any:  # noqa: ANN401 - raw YAML
    return {"kind": value} if isinstance(value, str) else value


KeyOfASide = Annotated[
    SideEncapsulation | None,
    BeforeValidator(_named, json_schema_input_type=SideEncapsulation | SideKind | None),
]
