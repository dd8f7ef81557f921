"""Whether the frames of a cell have room for the tag, and fit the ports."""

from __future__ import annotations

from fractions import Fraction

from dutperf.config.flows import senders, side_versions
from dutperf.config.sizes import (
    cell_versions,
    most_header_bytes,
    sizes_in,
    smallest_size,
)
from dutperf.config.testbed import Testbed
from dutperf.line_rate import PREAMBLE_AND_GAP_BYTES
from dutperf.model.cell import Cell
from dutperf.model.fields import KeyedError
from dutperf.model.procedure_keys import Direction
from dutperf.model.traffic import Traffic
from dutperf.protocol.base import IpVersion, Side
from dutperf.protocol.headers import header_bytes

# Frames that the device cuts into pieces: links of different MTUs (RFC 2544 9.4).
#
# The frames have the sizes of the link with the larger MTU and are sent from there. A
# router cuts such an IPv4 packet into pieces for the other link (RFC 791 3.2), and the
# tester puts them together: a frame has arrived when all of its pieces have. Routers do
# not cut IPv6 packets (RFC 8200 5), nor IPv4 ones with DF.


_ETHERNET_BYTES = 18
_IPV4_BYTES = 20
_UNIT_BYTES = 8
_FURTHER_PIECE_BYTES = _IPV4_BYTES + _ETHERNET_BYTES + PREAMBLE_AND_GAP_BYTES
_KEY = ("traffic", "fragmented")


def pieces_of(frame_size: int, mtu: int, option_bytes: int = 0) -> int:
    """How many pieces of a frame a link carries, each as long as it may be.

    Args:
        frame_size: bytes with FCS, without VLAN tags.
        mtu: of the link.
        option_bytes: what IPv4 options take of each piece.
    """
    ip_bytes = frame_size - _ETHERNET_BYTES
    if ip_bytes <= mtu:
        return 1
    room = mtu - _IPV4_BYTES - option_bytes
    before_last = ip_bytes - mtu  # of the payload, at least; in whole units
    return 1 - -before_last // (room // _UNIT_BYTES * _UNIT_BYTES)


def mean_pieces(cell: Cell, side: Side, mtu: int | None) -> Fraction:
    """In how many pieces a frame crosses a link on average; null: its MTU is unknown.

    Pieces are sent by the device alone.
    """
    if not cell.traffic.fragmented or mtu is None or side in senders(cell):
        return Fraction(1)
    sizes = sizes_in(cell, 4)
    options = cell.traffic.header_bytes(4)
    return Fraction(sum(pieces_of(size, mtu, options) for size in sizes), len(sizes))


def most_pieces(testbed: Testbed, cell: Cell, receiver: Side) -> int:
    """In how many pieces a frame may arrive; the device's own path may be narrower."""
    if not cell.traffic.fragmented:
        return 1
    mtu, options = testbed.sides[receiver].mtu, cell.traffic.header_bytes(4)
    return max(2, *(pieces_of(size, mtu, options) for size in sizes_in(cell, 4)))


def further_pieces_bytes(pieces: Fraction) -> Fraction:
    """What headers and gaps of all pieces but the first take of the medium."""
    return (pieces - 1) * _FURTHER_PIECE_BYTES


def check_fragmented(cell: Cell) -> None:
    """Check that the frames are such as a router cuts.

    Raises:
        InputError: names the key that does not go with it.
    """
    traffic = cell.traffic
    if not traffic.fragmented:
        return
    if cell_versions(cell) != {4}:
        raise KeyedError(
            _KEY,
            "is for IPv4 alone: routers do not fragment IPv6 packets (RFC 8200 5)",
            "leave it out, or measure IPv4: ip: [4] (--ip 4)",
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


_HEADER_AND_FCS_BYTES = 18  # Ethernet header 14, FCS 4: frame size less MTU
_DIRECTIONS: tuple[Direction, ...] = ("forward", "reverse")
"""In which one side sends, so that the other one may have a smaller MTU."""
_FRAGMENTED = "traffic.fragmented: true (--fragmented)"


def check_sizes(testbed: Testbed, cell: Cell) -> None:
    """Check that all frames have room for the tag and fit the ports.

    Raises:
        InputError: names the key, the size, and what would fit.
    """
    keys = ("traffic", "imix") if cell.imix else ("frame_size",)
    versions = cell_versions(cell)
    extra = most_header_bytes(cell.traffic, cell.ip)
    least = smallest_size(versions, extra)
    if min(cell.frame_sizes) < least:
        key = _key_of_headers(cell.traffic, extra)
        beside = f" and {extra} bytes of traffic.{key}" if extra else ""
        raise KeyedError(
            keys,
            f"{min(cell.frame_sizes)} is too small for {_names(versions)}: the "
            f"smallest frame with room for the 18-byte tag{beside} has {least} bytes",
            f"use {least} or more; give IPv4 and IPv6 entries of their own under "
            "procedures if their sizes differ",
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
    try:
        check_fragmented(cut)
    except KeyedError:
        return ""
    for direction in _DIRECTIONS:
        asked = cut.model_copy(update={"direction": direction})
        if _too_long(testbed, asked) is None:
            keys = [] if cell.traffic.fragmented else [_FRAGMENTED]
            if direction != cell.direction:
                keys.append(f"direction: [{direction}] (--direction {direction})")
            told = " and ".join(keys)
            return f"; or give {told}, for a router that fragments them (RFC 2544 9.4)"
    return ""


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
