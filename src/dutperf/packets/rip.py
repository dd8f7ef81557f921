"""RIP: routes in packets, as a router tells them to its neighbours.

IPv4's by version 2 (RFC 2453), IPv6's by RIPng (RFC 2080).
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from dutperf.packets.udp import Address, Datagram, udp_packet

UNREACHABLE = 16
"""The metric of a route that is no more (RFC 2453 3.6, RFC 2080 2.1)."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_RESPONSE, _FAMILY_IP = 2, 2
_NETWORK_CONTROL = 0xC0
"""Type of service of routing protocols (RFC 791 3.1); as a traffic class, CS6."""


def _entry4(network: Any, metric: int) -> bytes:  # noqa: ANN401 - an IPv4Network
    """Without a next hop of its own: that is the sender."""
    address, mask = network.network_address.packed, network.netmask.packed
    return struct.pack("!HH4s4s4sI", _FAMILY_IP, 0, address, mask, bytes(4), metric)


def _entry6(network: Any, metric: int) -> bytes:  # noqa: ANN401 - an IPv6Network
    address = network.network_address.packed
    return struct.pack("!16sHBB", address, 0, network.prefixlen, metric)


class _Protocol(NamedTuple):
    group: Address
    mac: str
    port: int
    version: int
    hops: int
    most_entries: int
    entry: Callable[[Any, int], bytes]


_PROTOCOLS: dict[int, _Protocol] = {
    4: _Protocol(
        ipaddress.IPv4Address("224.0.0.9"), "01:00:5e:00:00:09", 520, 2, 1, 25, _entry4
    ),
    # As many entries as the smallest MTU has room for, 1,280 bytes (RFC 2080 2.1).
    6: _Protocol(
        ipaddress.IPv6Address("ff02::9"), "33:33:00:00:00:09", 521, 1, 255, 61, _entry6
    ),
}
"""What is for the link alone has 1 hop, or the most that there are (RFC 2080 2.5)."""


def rip_mac(version: int) -> str:
    """To which all routers of the link listen."""
    return _PROTOCOLS[version].mac


def rip_packets(
    source: str, networks: Sequence[Network], metric: int
) -> Iterator[bytes]:
    """RIP responses from ``source``, which is the next hop (RFC 2453 4, RFC 2080 2).

    Args:
        source: an address in the network of the device's interface; of IPv6 a
            link-local one.
        networks: of the same IP version.
        metric: of all of them, 1 to 15; ``UNREACHABLE`` takes them back.
    """
    sender = ipaddress.ip_address(source)
    rip = _PROTOCOLS[sender.version]
    for begin in range(0, len(networks), rip.most_entries):
        some = networks[begin : begin + rip.most_entries]
        told = struct.pack("!BBH", _RESPONSE, rip.version, 0)
        told += b"".join(rip.entry(network, metric) for network in some)
        datagram = Datagram(sender, rip.group, rip.port, rip.port, told)
        yield udp_packet(datagram, hops=rip.hops, traffic_class=_NETWORK_CONTROL)
