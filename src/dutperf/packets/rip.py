"""RIP version 2: routes in packets, as a router tells them to its neighbours."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator, Sequence

from dutperf.packets.udp import Datagram, udp_packet

RIP_MAC = "01:00:5e:00:00:09"
UNREACHABLE = 16
"""The metric of a route that is no more (RFC 2453 3.6)."""

_GROUP = ipaddress.IPv4Address("224.0.0.9")
_PORT = 520
_RESPONSE, _VERSION, _FAMILY_IP = 2, 2, 2
_MOST_ENTRIES = 25
_TTL = 1
"""For the link alone."""
_NETWORK_CONTROL = 0xC0
"""Type of service of routing protocols (RFC 791 3.1)."""


def rip_packets(
    source: str, networks: Sequence[ipaddress.IPv4Network], metric: int
) -> Iterator[bytes]:
    """RIP responses from ``source``, which is the next hop (RFC 2453 4).

    Args:
        source: an address in the network of the device's interface.
        networks: 25 of them go into one packet.
        metric: of all of them, 1 to 15; ``UNREACHABLE`` takes them back.
    """
    sender = ipaddress.IPv4Address(source)
    for begin in range(0, len(networks), _MOST_ENTRIES):
        some = networks[begin : begin + _MOST_ENTRIES]
        told = struct.pack("!BBH", _RESPONSE, _VERSION, 0)
        told += b"".join(_entry(network, metric) for network in some)
        datagram = Datagram(sender, _GROUP, _PORT, _PORT, told)
        yield udp_packet(datagram, hops=_TTL, traffic_class=_NETWORK_CONTROL)


def _entry(network: ipaddress.IPv4Network, metric: int) -> bytes:
    """Without a next hop of its own: that is the sender."""
    address, mask = network.network_address.packed, network.netmask.packed
    return struct.pack("!HH4s4s4sI", _FAMILY_IP, 0, address, mask, bytes(4), metric)
