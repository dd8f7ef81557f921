"""Which routes the tester tells the device in a trial, and when (RFC 2544 11.3, 13).

routes: rip       before each trial, on each port, the networks of the frames that
arrive there, whose next hop is the tester; once more every 30 s
of a trial that is longer than 60 s (RFC 2544 C.2.3)
route_changes     first in each trial, and every 30 s of it, on each port that
sends: six networks of no frame, there and gone in turn
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterator, Sequence

from dutperf.config.address_set import AddressSet, BitField
from dutperf.config.cell import Cell
from dutperf.config.flows import Flow, directions, ends, flows
from dutperf.config.testbed import Testbed
from dutperf.packets.rip import RIP_MAC, UNREACHABLE, rip_packets
from dutperf.protocol import Announcement, Side

_INTERVAL_NS = 30 * 10**9
_LONGEST_WITHOUT_NS = 60 * 10**9
_METRIC = 7
"""As in the RFC's example."""
_NETWORK_BITS = 24
_OTHERS = list(ipaddress.IPv4Network("203.0.113.0/24").subnets(new_prefix=29))[:6]
"""For documentation (RFC 5737), so nobody's."""


def routes(testbed: Testbed, cell: Cell, duration_ns: int) -> Iterator[Announcement]:
    """What a trial of ``duration_ns`` needs; nothing where nothing was asked for.

    Raises:
        InputError: as ``flows``.
    """
    traffic = cell.traffic
    if traffic.routes == "static" and not traffic.route_changes:
        return
    for direction in directions(cell):
        sender, _receiver = ends(direction)
        if traffic.routes == "rip":
            for flow in flows(testbed, cell, direction):
                yield from _routes(testbed, flow, duration_ns)
        if traffic.route_changes:
            yield from _changes(testbed, sender, duration_ns)


def _routes(testbed: Testbed, flow: Flow, duration_ns: int) -> Iterator[Announcement]:
    """To where ``flow`` goes, told where it arrives."""
    times: list[int | None] = [None]
    if duration_ns > _LONGEST_WITHOUT_NS:
        times += range(_INTERVAL_NS, duration_ns, _INTERVAL_NS)
    networks = sorted(set(_networks(flow.destination)))
    for at_ns in times:
        yield from _told(testbed, flow.receiver, at_ns, networks, _METRIC)


def _changes(testbed: Testbed, side: Side, duration_ns: int) -> Iterator[Announcement]:
    for number, at_ns in enumerate(range(0, duration_ns, _INTERVAL_NS)):
        metric = UNREACHABLE if number % 2 else _METRIC
        yield from _told(testbed, side, at_ns, _OTHERS, metric)


def _told(
    testbed: Testbed,
    side: Side,
    at_ns: int | None,
    networks: Sequence[ipaddress.IPv4Network],
    metric: int,
) -> Iterator[Announcement]:
    """By the tester on ``side``, which is the next hop."""
    own = testbed.sides[side].ip(4)
    assert own  # noqa: S101 - checked when the cell was made
    for packet in rip_packets(own.address, networks, metric):
        yield Announcement(port=side, at_ns=at_ns, dst_mac=RIP_MAC, packet=packet.hex())


def _networks(addresses: AddressSet) -> Iterator[ipaddress.IPv4Network]:
    """Of /24, all in which an address lies."""
    values = [[*_values(field)] for field in addresses.fields]
    for chosen in itertools.product(*values):
        address = addresses.with_values(list(chosen))
        yield ipaddress.IPv4Network(f"{address}/{_NETWORK_BITS}", strict=False)


def _values(field: BitField) -> Iterator[int]:
    """One for each network that ``field`` makes."""
    host_bits = max(0, field.offset + field.width - _NETWORK_BITS)
    for network in range(field.min >> host_bits, (field.max >> host_bits) + 1):
        yield network << host_bits
