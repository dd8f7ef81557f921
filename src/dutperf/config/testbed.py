"""What ``testbed.yaml`` says of the device: its agent, its routing, its parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from dutperf.config.hooks import Hooks
from dutperf.config.side import (
    MemifPort,
    PciPort,
    Port,
    RingPort,
    SideConfig,
    TesterPort,
    VdevPort,
    check_ports,
)
from dutperf.errors import SetupError
from dutperf.model.fields import KeyedError, MaybeSecret, Name, Secret, Strict
from dutperf.protocol.base import IpVersion, Side

COMMUNITY_VARIABLE = "DUTPERF_SNMP_COMMUNITY"
"""Where a stored campaign looks for a community that its testbed's file had itself."""
_COMMUNITY = r"^[!-~]{1,32}$"


class SnmpAgent(Strict):
    """The DUT's SNMP agent, which traffic.management asks."""

    community: MaybeSecret[Annotated[str, Field(pattern=_COMMUNITY)]] = Field(
        default="public",
        description="of version 2c, that may read; {env: NAME} or {file: PATH}: looked "
        "up there",
    )
    interface: Annotated[int, Field(ge=1, le=2**31 - 1)] = Field(
        default=1, description="ifIndex of the one whose counters are asked for"
    )

    @property
    def stored(self) -> SnmpAgent:
        """As results have it: the name of a place instead of a community."""
        if self.community == "public" or isinstance(self.community, Secret):
            return self
        return self.model_copy(update={"community": Secret(env=COMMUNITY_VARIABLE)})

    def secret(self) -> str:
        """The community, wherever it is.

        Raises:
            SetupError: it is not there, or could be none.
        """
        if isinstance(self.community, str):
            return self.community
        found = self.community.value()
        if not re.match(_COMMUNITY, found):
            raise SetupError(
                f"snmp.community: {self.community} is no community",
                "it has 1 to 32 ASCII characters and no blanks",
            )
        return found


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


# ``testbed.yaml``: the tester's ports, its addresses, and the device between.


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


# A testbed without a device: the tester's ports, connected to each other.


_ADDRESSES: dict[Side, dict[str, str]] = {
    "left": {"ipv4": "198.18.0.2", "ipv6": "2001:2::2"},
    "right": {"ipv4": "198.19.0.2", "ipv6": "2001:2:0:8000::2"},
}


def crossed(ports: Mapping[Side, Port], **keys: Any) -> Testbed:  # noqa: ANN401
    """Each side is the other's next hop.

    ``keys``: of the testbed, beside its sides.
    """
    return Testbed(
        description="no device: the tester's ports, connected to each other",
        translates=False,
        left=_side("left", "right", ports["left"]),
        right=_side("right", "left", ports["right"]),
        **keys,
    )


def _side(own: Side, other: Side, port: Port) -> SideConfig:
    versions = {
        version: {"address": address, "gateway": _ADDRESSES[other][version]}
        for version, address in _ADDRESSES[own].items()
    }
    return SideConfig.model_validate({"port": port, **versions})
