"""``testbed.yaml``: the tester's two ports, its addresses, and the device between."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from dutperf.engine.protocol import IpVersion, Mac


class Strict(BaseModel):
    """Base of all configuration: immutable, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class InterfacePort(Strict):
    """A kernel interface. ``auto`` takes AF_XDP where it works, else AF_PACKET."""

    interface: Annotated[str, Field(min_length=1, max_length=15)]
    driver: Literal["auto", "af_xdp", "af_packet"] = "auto"
    mtu: Annotated[int, Field(ge=68, le=9702)] = 1500


class PciPort(Strict):
    """A NIC bound to vfio-pci (or a bifurcated driver), by PCI address."""

    pci: Annotated[str, Field(pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")]
    mtu: Annotated[int, Field(ge=68, le=9702)] = 1500


class MemifPort(Strict):
    """Shared memory with another process (a software DUT), by socket path."""

    memif: Annotated[str, Field(min_length=1)]
    role: Literal["server", "client"] = "client"
    id: Annotated[int, Field(ge=0)] = 0
    mac: Mac | None = None


class RingPort(Strict):
    """Both ports crossed inside the engine: a perfect wire, for self-tests."""

    ring: Literal[True]


def _port_kind(value: Any) -> str | None:  # noqa: ANN401 - raw YAML
    names = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    for kind in ("interface", "pci", "memif", "ring"):
        if kind in names:
            return kind
    return None


Port = Annotated[
    Annotated[InterfacePort, Tag("interface")]
    | Annotated[PciPort, Tag("pci")]
    | Annotated[MemifPort, Tag("memif")]
    | Annotated[RingPort, Tag("ring")],
    Discriminator(
        _port_kind,
        custom_error_type="port_kind",
        custom_error_message="needs one of the keys interface, pci, memif, ring",
    ),
]


def _version_checker(version: int) -> AfterValidator:
    def check(text: str) -> str:
        address = ipaddress.ip_address(text)
        if address.version != version:
            raise ValueError(f"{text} is not an IPv{version} address")
        return str(address)

    return AfterValidator(check)


Ipv4 = Annotated[str, _version_checker(4)]
Ipv6 = Annotated[str, _version_checker(6)]


class Ipv4Side(Strict):
    """The tester's address on this side and the DUT's (its next hop)."""

    address: Ipv4
    gateway: Ipv4


class Ipv6Side(Strict):
    """The tester's address on this side and the DUT's (its next hop)."""

    address: Ipv6
    gateway: Ipv6


class SideConfig(Strict):
    """One side of the tester."""

    port: Port
    ipv4: Ipv4Side | None = None
    ipv6: Ipv6Side | None = None

    def ip(self, version: IpVersion) -> Ipv4Side | Ipv6Side | None:
        """The addresses of ``version`` on this side, if it has any."""
        return self.ipv4 if version == 4 else self.ipv6


class Testbed(Strict):
    """One tester and one device under test."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    schema_version: Literal[1] = 1
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
    description: str = Field(default="", description="the DUT, for the report")
    namespace: str | None = Field(
        default=None, description="network namespace the engine runs in"
    )
    cores: Annotated[list[int], Field(min_length=1, max_length=4)] = [0]
    main_core: int | None = Field(
        default=None, description="CPU of the sleeping main thread; default: a free one"
    )
    hugepages: Literal["auto", "off"] = "auto"
    memory_mb: Annotated[int, Field(ge=64)] = 512
    max_rate_fps: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="never offer more than this per direction"
    )
    left: SideConfig
    right: SideConfig

    @model_validator(mode="after")
    def _cores_make_sense(self) -> Self:
        if len(self.cores) not in (1, 2, 4):
            raise ValueError("cores must list 1, 2 or 4 CPUs")
        if len(set(self.cores)) != len(self.cores) or min(self.cores) < 0:
            raise ValueError("cores must be different CPU numbers, 0 or higher")
        return self

    def ip_versions(self) -> list[IpVersion]:
        """The IP versions that both sides have addresses of."""
        versions: tuple[IpVersion, ...] = (4, 6)
        return [v for v in versions if self.left.ip(v) and self.right.ip(v)]
