"""Which routes the tester tells the device in a trial, and when (RFC 2544 11.3, 13).

routes: rip       before each trial, on each port, the networks of the frames that
arrive there, whose next hop is the tester; once more every 30 s
of a trial that is longer than 60 s (RFC 2544 C.2.3)
route_changes     first in each trial, and every 30 s of it, on each port that
sends: six networks of no frame, there and gone in turn

Each by the protocol of the frames' IP version: RIPv2, RIPng.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from dutperf.config.cell import Cell
from dutperf.config.flows import Flow, directions, flows
from dutperf.config.routing import told_from
from dutperf.config.testbed import Testbed
from dutperf.packets.rip import UNREACHABLE, Network, rip_mac, rip_packets
from dutperf.protocol import Announcement, IpVersion, Side
from dutperf.routing.networks import networks

_INTERVAL_NS = 30 * 10**9
_LONGEST_WITHOUT_NS = 60 * 10**9
_METRIC = 7
"""As in the RFC's example."""
_NOBODYS: dict[IpVersion, Network] = {
    4: ipaddress.IPv4Network("203.0.113.0/26"),
    6: ipaddress.IPv6Network("2001:db8::/61"),
}
"""For documentation (RFC 5737, RFC 3849)."""
_OTHERS: dict[IpVersion, list[Network]] = {
    version: [*network.subnets(prefixlen_diff=3)][:6]
    for version, network in _NOBODYS.items()
}


def routes(testbed: Testbed, cell: Cell, duration_ns: int) -> Iterator[Announcement]:
    """What a trial of ``duration_ns`` needs; nothing where nothing was asked for.

    Raises:
        InputError: as ``flows``.
    """
    traffic = cell.traffic
    if traffic.routes == "static" and not traffic.route_changes:
        return
    for direction in directions(cell):
        streams = flows(testbed, cell, direction)
        if traffic.routes == "rip":
            for flow in streams:
                yield from _routes(testbed, flow, duration_ns)
        if traffic.route_changes:
            for version in sorted({flow.version for flow in streams}):
                yield from _changes(testbed, streams[0].sender, version, duration_ns)


def _routes(testbed: Testbed, flow: Flow, duration_ns: int) -> Iterator[Announcement]:
    """To where ``flow`` goes, told where it arrives."""
    times: list[int | None] = [None]
    if duration_ns > _LONGEST_WITHOUT_NS:
        times += range(_INTERVAL_NS, duration_ns, _INTERVAL_NS)
    listed = list(dict.fromkeys(networks(flow.destination, flow.version)))
    for at_ns in times:
        yield from _told(testbed, flow.receiver, at_ns, listed, _METRIC)


def _changes(
    testbed: Testbed, side: Side, version: IpVersion, duration_ns: int
) -> Iterator[Announcement]:
    for number, at_ns in enumerate(range(0, duration_ns, _INTERVAL_NS)):
        metric = UNREACHABLE if number % 2 else _METRIC
        yield from _told(testbed, side, at_ns, _OTHERS[version], metric)


def _told(
    testbed: Testbed,
    side: Side,
    at_ns: int | None,
    listed: Sequence[Network],
    metric: int,
) -> Iterator[Announcement]:
    """By the tester on ``side``, which is the next hop; networks of one IP version."""
    version: IpVersion = listed[0].version
    source, mac = told_from(testbed, side, version), rip_mac(version)
    for packet in rip_packets(source, listed, metric):
        yield Announcement(port=side, at_ns=at_ns, dst_mac=mac, packet=packet.hex())
