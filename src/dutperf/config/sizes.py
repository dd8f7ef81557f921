"""Frame sizes on both sides of a device that may translate (methodology of RFC 8219).

An IPv6 header is 20 bytes longer than an IPv4 header. Where both versions occur in a
cell (a translator, or background of the other version) the size that is given is that
of the IPv6 frames, and every IPv4 frame is 20 bytes shorter: 84/64. So the smallest is
84 bytes then, and foreground and background carry the same payload.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from dutperf.config.campaign import Campaign
from dutperf.config.flows import (
    StreamName,
    directions,
    ends,
    senders,
    side_versions,
    stream_version,
)
from dutperf.config.testbed import Testbed
from dutperf.model.cell import Cell
from dutperf.model.fields import KeyedError, Keys
from dutperf.model.frames import (
    SIDES,
    TRANSLATIONS,
    IpVersions,
    translates,
    version_of,
)
from dutperf.model.procedure_keys import Direction
from dutperf.model.specs import ProcedureSpec
from dutperf.model.stateful_keys import ConnectionKeys, Phase2Keys, Stateful
from dutperf.model.traffic import LOWEST_IPV6_MTU, Traffic
from dutperf.protocol.base import PREAMBLE_AND_GAP_BYTES, IpVersion, Side, header_bytes
from dutperf.protocol.stream_messages import minimum_frame_size
from dutperf.protocol.trial_messages import (
    DATA_LONGER_BYTES,
    QUERY_LONGER_BYTES,
    ConnectionBegin,
)

HEADER_DIFFERENCE_BYTES = 20
_SYN_LONGER_BYTES = 10
"""TCP with MSS and timestamps has 36 bytes, UDP with the tag 26."""
LONGER_THAN_SYN_BYTES: dict[ConnectionBegin, int] = {
    "syn": 0,
    "ack": -4,
    "request": 45,
    "fin": -4,
}
"""Without the MSS; a GET of HTTP/1.1 has 49 bytes (engine/src/net/http.h)."""
_SIDES: tuple[Side, Side] = ("left", "right")


def cell_versions(cell: Cell) -> set[IpVersion]:
    """All IP versions of the cell's frames."""
    return {version for side in _SIDES for version in side_versions(cell, side)}


def sizes_in(cell: Cell, version: IpVersion) -> list[int]:
    """Sizes of the cell's frames of one IP version, bytes with FCS."""
    shorter = version == 4 and len(cell_versions(cell)) > 1
    return [
        size - HEADER_DIFFERENCE_BYTES if shorter else size for size in cell.frame_sizes
    ]


def received_sizes(cell: Cell, name: StreamName, sender: Side) -> list[int]:
    """Sizes of what ``sender`` sends, as it comes out of the device.

    A translator leaves IPv4 options and IPv6 extension headers out (RFC 7915 4.1, 5.1);
    whoever forwards them must not touch them.
    """
    receiver = _other(sender)
    sent, received = (stream_version(cell, name, side) for side in (sender, receiver))
    shorter = cell.traffic.header_bytes(sent) if sent != received else 0
    return [size - shorter for size in sizes_in(cell, received)]


def smallest_size(versions: set[IpVersion], header_bytes: int = 0) -> int:
    """The smallest size that can be given where these IP versions occur.

    ``header_bytes``: see ``most_header_bytes``.
    """
    return max(minimum_frame_size(version) for version in versions) + header_bytes


def syn_size(versions: set[IpVersion]) -> int:
    """That of a SYN with its options, as the engine sends it (engine/src/net/tcp.h)."""
    return smallest_size(versions) + _SYN_LONGER_BYTES


def query_size(versions: set[IpVersion]) -> int:
    """That of a query to a DNS64 server (engine/src/net/dns.h)."""
    return smallest_size(versions) + QUERY_LONGER_BYTES


def most_header_bytes(
    traffic: Traffic,
    ip: IpVersions,
    connections: ConnectionKeys | Stateful | None = None,
) -> int:
    """What a frame has more than IP and UDP: options or extension headers, or TCP's."""
    most = max(traffic.header_bytes(version_of(ip, side)) for side in _SIDES)
    if (
        isinstance(connections, Phase2Keys | Stateful)
        and connections.transport == "tcp"
    ):
        return most + DATA_LONGER_BYTES
    return most


