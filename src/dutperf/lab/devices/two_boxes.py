"""Devices of two boxes in a chain (RFC 8219 4.2, dual DUT): see ``topology.join``.

And ``lw4o6``, the one of two that the tester can take the other one's place of.
"""

from __future__ import annotations

from collections.abc import Iterator

from dutperf.config.encapsulation import BindingRule, SideEncapsulation
from dutperf.config.side import Ipv4Side
from dutperf.lab.devices.device import (
    LEFT_IPV6,
    RIGHT_IPV4,
    RIGHT_IPV6,
    TUNNEL_HOPS,
    Box,
    LabDevice,
    Way,
    lab_side,
)
from dutperf.lab.devices.linux import BRIDGED, ROUTER_SYSCTLS, kernel_hooks
from dutperf.lab.devices.nftables import (
    PUBLIC_IPV4,
    Command,
    NftTable,
    Tracking,
    gateway_hooks,
    matches,
    restart_rules,
    source_nat,
)
from dutperf.lab.devices.translators import (
    MAX_HOSTS,
    PREFIX,
    Translator,
    pairs,
    restart_translators,
)
from dutperf.lab.netns import CHAIN
from dutperf.lab.topology import INNER_MTU
from dutperf.protocol.base import Side

# ``4in6``: IPv4 in IPv6 (RFC 2473), the data plane of DS-Lite (RFC 6333).
#
# The dual DUT set-up of RFC 8219 4.2; both boxes are one stateful NAT44 (RFC 9693 7):
#
#     tester                 dut: B4                dut2: AFTR
#     10.0.0.2     left ---- left 10.0.0.1/8
#                            inner ---------------- inner
#     198.19.0.2   right -------------------------- right 198.19.0.1/24
#
#     10.0.0.2 > 198.19.0.2  in  2001:2:0:b4::1 > 2001:2:0:af::1  on the wire between
#     10.0.0.2 =nftables= 198.19.0.1, a port from 1024 on          on the right
#
# Native IPv6, the background traffic of RFC 8219 5.3, both boxes route: it meets no
# tunnel and no NAT. So it is with ``464xlat`` below:
#
#     2001:2::2          left ---- left  2001:2::1/64
#     2001:2:0:8000::2  right ---- right 2001:2:0:8000::1/64
#
# The AFTR translates behind the tunnel's end. With lw4o6 (RFC 7596) the B4 does: the
# same work at the other end of it.
#
# A kernel without ip6_tunnel has SRv6 (RFC 8986), whose ``encap.red`` with one segment
# and ``End.DX4`` are plain IPv4 in IPv6 on the wire. They do it where other packets are
# routed: the sender's end takes no hop, and at the receiver's end no connection is
# tracked. So the AFTR's tunnel ends behind a wire of its own, of which both ends are
# there: ``napt``, where packets come out as from a neighbour, and ``tunnel``. TTL falls
# as with ip6_tunnel, by one in each box; the wire costs the AFTR some time. (With the
# setting ``nf_hooks_lwtunnel`` connections would be tracked without that wire, but it
# is one of the whole machine, and the kernel lets nobody set it back.)


B4_ADDRESS, AFTR_ADDRESS = "2001:2:0:b4::1", "2001:2:0:af::1"
_B4_WIRE, _AFTR_WIRE = "2001:2:0:64::1", "2001:2:0:64::2"
_INSIDE, _OUTSIDE = "10.0.0.0/8", "198.18.0.0/15"
_MAC = "02:00:00:00:af:01"
_OUT_OF_TUNNEL = "encap seg6local action End.DX4 nh4 0.0.0.0"


NATIVE_HOPS = 2
"""Each box takes one of native IPv6."""
_LEFT_NETWORK, _RIGHT_NETWORK = "2001:2::/64", "2001:2:0:8000::/64"
_DUAL_STACK = {
    "left": ("10.0.0.1/8", "2001:2::1/64", "fe80::1/64"),
    "right": ("198.19.0.1/24", "2001:2:0:8000::1/64", "fe80::1/64"),
}


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
        f"route add {own}/128 {_OUT_OF_TUNNEL} dev inner",
    )


