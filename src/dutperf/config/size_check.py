"""Whether the frames of a cell have room for the tag, and fit the ports."""

from __future__ import annotations

from dutperf.config.cell import Cell
from dutperf.config.flows import senders, side_versions
from dutperf.config.fragments import check_fragmented
from dutperf.config.problem import KeyedError
from dutperf.config.sizes import (
    cell_versions,
    most_header_bytes,
    sizes_in,
    smallest_size,
)
from dutperf.config.specs import Direction
from dutperf.config.testbed import Testbed
from dutperf.config.traffic import Traffic
from dutperf.protocol import IpVersion, Side, header_bytes

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
