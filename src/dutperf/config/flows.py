"""Which addresses the frames of a cell carry: paper 002, Table 1, and paper 003.

The source is the sender's own address of the version that it sends. The destination is
the receiver's own address if it receives the same version, else its virtual address in
the sender's version, which the device under test translates. Background frames are not
translated: from own address to own address.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dutperf.config.encapsulation import SixRdDomain
from dutperf.config.side import RealAddress
from dutperf.config.testbed import Testbed
from dutperf.model.fields import KeyedError, Keys
from dutperf.model.frames import IpVersions, translates, version_of
from dutperf.model.hosts import AddressSet, BitField, HostField, Mode, number, overlap
from dutperf.model.rate_specs import QueryKeys
from dutperf.model.traffic import Traffic, group_mac
from dutperf.protocol.base import DirectionName, IpVersion, Side

if TYPE_CHECKING:
    from dutperf.model.cell import Cell


# Where in an address its hosts and networks vary, and whether they may.
#
# Hosts (paper 003): the last 8 or 16 bits of an IPv4 address, bits 96-111 of an IPv6
# address, or the bits that the profile names. Networks (RFC 2544 12): bits 16-23 of
# IPv4, bits 56-63 of IPv6. An IPv6 address that embeds the side's IPv4 address in its
# last 32 bits (RFC 6052, a /96 prefix) varies where that does.


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
    rule = testbed.sides[side].edge_rule
    if rule:
        return rule.customers(base)
    field = traffic.addresses.of(side)
    if field is None:
        return AddressSet(base)
    embeds = _embeds_ipv4(testbed, side, base)
    found = AddressSet(base, (_host_bits(field, side, base, embeds=embeds),))
    _check_hosts(testbed, side, found)
    return found


def tunnel_ends(local: str, hosts: AddressSet) -> list[AddressSet]:
    """The outer IPv6 addresses of ``hosts``, one set a field that varies.

    Their bits stand as far from the end as in the hosts' own addresses.
    """
    moved = 128 - hosts.bits
    return [
        AddressSet(local, (field._replace(offset=field.offset + moved),))
        for field in hosts.fields
    ]


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
            raise _networks_in_hosts(side, base, bits, other)
    everywhere = AddressSet(base, (*found.fields, bits))
    _check_device(testbed, ("traffic", "networks", side), everywhere)
    return everywhere


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
    raise KeyedError(
        ("traffic", "addresses", side),
        f"from {base} on there are {left} addresses, fewer than {count} hosts",
        "ask for fewer hosts (--addresses), give the side a lower address in the "
        "testbed, or name the bits with width, min and max",
    )


def _network_bits(count: int, side: Side, base: str, *, embeds: bool) -> BitField:
    """``count`` networks from the address's own on; 256 are all."""
    place = _NETWORK_PLACE[6 if ":" in base and not embeds else 4]
    place += _IPV4_IN_IPV6 if embeds else 0
    bits = BitField(place, _NETWORK_BITS, 0, count - 1, "random")
    first = 0 if count == 2**_NETWORK_BITS else AddressSet(base).value(bits)
    if first + count > 2**_NETWORK_BITS:
        raise KeyedError(
            ("traffic", "networks", side),
            f"from the network of {base} on (its bits {place} "
            f"to {place + 7} are {first}) there are {256 - first}, fewer than {count}",
            "ask for fewer networks, for all 256, or give the side an address in a "
            "lower network in the testbed",
        )
    return bits._replace(min=first, max=first + count - 1)


def _embeds_ipv4(testbed: Testbed, side: Side, base: str) -> bool:
    real = testbed.sides[side].ip(4)
    if real is None or ":" not in base:
        return False
    return number(base) % 2**32 == number(real.address)


def _check_hosts(testbed: Testbed, side: Side, found: AddressSet) -> None:
    keys = ("traffic", "addresses", side)
    (bits,) = found.fields
    count = bits.max - bits.min + 1
    if count > MAX_NEIGHBOURS:
        raise KeyedError(
            keys,
            f"{count} addresses are more than the {MAX_NEIGHBOURS} that the "
            "tester answers ARP and neighbour discovery for",
            "narrow min and max",
        )
    _check_device(testbed, keys, found)
    _check_other_side(testbed, side, found)
    for network in map(ipaddress.ip_network, _NOT_UNICAST[found.version]):
        if found.meets(network):
            raise KeyedError(
                keys,
                f"{found.lowest} to {found.highest} reaches into {network}, "
                "which holds no addresses of hosts",
                "narrow min and max, or let lower bits vary",
            )
    _check_host_part(keys, found, bits)


