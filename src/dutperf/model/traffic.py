"""The traffic profile of a procedure: what the test frames look like beside their size.

The defaults are the RFCs': random ports (RFC 4814 4.5), all else as RFC 2544 C.2.6.4.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from ipaddress import ip_address
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    Self,
    get_args,
)

from pydantic import AfterValidator, Field, model_validator

from dutperf.model.capture import CaptureFile
from dutperf.model.fields import (
    KeyedError,
    Listed,
    Name,
    NumberAsText,
    Short,
    Strict,
    label_or,
    label_schema,
)
from dutperf.model.frames import ImixSizes
from dutperf.model.hosts import Addresses, HostAddresses
from dutperf.model.loads import LoadShape
from dutperf.model.ports import MOST_FLOWS, FlowCount, FlowsBy, Ports, spread_over
from dutperf.protocol.base import (
    MAX_IPV4_OPTIONS,
    MAX_IPV6_HEADERS,
    Ipv4Option,
    Ipv6Header,
    IpVersion,
    RoutingDaemonProtocol,
    Side,
    header_bytes,
)

if TYPE_CHECKING:
    from dutperf.model.cell import Cell


# Frames beside the stream: what a device need not forward, and what they do to it.
#
# They take the place of some of the stream's frames, evenly spread, and have its sizes.
# Of them only how many were sent and how many came is told: none of them is lost. They
# are part of a burst, as they are part of a load; what is timed is the stream.
#
# broadcast (RFC 2544 11.1): the stream's frames, to the hardware broadcast address.
# They are for the hosts behind the router, so it has nothing to answer and nothing to
# deliver: a packet that came as link-layer broadcast and is for another host is to be
# discarded without a word (RFC 1812 5.3.4), and a bridge floods it. 255.255.255.255, or
# the network's own broadcast address, would be the router's own to receive, up to UDP.
#
# hop-by-hop (RFC 5180 5.3): the stream's frames with a hop-by-hop options header of
# padding. Routers may forward them, slowly or not at all (RFC 9673): that is no loss of
# the stream's.
#
# spoofed (RFC 7597 8.1, RFC 7596 6.2): frames of a customer edge whose IPv6 address is
# that of another one than its port says. A border relay that checks them lets none
# through.
#
# flood (RFC 3511 5.5): new connections that nobody answers, from the side that has
# opened those on which the stream is, to ports that none of these has: of TCP SYNs, of
# UDP frames like the stream's. A device that keeps them in its table has less room for
# others, and what these lose by it is the device's.


BesideKind = Literal["broadcast", "hop-by-hop", "spoofed", "flood"]
_ASKED_FOR: dict[BesideKind, str] = {
    "broadcast": "RFC 2544 11.1",
    "hop-by-hop": "RFC 5180 5.3",
    "spoofed": "RFC 7597 8.1",
    "flood": "RFC 3511 5.5",
}
BROADCAST_MAC = "ff:ff:ff:ff:ff:ff"
_PLACES = 2


def _check_places(percent: float) -> float:
    if round(percent, _PLACES) != percent:
        raise ValueError(f"must have at most {_PLACES} decimal places")
    return percent


BesidePercent = Annotated[float, Field(gt=0, le=50), AfterValidator(_check_places)]
"""Of the frames of a direction, the stream's and those beside it together."""


class Beside(NamedTuple):
    """Which frames are beside the stream, and how many."""

    kind: BesideKind
    percent: float

    @property
    def share(self) -> Fraction:
        """Of all frames of a direction; exact."""
        return Fraction(str(self.percent)) / 100

    @property
    def key(self) -> str:
        """Of the traffic profile."""
        return f"{self.kind.replace('-', '_')}_percent"

    @property
    def label(self) -> str:
        """Part of a cell's name."""
        return f"{self.percent:g}percent-{self.kind}"

    @property
    def words(self) -> str:
        """``1 % broadcast frames``."""
        what = "a flood" if self.is_flood else f"{self.kind} frames"
        return f"{self.percent:g} % {what}"

    @property
    def is_flood(self) -> bool:
        """Whether they open connections, which the initiator alone does."""
        return self.kind == "flood"

    @property
    def rfc(self) -> str:
        """Where it is asked for."""
        return _ASKED_FOR[self.kind]

    @property
    def version(self) -> IpVersion | None:
        """Of the one IP version that has such frames; none: it is the stream's."""
        versions: dict[BesideKind, IpVersion] = {"broadcast": 4, "hop-by-hop": 6}
        return versions.get(self.kind)

    @property
    def dst_mac(self) -> str | None:
        """None: the next hop's, as the stream's."""
        return BROADCAST_MAC if self.kind == "broadcast" else None

    @property
    def ipv6_headers(self) -> list[Ipv6Header]:
        """Their extension headers, instead of the stream's."""
        return ["hop-by-hop"] if self.kind == "hop-by-hop" else []


