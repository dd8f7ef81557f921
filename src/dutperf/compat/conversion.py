"""siitperf.conf, and a command line, as a testbed and a campaign of dutperf.

What our files have no place for stands in them as comments: nothing of the old file is
lost, and nobody has to look for what became of a key.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from dutperf.compat.command_line import Arguments, Phase1
from dutperf.compat.conf import ENDS, LETTERS, VERSIONS, Conf, ConfDirection, Range
from dutperf.compat.requests import Gateways
from dutperf.config import Testbed
from dutperf.engine.process import existing_cpus
from dutperf.errors import InputError, SetupError
from dutperf.procedures.cpu_contention import DeviceWatch
from dutperf.protocol.base import IpVersion, Side
from dutperf.protocol.stream_messages import foreground_frames

NAME = "siitperf"
_FIXED_PORTS = {"source": 0xC020, "destination": 7}
_OTHER: dict[Side, Side] = {"left": "right", "right": "left"}
_UNUSED = {
    "Promisc": "every frame that reaches a port is looked at",
    "MEM-Channels": "DPDK finds the memory channels itself",
}
_WIDTH = 80


def as_testbed(conf: Conf, ports: Mapping[Side, Mapping[str, Any]] | None) -> str:
    """The testbed file.

    Args:
        conf: the file.
        ports: of the sides; None: nobody knows them here, they are to be filled in.
    """
    comments = list(_testbed_comments(conf, known=ports is not None))
    data: dict[str, Any] = {"schema_version": 1, "name": NAME}
    cores = _cores(conf)
    if cores:
        data["cores"] = cores
    for name in ENDS["forward"]:
        port = ports[name] if ports else {"pci": f"0000:00:00.{name == 'right':d}"}
        data[name] = {"port": dict(port), **_side(conf, name)}
    return _text(f"{conf.path.name} as a testbed of dutperf", comments, data)


def as_campaign(conf: Conf, arguments: Arguments | None, testbed: str) -> str:
    """The campaign file: the whole search that scripts make around the command.

    Args:
        conf: the file.
        arguments: the command line; None: throughput with what the file says.
        testbed: the name of the testbed's file.

    Raises:
        InputError: a stateful test without the command line that has its numbers, or
            background frames or phase 1 alone.
    """
    if not conf.active:
        raise conf.error(
            "Forward",
            "and Reverse are both 0, phase 1 alone: a campaign of dutperf measures it "
            "by its procedure connection-rate",
        )
    procedure: dict[str, Any] = {"procedure": _procedure(arguments)}
    procedure |= {"ip": [_ip(conf)], "direction": _direction(conf)}
    if arguments:
        procedure |= _trial(conf, arguments)
    procedure["traffic"] = _traffic(conf, arguments)
    if conf.initiator:
        procedure["stateful"] = _stateful(conf, arguments)
    data = {
        "schema_version": 1,
        "name": NAME,
        "testbed": testbed,
        "procedures": [procedure],
    }
    comments = list(_campaign_comments(conf, arguments))
    return _text(f"{conf.path.name} as a campaign of dutperf", comments, data)


def _text(title: str, comments: list[str], data: dict[str, Any]) -> str:
    out = StringIO()
    yaml = YAML()
    yaml.width = _WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(data, out)
    lines = [title, *([""] if comments else []), *comments]
    head = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    return f"{head}\n{out.getvalue()}"


def _testbed_comments(conf: Conf, *, known: bool) -> Iterator[str]:
    if not known:
        yield "left.port, right.port: siitperf took DPDK's ports 0 and 1; write here"
        yield "the PCI addresses of these NICs."
    for side, letter in LETTERS.items():
        own = conf.sides[side]
        if own.tester_mac:
            yield f"MAC-{letter}-Tester {own.tester_mac}: frames have the port's own."
        for kind, version, address in _unused(conf, side):
            yield f"IPv{version}-{letter}-{kind} {address}: no frame has it."
    cpus = _cpus(conf)
    if cpus and not _cores(conf):
        yield f"CPUs {', '.join(map(str, cpus))}: cores takes four different ones."
    for key, why in _UNUSED.items():
        if key in conf.given:
            yield f"{key}: of no meaning here, {why}."


def _campaign_comments(conf: Conf, arguments: Arguments | None) -> Iterator[str]:
    if arguments is None:
        yield "Written without a command line: frame size, times and mix are dutperf's"
        yield "defaults."
    elif arguments.command == "tp" or arguments.frame_timeout_ms:
        yield f"rate {arguments.rate_fps}: of one trial; the search finds its own."
    phase1 = arguments.phase1 if arguments else None
    if phase1 and phase1.entries != phase1.frames:
        yield f"M {phase1.entries}: dutperf has an entry for each connection."
    if phase1 and arguments and _goes_round(conf, arguments, phase1):
        yield f"N {phase1.frames}: dutperf opens each connection once, and the ranges"
        yield f"have {conf.combinations}."
    if conf.initiator and not conf.enumerates:
        yield "Enumerate-ports, Enumerate-ips 0: dutperf opens each connection once, so"
        yield "their ports are enumerated."
    if conf.initiator:
        yield "Ports of phase 2: those of the connections that are open."


def _cpus(conf: Conf) -> list[int]:
    found = (c for d in conf.directions.values() for c in (d.send_cpu, d.receive_cpu))
    return [cpu for cpu in found if cpu is not None]


def _cores(conf: Conf) -> list[int]:
    """In the order of dutperf's roles, which is siitperf's layout."""
    cpus = _cpus(conf)
    return cpus if len(cpus) == 4 == len(set(cpus)) else []


def _used(conf: Conf, side: Side) -> Iterator[tuple[str, IpVersion]]:
    """Which addresses of a side its frames, or those to it, have."""
    own, other = conf.sides[side], conf.sides[_OTHER[side]]
    for version in VERSIONS:
        if version in own.real and version in (own.version, 6):
            yield "Real", version
    if own.version != other.version and other.version in own.virtual:
        yield "Virt", other.version


def _unused(conf: Conf, side: Side) -> Iterator[tuple[str, IpVersion, str]]:
    used = set(_used(conf, side))
    own = conf.sides[side]
    for kind, addresses in (("Real", own.real), ("Virt", own.virtual)):
        for version, address in addresses.items():
            if (kind, version) not in used:
                yield kind, version, address


def _side(conf: Conf, side: Side) -> dict[str, Any]:
    own = conf.sides[side]
    found: dict[str, Any] = {}
    if own.device_mac:
        found["next_hop_mac"] = own.device_mac
    for kind, version in _used(conf, side):
        block = found.setdefault(f"ipv{version}", {})
        if kind == "Real":
            block["address"] = own.real[version]
        else:
            block["virtual"] = own.virtual[version]
    return found


def _procedure(arguments: Arguments | None) -> str:
    """A frame timeout judges losses: that is a throughput (paper 004)."""
    if arguments is None or arguments.command == "tp" or arguments.frame_timeout_ms:
        return "throughput"
    return {"lat": "latency", "pdv": "pdv"}[arguments.command]


def _ip(conf: Conf) -> int | str:
    left, right = conf.sides["left"].version, conf.sides["right"].version
    return left if left == right else f"{left}-{right}"


def _direction(conf: Conf) -> str:
    return conf.active[0] if len(conf.active) == 1 else "both"


def _trial(conf: Conf, arguments: Arguments) -> dict[str, Any]:
    only_ipv4 = _ip(conf) == 4 and arguments.m == arguments.n
    size = arguments.ipv6_size
    found: dict[str, Any] = {
        "frame_size": [size - 20 if only_ipv4 else size],
        "trial_duration_s": arguments.duration_s,
        "residual_wait_s": _number(Fraction(arguments.timeout_ms, 1000)),
    }
    procedure = _procedure(arguments)
    if procedure != "throughput":
        found["rate_fps"] = arguments.rate_fps
    if arguments.frame_timeout_ms:
        found["frame_timeout_ms"] = arguments.frame_timeout_ms
    if arguments.tags:
        found |= {"first_tag_s": arguments.first_tag_s, "tags": arguments.tags}
    return found


def _traffic(conf: Conf, arguments: Arguments | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if arguments and arguments.m == 0:
        raise InputError(
            "m is 0, background frames alone: a campaign of dutperf has foreground "
            "frames; measure the background as foreground, IP-L-Vers 6 and IP-R-Vers 6"
        )
    if arguments and arguments.m < arguments.n:
        found["mix"] = f"{arguments.m}/{arguments.n}"
    if conf.initiator is None:
        found["ports"] = _ports(conf)
    networks = {side: each.networks for side, each in conf.sides.items()}
    if set(networks.values()) != {1}:
        found["networks"] = networks
    hosts = {side: _hosts(conf, side) for side in conf.sides if _varies(conf, side)}
    if hosts:
        found["addresses"] = hosts
    return found


def _ports(conf: Conf) -> dict[str, Any]:
    first, *more = [_pair(conf.directions[name]) for name in conf.active]
    reverse = next((pair for pair in more if pair != first), None)
    return {**first, "reverse": reverse} if reverse else first


def _pair(direction: ConfDirection) -> dict[str, Any]:
    return {
        "source": _port(direction.source_ports, "source"),
        "destination": _port(direction.destination_ports, "destination"),
    }


def _port(ports: Range, name: str) -> str:
    if not ports.varies:
        return f"fixed:{_FIXED_PORTS[name]}"
    if ports.size == 1:
        return f"fixed:{ports.least}"
    return f"{ports.mode}:{ports.least}-{ports.most}"


def _varies(conf: Conf, side: Side) -> bool:
    hosts = conf.sides[side].hosts
    return hosts.varies and hosts.size > 1


def _hosts(conf: Conf, side: Side) -> dict[str, Any]:
    own = conf.sides[side]
    # A stateful test combines each address with each port, in one order for all.
    mode = {} if conf.initiator else {"mode": own.hosts.mode}
    return mode | {
        "width": 16,
        "min": own.hosts.least,
        "max": own.hosts.most,
        "ipv4_offset": 8 * own.offset[4],
        "ipv6_offset": 8 * own.offset[6],
    }


def _stateful(conf: Conf, arguments: Arguments | None) -> dict[str, Any]:
    if arguments is None or arguments.phase1 is None:
        raise InputError(
            f"{conf.path}: Stateful: a campaign of it needs N, M, R, T and D",
            "give the command line, too: dutperf convert siitperf.conf --to campaign "
            "siitperf-tp 84 ...",
        )
    phase1 = arguments.phase1
    ports = conf.directions[conf.initiating]
    by_ports = conf.enumerate_ports != "fixed" or not conf.enumerates
    order = (
        conf.enumerate_ports
        if conf.enumerate_ports != "fixed"
        else conf.enumerate_addresses
    )
    return {
        "initiator": conf.initiator,
        "connections": _connections(conf, arguments, phase1),
        "source_ports": _range(ports.source_ports, 0xC020, by_ports=by_ports),
        "destination_ports": _range(ports.destination_ports, 7, by_ports=by_ports),
        "order": "random" if order == "fixed" else order,
        "phase1_rate": phase1.rate_fps,
        "timeout_ms": phase1.timeout_ms,
        "phase2_after_ms": phase1.gap_ms,
        "responder_order": "first"
        if conf.responder_tuples == "fixed"
        else conf.responder_tuples,
    }


def _connections(conf: Conf, arguments: Arguments, phase1: Phase1) -> int:
    if _goes_round(conf, arguments, phase1):
        return conf.combinations
    return foreground_frames(phase1.frames, arguments.m, arguments.n)


def _goes_round(conf: Conf, arguments: Arguments, phase1: Phase1) -> bool:
    """Whether up or down there are fewer four-tuples than frames."""
    up_or_down = {conf.enumerate_ports, conf.enumerate_addresses} - {"fixed", "random"}
    opened = foreground_frames(phase1.frames, arguments.m, arguments.n)
    return bool(up_or_down) and conf.combinations < opened


def _range(ports: Range, fixed: int, *, by_ports: bool) -> str:
    rises = ports.least <= ports.most
    return f"{ports.least}-{ports.most}" if by_ports and rises else f"{fixed}-{fixed}"


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


# Which two ports a siitperf command measures with, and the CPUs that do the work.
#
# siitperf takes DPDK's ports 0 and 1: here the two NICs that a driver for user space
# has, in the order of their PCI addresses. DUTPERF_TESTBED names a testbed file
# instead, DUTPERF_LAB a lab: their ports and next hops are used, the addresses are the
# file's.


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
