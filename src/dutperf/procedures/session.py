"""From a testbed to an engine that is ready for its first trial."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Protocol

from dutperf.config.testbed import (
    InterfacePort,
    MemifPort,
    PciPort,
    RingPort,
    SideConfig,
    Testbed,
)
from dutperf.engine.measurer import Measurer
from dutperf.engine.process import (
    check_machine,
    choose_hugepages,
    choose_main_cpu,
    start_engine,
)
from dutperf.engine.protocol import (
    ERROR_ENVIRONMENT,
    AddressRange,
    Driver,
    HelloResult,
    IpVersion,
    NeighboursParams,
    NeighboursResult,
    PortNeighbours,
    PortSpec,
    PortsResult,
    Side,
)
from dutperf.errors import EngineError, SetupError

Notify = Callable[[str], None]

_DEFAULT_MACS: dict[Side, str] = {
    "left": "02:00:00:00:00:01",
    "right": "02:00:00:00:00:02",
}
"""For ports whose devices have none of their own (memif, ring)."""


class TesterEngine(Measurer, Protocol):
    """What a run asks of an engine; ``Engine`` and ``FakeEngine`` have it."""

    def hello(self) -> HelloResult:
        """See ``Engine``; so for the others."""
        ...

    def open_ports(self, ports: list[PortSpec]) -> PortsResult: ...  # noqa: D102
    def set_neighbours(self, params: NeighboursParams) -> NeighboursResult: ...  # noqa: D102
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
    check_machine(testbed.cores, main_cpu, testbed.namespace)
    ports = [side.port for side in _sides(testbed).values()]
    pci = [port.pci for port in ports if isinstance(port, PciPort)]
    hugepages, notice = choose_hugepages(
        testbed.hugepages, memory_mb=testbed.memory_mb, pci=bool(pci)
    )
    if notice:
        notify(notice)
    return lambda log_path: start_engine(
        worker_cpus=testbed.cores,
        main_cpu=main_cpu,
        memory_mb=testbed.memory_mb,
        hugepages=hugepages,
        namespace=testbed.namespace,
        log_path=log_path,
        pci=pci,
    )


def main_core(testbed: Testbed) -> int:
    """The CPU of the engine's main thread: as configured, or a spare one."""
    if testbed.main_core is not None:
        return testbed.main_core
    return choose_main_cpu(testbed.cores)


def open_ports(engine: TesterEngine, testbed: Testbed, notify: Notify) -> PortsResult:
    """Open both ports; ``driver: auto`` is AF_XDP where it works, else AF_PACKET.

    Raises:
        EngineError: a port cannot be opened.
    """
    specs = partial(port_specs, testbed)
    if not _has_auto(testbed):
        return engine.open_ports(specs("af_xdp"))
    try:
        ports = engine.open_ports(specs("af_xdp"))
    except EngineError as error:
        if error.code != ERROR_ENVIRONMENT:
            raise
        notify(f"driver auto: using af_packet, af_xdp does not work: {error.message}")
        return engine.open_ports(specs("af_packet"))
    notify("driver auto: using af_xdp, it works on these interfaces")
    return ports


def port_specs(testbed: Testbed, auto_driver: Driver) -> list[PortSpec]:
    """Both ports for the engine; ``auto_driver`` stands in for ``driver: auto``."""
    return [
        _port_spec(name, side, auto_driver) for name, side in _sides(testbed).items()
    ]


def resolve_neighbours(
    engine: TesterEngine, testbed: Testbed, versions: Collection[IpVersion]
) -> None:
    """Answer for the tester's addresses; find the next hops of ``versions``.

    Raises:
        SetupError: a next hop does not answer; names side, address and interface.
    """
    found = engine.set_neighbours(neighbours(testbed, versions))
    for neighbour in found.neighbours:
        if neighbour.mac is None:
            raise _unresolved(testbed, neighbour.port, neighbour.ip)


def neighbours(testbed: Testbed, versions: Collection[IpVersion]) -> NeighboursParams:
    """Whom each port answers for (every address it has) and whom it has to find."""
    ports = []
    for name, side in _sides(testbed).items():
        addresses = [ip for ip in (side.ipv4, side.ipv6) if ip]
        needed = [ip for ip in map(side.ip, sorted(versions)) if ip]
        ports.append(
            PortNeighbours(
                port=name,
                own=[AddressRange(first=ip.address) for ip in addresses],
                resolve=[ip.gateway for ip in needed],
            )
        )
    return NeighboursParams(ports=ports)


def _sides(testbed: Testbed) -> dict[Side, SideConfig]:
    return {"left": testbed.left, "right": testbed.right}


def _has_auto(testbed: Testbed) -> bool:
    ports = (side.port for side in _sides(testbed).values())
    return any(isinstance(p, InterfacePort) and p.driver == "auto" for p in ports)


def _port_spec(name: Side, side: SideConfig, auto_driver: Driver) -> PortSpec:
    port = side.port
    match port:
        case InterfacePort():
            driver = auto_driver if port.driver == "auto" else port.driver
            return PortSpec(
                name=name, driver=driver, device=port.interface, mtu=port.mtu
            )
        case PciPort():
            return PortSpec(name=name, driver="pci", device=port.pci, mtu=port.mtu)
        case MemifPort():
            return PortSpec(
                name=name,
                driver="memif",
                device=port.memif,
                memif_role=port.role,
                memif_id=port.id,
                mtu=port.mtu,
                mac=port.mac or _DEFAULT_MACS[name],
            )
        case RingPort():
            return PortSpec(
                name=name, driver="ring", mtu=port.mtu, mac=_DEFAULT_MACS[name]
            )


def _unresolved(testbed: Testbed, side: Side, ip: str) -> SetupError:
    config = _sides(testbed)[side]
    port = config.port
    device = getattr(port, "interface", None) or getattr(port, "pci", None) or "port"
    version: IpVersion = 6 if ":" in ip else 4
    own = config.ip(version)
    protocol = "neighbour discovery" if version == 6 else "ARP"
    return SetupError(
        f"{side}: the next hop {ip} does not answer {protocol} on {device} "
        f"(asked from {own.address if own else 'no address'})",
        f"check that the device under test has {ip} on the link behind {device}, that "
        f"the link is up, and the keys {side}.ipv{version}.address and gateway",
    )