def check_beside(cell: Cell) -> None:
    """Refuse frames beside the stream where they have no meaning.

    Raises:
        KeyedError: says which key is wrong.
    """
    beside = cell.traffic.beside
    if beside is None:
        return
    keys = ("traffic", beside.key)
    if beside.is_flood and not cell.phase2:
        raise KeyedError(
            keys,
            "is for what is measured on open connections",
            "set stateful (--connections)",
        )
    if (
        cell.stateful
        and beside.is_flood
        and cell.direction not in ("both", cell.stateful.direction)
    ):
        raise KeyedError(
            keys,
            "is sent by the initiator, from which this test sends nothing",
            f"set direction to both or {cell.stateful.direction} (--direction)",
        )
    if cell.stateful and beside.is_flood and cell.stateful.takes_all_ports:
        raise KeyedError(
            ("stateful", "destination_ports"),
            f"leaves the frames of {beside.key} no port that is of no connection",
            "end it at 65534",
        )
    if cell.stateful and not beside.is_flood:
        raise KeyedError(
            keys,
            "must be left out of a stateful test, whose frames are all of connections",
        )
    if beside.kind == "spoofed" and cell.direction == "both":
        raise KeyedError(
            keys,
            "is for one direction: customer edges are on one side",
            "set direction to the one from them (--direction forward)",
        )
    if beside.version and cell.ip != beside.version:
        lacks = {
            4: "IPv6 has no broadcast",
            6: "IPv4 has no hop-by-hop header, and a translator takes it out",
        }[beside.version]
        raise KeyedError(
            keys,
            f"is for IPv{beside.version} alone, not for ip {cell.ip}: {lacks}",
            f"set ip: [{beside.version}] (--ip {beside.version}), or give other "
            "versions entries of their own",
        )


NAMED_MIXES = {
    "100/0": Fraction(1),
    "90/10": Fraction(9, 10),
    "50/50": Fraction(1, 2),
    "10/90": Fraction(1, 10),
}
"""RFC 8219 5.3: percent foreground / background."""
MOST_BURST_FRAMES = 100_000
"""At 1 fps, the lowest load, their pause is still one that a step can last."""
RANDOM_LABEL = "random"
RFC5180_CHAIN: Final = "rfc5180"
LOWEST_IPV6_MTU = 1280
"""Of any link (RFC 8200 5); a translator keeps to it unless told otherwise."""
_CHAIN: tuple[Ipv6Header, ...] = ("routing", "destination-options", "fragment")
"""RFC 5180 5.3: routing 24 to 32 bytes, destination options 8, fragment 8."""
_MOST_OF = 10**6
_MIX = "[0-9]{1,7}/[0-9]{1,7}"

Routes = Literal["static", "rip", RoutingDaemonProtocol]
PortPattern = Literal["mesh", "pairs"]
NetworkCount = Annotated[int, Field(ge=1, le=256)]


def _check_mix(text: str) -> str:
    if text in NAMED_MIXES:
        return text
    if not re.fullmatch(_MIX, text):
        raise ValueError(
            f"must be one of {', '.join(NAMED_MIXES)} (percent) or m/n: m of n frames "
            f"are foreground; not {text[:40]!r}"
        )
    m, n = (int(number) for number in text.split("/"))
    if m and m + n == 100:
        reduced = Fraction(m, 100)
        raise ValueError(
            f"{text} is no mix by name; for {m} % foreground write "
            f"{reduced.numerator}/{reduced.denominator}"
        )
    if not 1 <= m <= n:
        raise ValueError(f"m/n needs 1 <= m <= n: m of n frames are foreground: {text}")
    if math.gcd(m, n) != 1:
        reduced = Fraction(m, n)
        raise ValueError(
            f"m and n must be coprime: {text} is "
            f"{reduced.numerator}/{reduced.denominator}"
        )
    if n > _MOST_OF:
        raise ValueError(f"n must be at most {_MOST_OF}, not {n}")
    return text