def _check_device(testbed: Testbed, keys: Keys, found: AddressSet) -> None:
    """Ports that are connected to each other are their own next hops: no device."""
    sides = [side.ip(found.version) for side in testbed.sides.values()]
    own = {side.address for side in sides if side}
    for name, side in testbed.sides.items():
        real = side.ip(found.version)
        if not real or real.gateway is None or real.gateway in own:
            continue
        if found.reaches(number(real.gateway)):
            raise KeyedError(
                keys,
                f"the addresses from {found.lowest} to {found.highest} include "
                f"{real.gateway}, the device under test itself "
                f"({name}.ipv{found.version}.gateway)",
                "begin above it: give the tester a higher address in the testbed, or "
                "use another min",
            )


def _check_other_side(testbed: Testbed, side: Side, found: AddressSet) -> None:
    other: Side = "right" if side == "left" else "left"
    real = testbed.sides[other].ip(found.version)
    virtual = testbed.sides[other].virtual(found.version)
    for kind, address in (("address", real and real.address), ("virtual", virtual)):
        if address and found.reaches(number(address)):
            raise KeyedError(
                ("traffic", "addresses", side),
                f"the addresses from {found.lowest} to "
                f"{found.highest} include {address}, which stands for the other side "
                f"({other}.ipv{found.version}.{kind})",
                "narrow min and max, or let other bits vary",
            )


def _check_host_part(keys: Keys, found: AddressSet, bits: BitField) -> None:
    """Neither the network's own address nor, in IPv4, its broadcast address."""
    if found.version == 6:
        if found.reaches(0, 64):
            raise _no_host(keys, found, "whose last 64 bits are 0 (routers' own)")
        return
    at_the_end = bits.offset + bits.width == found.bits
    host_bits = max(8, bits.width) if at_the_end else 8
    if found.reaches(0, host_bits):
        raise _no_host(keys, found, f"whose last {host_bits} bits are 0 (the network)")
    if found.reaches(2**host_bits - 1, host_bits):
        raise _no_host(keys, found, f"whose last {host_bits} bits are 1 (broadcast)")


def _no_host(keys: Keys, found: AddressSet, which: str) -> KeyedError:
    return KeyedError(
        keys,
        f"the addresses from {found.lowest} to {found.highest} include one {which}",
        "narrow min and max: 2 to 254 in the last 8 bits, 2 to 65534 in the last 16",
    )


def _networks_in_hosts(
    side: Side, base: str, networks: BitField, hosts_: BitField
) -> KeyedError:
    last = hosts_.offset + hosts_.width - 1
    return KeyedError(
        ("traffic", "networks", side),
        f"the networks take bits {networks.offset} to "
        f"{networks.offset + 7} of {base}, and its hosts vary in bits {hosts_.offset} "
        f"to {last}",
        "use networks without addresses, or hosts in the last 8 bits only: at most 253 "
        "in IPv4 (width: 8)",
    )


StreamName = Literal["foreground", "background", "beside"]

_ENDS: dict[DirectionName, tuple[Side, Side]] = {
    "forward": ("left", "right"),
    "reverse": ("right", "left"),
}


@dataclass(frozen=True)
class Flow:
    """Addresses of one stream; ``received_version`` is after the DUT.

    With ``next_hop_mac`` nobody is asked for ``next_hop``, which may be anybody then.
    """

    name: StreamName
    sender: Side
    receiver: Side
    version: IpVersion
    received_version: IpVersion
    source: AddressSet
    destination: AddressSet
    next_hop: str
    next_hop_mac: str | None


def directions(cell: Cell) -> list[DirectionName]:
    """The directions that carry frames."""
    return ["forward", "reverse"] if cell.direction == "both" else [cell.direction]


def ends(direction: DirectionName) -> tuple[Side, Side]:
    """The side that sends, and the one that receives."""
    return _ENDS[direction]


def senders(cell: Cell) -> set[Side]:
    """The sides from which the tester sends the cell's frames."""
    return {ends(direction)[0] for direction in directions(cell)}


def flows(testbed: Testbed, cell: Cell, direction: DirectionName) -> list[Flow]:
    """The streams of one direction: foreground, and what is beside it if anything is.

    Raises:
        InputError: the testbed lacks an address, or a varying field does not fit one.
    """
    sender, receiver = _ENDS[direction]
    names: list[StreamName] = ["foreground"]
    if cell.traffic.has_background:
        names.append("background")
    beside, stateful = cell.traffic.beside, cell.stateful
    is_flooded = stateful is not None and stateful.direction == direction
    if beside and (is_flooded or not beside.is_flood):
        names.append("beside")
    return [_flow(testbed, cell, name, sender, receiver) for name in names]


def stream_version(cell: Cell, name: StreamName, side: Side) -> IpVersion:
    """IP version of a stream's frames on ``side`` of the device under test."""
    if name == "background":
        return cell.traffic.background_ip
    return version_of(cell.ip, side)


def side_versions(cell: Cell, side: Side) -> list[IpVersion]:
    """All IP versions of the frames on ``side``."""
    versions = {stream_version(cell, "foreground", side)}
    if cell.traffic.has_background:
        versions.add(cell.traffic.background_ip)
    return sorted(versions)


