"""Management queries: one as the first frame of each second of a trial (RFC 2544 11.2).

From one port, whatever the directions: the device is asked once. Which query an answer
is for its number tells, which counts from 1 in each trial.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from dutperf.config.cell import Cell
from dutperf.config.management import asked_at
from dutperf.config.testbed import Testbed
from dutperf.packets import snmp
from dutperf.packets.udp import Datagram, udp_packet
from dutperf.protocol import Announcement

_INTERVAL_NS = 10**9
_MANAGER_PORT = 49_999
_HOPS = 64


def queries(testbed: Testbed, cell: Cell, duration_ns: int) -> Iterator[Announcement]:
    """Those of a trial of ``duration_ns``; none where none were asked for."""
    if not cell.traffic.management:
        return
    side, own, gateway = asked_at(testbed, cell)
    agent = testbed.snmp
    for number, at_ns in enumerate(range(0, duration_ns, _INTERVAL_NS), 1):
        datagram = Datagram(
            ipaddress.ip_address(own),
            ipaddress.ip_address(gateway),
            _MANAGER_PORT,
            snmp.PORT,
            snmp.get_request(number, agent.community, agent.interface),
        )
        yield Announcement(
            port=side,
            at_ns=at_ns,
            dst_mac=testbed.sides[side].next_hop_mac,
            packet=udp_packet(datagram, hops=_HOPS).hex(),
            answered_from=snmp.PORT,
        )
