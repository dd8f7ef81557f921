"""The ports of a testbed: what drives them, and what they do to frames on their own.

A port in another network namespace is asked from in there. What only ethtool tells is
not known where that program is missing.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dutperf import __version__
from dutperf.config import Testbed
from dutperf.config.side import InterfacePort, PciPort
from dutperf.doctor import SHARED_DRIVERS, Check, Machine
from dutperf.errors import DutperfError
from dutperf.programs import engine_versions, find_engine

Ask = Callable[[Sequence[str]], str | None]
"""Runs a command; what it printed, None if it could not or failed."""
_SECONDS = 5
_MERGING = ("generic-receive-offload", "large-receive-offload")


def ask(command: Sequence[str]) -> str | None:
    """Really."""
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_SECONDS, check=True, text=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def port_checks(
    machine: Machine, testbed: Testbed, answer: Ask = ask
) -> Iterator[Check]:
    """Of both sides; ports in memory have nothing to check."""
    for each in testbed.tester_ports:
        name = f"port_{each.label.replace(' ', '_')}"
        match each.config.port:
            case PciPort() as port:
                yield from _pci(machine, name, port, testbed)
            case InterfacePort() as port:
                where = _Interface(answer, port.interface, testbed.namespace)
                yield from _interface(name, where, port)


class _Interface:
    """One kernel interface, wherever it is."""

    def __init__(self, answer: Ask, name: str, namespace: str | None) -> None:
        self.name = name
        self._answer = answer
        self._inside = ["ip", "netns", "exec", namespace] if namespace else []

    def link(self) -> dict[str, Any] | None:
        """As ``ip`` describes it."""
        text = self._ask("ip", "-d", "-j", "link", "show", "dev", self.name)
        try:
            links = json.loads(text or "[]")
        except ValueError:
            return None
        return links[0] if links else None

    def settings(self, option: str) -> dict[str, str] | None:
        """What ethtool says; None: nothing."""
        text = self._ask("ethtool", option, self.name)
        if text is None:
            return None
        lines = (line.partition(":") for line in text.splitlines())
        return {key.strip(): value.strip() for key, _, value in lines if value.strip()}

    def _ask(self, *command: str) -> str | None:
        return self._answer([*self._inside, *command])


def _interface(name: str, where: _Interface, port: InterfacePort) -> Iterator[Check]:
    link = where.link()
    if link is None:
        yield Check(
            f"{name}_link",
            "bad",
            f"there is no interface {where.name}",
            "nothing can be sent",
            "see 'ip link' for its name, and namespace of the testbed",
        )
        return
    yield _link(f"{name}_link", link)
    yield _mtu(f"{name}_mtu", link, port.mtu)
    yield _driver(f"{name}_driver", where.settings("-i"))
    yield _merging(f"{name}_offloads", where.settings("-k"), where.name)
    yield _flow_control(f"{name}_flow_control", where.settings("-a"), where.name)
    yield _queues(f"{name}_queues", where.settings("-l"), where.name)


def _link(name: str, link: dict[str, Any]) -> Check:
    state = str(link.get("operstate", "UNKNOWN")).lower()
    if state != "down":
        return Check(name, "good", state)
    return Check(
        name,
        "bad",
        state,
        "no frame comes through",
        f"ip link set {link.get('ifname')} up; check the cable and the other end",
    )


def _mtu(name: str, link: dict[str, Any], wanted: int) -> Check:
    mtu = int(link.get("mtu", 0))
    if mtu >= wanted:
        return Check(name, "good", f"{mtu:,}")
    return Check(
        name,
        "bad",
        f"{mtu:,}, the testbed says {wanted:,}",
        "longer frames are not sent, and not received",
        f"ip link set {link.get('ifname')} mtu {wanted}, or lower mtu of the testbed",
    )


def _driver(name: str, told: dict[str, str] | None) -> Check:
    if not told or "driver" not in told:
        return Check(name, "unknown", "ethtool does not say")
    firmware = told.get("firmware-version", "")
    parts = [told["driver"], told.get("version", "")]
    parts += [f"firmware {firmware}"] if firmware not in ("", "N/A") else []
    return Check(name, "good", " ".join(filter(None, parts)))


def _merging(name: str, told: dict[str, str] | None, interface: str) -> Check:
    if not told:
        return Check(name, "unknown", "ethtool does not say")
    on = [each for each in _MERGING if told.get(each, "").startswith("on")]
    if not on:
        return Check(name, "good", "frames are not merged")
    return Check(
        name,
        "doubtful",
        f"{', '.join(on)} on",
        "the kernel may merge frames before they are counted, which costs time",
        f"ethtool -K {interface} gro off lro off",
    )


def _flow_control(name: str, told: dict[str, str] | None, interface: str) -> Check:
    if not told:
        return Check(name, "unknown", "ethtool does not say")
    on = [way for way in ("RX", "TX") if told.get(way) == "on"]
    if not on:
        return Check(name, "good", "off")
    return Check(
        name,
        "doubtful",
        f"{' and '.join(on)} on",
        "a device that is too slow stops the tester instead of losing frames: its "
        "throughput looks like that of the wire",
        f"ethtool -A {interface} rx off tx off autoneg off, on both ends",
    )


def _queues(name: str, told: dict[str, str] | None, interface: str) -> Check:
    """An XDP socket reads one queue; what ethtool tells last is in force."""
    counts = [(told or {}).get(kind, "") for kind in ("RX", "Combined")]
    queues = sum(int(count) for count in counts if count.isdecimal())
    if queues == 0:
        return Check(name, "unknown", "ethtool does not say")
    if queues == 1:
        return Check(name, "good", "1 receive queue")
    return Check(
        name,
        "doubtful",
        f"{queues} receive queues",
        "the fast driver, AF_XDP, reads one and refuses the interface; AF_PACKET is "
        "used instead, or nothing is measured",
        f"ethtool -L {interface} combined 1, or rx 1",
    )


def _pci(
    machine: Machine, name: str, port: PciPort, testbed: Testbed
) -> Iterator[Check]:
    folder = machine.root / "sys/bus/pci/devices" / port.pci
    if not folder.exists():
        yield Check(
            f"{name}_driver",
            "bad",
            f"there is no device {port.pci}",
            "nothing can be sent",
            "see 'lspci -D' for its address",
        )
        return
    yield _binding(f"{name}_driver", machine.driver_of(port.pci), port.pci)
    yield _pcie(machine, f"{name}_pcie", port.pci)
    yield _node(machine, f"{name}_numa", port.pci, set(testbed.cores))


def _binding(name: str, driver: str, address: str) -> Check:
    if driver == "vfio-pci":
        return Check(name, "good", driver)
    if driver in SHARED_DRIVERS:
        return Check(name, "good", f"{driver}, which shares the NIC with DPDK")
    return Check(
        name,
        "bad",
        f"bound to {driver}" if driver else "bound to no driver",
        "the engine drives a NIC by VFIO",
        f"dpdk-devbind.py --bind=vfio-pci {address}",
    )


def _pcie(machine: Machine, name: str, address: str) -> Check:
    """Whether the slot gives the NIC what it could take."""
    folder = f"sys/bus/pci/devices/{address}"
    now, most = (
        (
            _gigatransfers(machine.text(f"{folder}/{which}_link_speed")),
            machine.number(f"{folder}/{which}_link_width"),
        )
        for which in ("current", "max")
    )
    if None in (*now, *most):
        return Check(name, "unknown", "the machine does not say")
    told, able = (f"x{width} at {speed:g} GT/s" for speed, width in (now, most))
    if told == able:
        return Check(name, "good", told)
    return Check(
        name,
        "doubtful",
        f"{told}, the NIC can {able}",
        "fewer frames reach the NIC than its ports could carry",
        "another slot, or its speed in the firmware's set-up; see 'lspci -vv'",
    )


def _gigatransfers(text: str | None) -> float | None:
    """``16.0 GT/s PCIe`` as the kernel writes it; None: it does not know."""
    number = (text or "").partition(" ")[0]
    return float(number) if number.replace(".", "", 1).isdecimal() else None


def _node(machine: Machine, name: str, address: str, cpus: set[int]) -> Check:
    node = machine.number(f"sys/bus/pci/devices/{address}/numa_node")
    if node is None or node < 0:
        return Check(name, "unknown", "the machine does not say")
    folder = f"sys/devices/system/node/node{node}"
    far = [cpu for cpu in cpus if not (machine.root / folder / f"cpu{cpu}").exists()]
    if not far:
        return Check(name, "good", f"node {node}, as the testbed's cores")
    return Check(
        name,
        "doubtful",
        f"node {node}, but cores {', '.join(map(str, sorted(far)))} are on another",
        "each frame crosses the link between the sockets: fewer frames, longer delays",
        "choose cores of the NIC's node: cat "
        f"/sys/devices/system/node/node{node}/cpulist",
    )


# Whether engine and package belong together.


def version_check(answer: Ask = ask, find: Callable[[], object] = find_engine) -> Check:
    """The engine says its version without starting."""
    try:
        program = str(find())
    except DutperfError as error:
        return Check(
            "versions", "bad", error.message, "nothing can be sent", error.hint
        )
    engine, _ = engine_versions(answer([program, "--version"]) or "")
    if engine == __version__:
        return Check("versions", "good", f"engine and package {__version__}")
    return Check(
        "versions",
        "bad",
        f"engine {engine}, package {__version__}",
        "they may not understand each other",
        "run 'make setup' again",
    )
