"""Which two ports a siitperf command measures with, and the CPUs that do the work.

siitperf takes DPDK's ports 0 and 1: here the two NICs that a driver for user space has,
in the order of their PCI addresses. DUTPERF_TESTBED names a testbed file instead,
DUTPERF_LAB a lab: their ports and next hops are used, the addresses are the file's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from dutperf.compat.conf import VERSIONS, Conf
from dutperf.compat.requests import Gateways
from dutperf.config import Testbed
from dutperf.engine.process import existing_cpus
from dutperf.errors import InputError, SetupError
from dutperf.procedures.cpu_contention import DeviceWatch
from dutperf.protocol.base import Side

TESTBED = "DUTPERF_TESTBED"
LAB = "DUTPERF_LAB"
DRIVERS = ("vfio-pci", "igb_uio", "uio_pci_generic")
_PCI = Path("/sys/bus/pci/devices")
_ETHERNET = "0x0200"
_WORKERS = 4

Notify = Callable[[str], None]


def open_ports_of(
    environment: Mapping[str, str], pci: Path = _PCI
) -> AbstractContextManager[Testbed]:
    """The testbed whose ports are used; a lab is up inside the context.

    Raises:
        InputError: both variables are set, or what they name is wrong.
        SetupError: neither is, and there are not two NICs for DPDK.
    """
    testbed, name = environment.get(TESTBED), environment.get(LAB)
    if testbed and name:
        raise InputError(f"{TESTBED} and {LAB} are both set: unset one of them")
    if name:
        # What labs need takes a while to load, which others need not wait for.
        from dutperf import lab  # noqa: PLC0415 - see above

        return lab.use(name)
    if testbed:
        from dutperf import lab  # noqa: PLC0415 - as above
        from dutperf.config import load_testbed  # noqa: PLC0415 - as above

        loaded = load_testbed(Path(testbed))
        lab.check_cpus(loaded)
        return contextlib.nullcontext(loaded)
    return contextlib.nullcontext(_of_nics(pci))


def device_watch(environment: Mapping[str, str]) -> DeviceWatch | None:
    """Tells who else has the CPU of a lab's device; of others nobody can: None."""
    name = environment.get(LAB)
    if not name:
        return None
    from dutperf import lab  # noqa: PLC0415 - as above
    from dutperf.config.campaign import lab_keys  # noqa: PLC0415 - as above

    return lab.watch_device(lab_keys(name).own_name)


def gateways(testbed: Testbed) -> Gateways:
    """The device's own addresses, by side and IP version."""
    return {
        (name, version): real.gateway
        for name, side in testbed.sides.items()
        for version in VERSIONS
        if (real := side.ip(version)) and real.gateway
    }


def with_macs(conf: Conf, testbed: Testbed) -> Conf:
    """The file with the device's MAC addresses of the testbed where it has none."""
    sides = {
        name: replace(
            side, device_mac=side.device_mac or testbed.sides[name].next_hop_mac
        )
        for name, side in conf.sides.items()
    }
    return replace(conf, sides=sides)


def with_cores(testbed: Testbed, conf: Conf, notify: Notify) -> Testbed:
    """The testbed with the CPUs of the file, where the machine has all of them.

    A lab's device has CPUs of its own, which the file does not know: there, and where
    CPUs are missing, the testbed's own do the work.
    """
    wanted = [
        cpu
        for each in conf.directions.values()
        for cpu in (each.send_cpu, each.receive_cpu)
        if cpu is not None
    ]
    if not wanted:
        return testbed
    there = existing_cpus()
    own_cpus = testbed.namespace is None
    if own_cpus and len(set(wanted)) == _WORKERS and there.issuperset(wanted):
        return testbed.model_copy(update={"cores": wanted})
    listed = ", ".join(map(str, wanted))
    used = ", ".join(map(str, testbed.cores))
    notify(f"CPUs {listed} of {conf.path} cannot all be used: CPUs {used} do the work")
    return testbed


def pci_ports(pci: Path = _PCI) -> dict[Side, dict[str, str]]:
    """DPDK's ports 0 and 1, as a testbed's.

    Raises:
        SetupError: there are not two NICs for DPDK.
    """
    found = sorted(
        device.name
        for device in (pci.iterdir() if pci.is_dir() else ())
        if _driver(device) in DRIVERS and _class(device).startswith(_ETHERNET)
    )
    if len(found) < 2:
        raise SetupError(
            f"there are {len(found)} Ethernet ports for DPDK, and two are needed "
            f"(bound to {', '.join(DRIVERS)})",
            f"bind two with dpdk-devbind.py, or name a testbed file in {TESTBED}, or "
            f"a lab in {LAB}",
        )
    return {"left": {"pci": found[0]}, "right": {"pci": found[1]}}


def _of_nics(pci: Path) -> Testbed:
    sides = {side: {"port": port} for side, port in pci_ports(pci).items()}
    return Testbed.model_validate({"name": "siitperf", **sides})


def _driver(device: Path) -> str:
    link = device / "driver"
    return link.resolve().name if link.is_symlink() else ""


def _class(device: Path) -> str:
    try:
        return (device / "class").read_text()
    except OSError:
        return ""
