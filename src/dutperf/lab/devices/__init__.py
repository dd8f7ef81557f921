"""The devices under test that the lab can make, one module each."""

from __future__ import annotations

from collections.abc import Mapping

from dutperf.lab.devices.device import LabDevice
from dutperf.lab.devices.linux_router import LINUX_ROUTER

LABS: Mapping[str, LabDevice] = {device.name: device for device in (LINUX_ROUTER,)}
"""All devices by name."""

__all__ = ["LABS", "LabDevice"]
