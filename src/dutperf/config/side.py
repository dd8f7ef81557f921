"""The two sides of a testbed: ports, their addresses, and what is on their links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    field_validator,
    model_serializer,
    model_validator,
)

from dutperf.config.encapsulation import (
    EdgeRule,
    KeyOfASide,
    MapRule,
    SideLabels,
    SideTags,
)
from dutperf.model.fields import (
    InterfaceName,
    Ipv4,
    Ipv6,
    KeyedError,
    Keys,
    PciAddress,
    Strict,
    dotted,
)
from dutperf.protocol.base import (
    MAX_PAIRS,
    Encapsulation,
    IpVersion,
    Mac,
    Side,
    WhenFull,
    mpls_bytes,
    outer_bytes,
    port_name,
    vlan_bytes_of_mtu,
)

_VERSIONS: tuple[IpVersion, ...] = (4, 6)

Mtu = Annotated[
    int,
    Field(
        ge=68,
        le=9702,
        description="largest IP packet, bytes; a frame is 18 bytes longer "
        "(Ethernet header and FCS)",
    ),
]


OwnMac = Annotated[Mac | None, Field(description="own MAC; default: made up")]
RxQueues = Annotated[
    int,
    Field(ge=1, le=32, description="queues to receive from; a DUT may send on several"),
]
LoseWhenFull = Annotated[
    WhenFull,
    Field(
        description="frames for which the device's ring has no room: lose, as on an "
        "Ethernet link; wait: the device holds the tester back"
    ),
]


class InterfacePort(Strict):
    """A kernel interface. ``auto`` takes AF_XDP where it works, else AF_PACKET."""

    interface: InterfaceName = Field(description="name of a kernel interface")
    driver: Literal["auto", "af_xdp", "af_packet"] = Field(
        default="auto", description="auto: AF_XDP where it works, else AF_PACKET"
    )
    mtu: Mtu = 1500


class PciPort(Strict):
    """A NIC bound to vfio-pci (or a bifurcated driver), by PCI address."""

    pci: PciAddress = Field(
        description="PCI address of a NIC bound to vfio-pci, like 0000:03:00.1"
    )
    mtu: Mtu = 1500


class MemifPort(Strict):
    """Shared memory with another process (a software DUT), by socket path."""

    memif: Annotated[str, Field(min_length=1)] = Field(
        description="path of the memif socket, without a comma"
    )
    role: Literal["server", "client"] = Field(
        default="client", description="the server creates the socket"
    )
    id: Annotated[int, Field(ge=0, lt=2**32)] = Field(
        default=0, description="number of the interface on the socket"
    )
    ring_frames: Annotated[int, Field(ge=64, le=16384)] = Field(
        default=4096,
        description="how many frames wait in each ring, a power of 2; the client says",
    )
    mac: OwnMac = None
    mtu: Mtu = 1500
    rx_queues: RxQueues = 1
    when_full: LoseWhenFull = "lose"

    @field_validator("memif")
    @classmethod
    def _one_argument(cls, path: str) -> str:
        if "," in path:  # DPDK would read another argument behind it
            raise ValueError("must be a path without a comma")
        return path

    @field_validator("ring_frames")
    @classmethod
    def _power_of_2(cls, frames: int) -> int:
        if frames & (frames - 1):
            raise ValueError("must be a power of 2: 4096, 8192 or 16384")
        return frames


class VdevPort(Strict):
    """Any virtual device of DPDK: virtio-user, vhost, for virtual machines and VNFs."""

    vdev: Annotated[str, Field(pattern=r"^net_[a-z0-9_]+(,[!-~]+)?$")] = Field(
        description="driver and arguments of a DPDK virtual device, like "
        "net_vhost,iface=/run/vm.sock"
    )
    mac: OwnMac = None
    mtu: Mtu = 1500
    rx_queues: RxQueues = 1
    when_full: LoseWhenFull = "lose"


class RingPort(Strict):
    """Both ports crossed inside the engine: a perfect wire, for self-tests."""

    ring: Literal[True] = Field(description="true: both ports crossed in the engine")
    mtu: Mtu = 1500


_PORT_KINDS = ("interface", "pci", "memif", "vdev", "ring")


def _port_kind(value: Any) -> str | None:  # noqa: ANN401 - raw YAML
    names = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    found = [kind for kind in _PORT_KINDS if kind in names]
    return found[0] if len(found) == 1 else None


Port = Annotated[
    Annotated[InterfacePort, Tag("interface")]
    | Annotated[PciPort, Tag("pci")]
    | Annotated[MemifPort, Tag("memif")]
    | Annotated[VdevPort, Tag("vdev")]
    | Annotated[RingPort, Tag("ring")],
    Discriminator(
        _port_kind,
        custom_error_type="port_kind",
        custom_error_message="needs exactly one of the keys interface, pci, memif, "
        "vdev, ring",
    ),
]


class RealAddress(NamedTuple):
    """The tester's own address on a side, and the DUT's (its next hop).

    Null: nobody knows it, only its MAC address.
    """

    address: str
    gateway: str | None


_GATEWAY = "the DUT's IPv{} address on this side"
_VIRTUAL = (
    "the IPv{} address by which the other side knows this one when it sends another "
    "IP version: what the translator (SIIT, NAT64, NAT46) under test maps it to"
)


def _check_addresses(version: int, own: Ipv4Side | Ipv6Side) -> None:
    if own.address is None and own.gateway is not None:
        raise ValueError("address is missing: address and gateway belong together")
    if own.address is None and own.virtual is None:
        raise ValueError(
            f"is empty: give address and gateway, or the virtual IPv{version} address "
            "of a side that does not speak it"
        )
    if own.address is not None and own.address == own.gateway:
        raise ValueError(
            f"address and gateway are both {own.address}: address is the tester, "
            "gateway the DUT"
        )


class Ipv4Side(Strict):
    """The IPv4 addresses of one side (paper "siitperf": Real and Virtual)."""

    address: Ipv4 | None = Field(
        default=None, description="the tester's own IPv4 address on this side"
    )
    gateway: Ipv4 | None = Field(default=None, description=_GATEWAY.format(4))
    virtual: Ipv4 | None = Field(default=None, description=_VIRTUAL.format(4))

    @model_validator(mode="after")
    def _complete(self) -> Self:
        _check_addresses(4, self)
        return self


class Ipv6Side(Strict):
    """The IPv6 addresses of one side (paper "siitperf": Real and Virtual)."""

    address: Ipv6 | None = Field(
        default=None, description="the tester's own IPv6 address on this side"
    )
    gateway: Ipv6 | None = Field(default=None, description=_GATEWAY.format(6))
    virtual: Ipv6 | None = Field(default=None, description=_VIRTUAL.format(6))

    @model_validator(mode="after")
    def _complete(self) -> Self:
        _check_addresses(6, self)
        return self


class PortKeys(Strict):
    """One port of the tester, and the addresses there."""

    port: Port = Field(description="interface, pci, memif, vdev or ring, and its MTU")
    ipv4: Ipv4Side | None = Field(
        default=None, description="IPv4 addresses of tester and DUT on this side"
    )
    ipv6: Ipv6Side | None = Field(
        default=None, description="IPv6 addresses of tester and DUT on this side"
    )
    next_hop_mac: Mac | None = Field(
        default=None,
        description="MAC address of the DUT, which all frames get: nobody is asked for "
        "it, and gateway may be left out; default: the gateway's, by ARP and ND",
    )

    @model_validator(mode="after")
    def _reaches_the_device(self) -> Self:
        for key, own in (("ipv4", self.ipv4), ("ipv6", self.ipv6)):
            known = own is None or own.address is None or own.gateway is not None
            asked = key in self._asks_for
            if asked and not known and self.next_hop_mac is None:
                raise KeyedError(
                    (key,),
                    "gateway is missing: address and gateway belong together, or give "
                    "the DUT's MAC address, next_hop_mac",
                )
        return self

    @property
    def _asks_for(self) -> tuple[str, ...]:
        """The keys of the IP versions by which it looks for the DUT."""
        return ("ipv4", "ipv6")

    def ip(self, version: IpVersion) -> RealAddress | None:
        """The addresses of tester and DUT on this side, if it speaks ``version``."""
        own = self._addresses(version)
        if own is None or own.address is None:
            return None
        return RealAddress(own.address, own.gateway)

    def virtual(self, version: IpVersion) -> str | None:
        """How the other side addresses this one in ``version``, if it has to."""
        own = self._addresses(version)
        return own.virtual if own else None

    def _addresses(self, version: IpVersion) -> Ipv4Side | Ipv6Side | None:
        return self.ipv4 if version == 4 else self.ipv6


class SideTranslation(Strict):
    """Whose packets of another IP version a translator gets from this side."""

    map: MapRule = Field(
        description="all customer edges of a MAP-T rule (RFC 7599): addresses and "
        "ports vary together"
    )


class SideConfig(PortKeys):
    """One side of the tester."""

    vlan: SideTags = Field(
        default=[],
        description="VLAN tags of all frames on this side, outermost first: an id, a "
        "range like 100-199 of which each frame has one, or a list of these or of tags "
        "(id, tpid, pcp); of two ids the outer one is 802.1ad (TPID 0x88a8), others "
        "are 802.1Q",
    )

    mpls: SideLabels = Field(
        default=[],
        description="MPLS labels of the test frames on this side, outermost first: a "
        "label, or a list of labels or entries (label, tc, ttl); ARP and neighbour "
        "discovery go without",
    )
    encapsulation: KeyOfASide = Field(
        default=None,
        description="outer headers of the test frames on this side, of which the "
        "tester is the other end: ipv4-in-ipv6, ipv6-in-ipv4, or an object",
    )
    translation: SideTranslation | None = Field(
        default=None,
        description="whom the tester is on this side of a translator, beyond one "
        "address: the customer edges of a MAP-T rule; their IPv4 address for the other "
        "side is ipv4.virtual",
    )
    more_ports: Annotated[list[PortKeys], Field(max_length=MAX_PAIRS - 1)] = Field(
        default=[],
        description="further ports on this side, as many as on the other one (RFC 2544 "
        "16), with the side's VLAN tags and MPLS labels; each has addresses of its own",
    )

    @model_serializer(mode="wrap")
    def _without_more(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Of one port as it was before there could be several, or outer headers."""
        written: dict[str, Any] = plain(self)
        for key in ("more_ports", "encapsulation", "translation"):
            if not getattr(self, key):
                written.pop(key, None)
        return written

    @model_validator(mode="after")
    def _is_the_end_of_its_tunnel(self) -> Self:
        own = self.encapsulation
        if own is None:
            return self
        for key, given in (("mpls", self.mpls), ("more_ports", self.more_ports)):
            if given:
                raise KeyedError(("encapsulation",), f"does not go with {key}")
        rule = own.edge_rule
        inner = self.ip(rule.inner_version) if rule else None
        if rule and (inner is None or not rule.holds(inner.address)):
            raise KeyedError(
                (f"ipv{rule.inner_version}", "address"),
                f"must be an address of encapsulation.{own.edge_key}, "
                f"{rule.own_prefix}",
            )
        here = self.ip(own.outer_version)
        relay = own.remote or (here and here.gateway)
        if own.sixrd and relay and own.sixrd.has_edge(relay):
            raise KeyedError(
                ("encapsulation", "sixrd", "ipv4_prefix"),
                f"has the border relay's own address, {relay}",
            )
        for key, known in (
            ("local", own.local or here),
            ("remote", relay),
        ):
            if not known:
                raise KeyedError(
                    ("encapsulation", key),
                    f"is missing, and so is the side's ipv{own.outer_version}",
                    f"add ipv{own.outer_version} with address and gateway, or {key}",
                )
        return self

    @model_validator(mode="after")
    def _is_its_customer_edges(self) -> Self:
        if self.translation is None:
            return self
        for key, given in (
            ("encapsulation", self.encapsulation),
            ("more_ports", self.more_ports),
        ):
            if given:
                raise KeyedError(("translation",), f"does not go with {key}")
        rule, virtual = self.translation.map, self.virtual(4)
        if virtual is None or not rule.holds(virtual):
            raise KeyedError(
                ("ipv4", "virtual"),
                f"must be an address of translation.map, {rule.ipv4_prefix}",
            )
        return self

    @property
    def tunnel(self) -> Encapsulation | None:
        """Its outer headers, with the addresses of both ends."""
        own = self.encapsulation
        if own is None:
            return None
        here = self.ip(own.outer_version) or RealAddress("", None)
        rule = own.edge_rule
        inner = self.ip(rule.inner_version) if rule else None
        return own.between(
            here.address, here.gateway or "", inner.address if inner else None
        )

    @property
    def edge_rule(self) -> EdgeRule | None:
        """Whose customer edges the tester is here."""
        if self.translation:
            return self.translation.map
        return self.encapsulation.edge_rule if self.encapsulation else None

    @property
    def edge(self) -> str | None:
        """The other address of a customer edge, if the tester is one.

        Of the one that the side's own address is of, with the first set of ports.
        """
        rule = self.edge_rule
        if rule is None:
            return None
        own = self.ip(rule.inner_version)
        inner = self.virtual(4) if self.translation else own and own.address
        return rule.edge_of(inner) if inner else None

    @property
    def _asks_for(self) -> tuple[str, ...]:
        """Inside a tunnel nobody is asked for."""
        if self.encapsulation is None:
            return super()._asks_for
        return (f"ipv{self.encapsulation.outer_version}",)

    def next_hop(self, version: IpVersion) -> str | None:
        """Whom test frames of ``version`` are sent to; null: to a MAC address."""
        outer = self.tunnel
        here = self.ip(outer.outer_version if outer else version)
        return here.gateway if here else None

    @property
    def mtu(self) -> int:
        """The largest IP packet, beside what else of a frame the MTU has to carry.

        That are MPLS labels, outer headers, and VLAN tags but for one of 802.1Q.
        """
        before = mpls_bytes(self.mpls) + outer_bytes(self.tunnel)
        return self.port.mtu - vlan_bytes_of_mtu(self.vlan) - before

    @property
    def ports(self) -> list[PortKeys]:
        """Its ports by their numbers."""
        return [self, *self.more_ports]

    def at(self, number: int) -> SideConfig:
        """The side as if the port of that number were its only one."""
        own = self.ports[number]
        keys = {key: getattr(own, key) for key in PortKeys.model_fields}
        return self.model_copy(update={**keys, "more_ports": []})


