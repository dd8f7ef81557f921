"""``testbed.yaml``: the tester's ports, its addresses, and the device between."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from dutperf.config.device_keys import Bgp, DeviceFacts, Ospf, Routing, SnmpAgent
from dutperf.config.fields import Name, Strict
from dutperf.config.hooks import Hooks
from dutperf.config.side import (
    InterfacePort,
    Ipv4Side,
    Ipv6Side,
    MemifPort,
    PciPort,
    Port,
    PortKeys,
    RealAddress,
    RingPort,
    SideConfig,
    TesterPort,
    VdevPort,
    check_ports,
)
from dutperf.protocol import IpVersion, Side

__all__ = [
    "Bgp",
    "DeviceFacts",
    "InterfacePort",
    "Ipv4Side",
    "Ipv6Side",
    "MemifPort",
    "Ospf",
    "PciPort",
    "Port",
    "PortKeys",
    "RealAddress",
    "RingPort",
    "Routing",
    "SideConfig",
    "SnmpAgent",
    "Testbed",
    "TesterPort",
    "VdevPort",
]

_VERSIONS: tuple[IpVersion, ...] = (4, 6)
Hops = Annotated[int, Field(ge=0, le=254)] | None


class Testbed(Strict):
    """One tester and one device under test."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    schema_version: Literal[1] = Field(default=1, description="version of this format")
    name: Name = Field(description="name of the testbed, for results and reports")
    description: str = Field(default="", description="the DUT, for the report")
    equal_to: Name | None = Field(
        default=None,
        description="name of a testbed whose cells may be measured here if its host "
        "has gone (docs/many-testbeds.md); frames, ports and device are the same there",
    )
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
        "known, or a side has MPLS labels or outer headers",
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
    def _ports_differ(self) -> Self:
        check_ports(self.tester_ports)
        return self

    @property
    def sides(self) -> dict[Side, SideConfig]:
        """Both sides by name."""
        return {"left": self.left, "right": self.right}

    @property
    def tester_ports(self) -> list[TesterPort]:
        """The left ones by their numbers, then the right ones."""
        return [
            TesterPort(name, number, port)
            for name, side in self.sides.items()
            for number, port in enumerate(side.ports)
        ]

    @property
    def pairs(self) -> int:
        """Ports on a side."""
        return len(self.left.ports)

    def between(self, left: int, right: int) -> Testbed:
        """The testbed as if these were its only ports, one on each side."""
        if self.pairs == 1:
            return self
        return self.model_copy(
            update={"left": self.left.at(left), "right": self.right.at(right)}
        )

    @property
    def stored(self) -> Testbed:
        """As results have it, without secrets."""
        return self.model_copy(update={"snmp": self.snmp.stored})

    def check_secrets(self, *, queries: bool) -> None:
        """Look up each of them; the community where ``queries`` are made.

        Raises:
            SetupError: one is not there.
        """
        if queries:
            self.snmp.secret()
        for _, hook in self.hooks.each():
            for secret in hook.secrets:
                secret.value()

    @property
    def has_no_medium(self) -> bool:
        """Whether a port is known to be virtual; an interface may be of either kind."""
        ports = (each.config.port for each in self.tester_ports)
        return any(isinstance(port, MemifPort | VdevPort | RingPort) for port in ports)

    @property
    def has_nics(self) -> bool:
        """Whether the engine drives a NIC itself."""
        return bool(self.nics)

    @property
    def nics(self) -> list[str]:
        """The PCI addresses of the NICs that the engine drives itself."""
        ports = (each.config.port for each in self.tester_ports)
        return [port.pci for port in ports if isinstance(port, PciPort)]

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
        sides = (self.left, self.right)
        unknown = near.gateway is None or far.gateway is None
        hidden = any(side.mpls or side.encapsulation for side in sides)
        return None if unknown or hidden else 1

    def ip_versions(self) -> list[IpVersion]:
        """The IP versions that both sides have addresses of."""
        return [v for v in _VERSIONS if self.left.ip(v) and self.right.ip(v)]
