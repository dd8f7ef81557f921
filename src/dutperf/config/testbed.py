"""``testbed.yaml``: the tester's two ports, its addresses, and the device between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from dutperf.config.fields import (
    InterfaceName,
    Ipv4,
    Ipv6,
    Name,
    PciAddress,
    Strict,
)
from dutperf.config.hooks import Hooks
from dutperf.config.mpls import SideLabels
from dutperf.config.problem import KeyedError
from dutperf.config.vlan import SideTags
from dutperf.protocol import (
    IpVersion,
    Mac,
    Side,
    WhenFull,
    mpls_bytes,
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


Hops = Annotated[int, Field(ge=0, le=254)] | None


OwnMac = Annotated[Mac | None, Field(description="own MAC; default: made up")]
RxQueues = Annotated[
    int,
    Field(ge=1, le=8, description="queues to receive from; a DUT may send on several"),
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
        description="path of the memif socket"
    )
    role: Literal["server", "client"] = Field(
        default="client", description="the server creates the socket"
    )
    id: Annotated[int, Field(ge=0, lt=2**32)] = Field(
        default=0, description="number of the interface on the socket"
    )
    mac: OwnMac = None
    mtu: Mtu = 1500
    rx_queues: RxQueues = 1
    when_full: LoseWhenFull = "lose"


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


class SideConfig(Strict):
    """One side of the tester."""

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

    @model_validator(mode="after")
    def _reaches_the_device(self) -> Self:
        for key, own in (("ipv4", self.ipv4), ("ipv6", self.ipv6)):
            known = own is None or own.address is None or own.gateway is not None
            if not known and self.next_hop_mac is None:
                raise KeyedError(
                    (key,),
                    "gateway is missing: address and gateway belong together, or give "
                    "the DUT's MAC address, next_hop_mac",
                )
        return self

    @property
    def mtu(self) -> int:
        """The largest IP packet, beside what else of a frame the MTU has to carry.

        That are MPLS labels, and VLAN tags but for one of 802.1Q.
        """
        return self.port.mtu - vlan_bytes_of_mtu(self.vlan) - mpls_bytes(self.mpls)

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


def _check_ports(left: Port, right: Port) -> None:
    if isinstance(left, RingPort) != isinstance(right, RingPort):
        raise ValueError("a ring joins both ports: give ring on both sides")
    same = left.model_copy(update={"mtu": 0}) == right.model_copy(update={"mtu": 0})
    if same and not isinstance(left, RingPort):
        raise ValueError("left.port and right.port are the same port")


class SnmpAgent(Strict):
    """The DUT's SNMP agent, which traffic.management asks."""

    community: Annotated[str, Field(pattern=r"^[!-~]{1,32}$")] = Field(
        default="public", description="of version 2c, that may read"
    )
    interface: Annotated[int, Field(ge=1, le=2**31 - 1)] = Field(
        default=1, description="ifIndex of the one whose counters are asked for"
    )


class Ospf(Strict):
    """How the DUT speaks OSPF (RFC 2328, RFC 5340), as its neighbours must."""

    area: Annotated[int, Field(ge=0, lt=2**32)] = Field(
        default=0, description="of both links; 0: the backbone"
    )
    hello_s: Annotated[int, Field(ge=1, le=65535)] = Field(
        default=10, description="interval between hellos"
    )
    dead_s: Annotated[int, Field(ge=2, le=65535)] = Field(
        default=40, description="without a hello for so long a neighbour is gone"
    )

    @model_validator(mode="after")
    def _lives_longer_than_a_hello(self) -> Self:
        if self.dead_s <= self.hello_s:
            raise KeyedError(("dead_s",), "must be more than hello_s")
        return self


_As = Annotated[int, Field(ge=1, le=2**32 - 2)]


class Bgp(Strict):
    """How the DUT speaks BGP with the tester (RFC 4271), over either IP version."""

    tester_as: _As = Field(default=65001, description="AS of the tester on both sides")
    device_as: _As = Field(default=65000, description="the DUT's")
    hold_s: Annotated[int, Field(ge=3, le=65535)] = Field(
        default=90, description="without a message for so long a session is closed"
    )


class Routing(Strict):
    """How the DUT speaks the protocol of traffic.routes with its neighbours."""

    prefix_length: Annotated[int, Field(ge=8, le=30)] = Field(
        default=24, description="of the IPv4 networks on the links; of IPv6 it is 64"
    )
    ospf: Ospf = Field(default=Ospf(), description="for traffic.routes: ospf")
    bgp: Bgp = Field(default=Bgp(), description="for traffic.routes: bgp")


class DeviceFacts(Strict):
    """What RFC 9693 6 asks to be told of a DUT that is a general-purpose computer."""

    computer: str | None = Field(default=None, description="its type")
    cpu: str | None = Field(default=None, description="type of the CPU")
    cores: str | None = Field(default=None, description="how many cores are active")
    memory: str | None = Field(default=None, description="type, size and speed")
    nic: str | None = Field(default=None, description="type of the NIC, with its speed")
    link: str | None = Field(
        default=None, description="direct cables, or the type of the switch"
    )
    os: str | None = Field(default=None, description="type and version")
    kernel: str | None = Field(default=None, description="its version")
    nat: str | None = Field(
        default=None, description="version; of one without, last commit and its date"
    )

    @property
    def told(self) -> dict[str, str]:
        """Those that are known."""
        return {key: value for key, value in self if value is not None}

    @property
    def missing(self) -> tuple[str, ...]:
        """The others."""
        return tuple(key for key, value in self if value is None)