def own_hosts(testbed: Testbed, cell: Cell, side: Side) -> Iterator[AddressSet]:
    """The addresses that the tester has on ``side``, one set an IP version.

    Raises:
        InputError: as ``flows``.
    """
    for version in side_versions(cell, side):
        real = _real(testbed, cell, side, version)
        if testbed.sides[side].translation:  # customer edges are behind it
            yield AddressSet(real.address)
        else:
            yield hosts(testbed, cell.traffic, side, real.address)


def _flow(
    testbed: Testbed, cell: Cell, name: StreamName, sender: Side, receiver: Side
) -> Flow:
    version = stream_version(cell, name, sender)
    received_version = stream_version(cell, name, receiver)
    side = testbed.sides[sender]
    real = _real(testbed, cell, sender, version).address
    source = side.edge if side.translation and side.edge else real
    # The receiver is there in any case: the DUT has to find it on its link.
    target = _real(testbed, cell, receiver, received_version).address
    is_asked = bool(cell.spec.dns)
    translated = version != received_version and not is_asked
    if translated:
        target = _virtual(testbed, cell, receiver, version)
    sources = hosts(testbed, cell.traffic, sender, source)
    if name == "beside" and cell.traffic.spoofed_percent:
        rule = side.edge_rule
        other = rule.spoofed_source(source) if isinstance(rule, SixRdDomain) else source
        sources = AddressSet(other)
    if translated and cell.stateful and cell.stateful.initiator == receiver:
        # All its hosts are behind one address, the device's own.
        destination = AddressSet(target)
    else:
        destination = destinations(testbed, cell.traffic, receiver, target)
    if is_asked:
        destination = AddressSet(_server(testbed, cell, sender, version))
    next_hop_mac = side.next_hop_mac
    group = cell.traffic.group_of(version) if name == "foreground" else None
    if group:
        _check_group(cell, group, version, spread=bool(destination.fields))
        destination, next_hop_mac = AddressSet(group), group_mac(group)
    return Flow(
        name=name,
        sender=sender,
        receiver=receiver,
        version=version,
        received_version=received_version,
        source=sources,
        destination=destination,
        next_hop=side.next_hop(version) or destination.base,
        next_hop_mac=next_hop_mac,
    )


def _server(testbed: Testbed, cell: Cell, side: Side, version: IpVersion) -> str:
    """Who is asked: the device, unless another address of it is named."""
    named = cell.spec.server if isinstance(cell.spec, QueryKeys) else None
    if named and ipaddress.ip_address(named).version != version:
        raise KeyedError(
            ("server",), f"{named} is no IPv{version} address, which clients have"
        )
    server = named or testbed.sides[side].next_hop(version)
    if server is None:
        raise KeyedError(
            ("server",),
            f"is missing: testbed {testbed.name} has no IPv{version} gateway on the "
            f"{side} side, which would be asked",
        )
    return server


def _check_group(cell: Cell, group: str, version: IpVersion, *, spread: bool) -> None:
    """Refuse what one group has no use for (RFC 3918)."""
    wrong = (
        (translates(cell.ip), f"is of one IP version, not for ip {cell.ip}"),
        ((":" in group) == (version == 4), f"{group} is no IPv{version} address"),
        (spread, "is one address: the receiving side has several hosts or networks"),
        (
            bool(cell.stateful),
            "is for no stateful test, whose connections are with hosts",
        ),
        (cell.pairs > 1, "is for one port on each side, not for several"),
    )
    for is_wrong, words in wrong:
        if is_wrong:
            raise KeyedError(("traffic", "group"), words)


def _real(testbed: Testbed, cell: Cell, side: Side, version: IpVersion) -> RealAddress:
    real = testbed.sides[side].ip(version)
    if real is None:
        keys: Keys = ("ip",)
        asked, way_out = _named(cell.ip), f"take {cell.ip} out of ip"
        if version != version_of(cell.ip, side):
            keys = ("traffic", "background_ip")
            asked = f"IPv{version} background"
            way_out = "use another background_ip (--background-ip)"
        raise KeyedError(
            keys,
            f"{asked} is asked for, but testbed {testbed.name} has no IPv{version} "
            f"addresses on the {side} side",
            f"add the key {side}.ipv{version} with address (the tester) and gateway "
            f"(the device under test) to the testbed, or {way_out}",
        )
    return real


def _named(ip: IpVersions) -> str:
    return ip if isinstance(ip, str) else f"IPv{ip}"


def _virtual(testbed: Testbed, cell: Cell, side: Side, version: IpVersion) -> str:
    virtual = testbed.sides[side].virtual(version)
    if virtual is None:
        raise KeyedError(
            ("ip",),
            f"{cell.ip} sends IPv{version} to the {side} side, which receives IPv"
            f"{version_of(cell.ip, side)}, but testbed {testbed.name} does not say "
            f"which IPv{version} address stands for it",
            f"add the key {side}.ipv{version}.virtual: the address that the device "
            f"under test translates to {side}.ipv{version_of(cell.ip, side)}.address",
        )
    return virtual
