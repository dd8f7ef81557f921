"""``4in6``: IPv4 in IPv6 (RFC 2473), the data plane of DS-Lite (RFC 6333).

The dual DUT set-up of RFC 8219 4.2; both boxes are one stateful NAT44 (RFC 9693 7):

    tester                 dut: B4                dut2: AFTR
    10.0.0.2     left ---- left 10.0.0.1/8
                           inner ---------------- inner
    198.19.0.2   right -------------------------- right 198.19.0.1/24

    10.0.0.2 > 198.19.0.2  in  2001:2:0:b4::1 > 2001:2:0:af::1  on the wire between
    10.0.0.2 =nftables= 198.19.0.1, a port from 1024 on          on the right

The AFTR translates behind the tunnel's end. With lw4o6 (RFC 7596) the B4 does: the
same work at the other end of it.

A kernel without ip6_tunnel has SRv6 (RFC 8986), whose ``encap.red`` with one segment
and ``End.DX4`` are plain IPv4 in IPv6 on the wire. They do it where other packets are
routed: the sender's end takes no hop, and at the receiver's end no connection is
tracked. So the AFTR's tunnel ends behind a wire of its own, of which both ends are
there: ``napt``, where packets come out as from a neighbour, and ``tunnel``. TTL falls
as with ip6_tunnel, by one in each box; the wire costs the AFTR some time. (With the
setting ``nf_hooks_lwtunnel`` connections would be tracked without that wire, but it is
one of the whole machine, and the kernel lets nobody set it back.)
"""

from __future__ import annotations

from collections.abc import Iterator

from dutperf.config.side import Ipv4Side
from dutperf.lab.devices.device import (
    CHAIN,
    Box,
    LabDevice,
    Tracking,
    Way,
    gateway_hooks,
    lab_side,
)
from dutperf.lab.devices.linux_router import ROUTER_SYSCTLS
from dutperf.lab.devices.nft_nat import PUBLIC_IPV4, source_nat
from dutperf.lab.devices.ruleset import Command, Table, matches

B4_ADDRESS, AFTR_ADDRESS = "2001:2:0:b4::1", "2001:2:0:af::1"
_B4_WIRE, _AFTR_WIRE = "2001:2:0:64::1", "2001:2:0:64::2"
_INSIDE, _OUTSIDE = "10.0.0.0/8", "198.18.0.0/15"
_MAC = "02:00:00:00:af:01"


def _tunnel(own: str, other: str, next_hop: str, network: str) -> Way:
    return Way(
        name="IPv4 in IPv6 by ip6_tunnel",
        link=f"softwire type ip6tnl mode ipip6 local {own} remote {other} "
        "encaplimit none dev inner",
        commands=(
            f"addr add {own}/128 dev inner nodad",
            f"route add {other}/128 via {next_hop}",
            "link set softwire mtu 1500 addrgenmode none up",
            f"route add {network} dev softwire",
        ),
    )


def _segments(
    own: str, other: str, next_hop: str, network: str, table: str
) -> tuple[str, ...]:
    into = f"encap seg6 mode encap.red segs {other}"
    return (
        f"sr tunsrc set {own}",
        f"route add {other}/128 via {next_hop}",
        f"route add {network} {into} dev inner table {table}",
        f"route add {own}/128 encap seg6local action End.DX4 nh4 0.0.0.0 dev inner",
    )


_TO_AFTR = (B4_ADDRESS, AFTR_ADDRESS, _AFTR_WIRE, _OUTSIDE)
_TO_B4 = (AFTR_ADDRESS, B4_ADDRESS, _B4_WIRE, _INSIDE)
_BY_SEGMENTS = "IPv4 in IPv6 by SRv6 (encap.red, End.DX4), for want of ip6_tunnel"


def _aftr_rules() -> Iterator[Command]:
    yield from source_nat("ip", PUBLIC_IPV4)
    once = Table("ip", "once")
    yield once.added()
    yield once.chain("entering", "filter", "prerouting", -300)
    into_tunnel = matches({"meta": {"key": "iifname"}}, "tunnel")
    yield once.rule("entering", [into_tunnel, {"notrack": None}])


B4 = Box(
    inner=(f"{_B4_WIRE}/64", "fe80::1/64"),
    ways=(
        _tunnel(*_TO_AFTR),
        Way(name=_BY_SEGMENTS, commands=_segments(*_TO_AFTR, table="main")),
    ),
)
AFTR = Box(
    ruleset=tuple(_aftr_rules()),
    inner=(f"{_AFTR_WIRE}/64", "fe80::2/64"),
    ways=(
        _tunnel(*_TO_B4),
        Way(
            name=_BY_SEGMENTS,
            # Neither end asks for the other's MAC address: it is its own.
            link=f"napt address {_MAC} type veth peer name tunnel address {_MAC}",
            commands=(
                *(
                    f"link set {end} arp off addrgenmode none up"
                    for end in ("napt", "tunnel")
                ),
                "rule add iif inner lookup 100",
                f"route add {_OUTSIDE} dev tunnel table 100",
                "rule add iif tunnel lookup 101",
                f"route add {_INSIDE} dev napt",
                *_segments(*_TO_B4, table="101"),
            ),
        ),
    ),
)
FOUR_IN_SIX = LabDevice(
    name="4in6",
    description="DS-Lite: a B4, then an AFTR with nftables source NAT of UDP "
    f"to {PUBLIC_IPV4}",
    addresses={"left": ("10.0.0.1/8",), "right": ("198.19.0.1/24",)},
    left=lab_side(
        "left",
        Ipv4Side(address="10.0.0.2", gateway="10.0.0.1", virtual=PUBLIC_IPV4),
        None,
    ),
    right=lab_side("right", Ipv4Side(address="198.19.0.2", gateway="198.19.0.1"), None),
    boxes=(B4, AFTR),
    sysctls=ROUTER_SYSCTLS,
    tracking=Tracking(),
    hooks=gateway_hooks(CHAIN),
    hops=2,
)
