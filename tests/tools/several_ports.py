"""Testbeds with several ports on each side, as their files have them."""

from __future__ import annotations

from typing import Any

from dutperf.config import Testbed

_NETWORKS = {"left": ("198.18", "2001:2:0:"), "right": ("198.19", "2001:2:0:80")}


def port_data(side: str, number: int) -> dict[str, Any]:
    """A port whose network has its number."""
    ipv4, ipv6 = _NETWORKS[side]
    device = f"{side}{number + 1}" if number else side
    return {
        "port": {"interface": device},
        "ipv4": {"address": f"{ipv4}.{number}.2", "gateway": f"{ipv4}.{number}.1"},
        "ipv6": {
            "address": f"{ipv6}{number:02x}::2",
            "gateway": f"{ipv6}{number:02x}::1",
        },
    }


def side_data(side: str, pairs: int) -> dict[str, Any]:
    """A side as a file has it; of one port it says nothing of several."""
    first, *others = (port_data(side, number) for number in range(pairs))
    return first | ({"more_ports": others} if others else {})


def testbed_data(pairs: int) -> dict[str, Any]:
    """A testbed with so many ports on each side."""
    return {
        "name": "several",
        "cores": [0],
        "left": side_data("left", pairs),
        "right": side_data("right", pairs),
    }


def testbed(pairs: int) -> Testbed:
    """The same, read."""
    return Testbed.model_validate(testbed_data(pairs))
