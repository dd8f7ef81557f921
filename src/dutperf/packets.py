"""What a tester tells a device and asks it, beside test frames: packets as bytes."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

# A UDP datagram in its IP packet: made, and read.


Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_UDP = 17
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
        return struct.pack("!IHBB", first, length, _UDP, hops) + addresses + udp
    words = (_IPV4, traffic_class, _IPV4_HEADER + length, 0, 0, hops, _UDP)
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
        return packet[6] == _UDP
    (flags,) = struct.unpack("!H", packet[6:8])
    is_udp = packet[0] == _IPV4 and packet[9] == _UDP
    return is_udp and not flags & _PIECE and not _checksum(packet[:_IPV4_HEADER])


def _pseudo(addresses: bytes, length: int) -> bytes:
    """What the checksum covers beside the datagram; IPv6's has the same sum."""
    return addresses + struct.pack("!HH", _UDP, length)


def _checksum(data: bytes) -> int:
    """The Internet's (RFC 1071); 0 of what has its own in it and is sound."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


# RIP: routes in packets, as a router tells them to its neighbours.
#
# IPv4's by version 2 (RFC 2453), IPv6's by RIPng (RFC 2080).


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


class _Rip(NamedTuple):
    group: Address
    mac: str
    port: int
    version: int
    hops: int
    most_entries: int
    entry: Callable[[Any, int], bytes]


_PROTOCOLS: dict[int, _Rip] = {
    4: _Rip(
        ipaddress.IPv4Address("224.0.0.9"), "01:00:5e:00:00:09", 520, 2, 1, 25, _entry4
    ),
    # As many entries as the smallest MTU has room for, 1,280 bytes (RFC 2080 2.1).
    6: _Rip(
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


# SNMP version 2c: what a manager asks once a second, and what it is told (RFC 3416).
#
# The variables are those of RFC 2544 C.2.4.3: how long the device runs, and the octets
# and unicast packets of one interface, in and out.


PORT = 161

_VERSION_2C = 1
_INTEGER, _OCTETS, _NULL, _OBJECT, _SEQUENCE = 0x02, 0x04, 0x05, 0x06, 0x30
_COUNTER, _TIME_TICKS = 0x41, 0x43
_GET_REQUEST, _GET_RESPONSE = 0xA0, 0xA2
_UP_TIME = "1.3.6.1.2.1.1.3.0"
_INTERFACES = "1.3.6.1.2.1.2.2.1"
_IN_OCTETS, _IN_UNICAST, _OUT_OCTETS, _OUT_UNICAST = 10, 11, 16, 17


class Query(NamedTuple):
    """What a manager asks: its number, and the names of variables."""

    request_id: int
    variables: list[str]


class SnmpResponse(NamedTuple):
    """An answer to a query.

    error: 0 is none. values: of the variables that have one, in order of the query.
    """

    request_id: int
    error: int
    values: dict[str, int]


def variables(interface: int) -> list[str]:
    """Names of those that are asked for; ``interface`` is its ifIndex."""
    columns = (_IN_OCTETS, _OUT_OCTETS, _IN_UNICAST, _OUT_UNICAST)
    return [_UP_TIME, *(f"{_INTERFACES}.{column}.{interface}" for column in columns)]


def get_request(request_id: int, community: str, interface: int) -> bytes:
    """The query, as UDP's payload; ``request_id`` is from 0 to 2^31 - 1."""
    nothing = _element(_NULL, b"")
    asked = [_object(name) + nothing for name in variables(interface)]
    return _message(_GET_REQUEST, request_id, community, asked)


def get_response(request_id: int, community: str, values: dict[str, int]) -> bytes:
    """The answer to it, as an agent with these ``values`` gives it."""
    told = [
        _object(name) + _number(value, _TIME_TICKS if name == _UP_TIME else _COUNTER)
        for name, value in values.items()
    ]
    return _message(_GET_RESPONSE, request_id, community, told)


def read_request(message: bytes) -> Query | None:
    """The query in UDP's payload; None: there is none that can be read."""
    found = _read(message, _GET_REQUEST)
    return Query(found[0], [name for name, _value in found[2]]) if found else None


def read_response(message: bytes) -> SnmpResponse | None:
    """The answer in UDP's payload; None: there is none that can be read."""
    found = _read(message, _GET_RESPONSE)
    if found is None:
        return None
    values = {
        name: int.from_bytes(content, "big")
        for name, (tag, content) in found[2]
        if tag in (_COUNTER, _TIME_TICKS)
    }
    return SnmpResponse(found[0], found[1], values)


def _message(kind: int, request_id: int, community: str, listed: list[bytes]) -> bytes:
    variables = b"".join(_element(_SEQUENCE, each) for each in listed)
    numbers = _number(request_id) + _number(0) + _number(0)
    query = _element(kind, numbers + _element(_SEQUENCE, variables))
    told = _element(_OCTETS, community.encode("ascii"))
    return _element(_SEQUENCE, _number(_VERSION_2C) + told + query)


def _read(
    message: bytes, kind: int
) -> tuple[int, int, list[tuple[str, tuple[int, bytes]]]] | None:
    """Number, error, and each variable's name with tag and content of its value."""
    try:
        whole, _ = _take(message, _SEQUENCE)
        _version, rest = _take(whole, _INTEGER)
        _community, rest = _take(rest, _OCTETS)
        query, _ = _take(rest, kind)
        request_id, rest = _take(query, _INTEGER)
        error, rest = _take(rest, _INTEGER)
        _index, rest = _take(rest, _INTEGER)
        listed, _ = _take(rest, _SEQUENCE)
        found = []
        while listed:
            variable, listed = _take(listed, _SEQUENCE)
            name, value = _take(variable, _OBJECT)
            content, _ = _take(value, value[0])
            found.append((_name(name), (value[0], content)))
    except (IndexError, ValueError):
        return None
    return _signed(request_id), _signed(error), found


def _signed(content: bytes) -> int:
    return int.from_bytes(content, "big", signed=True)


def _take(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """The content of the first element, and what follows it (BER).

    Raises:
        ValueError, IndexError: the element is another one, or not whole.
    """
    if data[0] != tag:
        raise ValueError
    begin, length = 2, data[1]
    if length >= 0x80:
        begin += length - 0x80
        if len(data) < begin:
            raise ValueError
        length = int.from_bytes(data[2:begin], "big")
    if len(data) < begin + length:
        raise ValueError
    return data[begin : begin + length], data[begin + length :]


def _element(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 + len(digits))) + digits + content


def _number(value: int, tag: int = _INTEGER) -> bytes:
    """Not negative; with a sign, so that a high bit is none."""
    size = value.bit_length() // 8 + 1
    return _element(tag, value.to_bytes(size, "big"))


def _object(name: str) -> bytes:
    first, second, *rest = map(int, name.split("."))
    content = bytes((40 * first + second,))
    return _element(_OBJECT, content + b"".join(map(_base_128, rest)))


def _base_128(value: int) -> bytes:
    digits = [value & 0x7F]
    while value := value >> 7:
        digits.append(0x80 | value & 0x7F)
    return bytes(reversed(digits))


def _name(content: bytes) -> str:
    numbers = [content[0] // 40, content[0] % 40]
    value = 0
    for byte in content[1:]:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    return ".".join(map(str, numbers))
