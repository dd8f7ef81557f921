"""The tester's ports connected to each other, by a link of the kind that is measured.

lab on veth pairs   the lab ``wire``: the same links, sockets and CPUs without a device
memif               one pair of ends, both of the tester
ring                is its own loop
NICs, interfaces    a cable that the user plugs in; nothing here can
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dutperf import lab
from dutperf.config import PlannedTestbed, Testbed
from dutperf.config.crossed import crossed
from dutperf.config.labs import LabKeys
from dutperf.config.testbed import InterfacePort, MemifPort, Port, RingPort
from dutperf.errors import InputError
from dutperf.protocol import Side

WIRE = "wire"
SOCKETS = Path("/run/dutperf")
"""Where both ends of a memif loop meet; two testers have sockets of their own."""


@dataclass(frozen=True)
class Loop:
    """A testbed without a device.

    link: what connects the ports, and how they are driven, in words.
    planned: what is opened for it.
    device_cpu: where a lab's device would work; None: there is no lab.
    receive_cpu: what takes in the device's frames there; None: the device's CPU.
    """

    link: str
    planned: PlannedTestbed
    device_cpu: int | None = None
    receive_cpu: int | None = None


def loop_of(planned: PlannedTestbed, *, cabled: bool = False) -> Loop | None:
    """The loop of such a testbed; None: only a cable makes it, and there is none.

    ``cabled``: the user says that the ports are connected to each other.

    Raises:
        InputError: it has several ports on a side, which no passport is about.
    """
    testbed = planned.testbed
    if testbed.pairs > 1:
        raise InputError(
            f"passports are of one port on each side, and {testbed.name} has "
            f"{testbed.pairs}",
            "a testbed without more_ports tells what one of them does",
        )
    ports = [side.port for side in testbed.sides.values()]
    if planned.lab and all(isinstance(port, InterfacePort) for port in ports):
        name = planned.lab.own_name
        keys = LabKeys(name=WIRE if name is None else f"{WIRE}@{name}")
        wire = PlannedTestbed(lab=keys, testbed=lab.plan(keys))
        cpus = lab.planned_cpus(name)
        return Loop("veth pairs of a lab", wire, cpus.dut, cpus.receive)
    if all(isinstance(port, MemifPort) for port in ports):
        own = connected(testbed, _memif_ends(), namespace=None)
        return Loop("memif, the tester at both ends", PlannedTestbed(testbed=own))
    if cabled or all(isinstance(port, RingPort) for port in ports):
        own = connected(testbed, {name: s.port for name, s in testbed.sides.items()})
        return Loop(_as_told(ports), PlannedTestbed(testbed=own))
    return None


def connected(testbed: Testbed, ports: dict[Side, Port], **keys: Any) -> Testbed:  # noqa: ANN401
    """``testbed`` without its device, on ``ports``."""
    same = {
        "name": testbed.name,
        "namespace": testbed.namespace,
        "cores": testbed.cores,
        "main_core": testbed.main_core,
        "hugepages": testbed.hugepages,
        "memory_mb": testbed.memory_mb,
    }
    return crossed(ports, **same | keys)


def check_loop(loop: Loop | None) -> Loop:
    """What can be measured.

    Raises:
        InputError: the ports would need a cable.
    """
    if loop is None:
        raise InputError(
            "these ports cannot be connected to each other by dutperf",
            "connect them by a cable and say so: --cabled; or give --lab NAME",
        )
    return loop


def _memif_ends() -> dict[Side, Port]:
    socket = str(SOCKETS / f"passport-{os.getpid()}.memif")
    return {
        "left": MemifPort(memif=socket, role="server"),
        "right": MemifPort(memif=socket, role="client"),
    }


def _as_told(ports: list[Port]) -> str:
    told = []
    for port in ports:
        keys = port.model_dump(exclude_defaults=True)
        told.append(", ".join(f"{key} {value}" for key, value in sorted(keys.items())))
    return "; ".join(dict.fromkeys(told))
