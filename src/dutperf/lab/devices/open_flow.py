"""``ovs-dpdk``: Open vSwitch's own data path on DPDK, as a router by OpenFlow rules.

    tester                             dut
    198.18.0.2     left  == memif == left  198.18.0.1      2001:2::1
    198.19.0.2     right == memif == right 198.19.0.1      2001:2:0:8000::1

A device of others at millions of frames a second: one poll thread on the device's CPU,
ports in shared memory, no kernel on the way. Rules answer ARP and neighbour discovery,
decrement TTL and hop limit, and put in MAC addresses; what goes to another MAC address
than the router's own is dropped, as routers do. Each side has all networks of RFC 2544
C.2.2 and RFC 5180 8 as hosts on its link.

What overflows the rings of its ports is its loss. Its poll thread sends on a queue of
its own, so the tester receives from two.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from dutperf.config.hooks import Hook, Hooks
from dutperf.config.side import Ipv4Side, Ipv6Side, MemifPort, SideConfig
from dutperf.lab.devices.device import LabDevice
from dutperf.lab.state import StateFile
from dutperf.protocol import Side

RUN = "ovs"
"""Where Open vSwitch has its files, below the DUT's directory."""
BRIDGE = "dut"
_STATS = ("dpif-netdev/pmd-stats-show",)
_STATS_CLEAR = ("dpif-netdev/pmd-stats-clear",)
RING_FRAMES = 16384
"""Of a port, the most that memif has: its poll thread waits for its CPU, too."""
_QUEUES = 2
"""The main thread's, and the poll thread's."""


@dataclass(frozen=True)
class RoutedSide:
    """One port of the router.

    Attributes:
        number: of the port in OpenFlow.
        mac: the router's there.
        tester_mac: the tester's, which the engine gives ports in shared memory.
        own: the router's addresses there.
        networks: behind it.
    """

    number: int
    mac: str
    tester_mac: str
    own: tuple[str, ...]
    networks: tuple[str, ...]


ROUTED: dict[Side, RoutedSide] = {
    "left": RoutedSide(
        1,
        "02:00:00:00:01:01",
        "02:00:00:00:00:01",
        ("198.18.0.1", "2001:2::1"),
        ("198.18.0.0/16", "2001:2::/49"),
    ),
    "right": RoutedSide(
        2,
        "02:00:00:00:01:02",
        "02:00:00:00:00:02",
        ("198.19.0.1", "2001:2:0:8000::1"),
        ("198.19.0.0/16", "2001:2:0:8000::/49"),
    ),
}


def rules() -> list[str]:
    """The router, as ``ovs-ofctl add-flows`` reads it."""
    left, right = ROUTED["left"], ROUTED["right"]
    return [
        *_answers(left),
        *_answers(right),
        *_routes(left, right),
        *_routes(right, left),
        "priority=0,actions=drop",
    ]


def _answers(side: RoutedSide) -> Iterator[str]:
    """ARP (RFC 826) and neighbour discovery (RFC 4861 7.2.4), out of the question."""
    back = f"move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],mod_dl_src:{side.mac}"
    mac = f"0x{side.mac.replace(':', '')}"
    for address in map(ipaddress.ip_address, side.own):
        if address.version == 4:
            yield (
                f"priority=100,in_port={side.number},arp,arp_op=1,arp_tpa={address},"
                f"actions={back},load:2->NXM_OF_ARP_OP[],"
                f"move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[],load:{mac}->NXM_NX_ARP_SHA[],"
                "move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[],"
                f"load:{int(address):#x}->NXM_OF_ARP_SPA[],in_port"
            )
            continue
        # An answer's own option can be set only once it is one: in a table of its own.
        yield (
            f"priority=100,in_port={side.number},icmp6,icmpv6_type=135,icmpv6_code=0,"
            f"nd_target={address},actions=set_field:2->nd_options_type,"
            "set_field:136->icmpv6_type,set_field:0x60000000->nd_reserved,resubmit(,1)"
        )
        yield (
            f"table=1,in_port={side.number},icmp6,icmpv6_type=136,icmpv6_code=0,"
            f"actions={back},move:NXM_NX_IPV6_SRC[]->NXM_NX_IPV6_DST[],"
            f"set_field:{address}->ipv6_src,set_field:{side.mac}->nd_tll,in_port"
        )


def _routes(came: RoutedSide, goes: RoutedSide) -> Iterator[str]:
    for network in goes.networks:
        match = f"ipv6,ipv6_dst={network}" if ":" in network else f"ip,nw_dst={network}"
        yield (
            f"priority=50,in_port={came.number},dl_dst={came.mac},{match},"
            f"actions=dec_ttl,mod_dl_src:{goes.mac},mod_dl_dst:{goes.tester_mac},"
            f"output:{goes.number}"
        )


def _side(side: Side, ipv4: Ipv4Side, ipv6: Ipv6Side) -> SideConfig:
    number = ROUTED[side].number
    socket = str(StateFile().dut_directory / RUN / "memif")
    port = MemifPort(
        memif=socket,
        id=number,
        ring_frames=RING_FRAMES,
        mac=ROUTED[side].tester_mac,
        rx_queues=_QUEUES,
    )
    return SideConfig(port=port, ipv4=ipv4, ipv6=ipv6)


def _control(name: str) -> str:
    return f"{StateFile().dut_directory / RUN / name}"


OVS_DPDK = LabDevice(
    name="ovs-dpdk",
    description="Open vSwitch on DPDK, a router by OpenFlow rules, one poll thread",
    addresses={
        "left": ("198.18.0.1/16", "2001:2::1/49"),
        "right": ("198.19.0.1/16", "2001:2:0:8000::1/49"),
    },
    left=_side(
        "left",
        Ipv4Side(address="198.18.0.2", gateway="198.18.0.1"),
        Ipv6Side(address="2001:2::2", gateway="2001:2::1"),
    ),
    right=_side(
        "right",
        Ipv4Side(address="198.19.0.2", gateway="198.19.0.1"),
        Ipv6Side(address="2001:2:0:8000::2", gateway="2001:2:0:8000::1"),
    ),
    rules=tuple(rules()),
    hooks=Hooks(
        before_trial=[
            Hook(command=["ovs-appctl", "-t", _control("vs.ctl"), *_STATS_CLEAR])
        ],
        after_trial=[
            Hook(command=["ovs-appctl", "-t", _control("vs.ctl"), *_STATS]),
            Hook(command=["ovs-ofctl", "dump-ports", f"unix:{_control('dut.mgmt')}"]),
        ],
    ),
)
