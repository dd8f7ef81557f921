"""Small valid files that the tests take apart."""

from __future__ import annotations

import copy
from typing import Any

from dutperf.config import Campaign, Testbed
from dutperf.model.cell import Cell

TESTBED_YAML = """\
schema_version: 1
name: bench
cores: [0, 1]
left:
  port:
    interface: tl
    mtu: 1500
  ipv4:
    address: 198.18.1.2
    gateway: 198.18.1.1
  ipv6: {address: "2001:2::2", gateway: "2001:2::1"}
right:
  port: {interface: tr}
  ipv4: {address: 198.19.1.2, gateway: 198.19.1.1}
  ipv6: {address: "2001:2:0:8000::2", gateway: "2001:2:0:8000::1"}
"""

CAMPAIGN_YAML = """\
name: quick
lab: linux-router
procedures:
  - procedure: throughput
    ip: [4]
    resolution: 5%
"""

_TESTBED: dict[str, Any] = {
    "name": "bench",
    "left": {
        "port": {"interface": "tl"},
        "ipv4": {"address": "198.18.1.2", "gateway": "198.18.1.1"},
        "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"},
    },
    "right": {
        "port": {"interface": "tr"},
        "ipv4": {"address": "198.19.1.2", "gateway": "198.19.1.1"},
        "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"},
    },
}


def bench_data() -> dict[str, Any]:
    return copy.deepcopy(_TESTBED)


def make_testbed(**changes: object) -> Testbed:
    return Testbed.model_validate({**bench_data(), **changes})


def make_campaign(*procedures: dict[str, Any], **changes: object) -> Campaign:
    data = {"name": "quick", "lab": "linux-router", "procedures": list(procedures)}
    return Campaign.model_validate({**data, **changes})


def make_cell(**changes: object) -> Cell:
    """A throughput of IPv4 frames of 64 bytes, but for what ``changes`` say."""
    own: dict[str, object] = {
        "frame_sizes": [64],
        "direction": "both",
        "id": "throughput-ip4-64-both",
    }
    own |= {key: changes.pop(key) for key in own if key in changes}
    spec = {"procedure": "throughput", "ip": [4], **changes}
    return Cell.model_validate({"seed": 1, **own, "spec": spec})