def _check_chain(names: list[str]) -> list[str]:
    if RFC5180_CHAIN in names and len(names) > 1:
        raise ValueError(f"{RFC5180_CHAIN} is a whole chain: let it stand alone")
    if "hop-by-hop" in names[1:]:
        raise ValueError("hop-by-hop must be the first header (RFC 8200 4.1)")
    for name in dict.fromkeys(names):
        most = 2 if name == "destination-options" else 1
        if names.count(name) > most:
            raise ValueError(f"must not list {name} {most + 1} times (RFC 8200 4.1)")
    return names


class Networks(Strict):
    """Destination networks of what is sent to each side (RFC 2544 12)."""

    left: NetworkCount = Field(default=1, description="networks behind the left side")
    right: NetworkCount = Field(default=1, description="networks behind the right side")

    def of(self, side: Side) -> int:
        """Networks behind ``side``."""
        return self.left if side == "left" else self.right


DEFAULT_GROUP = "default"
_DEFAULT_GROUPS: dict[IpVersion, str] = {4: "239.255.0.1", 6: "ff15::1"}
"""Of a site (RFC 2365 6.1, RFC 4291 2.7): nobody else's."""
_SITE_SCOPE = 5


def _check_group(text: str) -> str:
    if text == DEFAULT_GROUP:
        return text
    try:
        found = ip_address(text)
    except ValueError:
        raise ValueError(f"must be a multicast address, not {text[:60]!r}") from None
    if not found.is_multicast:
        raise ValueError(f"must be a multicast address, not {found}")
    near = found.packed[:3] == bytes((224, 0, 0))
    if found.version == 6:
        near = found.packed[1] & 0xF < 3
    if near:
        raise ValueError(f"{found} stays on its link: a router does not forward it")
    return str(found)


def group_mac(group: str) -> str:
    """Where frames to ``group`` go on Ethernet (RFC 1112 6.4, RFC 2464 7)."""
    address = ip_address(group).packed
    low = bytes((0x33, 0x33, *address[-4:]))
    if len(address) == 4:
        low = bytes((0x01, 0x00, 0x5E, address[1] & 0x7F, *address[2:]))
    return low.hex(":")


def _on_both(count: int) -> dict[str, Any]:
    return {"left": count, "right": count}


