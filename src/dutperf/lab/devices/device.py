"""What the lab has to know of a device under test: data only, no actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dutperf.config.testbed import InterfacePort, Ipv4Side, Ipv6Side, SideConfig
from dutperf.engine.protocol import Side


@dataclass(frozen=True)
class LabDevice:
    """One device under test.

    Attributes:
        name: what the user calls it.
        description: what forwards, for reports; the lab adds kernel and steering.
        addresses: the DUT's own addresses with prefix length, per side.
        sysctls: kernel settings of the DUT's namespace, beyond the lab's own.
        left: the tester's addresses there, and the DUT's as seen from there.
        right: likewise.
    """

    name: str
    description: str
    addresses: Mapping[Side, tuple[str, ...]]
    left: SideConfig
    right: SideConfig
    sysctls: Mapping[str, str] = field(default_factory=dict)


def lab_side(side: Side, ipv4: Ipv4Side, ipv6: Ipv6Side) -> SideConfig:
    """The tester's side of a lab: interfaces are named after their side."""
    return SideConfig(port=InterfacePort(interface=side), ipv4=ipv4, ipv6=ipv6)
