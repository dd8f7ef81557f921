"""Frame sizes on both sides of a device that may translate (methodology of RFC 8219).

An IPv6 header is 20 bytes longer than an IPv4 header. Where both versions occur in a
cell (a translator, or background of the other version) the size that is given is that
of the IPv6 frames, and every IPv4 frame is 20 bytes shorter: 84/64. So the smallest is
84 bytes then, and foreground and background carry the same payload.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dutperf.config.cell import Cell
from dutperf.config.flows import (
    StreamName,
    senders,
    side_versions,
    stream_version,
)
from dutperf.config.traffic import Traffic
from dutperf.config.versions import IpVersions, version_of
from dutperf.protocol import IpVersion, Side, minimum_frame_size

HEADER_DIFFERENCE_BYTES = 20
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


def most_header_bytes(traffic: Traffic, ip: IpVersions) -> int:
    """What options or extension headers take of a frame, on either side."""
    return max(traffic.header_bytes(version_of(ip, side)) for side in _SIDES)


def mean_frame_size(cell: Cell, side: Side) -> Fraction:
    """Mean size in bytes with FCS of the frames on one side, either direction.

    Of foreground and background in their mix, over all sizes of an IMIX. Where the
    directions differ, those of the larger ones.
    """
    return max(_mean_of(cell, side, sender) for sender in senders(cell))


def _mean_of(cell: Cell, side: Side, sender: Side) -> Fraction:
    foreground = _mean(cell, "foreground", side, sender)
    if not cell.traffic.has_background:
        return foreground  # what else is beside it has its sizes
    share = cell.traffic.foreground
    return share * foreground + (1 - share) * _mean(cell, "background", side, sender)


def sizes_text(cell: Cell) -> str:
    """``84``, ``84/64 (IPv6/IPv4)``, or an IMIX and its sizes."""
    versions = sorted(cell_versions(cell), reverse=True)
    in_bytes = "/".join(_listed(sizes_in(cell, version)) for version in versions)
    names = "/".join(f"IPv{version}" for version in versions)
    note = f" ({names})" if len(versions) > 1 else ""
    name = f"{cell.traffic.imix}: " if cell.traffic.imix else ""
    return f"{name}{in_bytes}{note}"


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
