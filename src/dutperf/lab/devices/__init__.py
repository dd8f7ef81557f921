"""The devices under test that the lab can make."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace

from dutperf import __version__
from dutperf.config.campaign import LabKeys
from dutperf.errors import InputError, SetupError
from dutperf.lab.devices.device import LabDevice
from dutperf.lab.devices.known_answer import (
    DNS64,
    EDGE_BOXES,
    GATEWAYS,
    KNOWN_ANSWER,
    KNOWN_ANSWER_2X2,
    KNOWN_ANSWER_MTUS,
    KNOWN_ANSWER_VETH,
)
from dutperf.lab.devices.linux import (
    LINUX_ROUTER,
    LINUX_ROUTER_2X2,
    LINUX_ROUTER_FRR,
    LINUX_ROUTER_HOSTS,
    LINUX_ROUTER_MTUS,
    LINUX_ROUTER_RIP,
    LINUX_ROUTER_SNMP,
    LINUX_ROUTER_TABLES,
    SRV6_DT6,
    SRV6_DX4,
    SRV6_END,
    WIRE,
)
from dutperf.lab.devices.nftables import (
    NFT_NAT44,
    NFT_NAT66,
    Tracking,
    linux_firewall,
)
from dutperf.lab.devices.open_vswitch import OVS_DPDK, OVS_DPDK_CT
from dutperf.lab.devices.translators import (
    BIND_DNS64,
    TAYGA_NAT64,
    TAYGA_SIIT,
    UNBOUND,
    UNBOUND_DNS64,
)
from dutperf.lab.devices.two_boxes import FOUR_IN_SIX, LW4O6, VXLAN, XLAT464
from dutperf.lab.devices.virtual_machine import LINUX_VM
from dutperf.lab.state import LabState

LABS: Mapping[str, LabDevice] = {
    device.name: device
    for device in (
        LINUX_ROUTER,
        LINUX_ROUTER_HOSTS,
        LINUX_ROUTER_MTUS,
        LINUX_ROUTER_RIP,
        LINUX_ROUTER_FRR,
        *LINUX_ROUTER_TABLES,
        LINUX_ROUTER_SNMP,
        LINUX_ROUTER_2X2,
        linux_firewall(),
        TAYGA_SIIT,
        KNOWN_ANSWER,
        KNOWN_ANSWER_VETH,
        KNOWN_ANSWER_MTUS,
        KNOWN_ANSWER_2X2,
        NFT_NAT44,
        NFT_NAT66,
        TAYGA_NAT64,
        XLAT464,
        FOUR_IN_SIX,
        LW4O6,
        VXLAN,
        SRV6_DX4,
        SRV6_DT6,
        SRV6_END,
        *GATEWAYS,
        *EDGE_BOXES,
        DNS64,
        OVS_DPDK,
        OVS_DPDK_CT,
        UNBOUND_DNS64,
        UNBOUND,
        BIND_DNS64,
        LINUX_VM,
        WIRE,
    )
}
"""All devices by name."""


def device_of(state: LabState) -> LabDevice:
    """That of the lab, where it is.

    Raises:
        SetupError: a dutperf of another version made it, of a device that we lack.
    """
    if state.device not in LABS:
        raise SetupError(
            f"a lab of the device {state.device!r} is up, which this dutperf "
            f"({__version__}) does not know",
            "take it down: dutperf lab down --all",
        )
    return LABS[state.device].at(state.name)


def taking(key: str) -> list[str]:
    """The devices of which that is chosen: ``rules`` or ``behaviour``."""
    return [name for name, device in LABS.items() if device.takes == key]


def find(keys: LabKeys) -> LabDevice:
    """The device that is asked for, where its lab will be.

    Raises:
        InputError: there is none of that name, or it takes no behaviour, no filters or
            keeps no connections.
    """
    if keys.device not in LABS:
        near = difflib.get_close_matches(keys.device, LABS, n=1)
        raise InputError(
            f"there is no lab named {keys.device!r}",
            f"did you mean {near[0]!r}?" if near else f"labs: {', '.join(LABS)}",
        )
    device = LABS[keys.device]
    if keys.behaviour is not None and device.takes != "behaviour":
        raise InputError(
            f"lab {keys.device} takes no behaviour: it does what it does",
            f"the lab that does as told is {KNOWN_ANSWER.name}",
        )
    if keys.rules is not None and device.takes != "rules":
        raise InputError(
            f"lab {keys.device} has no filters whose number could be chosen",
            f"leave rules out, or take the lab {', '.join(taking('rules'))}",
        )
    if keys.connections is not None and device.tracking is None:
        raise InputError(
            f"lab {keys.device} has no table of connections whose size could be chosen",
            f"leave connections out, or take one of: {', '.join(gateways())}",
        )
    chosen = device if keys.rules is None else device.with_rules(keys.rules)
    if keys.connections is not None:
        chosen = replace(chosen, tracking=Tracking(keys.connections))
    return chosen.at(keys.own_name)


def gateways() -> list[str]:
    """The devices whose kernel keeps connections."""
    return [name for name, device in LABS.items() if device.tracking]
