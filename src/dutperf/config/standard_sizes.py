"""``frame_size: all``: the frame sizes that the RFCs list for Ethernet.

IPv4: RFC 2544 9.1. IPv6: RFC 5180 5.1.1, with 84 bytes instead of 64, which leave no
room for the tag. Where both versions occur: RFC 8219 5.1.1, as sizes of the IPv6
frames, so with 84 instead of 64, too. Jumbo frames (RFC 5180 5.1.1) as far as the MTU
goes; a size that is left out is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dutperf.config.campaign import Campaign
from dutperf.config.frame_size import ALL_SIZES
from dutperf.config.specs import Direction
from dutperf.config.testbed import Testbed
from dutperf.config.traffic import Traffic
from dutperf.config.versions import IpVersions, default_versions, version_of
from dutperf.protocol import IpVersion, Side

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
    """What is told of sizes of ``frame_size: all`` that the ports do not carry."""
    told: dict[str, None] = {}
    for spec in campaign.procedures:
        if ALL_SIZES in spec.frame_size and spec.is_for(testbed.name):
            for ip in spec.ip or default_versions(testbed):
                for traffic in spec.traffic:
                    mtu = largest_mtu(testbed, traffic, spec.direction)
                    told |= dict.fromkeys(_left_out(mtu, frame_versions(ip, traffic)))
    return list(told)


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


def _left_out(mtu: int, versions: set[IpVersion]) -> Iterator[str]:
    sizes = standard_sizes(mtu, versions)
    if sizes.left_out:
        names = " and ".join(f"IPv{version}" for version in sorted(versions))
        largest = max(sizes.left_out) - _HEADER_AND_FCS_BYTES
        yield (
            f"frame_size all, {names}: without {', '.join(map(str, sizes.left_out))} "
            f"bytes of {sizes.rfc}: the MTU {mtu} carries frames of at most "
            f"{mtu + _HEADER_AND_FCS_BYTES} bytes; {largest} would carry all"
        )
