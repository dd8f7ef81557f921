"""Which IP version each side sends: 4, 6, or one on each side (left-right)."""

from __future__ import annotations

from typing import Literal

from dutperf.config.stateful_keys import ConnectionKeys
from dutperf.config.testbed import Testbed
from dutperf.protocol import IpVersion, Side

IpVersions = Literal[4, 6, "6-4", "4-6"]
"""4 and 6: the same on both sides; 6-4: IPv6 on the left, IPv4 on the right."""

_SIDES: dict[IpVersions, dict[Side, IpVersion]] = {
    4: {"left": 4, "right": 4},
    6: {"left": 6, "right": 6},
    "6-4": {"left": 6, "right": 4},
    "4-6": {"left": 4, "right": 6},
}
_TRANSLATIONS: tuple[IpVersions, ...] = ("6-4", "4-6")


def version_of(ip: IpVersions, side: Side) -> IpVersion:
    """The IP version that ``side`` sends and receives."""
    return _SIDES[ip][side]


def translates(ip: IpVersions) -> bool:
    """Whether the device under test makes one IP version of the other."""
    return ip in _TRANSLATIONS


def default_versions(
    testbed: Testbed, stateful: ConnectionKeys | None = None
) -> list[IpVersions]:
    """What a testbed is for if nobody says: a translation if it has virtual addresses.

    Otherwise all versions that both sides have; in a stateful test those in which the
    responder knows the initiator by a virtual address; of these the translations, whose
    address it is, if there are any.
    """
    if stateful:
        gateways = [ip for ip in _SIDES if _hides(testbed, ip, stateful.initiator)]
        if gateways:
            return [ip for ip in gateways if translates(ip)] or gateways
    translations = [ip for ip in _TRANSLATIONS if _translates(testbed, ip)]
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