_TO_AFTR = (B4_ADDRESS, AFTR_ADDRESS, _AFTR_WIRE, _OUTSIDE)
_TO_B4 = (AFTR_ADDRESS, B4_ADDRESS, _B4_WIRE, _INSIDE)
_BY_SEGMENTS = "IPv4 in IPv6 by SRv6 (encap.red, End.DX4), for want of ip6_tunnel"


def _aftr_rules() -> Iterator[Command]:
    yield from source_nat("ip", PUBLIC_IPV4)
    once = NftTable("ip", "once")
    yield once.added()
    yield once.chain("entering", "filter", "prerouting", -300)
    into_tunnel = matches({"meta": {"key": "iifname"}}, "tunnel")
    yield once.rule("entering", [into_tunnel, {"notrack": None}])


B4 = Box(
    inner=(f"{_B4_WIRE}/64", "fe80::1/64"),
    routes=(f"{_RIGHT_NETWORK} via {_AFTR_WIRE}",),
    ways=(
        _tunnel(*_TO_AFTR),
        Way(name=_BY_SEGMENTS, commands=_segments(*_TO_AFTR, table="main")),
    ),
)
AFTR = Box(
    ruleset=tuple(_aftr_rules()),
    inner=(f"{_AFTR_WIRE}/64", "fe80::2/64"),
    routes=(f"{_LEFT_NETWORK} via {_B4_WIRE}",),
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
    description="DS-Lite: a B4, then an AFTR with nftables source NAT of UDP and TCP "
    f"to {PUBLIC_IPV4}",
    addresses=_DUAL_STACK,
    left=lab_side(
        "left",
        Ipv4Side(address="10.0.0.2", gateway="10.0.0.1", virtual=PUBLIC_IPV4),
        LEFT_IPV6,
    ),
    right=lab_side("right", RIGHT_IPV4, RIGHT_IPV6),
    boxes=(B4, AFTR),
    sysctls=ROUTER_SYSCTLS,
    tracking=Tracking(),
    hooks=gateway_hooks(CHAIN),
    restarts=restart_rules,
    hops=NATIVE_HOPS,
)


# ``lw4o6``: the lwAFTR of lw4o6 (RFC 7596), alone (RFC 8219 4.2, single DUT).
#
#     tester: 15 B4s                      dut: lwAFTR
#     2001:2::2      left  -------- left  2001:2::1/64
#     198.19.0.2     right -------- right 198.19.0.1/24
#
#     198.18.1.1, a B4's ports  in  2001:2:0:b40x::1 > 2001:2:0:af::1  on the left
#
# By SRv6, as above: of ip6_tunnel it would take an interface for each B4. The 4,096
# ports of each of 16 PSIDs are a rule of routing, and its table the way to the B4; PSID
# 0 has the system ports, and is nobody's. What comes out of the tunnel is not held
# against the B4 that sent it, so spoofed frames go through: the kernel is no whole
# lwAFTR (RFC 7596 6.2).


B4S = BindingRule(
    first_b4="2001:2:0:b400::1/64", ipv4_prefix="198.18.1.1/32", psid_length=4
)
_SHARED = "198.18.1.1"
_B4S_MTU = 1540
"""An IPv6 header takes 40 bytes: what is inside has 1,500."""


def _to_b4s() -> Iterator[str]:
    # Rules stay when links go down: begin anew.
    yield "rule flush"
    yield "rule add pref 32766 lookup main"
    size = 1 << 16 - B4S.psid_length
    last = (1 << B4S.psid_length) - 1
    yield f"rule add pref 100 to {_SHARED} ipproto udp dport 1-{size - 1} unreachable"
    for psid in range(B4S.first_psid, last + 1):
        first, table = psid * size, 100 + psid
        # No rule's range may end at port 65,535: the last one has what is left.
        ports = f"dport {first}-{first + size - 1} " if psid < last else ""
        into = f"encap seg6 mode encap.red segs {B4S.address(_SHARED, psid)}"
        yield f"rule add pref {table} to {_SHARED} ipproto udp {ports}lookup {table}"
        yield f"route add {_SHARED} {into} dev left table {table}"


