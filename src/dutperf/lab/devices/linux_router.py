"""``linux-router``: an IPv4 and IPv6 router, the kernel's own forwarding.

    tester                              dut
    198.18.0.2     left  ------- left  198.18.0.1/24    2001:2::1/64
    198.19.0.2     right ------- right 198.19.0.1/24    2001:2:0:8000::1/64

The networks are those of RFC 2544 C.2.2 (198.18.0.0/15) and RFC 5180 8 (2001:2::/48).
The link-local addresses are set by hand because the kernel has to have one to ask for
neighbours on behalf of forwarded packets; it gives them to interfaces too late and
with more noise.
"""

from __future__ import annotations

from dutperf.config.testbed import Ipv4Side, Ipv6Side
from dutperf.lab.devices.device import LabDevice, lab_side

LINUX_ROUTER = LabDevice(
    name="linux-router",
    description="Linux forwarding",
    addresses={
        "left": ("198.18.0.1/24", "2001:2::1/64", "fe80::1/64"),
        "right": ("198.19.0.1/24", "2001:2:0:8000::1/64", "fe80::1/64"),
    },
    left=lab_side(
        "left",
        Ipv4Side(address="198.18.0.2", gateway="198.18.0.1"),
        Ipv6Side(address="2001:2::2", gateway="2001:2::1"),
    ),
    right=lab_side(
        "right",
        Ipv4Side(address="198.19.0.2", gateway="198.19.0.1"),
        Ipv6Side(address="2001:2:0:8000::2", gateway="2001:2:0:8000::1"),
    ),
    sysctls={"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "1"},
)