def mean_frame_size(cell: Cell, side: Side) -> Fraction:
    """Mean size in bytes with FCS of the frames on one side, either direction.

    Of foreground and background in their mix, over all sizes of an IMIX. Where the
    directions differ, those of the larger ones.
    """
    return max(mean_size_from(cell, side, sender) for sender in senders(cell))


def mean_size_from(cell: Cell, side: Side, sender: Side) -> Fraction:
    """The same of the frames that one side sends."""
    foreground = _mean(cell, "foreground", side, sender)
    beside, share = cell.traffic.beside, cell.traffic.foreground
    opened = cell.stateful
    if beside and beside.is_flood and opened and opened.transport == "tcp":
        if opened.initiator != sender:
            return foreground
        syn = syn_size({stream_version(cell, "beside", side)})
        return share * foreground + (1 - share) * syn
    if not cell.traffic.has_background:
        return foreground  # what else is beside it has its sizes
    return share * foreground + (1 - share) * _mean(cell, "background", side, sender)


def sizes_text(cell: Cell) -> str:
    """``84``, ``84/64 (IPv6/IPv4)``, or an IMIX and its sizes."""
    versions = sorted(cell_versions(cell), reverse=True)
    in_bytes = "/".join(_listed(sizes_in(cell, version)) for version in versions)
    names = "/".join(f"IPv{version}" for version in versions)
    note = f" ({names})" if len(versions) > 1 else ""
    if cell.traffic.pcap:
        least, most = min(cell.frame_sizes), max(cell.frame_sizes)
        return f"{cell.traffic.sizes_name}: {least} to {most}"
    name = f"{cell.traffic.imix}: " if cell.traffic.imix else ""
    return f"{name}{in_bytes}{note}"


def captured_words(cell: Cell) -> str:
    """How much of its capture is sent, and what is not."""
    capture, hosts = cell.traffic.pcap, cell.traffic.addresses
    assert capture  # noqa: S101 - it has one
    sender, receiver = ends(directions(cell)[0])
    return capture.words(
        version_of(cell.ip, sender), (hosts.count(sender), hosts.count(receiver))
    )


def _mean(cell: Cell, name: StreamName, side: Side, sender: Side) -> Fraction:
    if side == sender:
        sizes = sizes_in(cell, stream_version(cell, name, side))
    else:
        sizes = received_sizes(cell, name, sender)
    return Fraction(sum(sizes), len(sizes))


def _other(side: Side) -> Side:
    return "right" if side == "left" else "left"


def _listed(sizes: Sequence[int]) -> str:
    return " ".join(map(str, sizes))


# ``frame_size: all``: the frame sizes that the RFCs list for Ethernet.
#
# IPv4: RFC 2544 9.1. IPv6: RFC 5180 5.1.1, with 84 bytes instead of 64, which leave no
# room for the tag. Where both versions occur: RFC 8219 5.1.1, as sizes of the IPv6
# frames, so with 84 instead of 64, too. Jumbo frames (RFC 5180 5.1.1) as far as the MTU
# goes; a size that is left out is told.


_HEADER_AND_FCS_BYTES = 18  # Ethernet header 14, FCS 4: frame size less MTU
_JUMBO = (2048, 4096, 8192, 9216)
_ONE_VERSION: tuple[int, ...] = (64, 128, 256, 512, 1024, 1280, 1518, *_JUMBO)
_BOTH_VERSIONS: tuple[int, ...] = (
    *(64, 128, 256, 512, 768, 1024, 1280, 1518, 1522),
    *_JUMBO,
)
_SMALLEST_IPV6 = 84


class StandardSizes(NamedTuple):
    """The sizes of a list that the ports carry, and those that they do not."""

    fit: list[int]
    left_out: list[int]
    rfc: str