LW4O6 = LabDevice(
    name="lw4o6",
    description="Linux as an lwAFTR of 15 B4s: a routing rule for each port set, IPv4 "
    "in IPv6 by SRv6 (encap.red, End.DX4)",
    addresses={"left": ("2001:2::1/64", "fe80::1/64"), "right": ("198.19.0.1/24",)},
    left=lab_side(
        "left",
        Ipv4Side(address=_SHARED),
        LEFT_IPV6,
        mtu=_B4S_MTU,
        encapsulation=SideEncapsulation(
            kind="ipv4-in-ipv6", remote=AFTR_ADDRESS, binding_table=B4S
        ),
    ),
    right=lab_side("right", RIGHT_IPV4, None),
    sysctls=ROUTER_SYSCTLS,
    networks={"left": ("2001:2:0:b400::/60",)},
    told={
        "left": (f"sr tunsrc set {AFTR_ADDRESS}", *_to_b4s()),
        "right": (f"route add {AFTR_ADDRESS}/128 {_OUT_OF_TUNNEL} dev right",),
    },
    translates=False,
    hooks=kernel_hooks(),
)


# ``vxlan``: Ethernet in UDP (RFC 7348), two bridges with a tunnel between them.
#
# The dual DUT set-up of RFC 8219 4.2:
#
#     tester                 dut                    dut2
#     198.18.0.2   left ---- left, vxlan
#                            inner 10.255.0.1 ----- inner 10.255.0.2
#     198.19.0.2   right -------------------------- vxlan, right
#
#     each frame  in  10.255.0.1 > 10.255.0.2, UDP to port 4789, VNI 42  between
#
# Each box is a bridge of its port and the tunnel's end. So nothing routes: the tester's
# next hop on each side is its own other side, and TTL stays. A frame is 50 bytes longer
# on the wire between. The outer UDP checksum is zero, and the outer source port a hash
# of the frame's addresses and ports (RFC 7348 5).


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
    left=BRIDGED["left"],
    right=BRIDGED["right"],
    boxes=(
        _end("left", _LEFT_END, _RIGHT_END),
        _end("right", _RIGHT_END, _LEFT_END),
    ),
    sysctls=_SILENT,
    translates=False,
    hooks=kernel_hooks(CHAIN),
)


# ``464xlat``: double translation (RFC 6877), IPv4 through an IPv6 network.
#
# The dual DUT set-up of RFC 8219 4.2; both boxes are one stateful NAT44 (RFC 9693 7):
#
#     tester                 dut: CLAT              dut2: PLAT
#     10.0.0.2     left ---- left 10.0.0.1/8
#                            inner ---------------- inner
#     198.19.0.2   right -------------------------- right 198.19.0.1/24
#
#     CLAT  10.0.0.(2 + k)  =TAYGA=  2001:2:0:c1a7::k:2
#           198.19.0.2      =TAYGA=  2001:2:0:6464::c613:2  (RFC 6052)
#     PLAT  2001:2:0:c1a7::k:2  =TAYGA=  10.64.0.(2 + k)
#           10.64.0.(2 + k)  =nftables=  198.19.0.1, port from 1024 on
#
# There are 253 hosts, k is 0 to 252. The PLAT is the gateway of ``tayga-nat64`` with
# other hosts. Each TAYGA takes three hops, as TTL counts them: the kernel one on the
# way into its tunnel and out of it, TAYGA one between.
#
# TAYGA 0.9.2 cuts IPv4 packets without DF that are larger than 1,260 bytes (RFC 7915
# 4), whatever the wire carries: send them with DF.


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
    routes=(f"{PREFIX} via {_PLAT}", f"{_RIGHT_NETWORK} via {_PLAT}"),
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
    routes=(f"{_HOSTS}/64 via {_CLAT}", f"{_LEFT_NETWORK} via {_CLAT}"),
)
XLAT464 = LabDevice(
    name="464xlat",
    description="464XLAT: TAYGA as CLAT, then TAYGA and nftables as PLAT, "
    f"to {PUBLIC_IPV4}",
    addresses=_DUAL_STACK,
    left=lab_side(
        "left",
        Ipv4Side(address="10.0.0.2", gateway="10.0.0.1", virtual=PUBLIC_IPV4),
        LEFT_IPV6,
    ),
    right=lab_side("right", RIGHT_IPV4, RIGHT_IPV6),
    boxes=(CLAT, PLAT),
    sysctls=ROUTER_SYSCTLS,
    tracking=Tracking(),
    hooks=gateway_hooks(CHAIN),
    restarts=restart_translators,
    hops=2 * TUNNEL_HOPS,
    ipv6_hops=NATIVE_HOPS,
)
