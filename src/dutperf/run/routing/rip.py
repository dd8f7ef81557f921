"""RIP version 2: routes in packets, as a router tells them to its neighbours."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator, Sequence

RIP_MAC = "01:00:5e:00:00:09"
UNREACHABLE = 16
"""The metric of a route that is no more (RFC 2453 3.6)."""

_GROUP = ipaddress.IPv4Address("224.0.0.9")
_PORT = 520
_RESPONSE, _VERSION, _FAMILY_IP = 2, 2, 2
_MOST_ENTRIES = 25
_TTL = 1
"""For the link alone."""
_PROTOCOL_UDP = 17
_IPV4 = 0x45
"""Version 4, a header of five words."""
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
        entries = b"".join(_entry(network, metric) for network in some)
        yield _packet(sender, struct.pack("!BBH", _RESPONSE, _VERSION, 0) + entries)


def _entry(network: ipaddress.IPv4Network, metric: int) -> bytes:
    """Without a next hop of its own: that is the sender."""
    address, mask = network.network_address.packed, network.netmask.packed
    return struct.pack("!HH4s4s4sI", _FAMILY_IP, 0, address, mask, bytes(4), metric)


def _packet(source: ipaddress.IPv4Address, payload: bytes) -> bytes:
    """The payload behind UDP's and IPv4's headers (RFC 768, RFC 791)."""
    length = 8 + len(payload)
    udp = struct.pack("!HHHH", _PORT, _PORT, length, 0) + payload
    addresses = source.packed + _GROUP.packed
    pseudo = addresses + struct.pack("!HH", _PROTOCOL_UDP, length)
    # None at all is written as 0, so a sum of 0 as all ones.
    checksum = _checksum(pseudo + udp) or 0xFFFF
    udp = udp[:6] + struct.pack("!H", checksum) + udp[8:]
    words = (_IPV4, _NETWORK_CONTROL, 20 + length, 0, 0, _TTL, _PROTOCOL_UDP)
    begin = struct.pack("!BBHHHBB", *words)
    header = begin + struct.pack("!H", _checksum(begin + addresses)) + addresses
    return header + udp


def _checksum(data: bytes) -> int:
    """The Internet's (RFC 1071)."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
