"""Devices of two boxes in a chain (RFC 8219 4.2, dual DUT): the wire between them.

    namespace tester      namespace dut         namespace dut2
    left  o----- veth ----o left
                            inner o---- veth ----o inner
    right o----- veth ----------------------------o right

What is on that wire is longer than the tester's frames, by another header or more: its
MTU has room for those. Both boxes work on the DUT's CPU.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

from dutperf.errors import SetupError
from dutperf.lab import topology
from dutperf.lab.cpus import CpuPlan
from dutperf.lab.devices.device import INNER, INNER_MTU, Box, LabDevice, Way
from dutperf.programs import in_namespace

UP_TIMEOUT_S = 15.0
UP_POLL_S = 0.05


def join(device: LabDevice, cpus: CpuPlan) -> None:
    """Makes the wire between its two boxes, and the way of each to the other.

    Raises:
        SetupError: the kernel refused; the caller removes what was made so far.
    """
    first, second = device.namespaces
    with topology.kernel_errors("join the device's two boxes"):
        with topology.rtnetlink(first) as here:
            topology.add_wire(here, INNER, second, INNER_MTU)
        for namespace, box in _named(device):
            settings = topology.kernel_settings(device, [INNER], cpus)
            topology.write_settings(namespace, settings)
            with topology.rtnetlink(namespace) as there:
                topology.add_addresses(there, INNER, box.inner)
            topology.run_ip(namespace, [f"link set {INNER} up"])
        for namespace, box in _named(device):
            _wait_until_up(namespace)
            open_way(namespace, box)


def ways_now(device: LabDevice) -> list[str]:
    """The names of the ways that the boxes of the lab that is up have taken."""
    taken = (_taken(namespace, box) for namespace, box in _named(device))
    return list(dict.fromkeys(way.name for way in taken if way and way.name))


def _wait_until_up(namespace: str) -> None:
    """The kernel may take a second to notice, and IPv6 waits for that."""
    path = f"/sys/class/net/{INNER}/operstate"
    deadline = time.monotonic() + UP_TIMEOUT_S
    while topology.read_settings(namespace, [path]).get(path) != "up":
        if time.monotonic() > deadline:
            raise SetupError(
                f"the wire between the device's boxes is not up in {namespace} "
                f"after {UP_TIMEOUT_S:g} s",
                "look for a network manager that configures every interface it sees",
            )
        time.sleep(UP_POLL_S)


def _named(device: LabDevice) -> Iterator[tuple[str, Box]]:
    return zip(device.namespaces, device.boxes, strict=True)


def open_way(namespace: str, box: Box) -> None:
    """Takes the first of the box's ways whose link this kernel can make.

    Raises:
        SetupError: it can make none of them; says what it said of the last one.
    """
    for way in box.ways:
        try:
            if way.link is not None:
                topology.run_ip(namespace, [f"link add name {way.link}"])
        except SetupError:
            if way is box.ways[-1]:
                raise
        else:
            topology.run_ip(namespace, way.commands)
            return


def _taken(namespace: str, box: Box) -> Way | None:
    for way in box.ways:
        if way.link is None or _is_there(namespace, way.link.split()[0]):
            return way
    return None


def _is_there(namespace: str, link: str) -> bool:
    command = in_namespace(namespace, "ip", "link", "show", "dev", link)
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