def standard_sizes(
    mtu: int, versions: set[IpVersion], header_bytes: int = 0
) -> StandardSizes:
    """The list for frames of these IP versions where IP packets have up to ``mtu``.

    ``header_bytes``: what options or extension headers take of them.
    """
    sizes, rfc = listed_sizes(versions, header_bytes)
    most = mtu + _HEADER_AND_FCS_BYTES
    return StandardSizes(
        [size for size in sizes if size <= most],
        [size for size in sizes if size > most],
        rfc,
    )


def listed_sizes(
    versions: set[IpVersion], header_bytes: int = 0
) -> tuple[list[int], str]:
    """The list for frames of these IP versions, and where it stands.

    ``header_bytes``: what more headers take; the smallest size grows (RFC 5180 5.3).
    """
    listed, rfc = _ONE_VERSION, "RFC 5180 5.1.1"
    if len(versions) > 1:
        listed, rfc = _BOTH_VERSIONS, "RFC 8219 5.1.1"
    least = (_SMALLEST_IPV6 if 6 in versions else 64) + header_bytes
    return sorted({max(size, least) for size in listed}), rfc


def frame_versions(ip: IpVersions, traffic: Traffic) -> set[IpVersion]:
    """All IP versions of the frames, foreground and background."""
    versions: set[IpVersion] = {version_of(ip, "left"), version_of(ip, "right")}
    return versions | ({traffic.background_ip} if traffic.has_background else set())


def size_notices(testbed: Testbed, campaign: Campaign) -> list[str]:
    """What is told of sizes that are not measured.

    Those of ``frame_size: all`` that the ports do not carry, and those that are too
    small for an IP version that nobody asked for.
    """
    told: dict[str, None] = {}
    for spec in campaign.procedures:
        if not spec.is_for(testbed.name):
            continue
        for ip in spec.ip or default_versions(testbed, spec.stateful):
            for traffic in spec.traffic:
                if spec.size_range:
                    mtu = largest_mtu(testbed, traffic, spec.direction)
                    versions = frame_versions(ip, traffic)
                    told |= dict.fromkeys(_left_out(spec, mtu, versions))
                else:
                    told |= dict.fromkeys(_too_small(spec, traffic, ip, testbed))
    return list(told)


def given_sizes(
    spec: ProcedureSpec, traffic: Traffic, ip: IpVersions, testbed: Testbed
) -> list[int]:
    """The listed ones; if no IP version was asked for, without those that do not fit.

    That is, what is too small for ``ip`` and not for another one of the testbed's.
    """
    given = [size for size in spec.frame_size if isinstance(size, int)]
    if spec.ip:
        return given
    least = {
        each: smallest_size(
            frame_versions(each, traffic),
            most_header_bytes(traffic, each, spec.stateful),
        )
        for each in default_versions(testbed, spec.stateful)
    }
    fitting = min(least.values(), default=0)
    return [size for size in given if not fitting <= size < least[ip]]


def _too_small(
    spec: ProcedureSpec, traffic: Traffic, ip: IpVersions, testbed: Testbed
) -> Iterator[str]:
    kept = given_sizes(spec, traffic, ip, testbed)
    extra = most_header_bytes(traffic, ip, spec.stateful)
    least = smallest_size(frame_versions(ip, traffic), extra)
    lacking = [s for s in spec.frame_size if isinstance(s, int) and s not in kept]
    if lacking:
        names = _names(frame_versions(ip, traffic))
        yield (
            f"frame_size {', '.join(map(str, lacking))}: without {names}, whose "
            f"smallest frame with room for the tag has {least} bytes"
        )


def largest_mtu(
    testbed: Testbed, traffic: Traffic, directions: Sequence[Direction]
) -> int:
    """Of the IP packets that both links carry, or that are cut for the other one."""
    sending: dict[Direction, set[Side]] = {"forward": {"left"}, "reverse": {"right"}}
    both: set[Side] = {"left", "right"}
    sides = both
    if traffic.fragmented:
        sides = {side for way in directions for side in sending.get(way, both)}
    return min(testbed.sides[side].mtu for side in sides)


