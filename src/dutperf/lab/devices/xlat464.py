"""``464xlat``: double translation (RFC 6877), IPv4 through an IPv6 network.

The dual DUT set-up of RFC 8219 4.2; both boxes are one stateful NAT44 (RFC 9693 7):

    tester                 dut: CLAT              dut2: PLAT
    10.0.0.2     left ---- left 10.0.0.1/8
                           inner ---------------- inner
    198.19.0.2   right -------------------------- right 198.19.0.1/24

    CLAT  10.0.0.(2 + k)  =TAYGA=  2001:2:0:c1a7::k:2
          198.19.0.2      =TAYGA=  2001:2:0:6464::c613:2  (RFC 6052)
    PLAT  2001:2:0:c1a7::k:2  =TAYGA=  10.64.0.(2 + k)
          10.64.0.(2 + k)  =nftables=  198.19.0.1, port from 1024 on

There are 253 hosts, k is 0 to 252. The PLAT is the gateway of ``tayga-nat64`` with
other hosts. Each TAYGA takes three hops, as TTL counts them: the kernel one on the way
into its tunnel and out of it, TAYGA one between.

TAYGA 0.9.2 cuts IPv4 packets without DF that are larger than 1,260 bytes (RFC 7915 4),
whatever the wire carries: send them with DF.
"""

from __future__ import annotations

from dutperf.config.side import Ipv4Side
from dutperf.lab.devices.device import (
    CHAIN,
    INNER_MTU,
    TUNNEL_HOPS,
    Box,
    LabDevice,
    Tracking,
    Translator,
    Way,
    gateway_hooks,
    lab_side,
)
from dutperf.lab.devices.linux_router import ROUTER_SYSCTLS
from dutperf.lab.devices.nft_nat import PUBLIC_IPV4, source_nat
from dutperf.lab.devices.tayga_nat64 import PREFIX
from dutperf.lab.devices.tayga_siit import MAX_HOSTS, pairs

_HOSTS = "2001:2:0:c1a7::"
_CLAT, _PLAT = "2001:2:0:64::1", "2001:2:0:64::2"

CLAT = Box(
    translator=Translator(
        tunnel="clat",
        ipv4="198.18.0.1",
        ipv6=f"{_HOSTS}1",
        pairs=tuple(pairs(MAX_HOSTS, "10.0.0.2", f"{_HOSTS}2")),
        networks=("198.18.0.0/15", f"{_HOSTS}/64"),
        prefix=PREFIX,
        mtu=INNER_MTU,
    ),
    inner=(f"{_CLAT}/64", "fe80::1/64"),
    ways=(Way(commands=(f"route add {PREFIX} via {_PLAT}",)),),
)
PLAT = Box(
    translator=Translator(
        tunnel="plat",
        ipv4="10.64.0.1",
        ipv6="2001:2:0:1000::1",
        pairs=tuple(pairs(MAX_HOSTS, "10.64.0.2", f"{_HOSTS}2")),
        networks=("10.64.0.0/24", PREFIX),
        prefix=PREFIX,
        mtu=INNER_MTU,
    ),
    ruleset=tuple(source_nat("ip", PUBLIC_IPV4)),
    inner=(f"{_PLAT}/64", "fe80::2/64"),
    ways=(Way(commands=(f"route add {_HOSTS}/64 via {_CLAT}",)),),
)
XLAT464 = LabDevice(
    name="464xlat",
    description="464XLAT: TAYGA as CLAT, then TAYGA and nftables as PLAT, "
    f"to {PUBLIC_IPV4}",
    addresses={"left": ("10.0.0.1/8",), "right": ("198.19.0.1/24",)},
    left=lab_side(
        "left",
        Ipv4Side(address="10.0.0.2", gateway="10.0.0.1", virtual=PUBLIC_IPV4),
        None,
    ),
    right=lab_side("right", Ipv4Side(address="198.19.0.2", gateway="198.19.0.1"), None),
    boxes=(CLAT, PLAT),
    sysctls=ROUTER_SYSCTLS,
    tracking=Tracking(),
    hooks=gateway_hooks(CHAIN),
    hops=2 * TUNNEL_HOPS,
)
