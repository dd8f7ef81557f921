"""The devices under test that the lab can make, one module each."""

from __future__ import annotations

from collections.abc import Mapping

from dutperf.lab.devices.device import LabDevice, Translator
from dutperf.lab.devices.known_answer import KNOWN_ANSWER
from dutperf.lab.devices.linux_router import LINUX_ROUTER, LINUX_ROUTER_HOSTS
from dutperf.lab.devices.tayga_siit import TAYGA_SIIT

LABS: Mapping[str, LabDevice] = {
    device.name: device
    for device in (LINUX_ROUTER, LINUX_ROUTER_HOSTS, TAYGA_SIIT, KNOWN_ANSWER)
}
"""All devices by name."""

__all__ = ["LABS", "LabDevice", "Translator"]