def _left_out(spec: ProcedureSpec, mtu: int, versions: set[IpVersion]) -> Iterator[str]:
    sizes, (least, most) = standard_sizes(mtu, versions), spec.size_range or (0, 0)
    left_out = [size for size in sizes.left_out if least <= size <= most]
    if left_out:
        names = " and ".join(f"IPv{version}" for version in sorted(versions))
        largest = max(left_out) - _HEADER_AND_FCS_BYTES
        yield (
            f"frame_size {spec.frame_size[0]}, {names}: without "
            f"{', '.join(map(str, left_out))} "
            f"bytes of {sizes.rfc}: the MTU {mtu} carries frames of at most "
            f"{mtu + _HEADER_AND_FCS_BYTES} bytes; {largest} would carry all"
        )


# Which IP versions a testbed is for, if nobody says.


def default_versions(
    testbed: Testbed, stateful: ConnectionKeys | None = None
) -> list[IpVersions]:
    """What a testbed is for if nobody says: a translation if it has virtual addresses.

    Otherwise all versions that both sides have; in a stateful test those in which the
    responder knows the initiator by a virtual address; of these the translations, whose
    address it is, if there are any.
    """
    if stateful:
        gateways = [ip for ip in SIDES if _hides(testbed, ip, stateful.initiator)]
        if gateways:
            return [ip for ip in gateways if translates(ip)] or gateways
    translations = [ip for ip in TRANSLATIONS if _translates(testbed, ip)]
    return translations or list(testbed.ip_versions())


def _hides(testbed: Testbed, ip: IpVersions, initiator: Side) -> bool:
    """Whether the device gives the initiator another address."""
    responder: Side = "right" if initiator == "left" else "left"
    inside, outside = version_of(ip, initiator), version_of(ip, responder)
    own, other = testbed.sides[initiator], testbed.sides[responder]
    reachable = inside == outside or other.virtual(inside) is not None
    real = own.ip(inside) and other.ip(outside)
    return bool(real and reachable and own.virtual(outside))


def _translates(testbed: Testbed, ip: IpVersions) -> bool:
    left, right = version_of(ip, "left"), version_of(ip, "right")
    real = testbed.left.ip(left) and testbed.right.ip(right)
    return bool(real and testbed.right.virtual(left) and testbed.left.virtual(right))


# Frames that the device cuts into pieces: links of different MTUs (RFC 2544 9.4), and
# IPv4 packets that would be too long as IPv6 (RFC 7915 4).
#
# The frames have the sizes of the link with the larger MTU and are sent from there. A
# router cuts such an IPv4 packet into pieces for the other link (RFC 791 3.2), a
# translator one that is longer than its lowest IPv6 MTU when it is IPv6, into pieces of
# IPv6. The tester puts them together: a frame has arrived when all of its pieces have.
# Nobody cuts IPv6 packets of others (RFC 8200 5), nor IPv4 ones with DF.


_ETHERNET_BYTES = 18
_HEADER_BYTES: dict[IpVersion, int] = {4: 20, 6: 40}
_OF_PIECES_BYTES: dict[IpVersion, int] = {4: 0, 6: 8}
"""What the header of a piece is longer: IPv6 has one of its own (RFC 8200 4.5)."""
_UNIT_BYTES = 8
_KEY = ("traffic", "fragmented")


def pieces_of(
    frame_size: int, mtu: int, version: IpVersion = 4, option_bytes: int = 0
) -> int:
    """How many pieces of a frame a link carries, each as long as it may be.

    Args:
        frame_size: bytes with FCS, without VLAN tags.
        mtu: of the link; of a translator, if that is less, its lowest one of IPv6.
        version: of the pieces.
        option_bytes: what IPv4 options take of each piece.
    """
    ip_bytes = frame_size - _ETHERNET_BYTES
    if ip_bytes <= mtu:
        return 1
    more = _OF_PIECES_BYTES[version]
    room = mtu - _HEADER_BYTES[version] - option_bytes - more
    before_last = ip_bytes + more - mtu  # of the payload, at least; in whole units
    return 1 - -before_last // (room // _UNIT_BYTES * _UNIT_BYTES)


