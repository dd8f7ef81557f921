"""The testbed that a lab is, with its device as the lab makes it."""

from __future__ import annotations

from typing import Any

from dutperf.config.encapsulation import SideEncapsulation
from dutperf.config.labs import LabKeys
from dutperf.config.map_rule import MapRule
from dutperf.config.side import SideConfig
from dutperf.config.testbed import Testbed
from dutperf.lab import description
from dutperf.lab.cpus import CpuPlan
from dutperf.lab.devices import LabDevice
from dutperf.protocol import Encapsulation, Side, VlanTag


def testbed_of(device: LabDevice, cpus: CpuPlan, keys: LabKeys) -> Testbed:
    """As it will be; what may change of its device is read once it is up."""
    return Testbed(
        name=keys.testbed_name,
        description=description.planned(device, cpus),
        device=description.facts(device, cpus),
        namespace=device.tester,
        cores=[cpus.worker],
        main_core=cpus.main,
        left=_tagged("left", device.left, keys),
        right=_tagged("right", device.right, keys),
        translates=device.translates,
        hops=device.hops,
        translated_hops=device.translated_hops,
        hooks=device.hooks,
        routing=device.routing,
    )


def _tagged(name: Side, side: SideConfig, keys: LabKeys) -> SideConfig:
    """With the VLAN tags and outer headers that the device is told to have there."""
    told = keys.behaviour or {}
    tags = [VlanTag.model_validate(tag) for tag in told.get("vlan", {}).get(name, [])]
    tunnel = told.get("encapsulation", {}).get(name)
    update: dict[str, Any] = {"vlan": tags} if tags else {}
    if tunnel:
        devices = Encapsulation.model_validate(tunnel)
        rule = told.get("map", {}).get(name)
        update["encapsulation"] = SideEncapsulation.at_other_end(
            devices, MapRule.model_validate(rule) if rule else None
        )
    return side.model_copy(update=update)
