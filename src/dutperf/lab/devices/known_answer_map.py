"""``known-answer-map-...``: both boxes of MAP-E and MAP-T (RFC 7597, 7599).

The rule is that of the RFCs' examples: 192.0.2.0/24 is shared by 65,536 customer edges
(CE) of 2001:db8::/40, 256 to an address, by 8 bits of the port behind its first 6.

``known-answer-map-e`` and ``-map-t`` are the border relay (BR): the tester is all edges
on the left, the IPv4 internet on the right. It takes nothing whose IPv6 address does
not say what address and port do, and sends each packet to the edge that has these.

``known-answer-map-e-ce`` and ``-map-t-ce`` are the edge 192.0.2.18, PSID 0x34, a
stateful gateway with the 252 ports of its set: behind it 10.0.0.0/8 on the left, the
relay on the right.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dutperf.config.encapsulation import SideEncapsulation
from dutperf.config.map_rule import MapRule
from dutperf.config.side import Ipv4Side, Ipv6Side, SideTranslation
from dutperf.lab.devices.known_answer import KNOWN_ANSWER, gateway, memif_side

RULE = MapRule(ipv6_prefix="2001:db8::/40", ipv4_prefix="192.0.2.0/24", ea_bits=16)
_RULE = RULE.model_dump()
_PSID = 0x34
_SHARED = "192.0.2.18"
_EDGE = RULE.address(_SHARED, _PSID)
_PORTS = {
    "port_set": {
        "psid_offset": RULE.psid_offset,
        "psid_bits": RULE.psid_bits,
        "psid": _PSID,
    }
}
_RELAY = "2001:2::1"
_PREFIX = "64:ff9b::/96"
_FAR = "2001:2:0:8000::"
"""Of the edges' lab: the default mapping rule's prefix is that of the right link."""

_OF_EDGES = Ipv6Side(address="2001:2::2", gateway=_RELAY)
_INTERNET = Ipv4Side(address="198.19.0.2", gateway="198.19.0.1")
_RELAYS = "dutperf-refdut, a {} border relay of 65,536 customer edges"

_MAP_E_BEHAVIOUR: dict[str, Any] = {
    "encapsulation": {
        "left": {
            "kind": "ip",
            "local": _RELAY,
            "remote": RULE.address("192.0.2.0", 0),
            "remote_bits": RULE.prefix_bits,
        }
    },
    "map": {"left": _RULE},
}

MAP_E = replace(
    KNOWN_ANSWER,
    name="known-answer-map-e",
    description=_RELAYS.format("MAP-E"),
    left=memif_side(
        "left",
        Ipv4Side(address="192.0.2.1"),
        _OF_EDGES,
        encapsulation=SideEncapsulation(kind="ipv4-in-ipv6", map=RULE),
    ),
    right=memif_side("right", _INTERNET, None),
    behaviour=_MAP_E_BEHAVIOUR,
)

MAP_T = replace(
    KNOWN_ANSWER,
    name="known-answer-map-t",
    description=_RELAYS.format("MAP-T"),
    left=memif_side(
        "left",
        Ipv4Side(virtual="192.0.2.1"),
        _OF_EDGES,
        translation=SideTranslation(map=RULE),
    ),
    right=memif_side("right", _INTERNET, Ipv6Side(virtual="64:ff9b::c613:2")),
    behaviour={"translation": {"left": {**_RULE, "prefix": _PREFIX}}},
)

_E_EDGE = gateway("nat44", {"ipv4": _SHARED}, {}, ports=_PORTS)

MAP_E_EDGE = replace(
    _E_EDGE,
    name="known-answer-map-e-ce",
    description="dutperf-refdut, a MAP-E customer edge with 252 ports",
    right=_E_EDGE.right.model_copy(
        update={"encapsulation": SideEncapsulation(kind="ipv4-in-ipv6", remote=_EDGE)}
    ),
    behaviour={
        **_E_EDGE.behaviour,
        "encapsulation": {
            "right": {"kind": "ip", "local": _EDGE, "remote": f"{_FAR}2"}
        },
    },
)

MAP_T_EDGE = replace(
    gateway(
        "nat46",
        {"ipv6": _EDGE},
        {"ipv4": "198.19.0.66"},
        f"{_FAR}/96",
        f"{_FAR}c613:42",
        _PORTS,
    ),
    name="known-answer-map-t-ce",
    description="dutperf-refdut, a MAP-T customer edge with 252 ports",
)

MAP_BOXES = (MAP_E, MAP_T, MAP_E_EDGE, MAP_T_EDGE)
