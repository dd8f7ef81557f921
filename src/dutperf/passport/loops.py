"""The tester's ports connected to each other, by a link of the kind that is measured.

lab on veth pairs   the lab ``wire``: the same links, sockets and CPUs without a device
memif               one pair of ends, both of the tester
ring                is its own loop
NICs, interfaces    a cable that the user plugs in; nothing here can
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dutperf import lab
from dutperf.config import PlannedTestbed, Testbed
from dutperf.config.labs import LabKeys
from dutperf.config.testbed import InterfacePort, MemifPort, Port, RingPort, SideConfig
from dutperf.errors import InputError
from dutperf.lab.cpus import plan_cpus
from dutperf.protocol import Side

WIRE = "wire"
_ADDRESSES: dict[Side, dict[str, str]] = {
    "left": {"ipv4": "198.18.0.2", "ipv6": "2001:2::2"},
    "right": {"ipv4": "198.19.0.2", "ipv6": "2001:2:0:8000::2"},
}


@dataclass(frozen=True)
class Loop:
    """A testbed without a device.

    link: what connects the ports, and how they are driven, in words.
    planned: what is opened for it.
    device_cpu: where a lab's device would work; None: there is no lab.
    """

    link: str
    planned: PlannedTestbed
    device_cpu: int | None = None


def loop_of(planned: PlannedTestbed, *, cabled: bool = False) -> Loop | None:
    """The loop of such a testbed; None: only a cable makes it, and there is none.

    ``cabled``: the user says that the ports are connected to each other.
    """
    testbed = planned.testbed
    ports = [side.port for side in testbed.sides.values()]
    if planned.lab and all(isinstance(port, InterfacePort) for port in ports):
        wire = PlannedTestbed(lab=LabKeys(name=WIRE), testbed=lab.plan(WIRE))
        return Loop("veth pairs of a lab", wire, plan_cpus().dut)
    if all(isinstance(port, MemifPort) for port in ports):
        own = crossed(testbed, _memif_ends()).model_copy(update={"namespace": None})
        return Loop("memif, the tester at both ends", PlannedTestbed(testbed=own))
    if cabled or all(isinstance(port, RingPort) for port in ports):
        own = crossed(testbed, {name: s.port for name, s in testbed.sides.items()})
        return Loop(_as_told(ports), PlannedTestbed(testbed=own))
    return None


def crossed(testbed: Testbed, ports: dict[Side, Port]) -> Testbed:
    """``testbed`` without its device: each side is the other's next hop."""
    sides = {
        side: SideConfig.model_validate(
            {"port": ports[side]}
            | {
                version: {"address": own, "gateway": _ADDRESSES[_other(side)][version]}
                for version, own in _ADDRESSES[side].items()
            }
        )
        for side in _ADDRESSES
    }
    without: dict[str, Any] = {
        "description": "no device: the tester's ports, connected to each other",
        "hooks": type(testbed.hooks)(),
        "device": type(testbed.device)(),
        "translates": False,
    }
    return testbed.model_copy(update=sides | without)


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
    socket = "/run/dutperf/passport.memif"
    return {
        "left": MemifPort(memif=socket, role="server"),
        "right": MemifPort(memif=socket, role="client"),
    }


def _other(side: Side) -> Side:
    return "right" if side == "left" else "left"


def _as_told(ports: list[Port]) -> str:
    told = []
    for port in ports:
        keys = port.model_dump(exclude_defaults=True)
        told.append(", ".join(f"{key} {value}" for key, value in sorted(keys.items())))
    return "; ".join(dict.fromkeys(told))
