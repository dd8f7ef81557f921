"""From a testbed to an engine that is ready for its first trial."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dutperf.busy import owned, owned_cpus
from dutperf.config.cell_checks import tells_routes, told_from
from dutperf.config.encapsulation import BindingFile
from dutperf.config.flows import own_hosts, side_versions, tunnel_ends
from dutperf.config.side import (
    InterfacePort,
    MemifPort,
    PciPort,
    Port,
    RingPort,
    SideConfig,
    TesterPort,
    VdevPort,
    alternately,
    port_keys,
)
from dutperf.config.testbed import Testbed
from dutperf.engine.client import Measurer
from dutperf.engine.process import (
    check_machine,
    check_root,
    choose_hugepages,
    choose_main_cpu,
    has_interface,
    start_engine,
)
from dutperf.errors import EngineError, SetupError
from dutperf.model.fields import dotted
from dutperf.model.hosts import AddressSet, BitField
from dutperf.protocol.base import Driver, IpVersion, Side
from dutperf.protocol.methods import (
    ERROR_ENVIRONMENT,
    HelloResult,
    PreviewParams,
    PreviewResult,
)
from dutperf.protocol.port_messages import (
    AddressRange,
    NeighboursParams,
    NeighboursResult,
    PortNeighbours,
    PortSpec,
    PortsResult,
    ResolvedNeighbour,
    Tap,
)

if TYPE_CHECKING:
    from dutperf.model.cell import Cell


Notify = Callable[[str], None]

Holds = Callable[[str | None, str], bool]
"""Whether a network namespace (None: our own) has an interface of that name."""
_KEY = "add 'namespace: {}' to the testbed"
_OWN_NAMESPACE = Path("/proc/self/ns/net")


class TesterEngine(Measurer, Protocol):
    """What a run asks of an engine; ``Engine`` and ``FakeEngine`` have it."""

    def hello(self) -> HelloResult:
        """See ``Engine``; so for the others."""
        ...

    def open_ports(  # noqa: D102
        self, ports: list[PortSpec], shares: int = 1
    ) -> PortsResult: ...
    def port_status(self) -> PortsResult: ...  # noqa: D102
    def set_neighbours(self, params: NeighboursParams) -> NeighboursResult: ...  # noqa: D102
    def preview(self, params: PreviewParams) -> PreviewResult: ...  # noqa: D102
    def stop(self) -> None: ...  # noqa: D102
    def abort(self) -> None: ...  # noqa: D102


EngineStarter = Callable[[Path], AbstractContextManager[TesterEngine]]
"""Starts the engine, which writes its log to the path; ends it with the context."""
EngineOpener = Callable[[Testbed, Notify], EngineStarter]
"""Checks what can be checked before anything is written or started."""


def prepare_engine(testbed: Testbed, notify: Notify) -> EngineStarter:
    """Check that the machine can run the engine as ``testbed`` says.

    Raises:
        InputError, SetupError: it cannot; nothing was started or written.
    """
    main_cpu = main_core(testbed)
    ports = [each.config.port for each in testbed.tester_ports]
    check_rights(testbed)
    check_machine(testbed.cores, main_cpu, testbed.namespace)
    check_interfaces(testbed)
    pci = [port.pci for port in ports if isinstance(port, PciPort)]
    hugepages, notice = choose_hugepages(
        testbed.hugepages, memory_mb=testbed.memory_mb, pci=bool(pci)
    )
    if notice:
        notify(notice)

    @contextmanager
    def start(log_path: Path) -> Iterator[TesterEngine]:
        engine = start_engine(
            worker_cpus=testbed.cores,
            main_cpu=main_cpu,
            memory_mb=testbed.memory_mb,
            hugepages=hugepages,
            namespace=testbed.namespace,
            log_path=log_path,
            pci=pci,
        )
        with (
            owned(port_names(testbed)),
            own_cpus(testbed.cores, main_cpu),
            engine as started,
        ):
            yield started

    return start


def own_cpus(workers: Sequence[int], main_cpu: int) -> AbstractContextManager[None]:
    """The engine's CPUs are nobody else's; without root nobody can tell others so."""
    if os.geteuid() != 0:
        return nullcontext()
    return owned_cpus(workers, [main_cpu])


def check_rights(testbed: Testbed) -> None:
    """Refuse to go on without root, unless no port needs it.

    Raises:
        SetupError: it does.
    """
    ports = [each.config.port for each in testbed.tester_ports]
    if not all(isinstance(port, RingPort) for port in ports):
        check_root()


@contextmanager
def aborting(engine: TesterEngine) -> Iterator[None]:
    """End the running trial in order when the user interrupts it."""
    try:
        yield
    except KeyboardInterrupt:
        with suppress(EngineError):
            engine.abort()
        raise


def check_interfaces(
    testbed: Testbed,
    namespaces: Path = Path("/run/netns"),
    holds: Holds = has_interface,
) -> None:
    """Refuse interfaces that do not exist where the testbed says that they are.

    Raises:
        SetupError: one does not; names the network namespace that has it, if one does.
    """
    for each in testbed.tester_ports:
        port = each.config.port
        if not isinstance(port, InterfacePort):
            continue
        if holds(testbed.namespace, port.interface):
            continue
        others = sorted(path.name for path in namespaces.glob("*"))
        found = [name for name in others if holds(name, port.interface)]
        here = f"in namespace {testbed.namespace}" if testbed.namespace else "here"
        hint = (
            f"'ip link' shows those that do; is it in a network namespace? then {_KEY}"
        )
        if found:
            hint = f"it is in network namespace {found[0]}: {_KEY.format(found[0])}"
        raise SetupError(
            f"interface {port.interface} does not exist {here}", hint.format("NAME")
        )


def port_names(
    testbed: Testbed, namespaces: Path = Path("/run/netns")
) -> dict[str, str]:
    """What tells its ports from all others of the machine, and how they are called."""
    name = testbed.namespace
    where = namespaces / name if name else _OWN_NAMESPACE
    within = f" in namespace {name}" if name else ""
    found: dict[str, str] = {}
    for each in testbed.tester_ports:
        match each.config.port:
            case InterfacePort(interface=interface):
                key = f"interface {interface} {where.stat().st_ino}"
                found[key] = f"interface {interface}{within}"
            case PciPort(pci=pci):
                found[f"PCI {pci}"] = f"PCI port {pci}"
            case MemifPort(memif=socket, id=number, role=role):
                memif = f"memif {socket}, interface {number}, {role}"
                found[memif] = memif
            case VdevPort(vdev=vdev):
                found[f"vdev {vdev}"] = f"virtual device {vdev}"
    return found


def main_core(testbed: Testbed) -> int:
    """The CPU of the engine's main thread: as configured, or a spare one."""
    if testbed.main_core is not None:
        return testbed.main_core
    return choose_main_cpu(testbed.cores)


