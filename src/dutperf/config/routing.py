"""Whether the tester can tell the device routes: by RIPv2, which has IPv4's alone."""

from __future__ import annotations

from dutperf.config.cell import Cell
from dutperf.config.flows import directions, ends, flows
from dutperf.config.problem import KeyedError
from dutperf.config.testbed import Testbed

_LONGEST_S = 3600
_HINT = "leave it out there (static routes), or choose IPv4 alone (ip: [4], --ip 4)"


def check_routing(testbed: Testbed, cell: Cell) -> None:
    """Refuse routes that cannot be told.

    Raises:
        InputError: frames of IPv6, no IPv4 address to tell them from, or connections.
    """
    traffic = cell.traffic
    key = "routes" if traffic.routes == "rip" else "route_changes"
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
    for way in directions(cell):
        if testbed.sides[ends(way)[0]].ip(4) is None:
            told = f"{ends(way)[0]} has no IPv4 address to send RIPv2 from"
            raise KeyedError(("traffic", key), told, _HINT)
        for flow in flows(testbed, cell, way):
            if traffic.routes == "rip" and {flow.version, flow.received_version} != {4}:
                told = "RIPv2 tells routers IPv4 networks, and these frames have IPv6"
                raise KeyedError(("traffic", "routes"), told, _HINT)