class TesterPort(NamedTuple):
    """A port of the tester: which one, and where the testbed has it."""

    side: Side
    number: int
    config: PortKeys

    @property
    def label(self) -> str:
        """Its name for people."""
        return port_name(self.side, self.number)

    @property
    def keys(self) -> Keys:
        """Where it stands in the testbed."""
        return port_keys(self.side, self.number)


def alternately(side: Side, number: int) -> int:
    """A number that no other port has: 1 left, 2 right, 3 left 2, 4 right 2, ..."""
    return 2 * number + (1 if side == "left" else 2)


def port_keys(side: Side, number: int) -> Keys:
    """Where a testbed has its port of that number."""
    return (side, "more_ports", number - 1) if number else (side,)


def check_ports(ports: Sequence[TesterPort]) -> None:
    """Refuse ports of a tester that do not fit together.

    Raises:
        ValueError: a ring without its other end, the same port twice, another number or
            MTU on one side, or addresses that are missing or there twice.
    """
    _check_devices(ports)
    _check_pairs(ports)
    for version in _VERSIONS:
        names: dict[str, str] = {}
        for name, address in _hosts(ports, version):
            if address in names:
                raise ValueError(f"{names[address]} and {name} are both {address}")
            names[address] = name


def _check_devices(ports: Sequence[TesterPort]) -> None:
    rings = {isinstance(port.config.port, RingPort) for port in ports}
    if rings == {True}:
        return
    if len(rings) > 1:
        raise ValueError("a ring joins both ports: give ring on both sides")
    known: dict[str, str] = {}
    for port in ports:
        name = dotted((*port.keys, "port"))
        device = repr(port.config.port.model_copy(update={"mtu": 0}))
        if device in known:
            raise ValueError(f"{known[device]} and {name} are the same port")
        known[device] = name


