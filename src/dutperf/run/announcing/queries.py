"""Management queries: one as the first frame of each second of a trial (RFC 2544 11.2).

From one port, whatever the directions: the device is asked once. Which query an answer
is for its number tells, which counts from 1 in each trial.

Requests and answers are stored, and the community is a secret unless it is ``public``:
it is put into a request as it is sent, and taken out of the answers.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterator

from dutperf.config.cell import Cell
from dutperf.config.management import asked_at
from dutperf.config.testbed import Testbed
from dutperf.packets import snmp
from dutperf.packets.udp import Datagram, udp_packet
from dutperf.protocol import Announcement, TrialRequest, TrialResult

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
            answered_from=snmp.PORT,
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
        if each.answered_from == snmp.PORT
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
        snmp.PORT,
        snmp.get_request(number, community, testbed.snmp.interface),
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
