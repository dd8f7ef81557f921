"""The key ``mpls`` of a side: a label, or a stack of them, outermost first."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from dutperf.config.map_rule import MapRule
from dutperf.model.fields import KeyedError, Shorthand, Strict
from dutperf.protocol.base import Ip, IpVersion, Mac
from dutperf.protocol.headers import (
    MAX_LABEL,
    MAX_LABELS,
    MAX_VLAN_TAGS,
    MIN_LABEL,
    SERVICE_VLAN_TPID,
    VNI_END,
    Encapsulation,
    MplsLabel,
    TunnelKind,
    VlanTags,
)

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


SideKind = Literal["ipv4-in-ipv6", "ipv6-in-ipv4", "gre", "vxlan"]
_KINDS: dict[SideKind, TunnelKind] = {
    "ipv4-in-ipv6": "ip",
    "ipv6-in-ipv4": "ip",
    "gre": "gre",
    "vxlan": "vxlan",
}
_OUTER: dict[str, IpVersion] = {"ipv4-in-ipv6": 6, "ipv6-in-ipv4": 4}
_INNER: dict[str, IpVersion] = {"ipv4-in-ipv6": 4, "ipv6-in-ipv4": 6}
PER_HOST_BITS = 96
"""Of the tester's outer address that all tunnels have, where each host has its own."""


class SideEncapsulation(Strict):
    """The tunnel of one side (RFC 8219 4.2; RFC 2473, 4213, 2784, 7348)."""

    kind: SideKind = Field(
        description="ipv4-in-ipv6 (DS-Lite, lw4o6, MAP-E), ipv6-in-ipv4 (6in4, 6rd), "
        "gre without options, or vxlan"
    )
    remote: Ip | None = Field(
        default=None,
        description="the DUT's end; default: the side's gateway of the outer version. "
        "gre and vxlan must have it",
    )
    local: Ip | None = Field(
        default=None,
        description="the tester's end; default: its own address on this side",
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
        return cls(
            kind=kind,
            local=devices.remote,
            remote=devices.local,
            tunnel_per_host=devices.remote_bits is not None,
            vni=devices.vni,
            inner_mac=devices.inner_mac,
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
        return Encapsulation(
            kind=_KINDS[self.kind],
            local=self.local or local,
            remote=self.remote or remote,
            local_bits=bits,
            ttl=self.ttl,
            vni=self.vni,
            inner_mac=self.inner_mac,
        )


def _named(value: Any) -> Any:  # noqa: ANN401 - raw YAML
    return {"kind": value} if isinstance(value, str) else value


KeyOfASide = Annotated[
    SideEncapsulation | None,
    BeforeValidator(_named, json_schema_input_type=SideEncapsulation | SideKind | None),
]