def _check_pairs(ports: Sequence[TesterPort]) -> None:
    """Of several ports on a side: as many on both, all alike."""
    firsts = {port.side: port.config for port in ports if not port.number}
    more = [port for port in ports if port.number]
    counts = {side: sum(p.side == side for p in more) for side in firsts}
    if len(set(counts.values())) > 1:
        fewer, most = sorted(counts, key=lambda side: counts[side])
        raise KeyedError(
            (fewer, "more_ports"),
            f"must list as many ports as {most}.more_ports, {counts[most]}, not "
            f"{counts[fewer]}",
        )
    for port in more:
        _check_like_first(port, firsts[port.side])
    for port in ports if more else ():
        for version in _VERSIONS:
            if port.config.virtual(version):
                raise KeyedError(
                    (*port.keys, f"ipv{version}", "virtual"),
                    "is for translators, which are measured by one port on each side",
                    "leave it out, or leave more_ports out",
                )


def _check_like_first(port: TesterPort, first: PortKeys) -> None:
    own = port.config
    if own.port.mtu != first.port.mtu:
        raise KeyedError(
            (*port.keys, "port", "mtu"),
            f"is {own.port.mtu}, and that of {port.side}.port {first.port.mtu}: all "
            "ports of a side have the same",
        )
    for version in _VERSIONS:
        if (own.ip(version) is None) != (first.ip(version) is None):
            has = first if own.ip(version) is None else own
            where = "" if has is first else f".{dotted(port.keys[1:])}"
            raise KeyedError(
                (*port.keys, f"ipv{version}"),
                f"all ports of a side have addresses of the same IP versions, and of "
                f"IPv{version} only {port.side}{where} has one",
            )


def _hosts(
    ports: Sequence[TesterPort], version: IpVersion
) -> Iterator[tuple[str, str]]:
    """Key and address of everything that stands for one port of the tester."""
    for port in ports:
        real, virtual = port.config.ip(version), port.config.virtual(version)
        name = f"{dotted(port.keys)}.ipv{version}"
        if real:
            yield f"{name}.address", real.address
        if virtual:
            yield f"{name}.virtual", virtual
