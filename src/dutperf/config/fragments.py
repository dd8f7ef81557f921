"""Frames that the device cuts into pieces: links of different MTUs (RFC 2544 9.4).

The frames have the sizes of the link with the larger MTU and are sent from there. A
router cuts such an IPv4 packet into pieces for the other link (RFC 791 3.2), and the
tester puts them together: a frame has arrived when all of its pieces have. Routers do
not cut IPv6 packets (RFC 8200 5), nor IPv4 ones with DF.
"""

from __future__ import annotations

from fractions import Fraction

from dutperf.config.cell import Cell
from dutperf.config.flows import senders
from dutperf.config.problem import KeyedError
from dutperf.config.sizes import cell_versions, sizes_in
from dutperf.config.testbed import Testbed
from dutperf.line_rate import PREAMBLE_AND_GAP_BYTES
from dutperf.protocol import Side

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
