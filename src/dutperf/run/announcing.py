"""What the tester tells the device in a trial, and asks it, beside the test frames."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterator, Sequence

from dutperf import packets
from dutperf.config.cell_checks import asked_at, told_from
from dutperf.config.flows import Flow, directions, flows
from dutperf.config.testbed import Testbed
from dutperf.model.cell import Cell
from dutperf.packets import (
    UNREACHABLE,
    Datagram,
    Network,
    rip_mac,
    rip_packets,
    udp_packet,
)
from dutperf.protocol.base import IpVersion, Side
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import Announcement, TrialRequest
from dutperf.routing.bird import networks

# Management queries: one as the first frame of each second of a trial (RFC 2544 11.2).
#
# From one port, whatever the directions: the device is asked once. Which query an
# answer is for its number tells, which counts from 1 in each trial.
#
# Requests and answers are stored, and the community is a secret unless it is
# ``public``: it is put into a request as it is sent, and taken out of the answers.


_INTERVAL_NS = 10**9
_MANAGER_PORT = 49_999
_HOPS = 64
_PUBLIC = "public"
_REDACTED = "redacted"


def queries(testbed: Testbed, cell: Cell, duration_ns: int) -> Iterator[Announcement]:
    """Those of a trial of ``duration_ns``, as stored; none if none are asked for."""
    if not cell.traffic.management:
        return
    side, _, _ = asked_at(testbed, cell)
    told = _PUBLIC if testbed.snmp.community == _PUBLIC else _REDACTED
    for number, at_ns in enumerate(range(0, duration_ns, _INTERVAL_NS), 1):
        yield Announcement(
            port=side,
            at_ns=at_ns,
            dst_mac=testbed.sides[side].next_hop_mac,
            packet=_packet(testbed, cell, number, told),
            answered_from=packets.PORT,
        )


def with_community(request: TrialRequest, testbed: Testbed, cell: Cell) -> TrialRequest:
    """``request`` as it is sent; itself if no secret is in it.

    Raises:
        SetupError: the community is not where it should be.
    """
    if not cell.traffic.management or testbed.snmp.community == _PUBLIC:
        return request
    secret, numbers = testbed.snmp.secret(), itertools.count(1)
    sent = [
        each.model_copy(
            update={"packet": _packet(testbed, cell, next(numbers), secret)}
        )
        if each.answered_from == packets.PORT
        else each
        for each in request.announcements
    ]
    return request.model_copy(update={"announcements": sent})


def without_community(result: TrialResult, testbed: Testbed) -> TrialResult:
    """``result`` with answers whose community is of asterisks, else as they came."""
    secret = testbed.snmp.secret()
    ports = [
        port.model_copy(
            update={
                "answers": [
                    each.model_copy(update={"packet": _masked(each.packet, secret)})
                    for each in port.answers
                ]
            }
        )
        for port in result.ports
    ]
    return result.model_copy(update={"ports": ports})


def _packet(testbed: Testbed, cell: Cell, number: int, community: str) -> str:
    _, own, gateway = asked_at(testbed, cell)
    datagram = Datagram(
        ipaddress.ip_address(own),
        ipaddress.ip_address(gateway),
        _MANAGER_PORT,
        packets.PORT,
        packets.get_request(number, community, testbed.snmp.interface),
    )
    return udp_packet(datagram, hops=_HOPS).hex()


def _masked(packet: str, community: str) -> str:
    """Its UDP checksum still holds, or is still as wrong."""
    data = bytes.fromhex(packet)
    begin = 20 if data[0] >> 4 == 4 else 40
    before = data[begin:]
    # As BER has it: a short one alone may be in numbers, too.
    told = community.encode()
    length = bytes([4, len(told)])
    after = before.replace(length + told, length + b"*" * len(told), 1)
    checksum = int.from_bytes(after[6:8], "big")
    if checksum:
        held = (checksum + _sum(before) - _sum(after)) % 0xFFFF or 0xFFFF
        after = after[:6] + held.to_bytes(2, "big") + after[8:]
    return (data[:begin] + after).hex()


def _sum(data: bytes) -> int:
    return int.from_bytes(data + bytes(len(data) % 2), "big") % 0xFFFF


# Which routes the tester tells the device in a trial, and when (RFC 2544 11.3, 13).
#
# routes: rip       before each trial, on each port, the networks of the frames that
# arrive there, whose next hop is the tester; once more every 30 s
# of a trial that is longer than 60 s (RFC 2544 C.2.3)
# route_changes     first in each trial, and every 30 s of it, on each port that
# sends: six networks of no frame, there and gone in turn
#
# Each by the protocol of the frames' IP version: RIPv2, RIPng.


_ROUTES_INTERVAL_NS = 30 * 10**9
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
        times += range(_ROUTES_INTERVAL_NS, duration_ns, _ROUTES_INTERVAL_NS)
    listed = list(dict.fromkeys(networks(flow.destination, flow.version)))
    for at_ns in times:
        yield from _told(testbed, flow.receiver, at_ns, listed, _METRIC)


def _changes(
    testbed: Testbed, side: Side, version: IpVersion, duration_ns: int
) -> Iterator[Announcement]:
    for number, at_ns in enumerate(range(0, duration_ns, _ROUTES_INTERVAL_NS)):
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


# All that is announced in a trial: routes, changes of routes, management queries.


def announcements(testbed: Testbed, cell: Cell, duration_ns: int) -> list[Announcement]:
    """What a trial of ``duration_ns`` needs; nothing where nothing was asked for.

    Raises:
        InputError: as ``flows``.
    """
    return [
        *routes(testbed, cell, duration_ns),
        *queries(testbed, cell, duration_ns),
    ]
