"""Where in an address its hosts and networks vary, and whether they may.

Hosts (paper 003): the last 8 or 16 bits of an IPv4 address, bits 96-111 of an IPv6
address, or the bits that the profile names. Networks (RFC 2544 12): bits 16-23 and bits
56-63. An IPv6 address that embeds the side's IPv4 address in its last 32 bits (RFC 6052,
a /96 prefix) varies where that does.
"""

from __future__ import annotations

import ipaddress

from dutperf.config.address_set import AddressSet, BitField, number, overlap
from dutperf.config.hosts import HostField
from dutperf.config.testbed import Testbed
from dutperf.config.traffic import Traffic
from dutperf.engine.protocol import IpVersion, Side
from dutperf.errors import InputError

MAX_NEIGHBOURS = 65536
"""Addresses of one side for which the tester answers ARP and ND."""

_NETWORK_PLACE: dict[IpVersion, int] = {4: 16, 6: 56}
_NETWORK_BITS = 8
_IPV4_IN_IPV6 = 96
_HOST_WIDTHS: dict[IpVersion, tuple[int, ...]] = {4: (8, 16), 6: (16,)}
_HOST_END: dict[IpVersion, int] = {4: 32, 6: 112}
_NOT_UNICAST: dict[IpVersion, tuple[str, ...]] = {
    4: ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3"),
    6: ("::/127", "ff00::/8"),
}


def hosts(testbed: Testbed, traffic: Traffic, side: Side, base: str) -> AddressSet:
    """All addresses of ``side`` that ``base``, its own or virtual one, stands for.

    Raises:
        InputError: the varying field does not fit the address; names the key.
    """
    field = traffic.addresses.of(side)
    if field is None:
        return AddressSet(base)
    embeds = _embeds_ipv4(testbed, side, base)
    found = AddressSet(base, (_host_bits(field, side, base, embeds=embeds),))
    _check_hosts(testbed, side, found)
    return found


def destinations(
    testbed: Testbed, traffic: Traffic, side: Side, base: str
) -> AddressSet:
    """Where frames for ``side`` go: ``hosts`` in each of its networks.

    Raises:
        InputError: as ``hosts``; or networks do not fit the address.
    """
    found = hosts(testbed, traffic, side, base)
    count = traffic.networks.of(side)
    if count == 1:
        return found
    embeds = _embeds_ipv4(testbed, side, base)
    bits = _network_bits(count, side, base, embeds=embeds)
    for other in found.fields:
        if overlap(bits, other):
            raise _networks_in_hosts(side, found, bits, other)
    return AddressSet(base, (*found.fields, bits))


def _host_bits(field: HostField, side: Side, base: str, *, embeds: bool) -> BitField:
    mode = "random" if field.mode == "fixed" else field.mode
    if field.hosts:
        return _hosts_from(field.hosts, side, base, mode, embeds=embeds)
    place = field.ipv4_place
    if embeds and field.ipv6_offset is None:
        place += _IPV4_IN_IPV6
    elif ":" in base:
        place = field.ipv6_place
    return BitField(place, field.bits, field.min or 0, field.max or 0, mode)


def _hosts_from(
    count: int, side: Side, base: str, mode: Mode, *, embeds: bool
) -> BitField:
    """``count`` addresses from ``base`` on, in the fewest bits that hold them."""
    version: IpVersion = 6 if ":" in base and not embeds else 4
    end = _HOST_END[version] + (_IPV4_IN_IPV6 if embeds else 0)
    left = 0
    for width in _HOST_WIDTHS[version]:
        bits = BitField(end - width, width, 0, 0, mode)
        first = AddressSet(base).value(bits)
        most = 2**width - 1 - (version == 4)  # IPv4: all ones is the broadcast address
        left = max(most - first + 1, 0)
        if count <= left:
            return bits._replace(min=first, max=first + count - 1)
    raise InputError(
        f"traffic.addresses.{side}: from {base} on there are {left} addresses, fewer "
        f"than {count} hosts",
        "ask for fewer hosts (--addresses), give the side a lower address in the "
        "testbed, or name the bits with width, min and max",
    )