def open_ports(
    engine: TesterEngine,
    testbed: Testbed,
    notify: Notify,
    taps: Mapping[Side, Tap] | None = None,
) -> PortsResult:
    """Open all ports; ``driver: auto`` is AF_XDP where it works, else AF_PACKET.

    ``taps``: of ports with a slow path.

    Raises:
        EngineError: a port cannot be opened.
    """
    specs = partial(port_specs, testbed, taps=taps)
    if not _has_auto(testbed):
        return engine.open_ports(specs("af_xdp"), testbed.own_shares)
    try:
        ports = engine.open_ports(specs("af_xdp"))
    except EngineError as error:
        if error.rpc_code != ERROR_ENVIRONMENT:
            raise
        notify(f"driver auto: using af_packet, af_xdp does not work: {error.message}")
        return engine.open_ports(specs("af_packet"))
    notify("driver auto: using af_xdp, it works on these interfaces")
    return ports


def port_specs(
    testbed: Testbed, auto_driver: Driver, taps: Mapping[Side, Tap] | None = None
) -> list[PortSpec]:
    """All ports for the engine; ``auto_driver`` stands in for ``driver: auto``."""
    slow = taps or {}
    return [
        _port_spec(testbed, port, auto_driver).model_copy(
            update={"tap": None if port.number else slow.get(port.side)}
        )
        for port in testbed.tester_ports
    ]


