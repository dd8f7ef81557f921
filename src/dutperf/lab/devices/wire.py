"""``wire``: no device, but the links and CPUs of a lab: what the tester can do there.

    tester                            dut
    198.18.0.2     left  ------- left  ┐
    198.19.0.2     right ------- right ┘ each frame goes on as it came

The kernel hands each frame that arrives on one link to the other before any of its
protocols sees it. What is left of the way is the tester's, its links' and its sockets':
the passport of all labs whose links are veth pairs is made here. The tester's next hop
on each side is its own other side.
"""

from __future__ import annotations

from typing import Any

from dutperf.config.side import Ipv4Side, Ipv6Side
from dutperf.lab.devices.device import Box, LabDevice, lab_side
from dutperf.protocol import Side

_TABLE = {"family": "netdev", "name": "wire"}


def _from(side: Side, other: Side) -> tuple[dict[str, Any], ...]:
    chain = {"family": "netdev", "table": "wire", "name": side}
    hook = {"type": "filter", "hook": "ingress", "prio": 0, "dev": side}
    rule = {
        "family": "netdev",
        "table": "wire",
        "chain": side,
        "expr": [{"fwd": {"dev": other}}],
    }
    return (
        {"add": {"chain": {**chain, **hook, "policy": "accept"}}},
        {"add": {"rule": rule}},
    )


WIRE = LabDevice(
    name="wire",
    description="no device: a wire between the lab's links",
    addresses={"left": (), "right": ()},
    left=lab_side(
        "left",
        Ipv4Side(address="198.18.0.2", gateway="198.19.0.2"),
        Ipv6Side(address="2001:2::2", gateway="2001:2:0:8000::2"),
    ),
    right=lab_side(
        "right",
        Ipv4Side(address="198.19.0.2", gateway="198.18.0.2"),
        Ipv6Side(address="2001:2:0:8000::2", gateway="2001:2::2"),
    ),
    translates=False,
    boxes=(
        Box(
            ruleset=(
                {"add": {"table": _TABLE}},
                *_from("left", "right"),
                *_from("right", "left"),
            )
        ),
    ),
)
