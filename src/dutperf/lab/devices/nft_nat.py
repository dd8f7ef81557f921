"""``nft-nat44`` and ``nft-nat66``: stateful NAPT by nftables and connection tracking.

The single DUT set-up of RFC 9693 3, the private side on the left:

    tester                            dut
    10.0.0.2    left  ------- left  10.0.0.1/8    2001:2::1/64
    198.19.0.2  right ------- right 198.19.0.1/24 2001:2:0:8000::1/64

All that leaves on the right by UDP, of the version that is translated, gets the DUT's
own address there and a port from 1024 on: the sender's own where it is free. What comes
from the right and belongs to no connection is dropped without a word. The other version
is forwarded as by a router.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from dutperf.config.side import Ipv4Side, Ipv6Side
from dutperf.lab.devices.device import Box, LabDevice, Tracking, gateway_hooks, lab_side
from dutperf.lab.devices.linux_router import ROUTER_SYSCTLS
from dutperf.lab.devices.ruleset import Command, Table, matches

PUBLIC_IPV4 = "198.19.0.1"
PUBLIC_IPV6 = "2001:2:0:8000::1"
FIRST_PORT, LAST_PORT = 1024, 65535


def source_nat(family: Literal["ip", "ip6"], address: str) -> Iterator[Command]:
    """Commands for nftables: UDP leaves on the right as ``address``, and comes back."""
    table = Table(family, "nat")
    yield table.added()
    yield table.chain("leaving", "nat", "postrouting", 100)
    yield table.chain("passing", "filter", "forward", 0)
    yield table.chain("arriving", "filter", "input", 0)
    udp = matches({"meta": {"key": "l4proto"}}, "udp")
    ports = {"range": [FIRST_PORT, LAST_PORT]}
    to = {"snat": {"addr": address, "port": ports}}
    yield table.rule(
        "leaving", [matches({"meta": {"key": "oifname"}}, "right"), udp, to]
    )
    from_outside = matches({"meta": {"key": "iifname"}}, "right")
    new = matches({"ct": {"key": "state"}}, "new")
    yield table.rule("passing", [from_outside, udp, new, {"drop": None}])
    yield table.rule("arriving", [from_outside, udp, {"drop": None}])


def _nat(
    name: str, family: Literal["ip", "ip6"], address: str, virtual: str, right: str
) -> LabDevice:
    ipv4, ipv6 = (virtual, None) if family == "ip" else (None, virtual)
    return LabDevice(
        name=name,
        description=f"nftables source NAT of UDP to {right}",
        addresses={
            "left": ("10.0.0.1/8", "2001:2::1/64", "fe80::1/64"),
            "right": ("198.19.0.1/24", "2001:2:0:8000::1/64", "fe80::1/64"),
        },
        left=lab_side(
            "left",
            Ipv4Side(address="10.0.0.2", gateway="10.0.0.1", virtual=ipv4),
            Ipv6Side(address="2001:2::2", gateway="2001:2::1", virtual=ipv6),
        ),
        right=lab_side(
            "right",
            Ipv4Side(address="198.19.0.2", gateway="198.19.0.1"),
            Ipv6Side(address="2001:2:0:8000::2", gateway="2001:2:0:8000::1"),
        ),
        sysctls=ROUTER_SYSCTLS,
        boxes=(Box(ruleset=tuple(source_nat(family, address))),),
        tracking=Tracking(),
        hooks=gateway_hooks(),
    )


NFT_NAT44 = _nat("nft-nat44", "ip", PUBLIC_IPV4, PUBLIC_IPV4, PUBLIC_IPV4)
NFT_NAT66 = _nat("nft-nat66", "ip6", PUBLIC_IPV6, PUBLIC_IPV6, PUBLIC_IPV6)
