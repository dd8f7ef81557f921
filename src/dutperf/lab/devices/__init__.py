"""The devices under test that the lab can make, one module each."""

from __future__ import annotations

from collections.abc import Mapping

from dutperf.lab.devices.device import LabDevice, Translator
from dutperf.lab.devices.known_answer import (
    GATEWAYS,
    KNOWN_ANSWER,
    KNOWN_ANSWER_2X2,
    KNOWN_ANSWER_MTUS,
    KNOWN_ANSWER_VETH,
    MAP_BOXES,
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
)
from dutperf.lab.devices.nftables import NFT_NAT44, NFT_NAT66, WIRE, linux_firewall
from dutperf.lab.devices.open_vswitch import OVS_DPDK
from dutperf.lab.devices.translators import TAYGA_NAT64, TAYGA_SIIT, XLAT464
from dutperf.lab.devices.two_boxes import FOUR_IN_SIX, VXLAN
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
        VXLAN,
        *GATEWAYS,
        *MAP_BOXES,
        OVS_DPDK,
        LINUX_VM,
        WIRE,
    )
}
"""All devices by name."""


def device_of(state: LabState) -> LabDevice:
    """That of the lab, where it is."""
    return LABS[state.device].at(state.name)


__all__ = ["LABS", "LabDevice", "Translator", "device_of", "linux_firewall"]