class InPieces(NamedTuple):
    """How a cell's frames cross a link, on average.

    Attributes:
        pieces: of a frame.
        further_bytes: what they take of the medium beside the whole frame's bytes:
            their headers, and between them preambles and gaps.
    """

    pieces: Fraction
    further_bytes: Fraction


def in_pieces(cell: Cell, side: Side, mtu: int | None) -> InPieces:
    """What the device sends to ``side``, whose link has ``mtu``; null: unknown."""
    sender = _other(side)
    if mtu is None or sender not in senders(cell) or not _is_cut(cell, sender):
        return InPieces(Fraction(1), Fraction(0))
    version, pieces = version_of(cell.ip, side), _pieces(cell, side, mtu)
    more = _OF_PIECES_BYTES[version]
    each = _HEADER_BYTES[version] + more + _ETHERNET_BYTES + PREAMBLE_AND_GAP_BYTES
    further = sum((count - 1) * each + (more if count > 1 else 0) for count in pieces)
    mean = Fraction(sum(pieces), len(pieces))
    return InPieces(mean, Fraction(further, len(pieces)))


def most_pieces(testbed: Testbed, cell: Cell, receiver: Side) -> int:
    """In how many pieces a frame may arrive; the device's own path may be narrower."""
    if not _is_cut(cell, _other(receiver)):
        return 1
    return max(2, *_pieces(cell, receiver, testbed.sides[receiver].mtu))


def _is_cut(cell: Cell, sender: Side) -> bool:
    return cell.traffic.fragmented and version_of(cell.ip, sender) == 4


def _pieces(cell: Cell, receiver: Side, mtu: int) -> list[int]:
    """Of each size; IPv4 options are in each piece, and in none of IPv6."""
    version, traffic = version_of(cell.ip, receiver), cell.traffic
    most = mtu if version == 4 else min(mtu, traffic.lowest_ipv6_mtu)
    options = traffic.header_bytes(4) if version == 4 else 0
    sizes = received_sizes(cell, "foreground", _other(receiver))
    return [pieces_of(size, most, version, options) for size in sizes]


def check_fragmented(cell: Cell) -> None:
    """Check that the frames are such as a router or a translator cuts.

    Raises:
        InputError: names the key that does not go with it.
    """
    traffic = cell.traffic
    if not traffic.fragmented:
        if traffic.lowest_ipv6_mtu != LOWEST_IPV6_MTU:
            raise KeyedError(
                ("traffic", "lowest_ipv6_mtu"),
                "is for frames that a translator cuts",
                "give traffic.fragmented: true (--fragmented), too, or leave it out",
            )
        return
    if traffic.has_background and cell_versions(cell) != {4}:
        raise KeyedError(
            _KEY,
            f"does not go with mix {traffic.mix} of both IP versions: routers do not "
            "fragment IPv6 packets (RFC 8200 5)",
            "leave out one of them",
        )
    if not any(version_of(cell.ip, side) == 4 for side in senders(cell)):
        way = "forward" if cell.ip == "4-6" else "reverse"
        instead = "measure IPv4: ip: [4] (--ip 4)"
        if translates(cell.ip):
            instead = f"send from the IPv4 side: direction: [{way}] (--direction {way})"
        raise KeyedError(
            _KEY,
            "is for frames that are sent as IPv4: routers do not fragment IPv6 packets "
            "(RFC 8200 5), and translators not those that become IPv4 (RFC 7915 5)",
            f"leave it out, or {instead}",
        )
    if traffic.df:
        raise KeyedError(
            _KEY,
            "does not go with df: no device may fragment such frames",
            "give one of them",
        )
    if cell.stateful:
        raise KeyedError(
            _KEY,
            "is not for stateful tests, whose frames go both ways",
            "leave it out, or measure without connections",
        )


_DIRECTIONS: tuple[Direction, ...] = ("forward", "reverse")
"""In which one side sends, so that the other one may have a smaller MTU."""
_FRAGMENTED = "traffic.fragmented: true (--fragmented)"


