"""Addresses of devices with two ports on each side (RFC 2544 16).

    tester                              dut
    198.18.0.2     left   ------- left   198.18.0.1/24    2001:2::1/64
    198.18.1.2     left2  ------- left2  198.18.1.1/24    2001:2:0:1::1/64
    198.19.0.2     right  ------- right  198.19.0.1/24    2001:2:0:8000::1/64
    198.19.1.2     right2 ------- right2 198.19.1.1/24    2001:2:0:8001::1/64

The networks differ in bits that no hosts have: the last 8 of IPv4 and bits 96-111 of
IPv6 may vary.
"""

from __future__ import annotations

from collections.abc import Mapping

from dutperf.config.side import Ipv4Side, Ipv6Side, Port, PortKeys
from dutperf.protocol import Side

TWO_BY_TWO: Mapping[str, tuple[str, ...]] = {
    "left": ("198.18.0.1/24", "2001:2::1/64"),
    "left2": ("198.18.1.1/24", "2001:2:0:1::1/64"),
    "right": ("198.19.0.1/24", "2001:2:0:8000::1/64"),
    "right2": ("198.19.1.1/24", "2001:2:0:8001::1/64"),
}
"""The device's own."""
_SECOND: Mapping[Side, tuple[str, str]] = {
    "left": ("198.18.1", "2001:2:0:1:"),
    "right": ("198.19.1", "2001:2:0:8001:"),
}


def second_port(side: Side, port: Port) -> PortKeys:
    """The tester's second one of ``side``."""
    ipv4, ipv6 = _SECOND[side]
    return PortKeys(
        port=port,
        ipv4=Ipv4Side(address=f"{ipv4}.2", gateway=f"{ipv4}.1"),
        ipv6=Ipv6Side(address=f"{ipv6}:2", gateway=f"{ipv6}:1"),
    )
