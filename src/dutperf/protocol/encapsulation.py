"""Outer headers: what a frame's IP packet stands in on one side of the device."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal, Protocol, Self

from pydantic import Field, model_validator

from dutperf.protocol.base import Ip, IpVersion, Mac, Message
from dutperf.protocol.mpls_label import MplsLabel, mpls_bytes
from dutperf.protocol.vlan_tag import VlanTag, vlan_bytes, vlan_bytes_of_mtu

TunnelKind = Literal["ip", "gre", "vxlan"]
_BEHIND_IP: dict[TunnelKind, int] = {"ip": 0, "gre": 4, "vxlan": 30}
"""GRE without options 4; UDP 8, VXLAN 8 and the inner Ethernet header 14."""
_IP_BYTES: dict[IpVersion, int] = {4: 20, 6: 40}
VNI_END = 2**24
Bits = Annotated[int, Field(ge=0, le=128)]


class Encapsulation(Message):
    """A tunnel as its end has it: the tester's, of a port (RFC 8219 4.2, single DUT).

    ``ip``: an IP header alone (RFC 2473, RFC 4213); ``gre``: RFC 2784 without key,
    checksum and sequence number; ``vxlan``: RFC 7348. Of what arrives hop limit,
    class, flow label, identification and UDP source port are not compared.
    """

    kind: TunnelKind
    local: Ip = Field(description="the tester's end")
    remote: Ip = Field(description="the device's end, of the same IP version")
    local_bits: Bits | None = Field(
        default=None,
        description="of local that what arrives must have, where it varies; null: all",
    )
    remote_bits: Bits | None = Field(default=None, description="likewise")
    ttl: Annotated[int, Field(ge=1, le=255)] = 64
    vni: Annotated[int, Field(ge=0, lt=VNI_END)] | None = Field(
        default=None, description="of VXLAN, which must have it"
    )
    src_port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None, description="UDP's of VXLAN; null: 49152"
    )
    inner_mac: Mac | None = Field(
        default=None, description="the device's in VXLAN, which must have it"
    )

    @model_validator(mode="after")
    def _ends_fit(self) -> Self:
        local, remote = map(ipaddress.ip_address, (self.local, self.remote))
        if local.version != remote.version:
            raise ValueError("local and remote must be of one IP version")
        is_vxlan = self.kind == "vxlan"
        if is_vxlan and (self.vni is None or self.inner_mac is None):
            raise ValueError("vxlan needs vni and inner_mac")
        if not is_vxlan and any((self.vni, self.src_port, self.inner_mac)):
            raise ValueError("vni, src_port and inner_mac are vxlan's")
        return self

    @property
    def outer_version(self) -> IpVersion:
        """Of the outer IP header."""
        return 6 if ":" in self.remote else 4

    @property
    def bytes(self) -> int:
        """How much longer it makes a frame."""
        return _IP_BYTES[self.outer_version] + _BEHIND_IP[self.kind]


class Headed(Protocol):
    """A port or a side: what its test frames have before their IP packets."""

    @property
    def vlan(self) -> list[VlanTag]: ...  # noqa: D102
    @property
    def mpls(self) -> list[MplsLabel]: ...  # noqa: D102
    @property
    def encapsulation(self) -> Encapsulation | None: ...  # noqa: D102


def bytes_before_ip(port: Headed) -> int:
    """How much longer tags, labels and outer headers make the frames of ``port``."""
    return vlan_bytes(port.vlan) + _behind_tags(port)


def bytes_of_mtu(port: Headed) -> int:
    """What of these the MTU has to carry: a port carries one 802.1Q tag beside it."""
    return vlan_bytes_of_mtu(port.vlan) + _behind_tags(port)


def _behind_tags(port: Headed) -> int:
    outer = port.encapsulation
    return mpls_bytes(port.mpls) + (outer.bytes if outer else 0)