class Testbed(Strict):
    """One tester and one device under test."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    schema_version: Literal[1] = Field(default=1, description="version of this format")
    name: Name = Field(description="name of the testbed, for results and reports")
    description: str = Field(default="", description="the DUT, for the report")
    namespace: Name | None = Field(
        default=None, description="network namespace the engine runs in"
    )
    cores: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = Field(
        default=[0],
        description="CPUs that send and receive: 1 does everything, 2 take a "
        "direction each, 4 split sending and receiving",
    )
    main_core: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="CPU of the sleeping main thread; default: a free one"
    )
    hugepages: Literal["auto", "off"] = Field(
        default="auto", description="auto: use huge pages where there are any"
    )
    memory_mb: Annotated[int, Field(ge=64, le=2**20)] = Field(
        default=512, description="memory for frames"
    )
    max_rate_fps: Annotated[int, Field(ge=1, le=10**12)] | None = Field(
        default=None, description="never offer more than this per direction"
    )
    left: SideConfig = Field(description="the side that the forward direction enters")
    right: SideConfig = Field(description="the side that the forward direction leaves")
    hops: Hops = Field(
        default=None,
        description="by how much TTL and hop limit fall between the sides; default: 1, "
        "and 0 where each side is the other's gateway; not looked at where neither is "
        "known, or a side has MPLS labels",
    )
    translated_hops: Hops = Field(
        default=None,
        description="the same of frames that the DUT translates to the other IP "
        "version; default: as hops",
    )
    device: DeviceFacts = Field(
        default=DeviceFacts(), description="the DUT's parameters (RFC 9693 6)"
    )
    snmp: SnmpAgent = Field(
        default=SnmpAgent(), description="the DUT's agent, for traffic.management"
    )
    routing: Routing = Field(
        default=Routing(), description="the DUT's routing, for traffic.routes"
    )
    translates: bool = Field(
        default=True,
        description="of stateful tests: the DUT is a NAT gateway. Of a stateful "
        "firewall say false; its results are not those of RFC 9693",
    )
    hooks: Hooks = Field(
        default=Hooks(), description="commands that clear or read the DUT's state"
    )

    @field_validator("cores")
    @classmethod
    def _cores_make_sense(cls, cores: list[int]) -> list[int]:
        if len(cores) not in (1, 2, 4):
            raise ValueError(f"must list 1, 2 or 4 CPUs, not {len(cores)}")
        if len(set(cores)) != len(cores):
            raise ValueError("must list different CPUs")
        return cores

    @model_validator(mode="after")
    def _sides_differ(self) -> Self:
        _check_ports(self.left.port, self.right.port)
        for version in _VERSIONS:
            names: dict[str, str] = {}
            for name, address in self._hosts(version):
                if address in names:
                    raise ValueError(f"{names[address]} and {name} are both {address}")
                names[address] = name
        return self

    def _hosts(self, version: IpVersion) -> Iterator[tuple[str, str]]:
        """Key and address of everything that stands for one side of the tester."""
        for name, side in self.sides.items():
            real, virtual = side.ip(version), side.virtual(version)
            if real:
                yield f"{name}.ipv{version}.address", real.address
            if virtual:
                yield f"{name}.ipv{version}.virtual", virtual

    @property
    def sides(self) -> dict[Side, SideConfig]:
        """Both sides by name."""
        return {"left": self.left, "right": self.right}

    @property
    def has_no_medium(self) -> bool:
        """Whether a port is known to be virtual; an interface may be of either kind."""
        ports = (side.port for side in self.sides.values())
        return any(isinstance(port, MemifPort | VdevPort | RingPort) for port in ports)

    @property
    def has_nics(self) -> bool:
        """Whether the engine drives a NIC itself."""
        return any(isinstance(side.port, PciPort) for side in self.sides.values())

    def hops_between(self, left: IpVersion, right: IpVersion) -> int | None:
        """By how much TTL or hop limit is to fall on the way; None: nobody knows.

        Where each side's gateway is the other side itself nothing routes between them,
        as with ports that a cable joins. A gateway that is not told may be anything,
        and of IP packets behind labels a router takes a hop, one more, or none.

        Args:
            left: the IP version of the frames on the left side.
            right: the same on the right side.
        """
        if left != right and self.translated_hops is not None:
            return self.translated_hops
        if self.hops is not None:
            return self.hops
        near, far = self.left.ip(left), self.right.ip(right)
        if near is None or far is None:
            return None
        if (near.gateway, far.gateway) == (far.address, near.address):
            return 0
        unknown = near.gateway is None or far.gateway is None
        return None if unknown or self.left.mpls or self.right.mpls else 1

    def ip_versions(self) -> list[IpVersion]:
        """The IP versions that both sides have addresses of."""
        return [v for v in _VERSIONS if self.left.ip(v) and self.right.ip(v)]
