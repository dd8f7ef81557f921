"""A testbed without a device: the tester's ports, connected to each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dutperf.config.testbed import Port, SideConfig, Testbed
from dutperf.protocol import Side

_ADDRESSES: dict[Side, dict[str, str]] = {
    "left": {"ipv4": "198.18.0.2", "ipv6": "2001:2::2"},
    "right": {"ipv4": "198.19.0.2", "ipv6": "2001:2:0:8000::2"},
}


def crossed(ports: Mapping[Side, Port], **keys: Any) -> Testbed:  # noqa: ANN401
    """Each side is the other's next hop.

    ``keys``: of the testbed, beside its sides.
    """
    return Testbed(
        description="no device: the tester's ports, connected to each other",
        translates=False,
        left=_side("left", "right", ports["left"]),
        right=_side("right", "left", ports["right"]),
        **keys,
    )


def _side(own: Side, other: Side, port: Port) -> SideConfig:
    versions = {
        version: {"address": address, "gateway": _ADDRESSES[other][version]}
        for version, address in _ADDRESSES[own].items()
    }
    return SideConfig.model_validate({"port": port, **versions})