def check_sizes(testbed: Testbed, cell: Cell) -> None:
    """Check that all frames have room for the tag and fit the ports.

    Raises:
        InputError: names the key, the size, and what would fit.
    """
    of_imix: Keys = ("traffic", "pcap" if cell.traffic.pcap else "imix")
    keys = of_imix if cell.imix else ("frame_size",)
    versions = cell_versions(cell)
    extra = most_header_bytes(cell.traffic, cell.ip, cell.phase2)
    least = smallest_size(versions, extra)
    if min(cell.frame_sizes) < least:
        of_tcp = cell.phase2 is not None and cell.phase2.transport == "tcp"
        key = f"traffic.{_key_of_headers(cell.traffic, extra)}"
        key = "TCP beside UDP's 8" if of_tcp else key
        beside = f" and {extra} bytes of {key}" if extra else ""
        fits = versions != {4} and min(cell.frame_sizes) >= smallest_size({4}, extra)
        for_ipv4 = f"; {min(cell.frame_sizes)}-byte frames need IPv4: ip: [4] (--ip 4)"
        for_ipv4 = for_ipv4 if fits else ""
        raise KeyedError(
            keys,
            f"{min(cell.frame_sizes)} is too small for {_names(versions)}: the "
            f"smallest frame with room for the 18-byte tag{beside} has {least} bytes",
            f"use {least} or more{for_ipv4}",
        )
    found = _too_long(testbed, cell)
    if found is None:
        return
    name, size = found
    side = testbed.sides[name]
    tags = side.port.mtu - side.mtu
    both = [key for key in ("vlan", "mpls", "encapsulation") if getattr(side, key)]
    names = " and ".join(f"{name}.{key}" for key in both)
    beside = f" beside the {tags} bytes of {names}" if tags else ""
    raise KeyedError(
        keys,
        f"{size} does not fit the {name} port: its MTU "
        f"{side.port.mtu} carries frames of at most "
        f"{side.mtu + _HEADER_AND_FCS_BYTES} bytes{beside}",
        f"raise {name}.port.mtu to {size - _HEADER_AND_FCS_BYTES + tags} (and "
        f"the MTU of interface and DUT), or use smaller frames{_if_cut(testbed, cell)}",
    )


def _too_long(testbed: Testbed, cell: Cell) -> tuple[Side, int] | None:
    """The first side whose port does not carry the frames there, and their size."""
    for name, side in testbed.sides.items():
        if cell.traffic.fragmented and name not in senders(cell):
            continue  # the device cuts them for it
        size = max(max(sizes_in(cell, v)) for v in side_versions(cell, name))
        if size - _HEADER_AND_FCS_BYTES > side.mtu:
            return name, size
    return None


def _if_cut(testbed: Testbed, cell: Cell) -> str:
    """What else helps if a router cuts the frames for the other link, if anything."""
    traffic = cell.traffic.model_copy(update={"fragmented": True})
    cut = cell.with_keys(traffic=[traffic])
    for direction in _DIRECTIONS:
        asked = cut.model_copy(update={"direction": direction})
        if _may_be_cut(asked) and _too_long(testbed, asked) is None:
            keys = [] if cell.traffic.fragmented else [_FRAGMENTED]
            if direction != cell.direction:
                keys.append(f"direction: [{direction}] (--direction {direction})")
            told = " and ".join(keys)
            return f"; or give {told}, for a device that fragments them (RFC 2544 9.4)"
    return ""


def _may_be_cut(cell: Cell) -> bool:
    try:
        check_fragmented(cell)
    except KeyedError:
        return False
    return True


def _key_of_headers(traffic: Traffic, extra: int) -> str:
    """Which one makes the frames so much longer."""
    if traffic.header_bytes(6) != extra:
        return "ipv4_options"
    own = header_bytes(traffic.extension_headers(6)) == extra
    return "ipv6_headers" if own else "hop_by_hop_percent"


def _names(versions: set[IpVersion]) -> str:
    if len(versions) > 1:
        return "IPv6 (IPv4 frames are 20 bytes shorter)"
    return f"IPv{min(versions)}"
