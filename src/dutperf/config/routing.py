"""Whether the tester can tell the device routes, and as whom: by RIPv2 and RIPng."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from dutperf.config.flows import directions, flows, side_versions
from dutperf.config.problem import KeyedError
from dutperf.config.testbed import Testbed
from dutperf.protocol import IpVersion, RoutingDaemonProtocol, Side

if TYPE_CHECKING:  # compat has no use for it, and its commands start fast
    from dutperf.config.cell import Cell

_LONGEST_S = 3600
_LINK_LOCAL = ipaddress.IPv6Address("fe80::").packed[:8]


def speaks(cell: Cell) -> RoutingDaemonProtocol | None:
    """The protocol by which a daemon beside the tester tells the device routes."""
    routes = cell.traffic.routes
    return None if routes == "static" or routes == "rip" else routes


def tells_routes(cell: Cell, version: IpVersion) -> bool:
    """Whether the tester tells the device any of ``version``."""
    traffic = cell.traffic
    asked = traffic.routes != "static" or traffic.route_changes
    return asked and version in side_versions(cell, "left")


def told_from(testbed: Testbed, side: Side, version: IpVersion) -> str:
    """The address that the tester tells routes from; the next hop of them.

    Of IPv6 a link-local one (RFC 2080 2.5): the second half is the tester's own.
    """
    own = testbed.sides[side].ip(version)
    assert own  # noqa: S101 - who has frames of a version has an address of it
    if version == 4:
        return own.address
    half = ipaddress.IPv6Address(own.address).packed[8:]
    return str(ipaddress.IPv6Address(_LINK_LOCAL + half))


def check_routing(testbed: Testbed, cell: Cell) -> None:
    """Refuse routes that cannot be told.

    Raises:
        InputError: a device that translates, connections, trials that are too long, or
            a neighbour without an address.
    """
    traffic = cell.traffic
    key = "routes" if traffic.routes != "static" else "route_changes"
    if traffic.routes == "static" and not traffic.route_changes:
        return
    if cell.stateful:
        raise KeyedError(
            ("traffic", key),
            "is not for stateful tests, whose trials follow each other too closely",
            "leave it out, or measure without connections",
        )
    if cell.spec.trial_duration_s > _LONGEST_S:
        raise KeyedError(
            ("traffic", key),
            f"is for trials of up to {_LONGEST_S:,} s: longer ones need more updates "
            "than a trial takes",
            "shorten trial_duration_s (--trial-duration), or leave it out",
        )
    _check_neighbours(testbed, cell)
    for way in directions(cell):
        for flow in flows(testbed, cell, way):
            if flow.version != flow.received_version:
                raise KeyedError(
                    ("traffic", key),
                    f"is for routers, and of ip {cell.ip} frames are translated",
                    "leave it out there (static routes), or choose ip (--ip) 4 or 6",
                )


def _check_neighbours(testbed: Testbed, cell: Cell) -> None:
    """BGP is spoken with an address; a MAC address alone is not enough."""
    if speaks(cell) != "bgp":
        return
    for name, side in testbed.sides.items():
        for version in side_versions(cell, name):
            own = side.ip(version)
            if own and own.gateway is None:
                raise KeyedError(
                    ("traffic", "routes"),
                    f"bgp needs the address of its neighbour on the {name}: "
                    f"{name}.ipv{version}.gateway is missing",
                    "give it, beside next_hop_mac if that is needed; or let the device "
                    "speak OSPF (--routes ospf)",
                )