def resolve_neighbours(
    engine: TesterEngine,
    testbed: Testbed,
    cells: Sequence[Cell],
    notify: Notify,
    own: Mapping[Side, Sequence[AddressRange]] | None = None,
) -> None:
    """Answer for the tester's addresses in ``cells``; find the next hops they need.

    Tells how long each next hop took to answer. ``own``: for these addresses, too.

    Raises:
        SetupError: a next hop does not answer; names side, address and interface.
    """
    asked = neighbours(testbed, cells)
    ports = [
        _with_own(testbed, port, (own or {}).get(port.port)) for port in asked.ports
    ]
    found = engine.set_neighbours(NeighboursParams(ports=ports)).neighbours
    for neighbour in found:
        if neighbour.mac is None:
            raise _unresolved(testbed, neighbour, engine.port_status())
    if found:
        notify(f"next hops: {', '.join(map(_resolved, found))}")


def _with_own(
    testbed: Testbed, port: PortNeighbours, own: Sequence[AddressRange] | None
) -> PortNeighbours:
    """Of these addresses the next hops are asked for, too."""
    if not own:
        return port
    side = testbed.sides[port.port].at(port.number)
    versions: set[IpVersion] = {6 if ":" in each.first else 4 for each in own}
    hops = (side.next_hop(version) for version in sorted(versions))
    more = [hop for hop in hops if hop and not side.next_hop_mac]
    return port.model_copy(
        update={
            "own": [*port.own, *own],
            "resolve": list(dict.fromkeys([*port.resolve, *more])),
        }
    )


def neighbours(testbed: Testbed, cells: Sequence[Cell]) -> NeighboursParams:
    """Whom each port answers for (every address it has) and whom it has to find."""
    return NeighboursParams(
        ports=[
            PortNeighbours(
                port=port.side,
                number=port.number,
                own=_own(testbed, cells, port),
                resolve=_next_hops(testbed, cells, port),
            )
            for port in testbed.tester_ports
        ]
    )


def _own(
    testbed: Testbed, cells: Sequence[Cell], port: TesterPort
) -> list[AddressRange]:
    """The port's own addresses first: next hops are asked from these."""
    side, own = port.side, testbed.between(port.number, port.number)
    reals = [port.config.ip(4), port.config.ip(6)]
    ranges = [AddressRange(first=real.address) for real in reals if real]
    if not port.number and any(tells_routes(cell, 6) for cell in cells):
        ranges.append(AddressRange(first=told_from(testbed, side, 6)))
    for cell in cells:
        if own.sides[side].edge_rule:
            continue  # customer edges are behind the tester, not its neighbours
        for hosts in own_hosts(own, cell, side):
            ranges += [_range(hosts, field) for field in hosts.fields]
            ranges += _ends_of_tunnels(own.sides[side], hosts)
    return list(dict.fromkeys(ranges))


def _ends_of_tunnels(side: SideConfig, hosts: AddressSet) -> list[AddressRange]:
    """The outer addresses on the side, one for each host if it has its own."""
    outer, own = side.tunnel, side.encapsulation
    if outer is None or own is None:
        return []
    if not own.tunnel_per_host:
        ends = [outer.local]
        if outer.received_srh:
            ends.append(outer.received_srh.destination)
        return [AddressRange(first=end) for end in ends]
    return [_range(each, each.fields[0]) for each in tunnel_ends(outer.local, hosts)]


def _range(hosts: AddressSet, field: BitField) -> AddressRange:
    return AddressRange(
        first=hosts.lowest,
        count=field.max - field.min + 1,
        shift=hosts.bits - field.offset - field.width,
    )


def _next_hops(testbed: Testbed, cells: Sequence[Cell], port: TesterPort) -> list[str]:
    versions = sorted({v for cell in cells for v in side_versions(cell, port.side)})
    own = testbed.sides[port.side].at(port.number)
    if own.next_hop_mac:
        return []
    found = (own.next_hop(version) for version in versions)
    return list(dict.fromkeys(hop for hop in found if hop))


def _resolved(neighbour: ResolvedNeighbour) -> str:
    duration_ms = neighbour.duration_ns / 1e6
    return (
        f"{neighbour.ip} on the {neighbour.port_label} answered in {duration_ms:.1f} ms"
    )


def _has_auto(testbed: Testbed) -> bool:
    ports = (each.config.port for each in testbed.tester_ports)
    return any(isinstance(p, InterfacePort) and p.driver == "auto" for p in ports)


