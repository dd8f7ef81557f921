"""``testbed.yaml``: the tester's two ports, its addresses, and the device between."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

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
from dutperf.engine.protocol import IpVersion, Mac

Mtu = Annotated[
    int,
    Field(
        ge=68,
        le=9702,
        description="largest IP packet, bytes; a frame is 18 bytes longer "
        "(Ethernet header and FCS)",
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
    mac: Mac | None = Field(default=None, description="own MAC; default: made up")
    mtu: Mtu = 1500


class RingPort(Strict):
    """Both ports crossed inside the engine: a perfect wire, for self-tests."""

    ring: Literal[True] = Field(description="true: both ports crossed in the engine")
    mtu: Mtu = 1500


_PORT_KINDS = ("interface", "pci", "memif", "ring")


def _port_kind(value: Any) -> str | None:  # noqa: ANN401 - raw YAML
    names = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    found = [kind for kind in _PORT_KINDS if kind in names]
    return found[0] if len(found) == 1 else None


Port = Annotated[
    Annotated[InterfacePort, Tag("interface")]
    | Annotated[PciPort, Tag("pci")]
    | Annotated[MemifPort, Tag("memif")]
    | Annotated[RingPort, Tag("ring")],
    Discriminator(
        _port_kind,
        custom_error_type="port_kind",
        custom_error_message="needs exactly one of the keys interface, pci, memif, "
        "ring",
    ),
]


def _check_two_hosts(address: str, gateway: str) -> None:
    if address == gateway:
        raise ValueError(
            f"address and gateway are both {address}: address is the tester, "
            "gateway the DUT"
        )


class Ipv4Side(Strict):
    """The tester's address on this side and the DUT's (its next hop)."""

    address: Ipv4 = Field(description="the tester's own IPv4 address on this side")
    gateway: Ipv4 = Field(description="the DUT's IPv4 address on this side")

    @model_validator(mode="after")
    def _two_hosts(self) -> Self:
        _check_two_hosts(self.address, self.gateway)
        return self


class Ipv6Side(Strict):
    """The tester's address on this side and the DUT's (its next hop)."""

    address: Ipv6 = Field(description="the tester's own IPv6 address on this side")
    gateway: Ipv6 = Field(description="the DUT's IPv6 address on this side")

    @model_validator(mode="after")
    def _two_hosts(self) -> Self:
        _check_two_hosts(self.address, self.gateway)
        return self


class SideConfig(Strict):
    """One side of the tester."""

    port: Port = Field(description="interface, pci, memif or ring, and its MTU")
    ipv4: Ipv4Side | None = Field(
        default=None, description="IPv4 addresses of tester and DUT on this side"
    )
    ipv6: Ipv6Side | None = Field(
        default=None, description="IPv6 addresses of tester and DUT on this side"
    )

    def ip(self, version: IpVersion) -> Ipv4Side | Ipv6Side | None:
        """The addresses of ``version`` on this side, if it has any."""
        return self.ipv4 if version == 4 else self.ipv6


def _check_ports(left: Port, right: Port) -> None:
    if isinstance(left, RingPort) != isinstance(right, RingPort):
        raise ValueError("a ring joins both ports: give ring on both sides")
    same = left.model_copy(update={"mtu": 0}) == right.model_copy(update={"mtu": 0})
    if same and not isinstance(left, RingPort):
        raise ValueError("left.port and right.port are the same port")


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
        for version in self.ip_versions():
            left, right = self.left.ip(version), self.right.ip(version)
            if left and right and left.address == right.address:
                raise ValueError(
                    f"left.ipv{version}.address and right.ipv{version}.address are "
                    f"both {left.address}"
                )
        return self

    def ip_versions(self) -> list[IpVersion]:
        """The IP versions that both sides have addresses of."""
        versions: tuple[IpVersion, ...] = (4, 6)
        return [v for v in versions if self.left.ip(v) and self.right.ip(v)]
