"""``vxlan``: Ethernet in UDP (RFC 7348), two bridges with a tunnel between them.

The dual DUT set-up of RFC 8219 4.2:

    tester                 dut                    dut2
    198.18.0.2   left ---- left, vxlan
                           inner 10.255.0.1 ----- inner 10.255.0.2
    198.19.0.2   right -------------------------- vxlan, right

    each frame  in  10.255.0.1 > 10.255.0.2, UDP to port 4789, VNI 42  between

Each box is a bridge of its port and the tunnel's end. So nothing routes: the tester's
next hop on each side is its own other side, and TTL stays. A frame is 50 bytes longer
on the wire between. The outer UDP checksum is zero, and the outer source port a hash of
the frame's addresses and ports (RFC 7348 5).
"""

from __future__ import annotations

from dutperf.config.side import Ipv4Side, Ipv6Side
from dutperf.lab.devices.device import (
    CHAIN,
    Box,
    LabDevice,
    Way,
    kernel_hooks,
    lab_side,
)
from dutperf.protocol import Side

PORT, VNI = 4789, 42
_LEFT_END, _RIGHT_END = "10.255.0.1", "10.255.0.2"
_SILENT = {f"net.ipv6.conf.{s}.disable_ipv6": "1" for s in ("all", "default")}
"""The tunnel is IPv4's, and a bridge with IPv6 would speak to the tester."""


def _end(side: Side, own: str, other: str) -> Box:
    tunnel = f"id {VNI} local {own} remote {other} dstport {PORT} dev inner ttl 64"
    return Box(
        inner=(f"{own}/30",),
        ways=(
            Way(
                link=f"vxlan type vxlan {tunnel} noudpcsum",
                commands=(
                    "link add name bridge type bridge mcast_snooping 0",
                    f"link set {side} master bridge",
                    "link set vxlan master bridge",
                    "link set vxlan up",
                    "link set bridge up",
                ),
            ),
        ),
    )


VXLAN = LabDevice(
    name="vxlan",
    description="Linux bridges, joined by VXLAN",
    addresses={"left": (), "right": ()},
    left=lab_side(
        "left",
        Ipv4Side(address="198.18.0.2", gateway="198.19.0.2"),
        Ipv6Side(address="2001:2::2", gateway="2001:2:0:8000::2"),
    ),
    right=lab_side(
        "right",
        Ipv4Side(address="198.19.0.2", gateway="198.18.0.2"),
        Ipv6Side(address="2001:2:0:8000::2", gateway="2001:2::2"),
    ),
    boxes=(
        _end("left", _LEFT_END, _RIGHT_END),
        _end("right", _RIGHT_END, _LEFT_END),
    ),
    sysctls=_SILENT,
    translates=False,
    hooks=kernel_hooks(CHAIN),
)
