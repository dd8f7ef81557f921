"""A UDP datagram in its IP packet: made, and read."""

from __future__ import annotations

import ipaddress
import struct
from typing import NamedTuple

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_PROTOCOL = 17
_IPV4, _IPV6 = 0x45, 0x60
"""Version and, of IPv4, a header of five words."""
_HEADER, _IPV4_HEADER, _IPV6_HEADER = 8, 20, 40
_PIECE = 0x3FFF
"""Of IPv4: more fragments, or an offset."""


class Datagram(NamedTuple):
    """Who sends what to whom."""

    source: Address
    destination: Address
    source_port: int
    destination_port: int
    payload: bytes


def udp_packet(datagram: Datagram, *, hops: int, traffic_class: int = 0) -> bytes:
    """The packet, from the IP header on (RFC 768, RFC 791, RFC 8200).

    Args:
        datagram: its addresses are of one IP version.
        hops: time to live, or hop limit.
        traffic_class: or type of service.
    """
    source, destination, source_port, destination_port, payload = datagram
    length = _HEADER + len(payload)
    addresses = source.packed + destination.packed
    udp = struct.pack("!HHHH", source_port, destination_port, length, 0) + payload
    # None at all is written as 0, so a sum of 0 as all ones.
    checksum = _checksum(_pseudo(addresses, length) + udp) or 0xFFFF
    udp = udp[:6] + struct.pack("!H", checksum) + udp[8:]
    if source.version == 6:
        first = _IPV6 << 24 | traffic_class << 20
        return struct.pack("!IHBB", first, length, _PROTOCOL, hops) + addresses + udp
    words = (_IPV4, traffic_class, _IPV4_HEADER + length, 0, 0, hops, _PROTOCOL)
    begin = struct.pack("!BBHHHBB", *words)
    return begin + struct.pack("!H", _checksum(begin + addresses)) + addresses + udp


def read_udp(packet: bytes, *, sound: bool = True) -> Datagram | None:
    """What ``udp_packet`` made, or anybody; None: no whole one is there.

    Args:
        packet: from the IP header on; what follows it is no matter.
        sound: only if UDP's checksum holds.
    """
    version = packet[0] >> 4 if packet else 0
    header = _IPV4_HEADER if version == 4 else _IPV6_HEADER
    if version not in (4, 6) or len(packet) < header + _HEADER:
        return None
    size = 4 if version == 4 else 16
    addresses = packet[header - 2 * size : header]
    udp = packet[header:]
    source_port, destination_port, length, checksum = struct.unpack("!HHHH", udp[:8])
    if not _plain(packet, version) or not _HEADER <= length <= len(udp):
        return None
    udp = udp[:length]
    summed = checksum != 0 or version == 6
    if sound and summed and _checksum(_pseudo(addresses, length) + udp):
        return None
    return Datagram(
        ipaddress.ip_address(addresses[:size]),
        ipaddress.ip_address(addresses[size:]),
        source_port,
        destination_port,
        udp[_HEADER:],
    )


def _plain(packet: bytes, version: int) -> bool:
    """UDP follows the IP header, which is whole."""
    if version == 6:
        return packet[6] == _PROTOCOL
    (flags,) = struct.unpack("!H", packet[6:8])
    is_udp = packet[0] == _IPV4 and packet[9] == _PROTOCOL
    return is_udp and not flags & _PIECE and not _checksum(packet[:_IPV4_HEADER])


def _pseudo(addresses: bytes, length: int) -> bytes:
    """What the checksum covers beside the datagram; IPv6's has the same sum."""
    return addresses + struct.pack("!HH", _PROTOCOL, length)


def _checksum(data: bytes) -> int:
    """The Internet's (RFC 1071); 0 of what has its own in it and is sound."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
