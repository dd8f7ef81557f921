"""``tayga-nat64``: stateful NAT64 in two steps, TAYGA and nftables behind it.

As in Lencse, Shima and Cho (2023): TAYGA gives each IPv6 client a private IPv4 address,
one for one, and nftables maps those to the public address and its ports:

    tester                               dut
    2001:2::2          left ------- left  2001:2::1/64
    198.19.0.2        right ------- right 198.19.0.1/24
    2001:2:0:8000::2  right ------- right 2001:2:0:8000::1/64   native IPv6 only

    2001:2::k:2  =TAYGA=  10.0.0.(2 + k)  =nftables=  198.19.0.1, port from 1024 on
    198.19.0.2  stands behind 2001:2:0:6464::c613:2

There are 253 clients, k is 0 to 252. The prefix is one of the network's own, because
64:ff9b::/96 is for global addresses only (RFC 6052 3.1): TAYGA refuses it for others.
"""

from __future__ import annotations

from dutperf.config.side import Ipv4Side, Ipv6Side
from dutperf.lab.devices.device import (
    Box,
    LabDevice,
    Tracking,
    Translator,
    gateway_hooks,
    lab_side,
)
from dutperf.lab.devices.linux_router import ROUTER_SYSCTLS
from dutperf.lab.devices.nft_nat import PUBLIC_IPV4, source_nat
from dutperf.lab.devices.tayga_siit import MAX_HOSTS, pairs

PREFIX = "2001:2:0:6464::/96"

TAYGA_NAT64 = LabDevice(
    name="tayga-nat64",
    description=f"TAYGA and nftables, NAT64 with {PREFIX} to {PUBLIC_IPV4}",
    addresses={
        "left": ("2001:2::1/64", "fe80::1/64"),
        "right": ("198.19.0.1/24", "2001:2:0:8000::1/64", "fe80::1/64"),
    },
    left=lab_side(
        "left",
        Ipv4Side(virtual=PUBLIC_IPV4),
        Ipv6Side(address="2001:2::2", gateway="2001:2::1"),
    ),
    right=lab_side(
        "right",
        Ipv4Side(address="198.19.0.2", gateway="198.19.0.1"),
        Ipv6Side(
            address="2001:2:0:8000::2",
            gateway="2001:2:0:8000::1",
            virtual="2001:2:0:6464::c613:2",
        ),
    ),
    sysctls=ROUTER_SYSCTLS,
    boxes=(
        Box(
            translator=Translator(
                tunnel="nat64",
                ipv4="10.0.0.1",
                ipv6="2001:2:0:1000::1",
                pairs=tuple(pairs(MAX_HOSTS, "10.0.0.2", "2001:2::2")),
                networks=("10.0.0.0/24", PREFIX),
                prefix=PREFIX,
            ),
            ruleset=tuple(source_nat("ip", PUBLIC_IPV4)),
        ),
    ),
    tracking=Tracking(),
    hooks=gateway_hooks(),
)
