"""Which kernel driver is behind an interface, also in another network namespace."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

_SECONDS = 5


class KernelDriver(NamedTuple):
    """A driver and its version; in-tree drivers have the kernel's version."""

    name: str | None
    version: str | None


LinkDrivers = Callable[[str, str | None], KernelDriver]
"""Finds the kernel driver of a device in a network namespace (None: this one)."""


def interface_driver(device: str, namespace: str | None) -> KernelDriver:
    """Ask ``ip`` for the kind of a virtual link, sysfs for the driver of a real one."""
    link = _link(device, namespace)
    return driver_of(link, Path("/sys")) if link else KernelDriver(None, None)


def driver_of(link: dict[str, Any], sys: Path) -> KernelDriver:
    """The driver of one link as ``ip -d -j link`` describes it."""
    name = link.get("linkinfo", {}).get("info_kind") or _bus_driver(link, sys)
    if name is None:
        return KernelDriver(None, None)
    try:
        version = (sys / "module" / name / "version").read_text().strip()
    except OSError:
        version = platform.release()
    return KernelDriver(name, version)


def _link(device: str, namespace: str | None) -> dict[str, Any] | None:
    where = ["-n", namespace] if namespace else []
    command = ["ip", *where, "-d", "-j", "link", "show", "dev", device]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_SECONDS, check=True, text=True
        )
        links = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, json.JSONDecodeError):
        return None
    return links[0] if links else None


def _bus_driver(link: dict[str, Any], sys: Path) -> str | None:
    bus, device = link.get("parentbus"), link.get("parentdev")
    if not bus or not device:
        return None
    driver = sys / "bus" / bus / "devices" / device / "driver"
    return driver.resolve().name if driver.is_symlink() else None