def _port_spec(testbed: Testbed, port: TesterPort, auto_driver: Driver) -> PortSpec:
    side = testbed.sides[port.side]
    rule = side.edge_rule
    last = alternately(port.side, port.number)
    return PortSpec(
        name=port.side,
        number=port.number,
        mtu=port.config.port.mtu,
        vlan=side.vlan,
        mpls=side.mpls,
        encapsulation=side.tunnel,
        bindings=rule.table().encoded
        if isinstance(rule, BindingFile) and not port.number
        else None,
        **_device(port.config.port, auto_driver, f"02:00:00:00:00:{last:02x}"),
    )


def _device(port: Port, auto_driver: Driver, own_mac: str) -> dict[str, Any]:
    """What differs from kind to kind; ``own_mac``: of one without (memif, ring)."""
    match port:
        case InterfacePort():
            driver = auto_driver if port.driver == "auto" else port.driver
            return {"driver": driver, "device": port.interface}
        case PciPort():
            return {"driver": "pci", "device": port.pci}
        case RingPort():
            return {"driver": "ring", "mac": own_mac}
    shared = {
        "mac": port.mac or own_mac,
        "rx_queues": port.rx_queues,
        "when_full": port.when_full,
    }
    if isinstance(port, VdevPort):
        return {"driver": "vdev", "device": port.vdev, **shared}
    return {
        "driver": "memif",
        "device": port.memif,
        "memif_role": port.role,
        "memif_id": port.id,
        "memif_ring_frames": port.ring_frames,
        **shared,
    }


def _unresolved(
    testbed: Testbed, neighbour: ResolvedNeighbour, ports: PortsResult
) -> SetupError:
    side, ip, label = neighbour.port, neighbour.ip, neighbour.port_label
    config = testbed.sides[side].ports[neighbour.number]
    name = dotted(port_keys(side, neighbour.number))
    port = config.port
    device = getattr(port, "interface", None) or getattr(port, "pci", None) or "port"
    whose = (side, neighbour.number)
    if any(
        (each.name, each.number) == whose and not each.link_up for each in ports.ports
    ):
        return SetupError(
            f"{label}: the link of {device} is down: the next hop {ip} cannot answer",
            "look at the cable and at both of its ends; a kernel interface has to be "
            f"switched on: ip link set {device} up",
        )
    version: IpVersion = 6 if ":" in ip else 4
    own = config.ip(version)
    protocol = "neighbour discovery" if version == 6 else "ARP"
    tags = f", with the VLAN tags of {side}.vlan" if testbed.sides[side].vlan else ""
    return SetupError(
        f"{label}: the next hop {ip} does not answer {protocol} on {device} "
        f"(asked from {own.address if own else 'no address'})",
        f"check that the device under test has {ip} on the link behind {device}{tags}, "
        f"and the keys {name}.ipv{version}.address and gateway",
    )


# Whether the workers' cores are on the NUMA node of the NICs.


_NODES = Path("/sys/devices/system/node")


def far_cores(
    ports: PortsResult, cores: Sequence[int], nodes: Path = _NODES
) -> Iterator[str]:
    """A notice for each port that is on another node than a core which serves it.

    Args:
        ports: the open ports; one that is on no node (a virtual one) is near all cores.
        cores: CPUs of the workers.
        nodes: where the kernel lists its nodes; another one in tests.
    """
    node_of = _nodes_of_cores(nodes)
    for port in ports.ports:
        far = [core for core in cores if node_of.get(core) != port.numa_node]
        known = [core for core in far if core in node_of]
        if port.numa_node is None or not known:
            continue
        listed = ", ".join(f"{core} (node {node_of[core]})" for core in known)
        yield (
            f"the {port.label} port is on NUMA node {port.numa_node}, but not these "
            f"cores: {listed}; frames cross between nodes, which costs speed: choose "
            f"cores of node {port.numa_node} (testbed key cores)"
        )


def _nodes_of_cores(nodes: Path) -> dict[int, int]:
    """CPU -> node, as far as the kernel says."""
    found: dict[int, int] = {}
    for node in nodes.glob("node[0-9]*"):
        try:
            cpus = (node / "cpulist").read_text()
        except OSError:
            continue
        number = int(node.name.removeprefix("node"))
        found |= dict.fromkeys(_listed(cpus), number)
    return found


def _listed(cpus: str) -> Iterator[int]:
    """The CPUs of a list like ``0-3,8``."""
    for part in cpus.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            yield from range(int(first), int(last or first) + 1)
