"""``linux-router``: an IPv4 and IPv6 router, the kernel's own forwarding.

    tester                              dut
    198.18.0.2     left  ------- left  198.18.0.1/24    2001:2::1/64
    198.19.0.2     right ------- right 198.19.0.1/24    2001:2:0:8000::1/64

The networks are those of RFC 2544 C.2.2 (198.18.0.0/15) and RFC 5180 8 (2001:2::/48).
Each side has 256 of them (RFC 2544 12): the first is on the link, the other 255 are
routed to the tester: 198.18.1.0/24 to 198.18.255.0/24 (bits 16-23 of the address) and
2001:2:0:1::/64 to 2001:2:0:ff::/64 (bits 56-63), and the same on the right.

Hosts on the link are resolved one by one when traffic for them comes, by ARP (254 of
198.18.0.0/24) and neighbour discovery (65,536 of 2001:2::/64, bits 96-111). In IPv4 the
bits of the networks are among the 16 last ones: who varies those gets through, too, but
from the 255th host on by routes and not by neighbours. ``linux-router-hosts`` gives the
IPv4 networks up: 198.18.0.0/16 and 198.19.0.0/16 are on the link as a whole, with
65,534 hosts to resolve on each. No address is a broadcast.

The link-local addresses are set by hand because the kernel has to have one to ask for
neighbours on behalf of forwarded packets; it gives them to interfaces too late and
with more noise.

``linux-router-rip`` knows none of the 255 networks behind each link: BIRD takes them
from the tester (``routes: rip``, RFC 2544 13). ``linux-router-frr`` knows none either:
FRR takes them by OSPF or BGP (``routes: ospf``, ``bgp``). ``linux-router-snmp`` is the
router with an agent, snmpd, that answers management queries (RFC 2544 11.2).

``linux-router-10-routes``, ``-1000-routes`` and ``-100000-routes`` have so many routes
more in their tables, of each IP version (``daemons.static_routes``).

``linux-router-2x2`` has two ports on each side, and no network behind one
(``TWO_BY_TWO``).

``linux-router-mtus`` has links with different MTUs: what is longer than the right one
carries goes on in pieces (RFC 2544 9.4).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dutperf.config.encapsulation import SideEncapsulation, SideSegments
from dutperf.config.side import (
    InterfacePort,
    Ipv4Side,
    Ipv6Side,
    Port,
    PortKeys,
    SideConfig,
)
from dutperf.config.testbed import CORES, Hook, Hooks, Routing
from dutperf.lab.devices.daemons import BIRD, FRR, FRR_ROUTING, SNMPD, Daemon, bird_with
from dutperf.lab.devices.device import (
    LEFT_IPV4,
    LEFT_IPV6,
    RIGHT_IPV4,
    RIGHT_IPV6,
    Box,
    LabDevice,
    end_name,
    lab_side,
)
from dutperf.lab.netns import DUT
from dutperf.lab.state import StateFile
from dutperf.programs import in_namespace
from dutperf.protocol.base import Side

# Addresses of devices with two ports on each side (RFC 2544 16).
#
#     tester                              dut
#     198.18.0.2     left   ------- left   198.18.0.1/24    2001:2::1/64
#     198.18.1.2     left2  ------- left2  198.18.1.1/24    2001:2:0:1::1/64
#     198.19.0.2     right  ------- right  198.19.0.1/24    2001:2:0:8000::1/64
#     198.19.1.2     right2 ------- right2 198.19.1.1/24    2001:2:0:8001::1/64
#
# The networks differ in bits that no hosts have: the last 8 of IPv4 and bits 96-111 of
# IPv6 may vary.


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


ROUTER_SYSCTLS = {"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "1"}


def inside(namespace: str, *command: str) -> Hook:
    """A command that is run in ``namespace``."""
    return Hook(command=in_namespace(namespace, *command))


_ORDERS = [sys.executable, "-m", "dutperf.lab.orders", str(StateFile().path)]
"""A program of ours, which is told whose lab it is about."""


_GAUGES = (
    '/^Slab:/ {printf "machine_slab_bytes = %.0f\\n", $2 * 1024} '
    'FILENAME ~ /loadavg/ {print "machine_load_1min = " $1}'
)
"""Of the kernel that all namespaces share, as gauges."""


def kernel_hooks(namespaces: Sequence[str] = (DUT,)) -> Hooks:
    """What the DUT's kernel did with the frames of each trial, in each of its boxes.

    Neighbours and routes stay: a trial is to begin with what the device has learnt (RFC
    2544 C.2.4.1), and Linux keeps no cache of routes. Counters of IP are those of the
    trial, of links those since the lab is up, of CPUs those since the machine is: the
    kernel sets them back for nobody, so those of CPUs are read before a trial, too.
    """
    shared = inside(namespaces[0], "cat", "/proc/net/softnet_stat")
    gauges = inside(namespaces[0], "awk", _GAUGES, "/proc/meminfo", "/proc/loadavg")
    before, after = [shared], [shared, gauges]
    for name in namespaces:
        history = f"NSTAT_HISTORY={StateFile().dut_directory / f'nstat-{name}'}"
        before.append(inside(name, "env", history, "nstat", "-n"))
        after.append(inside(name, "env", history, "nstat"))
        after.append(Hook(command=["ip", "-netns", name, "-s", "link"]))
    return Hooks(
        set_cores=Hook(command=[*_ORDERS, "cores", CORES], timeout_s=60),
        before_trial=before,
        during_trial=[Hook(command=[*_ORDERS, "restart"])],
        after_trial=after,
    )


_ROUTED = range(1, 256)
_IPV4_NETWORKS: Mapping[str, tuple[str, ...]] = {
    "left": tuple(f"198.18.{n}.0/24" for n in _ROUTED),
    "right": tuple(f"198.19.{n}.0/24" for n in _ROUTED),
}
_IPV6_NETWORKS: Mapping[str, tuple[str, ...]] = {
    "left": tuple(f"2001:2:0:{n:x}::/64" for n in _ROUTED),
    "right": tuple(f"2001:2:0:80{n:02x}::/64" for n in _ROUTED),
}


def _router(
    name: str,
    description: str,
    prefix_length: int,
    networks: Mapping[str, tuple[str, ...]],
    *,
    daemons: tuple[Daemon, ...] = (),
    routing: Routing | None = None,
    left_mtu: int = 1500,
) -> LabDevice:
    return LabDevice(
        name=name,
        description=description,
        addresses={
            "left": (f"198.18.0.1/{prefix_length}", "2001:2::1/64", "fe80::1/64"),
            "right": (
                f"198.19.0.1/{prefix_length}",
                "2001:2:0:8000::1/64",
                "fe80::1/64",
            ),
        },
        left=lab_side(
            "left",
            LEFT_IPV4,
            LEFT_IPV6,
            mtu=left_mtu,
        ),
        right=lab_side(
            "right",
            RIGHT_IPV4,
            RIGHT_IPV6,
        ),
        sysctls=ROUTER_SYSCTLS,
        networks=networks,
        daemons=daemons,
        hooks=kernel_hooks(),
        routing=routing or Routing(),
    )


def _with_second_port(side: Side, config: SideConfig) -> SideConfig:
    second = second_port(side, InterfacePort(interface=end_name(side, 1)))
    return config.model_copy(update={"more_ports": [second]})


_NETWORKS: Mapping[str, tuple[str, ...]] = {
    side: _IPV4_NETWORKS[side] + _IPV6_NETWORKS[side] for side in _IPV4_NETWORKS
}
LINUX_ROUTER = _router(
    "linux-router", "Linux forwarding, 256 networks on each side", 24, _NETWORKS
)
LINUX_ROUTER_HOSTS = _router(
    "linux-router-hosts",
    "Linux forwarding, 65,534 IPv4 hosts to resolve on each side",
    16,
    _IPV6_NETWORKS,
)
LINUX_ROUTER_MTUS = _router(
    "linux-router-mtus",
    "Linux forwarding, links with MTUs of 9,198 and 1,500 bytes",
    24,
    _NETWORKS,
    left_mtu=9198,
)
LINUX_ROUTER_2X2 = replace(
    LINUX_ROUTER,
    name="linux-router-2x2",
    description="Linux forwarding, two ports on each side",
    addresses={end: (*own, "fe80::1/64") for end, own in TWO_BY_TWO.items()},
    left=_with_second_port("left", LINUX_ROUTER.left),
    right=_with_second_port("right", LINUX_ROUTER.right),
    networks={},
)
LINUX_ROUTER_RIP = _router(
    "linux-router-rip",
    "Linux forwarding, routes from the tester by RIPv2 and RIPng (BIRD)",
    24,
    {},
    daemons=(BIRD,),
)
LINUX_ROUTER_FRR = _router(
    "linux-router-frr",
    "Linux forwarding, routes from the tester by OSPF and BGP (FRR)",
    24,
    {},
    daemons=FRR,
    routing=FRR_ROUTING,
)
LINUX_ROUTER_TABLES = tuple(
    _router(
        f"linux-router-{routes}-routes",
        f"Linux forwarding with {routes:,} routes more in its table (BIRD)",
        24,
        _NETWORKS,
        daemons=(bird_with(routes),),
    )
    for routes in (10, 1_000, 100_000)
)
LINUX_ROUTER_SNMP = _router(
    "linux-router-snmp",
    "Linux forwarding, 256 networks on each side, with an SNMP agent (snmpd)",
    24,
    _NETWORKS,
    daemons=(SNMPD,),
)


# ``srv6-dx4``, ``srv6-dt6``: the edge of an SRv6 network (RFC 8986), on the left.
#
#     tester                              dut
#     2001:2::b      left  ------- left  2001:2::1/64
#     198.19.0.2     right ------- right 198.19.0.1/24    2001:2:0:8000::1/64
#
#     198.18.0.2 > 198.19.0.2  in  2001:2::b > SID, behind it the segments  on the left
#
# What comes is on its way to the last of two segments, the device's: it takes the outer
# headers off (End.DX4, which asks for the next hop of 0.0.0.0 as a router does, or
# End.DT6). What goes back it puts into two segments (H.Encaps), of which the tester is
# the first. End.DT4 and End.DT46 take a VRF, which few kernels of labs have.
#
# ``srv6-end``: a segment endpoint (RFC 8986 4.1) between two nodes of such a network,
# both of which the tester is. It writes the second segment over the destination.
#
#     2001:2::2         left  ------- left  2001:2::1/64
#     2001:2:0:8000::2  right ------- right 2001:2:0:8000::1/64


_NODE = "2001:2::b"
_SID = "2001:2:0:5::1"
_LEFT_SIDS, _RIGHT_SIDS = "2001:2:0:6::", "2001:2:0:8006::"
_SRV6_MTU = 1580
"""An IPv6 header and one of two segments take 80 bytes: what is inside has 1,500."""
_SEGMENTS = {
    **ROUTER_SYSCTLS,
    **{f"net.ipv6.conf.{s}.seg6_enabled": "1" for s in ("all", "left", "right")},
}


def _edge(name: str, action: str, inside: str) -> LabDevice:
    """``inside``: the hosts behind the tester on the left."""
    to_tester = [f"{_LEFT_SIDS}1", f"{_LEFT_SIDS}2"]
    into = f"encap seg6 mode encap segs {','.join(to_tester)}"
    version_6 = ":" in inside
    return LabDevice(
        name=name,
        description=f"Linux as the edge of an SRv6 network: H.Encaps, {action}",
        addresses={
            "left": ("2001:2::1/64", "fe80::1/64"),
            "right": (
                "2001:2:0:8000::1/64" if version_6 else "198.19.0.1/24",
                "fe80::1/64",
            ),
        },
        left=lab_side(
            "left",
            None if version_6 else Ipv4Side(address="198.18.0.2"),
            LEFT_IPV6,
            mtu=_SRV6_MTU,
            encapsulation=SideEncapsulation(
                kind="srv6",
                local=_NODE,
                srh=SideSegments(segments=[f"{_LEFT_SIDS}1", _SID], segments_left=0),
                received_srh=SideSegments(segments=to_tester, segments_left=1),
            ),
        ),
        right=lab_side(
            "right",
            None if version_6 else RIGHT_IPV4,
            RIGHT_IPV6 if version_6 else None,
        ),
        sysctls=_SEGMENTS,
        told={
            "left": (
                "sr tunsrc set 2001:2::1",
                f"route add {_NODE}/128 dev left",
                f"route add {_LEFT_SIDS}/64 via {_NODE} dev left",
                f"route add {inside} {into} dev left",
            ),
            "right": (
                f"route add {_SID}/128 encap seg6local action {action} dev right",
            ),
        },
        translates=False,
        hooks=kernel_hooks(),
    )


def _node(side: Side, own: str, others: str, remote: str | None) -> SideConfig:
    """The tester at that side of an endpoint, where its own segment begins so."""
    inside, ipv6 = {
        "left": ("198.18.0.2", LEFT_IPV6),
        "right": ("198.19.0.2", RIGHT_IPV6),
    }[side]
    return lab_side(
        side,
        Ipv4Side(address=inside),
        ipv6,
        mtu=_SRV6_MTU,
        encapsulation=SideEncapsulation(
            kind="srv6",
            remote=remote,
            srh=SideSegments(segments=[_SID, f"{others}2"]),
            received_srh=SideSegments(segments=[_SID, f"{own}2"]),
        ),
    )


SRV6_DX4 = _edge("srv6-dx4", "End.DX4 nh4 0.0.0.0", "198.18.0.0/16")
SRV6_DT6 = _edge("srv6-dt6", "End.DT6 table main", "2001:2::/96")
SRV6_END = LabDevice(
    name="srv6-end",
    description="Linux as a segment endpoint of an SRv6 network: End",
    addresses={
        "left": ("2001:2::1/64", "fe80::1/64"),
        "right": ("2001:2:0:8000::1/64", "fe80::1/64"),
    },
    left=_node("left", _LEFT_SIDS, _RIGHT_SIDS, RIGHT_IPV6.address),
    right=_node("right", _RIGHT_SIDS, _LEFT_SIDS, LEFT_IPV6.address),
    sysctls=_SEGMENTS,
    networks={"left": (f"{_LEFT_SIDS}/64",), "right": (f"{_RIGHT_SIDS}/64",)},
    told={"left": (f"route add {_SID}/128 encap seg6local action End dev left",)},
    translates=False,
    hooks=kernel_hooks(),
)


# ``wire``: no device, but the links and CPUs of a lab: what the tester can do there.
#
#     tester                            dut
#     198.18.0.2     left  ------- left  ┐
#     198.19.0.2     right ------- right ┘ each frame goes on as it came
#
# The kernel hands each frame that arrives on one link to the other before any of its
# protocols sees it. What is left of the way is the tester's, its links' and its
# sockets': the passport of all labs whose links are veth pairs is made here. The
# tester's next hop on each side is its own other side.


BRIDGED: Mapping[Side, SideConfig] = {
    "left": lab_side(
        "left",
        Ipv4Side(address="198.18.0.2", gateway="198.19.0.2"),
        Ipv6Side(address="2001:2::2", gateway="2001:2:0:8000::2"),
    ),
    "right": lab_side(
        "right",
        Ipv4Side(address="198.19.0.2", gateway="198.18.0.2"),
        Ipv6Side(address="2001:2:0:8000::2", gateway="2001:2::2"),
    ),
}
"""The tester's sides where nothing routes: its next hop is its own other side."""
_TABLE = {"family": "netdev", "name": "wire"}


def _from(side: Side, other: Side) -> tuple[dict[str, Any], ...]:
    chain = {"family": "netdev", "table": "wire", "name": side}
    hook = {"type": "filter", "hook": "ingress", "prio": 0, "dev": side}
    rule = {
        "family": "netdev",
        "table": "wire",
        "chain": side,
        "expr": [{"fwd": {"dev": other}}],
    }
    return (
        {"add": {"chain": {**chain, **hook, "policy": "accept"}}},
        {"add": {"rule": rule}},
    )


WIRE = LabDevice(
    name="wire",
    description="no device: a wire between the lab's links",
    addresses={"left": (), "right": ()},
    left=BRIDGED["left"],
    right=BRIDGED["right"],
    translates=False,
    boxes=(
        Box(
            ruleset=(
                {"add": {"table": _TABLE}},
                *_from("left", "right"),
                *_from("right", "left"),
            )
        ),
    ),
)