class Traffic(Strict):
    """What is in the frames, and how many of them are of which kind."""

    name: Name | None = Field(
        default=None,
        description="name of the profile, part of the name of each test case; "
        "default: what differs from the default profile",
    )
    ports: Ports = Field(default=Ports(), description="UDP ports (RFC 4814 4.5)")
    addresses: HostAddresses = Field(
        default=Addresses(),
        description="hosts with addresses of their own (paper 003); a number for "
        "both sides, or left and right",
    )
    networks: Annotated[
        Networks,
        Short(int, _on_both, {"type": "integer", "minimum": 1, "maximum": 256}),
    ] = Field(
        default=Networks(),
        description="random destination networks (RFC 2544 12: 256); a number for"
        " both sides, or left and right; bits 16-23 of IPv4, bits "
        "56-63 of IPv6 addresses",
    )
    flows: FlowCount | None = Field(
        default=None,
        description="spread the frames of each direction evenly over so many network "
        "flows (RFC 8219 10); instead of ports, addresses and networks",
    )
    flows_by: FlowsBy = Field(
        default="ports",
        description="what flows differ in: ports, addresses or sources; ports: one "
        "host on each side; addresses: host k of one side to host k of the other; "
        "sources: hosts of the left side to one of the right",
    )
    mix: Annotated[
        str,
        AfterValidator(_check_mix),
        Field(json_schema_extra={"pattern": f"^{_MIX}$"}),
    ] = Field(
        default="100/0",
        description="foreground/background in percent (RFC 8219 5.3), or M/N; "
        "100/0, 90/10, 50/50, 10/90, or m/n: m of n frames are "
        "foreground",
    )
    background_ip: IpVersion = Field(
        default=6, description="IP version of the background frames, on both sides"
    )
    broadcast_percent: BesidePercent | None = Field(
        default=None,
        description="so many of the frames to the broadcast MAC address, IPv4 (RFC "
        "2544 11.1: 1); in the place of the stream's, evenly spread; the device need "
        "not forward them: they are counted apart; of the others none may be lost",
    )
    hop_by_hop_percent: BesidePercent | None = Field(
        default=None,
        description="so many of the frames with a hop-by-hop header, IPv6 (RFC 5180 "
        "5.3: 1, 10, 50); counted as with broadcast_percent",
    )
    spoofed_percent: BesidePercent | None = Field(
        default=None,
        description="so many of the frames with another customer edge's IPv6 address; "
        "of a side with map or binding_table; counted as with broadcast_percent",
    )
    flood_percent: BesidePercent | None = Field(
        default=None,
        description="so many of the initiator's frames open further connections (RFC "
        "3511 5.5); nobody answers them; beside what is measured on open ones; counted "
        "as with broadcast_percent",
    )
    imix: ImixSizes | None = Field(
        default=None,
        description="sequence of frame sizes (RFC 6985), like aaafg; instead of "
        "frame_size; a sequence, or sequence and sizes",
    )
    pcap: CaptureFile | None = Field(
        default=None,
        description="capture whose UDP frames are sent in turn; instead of frame_size, "
        "imix and ports; a file, or file and others",
    )
    burst_frames: Annotated[int, Field(ge=2, le=MOST_BURST_FRAMES)] | None = Field(
        default=None,
        description="in bursts of so many frames at the maximum rate (RFC 2544 21); as "
        "often as the load has them; the RFC: 16, 64, 256, 1024",
    )
    load_shape: LoadShape | None = Field(
        default=None,
        description="a load that goes up and down in a trial, instead of a steady one",
    )
    ttl: Annotated[int, Field(ge=1, le=255)] = Field(
        default=10, description="time to live, hop limit (RFC 2544 C.2.6.4: 10)"
    )
    dscp: Annotated[int, Field(ge=0, le=63)] = Field(
        default=0, description="differentiated services code point"
    )
    df: bool = Field(
        default=False, description="don't fragment, IPv4 (RFC 2544 C.2.6.4: not set)"
    )
    fragmented: bool = Field(
        default=False,
        description="the device cuts frames that exceed the receiving side's MTU (RFC "
        "2544 9.4); sent as IPv4, from the side with the larger MTU; a translator cuts "
        "those that exceed lowest_ipv6_mtu as IPv6 (RFC 7915 4)",
    )
    lowest_ipv6_mtu: Annotated[int, Field(ge=LOWEST_IPV6_MTU, le=9702)] = Field(
        default=LOWEST_IPV6_MTU,
        description="lowest IPv6 MTU of a translator (RFC 7915 4); what would be "
        "longer as IPv6 it cuts, if it came as IPv4 without DF; with fragmented",
    )
    ignore_checksums: bool = Field(
        default=False,
        description="take received frames with a wrong checksum as forwarded",
    )
    flow_label: Annotated[
        str,
        NumberAsText,
        label_or(RANDOM_LABEL),
        label_schema(RANDOM_LABEL),
    ] = Field(default="0", description="flow label, IPv6: a number, or random")
    ipv6_headers: Annotated[
        list[Literal[Ipv6Header, "rfc5180"]],
        Field(max_length=MAX_IPV6_HEADERS),
        AfterValidator(_check_chain),
        Listed(),
    ] = Field(
        default=[],
        description="IPv6 extension headers, in order (RFC 5180 5.3); of the "
        "foreground's frames; routing and authentication have 24 bytes, others 8; "
        "rfc5180: routing, destination-options, fragment; part of frame_size",
    )
    ipv4_options: Annotated[
        list[Ipv4Option], Field(max_length=MAX_IPV4_OPTIONS), Listed()
    ] = Field(
        default=[],
        description="IPv4 options: router-alert (RFC 2113), nop; of the foreground's "
        "frames; 4 bytes each; part of frame_size",
    )
    routes: Routes = Field(
        default="static",
        description="how routes are announced: static, rip, ospf, bgp (RFC 2544 13); "
        "those to the frames' networks, before each trial; rip: RIPv2 or RIPng; see "
        "routing of the testbed",
    )
    route_changes: bool = Field(
        default=False,
        description="RIP updates that change other routes (RFC 2544 11.3); six "
        "networks of no frame, there and gone in turn, first in each trial and every "
        "30 s",
    )
    management: bool = Field(
        default=False,
        description="one SNMP query as the first frame of each second (RFC 2544 11.2); "
        "to the gateway, from the port that sends forward, else reverse; answers are "
        "checked; see snmp of the testbed",
    )
    port_pattern: PortPattern | None = Field(
        default=None,
        description="which of several ports send to which: mesh or pairs (RFC 2544 "
        "16); mesh: each to all of the other side in turn; pairs: each to the one of "
        "the same number; default: mesh",
    )
    group: Annotated[str, AfterValidator(_check_group)] | None = Field(
        default=None,
        description="multicast group that frames are for (RFC 3918); of the "
        "foreground; default: 239.255.0.1, or ff15::1",
    )
    mac: Literal["fixed", "random"] = Field(
        default="fixed",
        description="source MAC address: the port's, or random (RFC 4814 4.2)",
    )

    @model_validator(mode="before")
    @classmethod
    def _spread(cls, data: Any) -> Any:  # noqa: ANN401 - raw YAML
        return _with_flows(data) if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _one_load_over_time(self) -> Self:
        if self.burst_frames and self.load_shape:
            raise ValueError("give burst_frames or load_shape, not both")
        return self

    @model_validator(mode="after")
    def _two_streams(self) -> Self:
        found = {
            "mix": self.has_background,
            "broadcast_percent": self.broadcast_percent,
            "hop_by_hop_percent": self.hop_by_hop_percent,
            "spoofed_percent": self.spoofed_percent,
            "flood_percent": self.flood_percent,
        }
        given = [key for key, value in found.items() if value]
        if len(given) > 1:
            raise ValueError(
                f"give {' or '.join(given)}, not both: a direction has one stream, and "
                "one beside it"
            )
        if self.hop_by_hop_percent and "hop-by-hop" in self.ipv6_headers:
            raise ValueError(
                "give hop_by_hop_percent, or hop-by-hop among ipv6_headers, where all "
                "frames of the stream have it"
            )
        return self

    @model_validator(mode="after")
    def _as_captured(self) -> Self:
        own_times = self.pcap is not None and self.pcap.times == "original"
        if own_times and (self.burst_frames or self.load_shape):
            raise ValueError("give burst_frames, load_shape or times of pcap, one only")
        for key in _NOT_OF_CAPTURES if self.pcap else ():
            if getattr(self, key) != Traffic.model_fields[key].default:
                raise ValueError(
                    f"give pcap or {key}, not both: sizes, ports and flows are the "
                    "capture's, in one stream without further headers"
                )
        return self

    @model_validator(mode="after")
    def _exactly_so_many_flows(self) -> Self:
        if self.flows is not None:
            plain = Traffic.model_validate(spread_over(self.flows, self.flows_by))
            for key in _OF_FLOWS:
                if getattr(self, key) != getattr(plain, key):
                    raise ValueError(
                        f"flows says what varies, so leave {key} out; or give no flows"
                    )
        return self

    def with_flows(self, flows: int) -> Traffic:
        """The same profile, its frames spread over so many flows."""
        keys = self.model_dump(exclude={*_OF_FLOWS, "flows"}, exclude_none=True)
        return Traffic.model_validate(keys | {"flows": flows})

    def group_of(self, version: IpVersion) -> str | None:
        """The group that frames of ``version`` are for, if they are for one."""
        return _DEFAULT_GROUPS[version] if self.group == DEFAULT_GROUP else self.group

    def extension_headers(self, version: IpVersion) -> list[Ipv6Header]:
        """Of the foreground's frames of ``version``."""
        if version == 4:
            return []
        if RFC5180_CHAIN in self.ipv6_headers:
            return list(_CHAIN)
        return [name for name in self.ipv6_headers if name != RFC5180_CHAIN]

    def options(self, version: IpVersion) -> list[Ipv4Option]:
        """Of the foreground's frames of ``version``."""
        return self.ipv4_options if version == 4 else []

    def header_bytes(self, version: IpVersion) -> int:
        """What these take of the foreground's frames, or of those beside it."""
        own = header_bytes([*self.extension_headers(version), *self.options(version)])
        if self.beside is None or self.beside.version != version:
            return own
        return max(own, header_bytes(self.beside.ipv6_headers))

    @property
    def beside(self) -> Beside | None:
        """What is sent beside the stream, if anything is."""
        if self.broadcast_percent:
            return Beside("broadcast", self.broadcast_percent)
        if self.hop_by_hop_percent:
            return Beside("hop-by-hop", self.hop_by_hop_percent)
        if self.spoofed_percent:
            return Beside("spoofed", self.spoofed_percent)
        if self.flood_percent:
            return Beside("flood", self.flood_percent)
        return None

    @property
    def foreground(self) -> Fraction:
        """Share of the foreground frames."""
        return 1 - self.beside.share if self.beside else self.of_mix

    @property
    def sizes_name(self) -> str:
        """Of a sequence of sizes: ``IMIX - aaafg``, or the capture's name."""
        return f"capture {self.pcap.name}" if self.pcap else str(self.imix)

    @property
    def has_background(self) -> bool:
        """Whether there is a background stream."""
        return self.of_mix < 1

    @property
    def of_mix(self) -> Fraction:
        """Share of the foreground where nothing is beside the streams."""
        return NAMED_MIXES.get(self.mix) or Fraction(self.mix)

    @property
    def label(self) -> str:
        """Part of a cell's name: the profile's name, or what is not the default."""
        return self._labelled("" if self.flows is None else f"{self.flows}")

    @property
    def series_label(self) -> str:
        """``label`` without the number of flows, for what is told over all of them."""
        return self._labelled("")

    @property
    def own_label(self) -> str:
        """``label`` without what it says of flows."""
        burst = f"bursts{self.burst_frames}" if self.burst_frames else ""
        beside = self.beside.label if self.beside else ""
        own = [self.name] if self.name else self._particulars(burst, beside)
        return "-".join(part for part in own if part)

    def _labelled(self, flows: str) -> str:
        by = "" if self.flows_by == "ports" else f"-by-{self.flows_by}"
        spread = "" if self.flows is None else f"flows{flows}{by}"
        return "-".join(part for part in (self.own_label, spread) if part)

    @property
    def words(self) -> str:
        """``label`` as a reader has it: ``bursts of 64``, ``1 % broadcast frames``."""
        beside = self.beside.words if self.beside else ""
        shape = f"bursts of {self.burst_frames}" if self.burst_frames else ""
        own = [self.name] if self.name else self._particulars(shape, beside)
        told = "-".join(part for part in own if part)
        if self.flows is None:
            return told
        what = "source" if self.flows_by == "sources" else "flow"
        number = f"{self.flows:,} {what}{'' if self.flows == 1 else 's'}"
        by = " of addresses" if self.flows_by == "addresses" else ""
        return ", ".join(part for part in (told, number + by) if part)

    def _particulars(self, burst: str, beside: str) -> list[str]:
        networks, hosts = self.networks, self.addresses
        counts = (hosts.count("left"), hosts.count("right"))
        background = "-ip4" if self.background_ip == 4 else ""
        mix = self.mix.replace("/", "-") + background
        mixed = f"mix{mix}" if self.has_background else ""
        shape = self.load_shape.label if self.load_shape else burst
        if self.flows is not None:
            told = [shape, mixed, beside, *self._headers(), *self._routing()]
            return [*told, self._paths()]
        return [
            shape,
            mixed,
            beside,
            _pair("net", (networks.left, networks.right)),
            _pair("hosts", counts),
            "" if self.ports == Ports() else "ports",
            *self._headers(),
            *self._routing(),
            self._paths(),
        ]

    def _paths(self) -> str:
        return "pairs" if self.port_pattern == "pairs" else ""

    def _routing(self) -> list[str]:
        routes = "" if self.routes == "static" else self.routes
        changes = "route-changes" if self.route_changes else ""
        return [routes, changes, "management" if self.management else ""]

    def _headers(self) -> list[str]:
        named = (("ipv6", self.ipv6_headers), ("ipv4", self.ipv4_options))
        listed = ["-".join([name, *names]) if names else "" for name, names in named]
        fragmented = "fragmented" if self.fragmented else ""
        if self.lowest_ipv6_mtu != LOWEST_IPV6_MTU:
            fragmented += f"-{self.lowest_ipv6_mtu}"
        return [*listed, fragmented, "multicast" if self.group else ""]


_NOT_OF_CAPTURES = (
    "flows",
    "imix",
    "ports",
    "networks",
    "mix",
    "broadcast_percent",
    "hop_by_hop_percent",
    "spoofed_percent",
    "flood_percent",
    "ipv6_headers",
    "ipv4_options",
    "fragmented",
    "port_pattern",
    "group",
)
_BY: tuple[FlowsBy, ...] = get_args(FlowsBy)
_OF_FLOWS = ("ports", "addresses", "networks")


def _with_flows(data: dict[str, Any]) -> dict[str, Any]:
    """What does not fit is refused afterwards, by its own key."""
    flows, by = data.get("flows"), data.get("flows_by", "ports")
    if type(flows) is not int or not 1 <= flows <= MOST_FLOWS or by not in _BY:
        return data
    return spread_over(flows, by) | data


def _pair(name: str, counts: tuple[int, int]) -> str:
    """``net256``, or ``net1-256`` where the sides differ."""
    if counts == (1, 1):
        return ""
    left, right = counts
    return f"{name}{left}" if left == right else f"{name}{left}-{right}"
