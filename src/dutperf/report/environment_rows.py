"""The environment record as rows of a table."""

from __future__ import annotations

from dutperf.report.cells import CellView
from dutperf.report.source import Source
from dutperf.report.text import MISSING, moment, plural, sentence, whole
from dutperf.results import Environment, PortRecord
from dutperf.results.machine_check import MachineCheck
from dutperf.results.model import RunPart
from dutperf.tables import DELAYS


def environment_rows(environment: Environment | None) -> list[tuple[str, str]]:
    """Name and value of everything that was recorded; empty without a record."""
    if environment is None:
        return []
    return [
        *_machine(environment),
        *[(f"Port {port.label}", _port(port)) for port in environment.ports],
        *_device(environment),
        *_programs(environment),
        *(_finding(check) for check in environment.checks if check.is_finding),
        *map(_part, environment.parts),
    ]


def findings_beside(cell: CellView, source: Source) -> list[str]:
    """What the doctor found that may touch the cell's result."""
    known = [
        each.environment
        for each in source.testbeds
        if each.environment and cell.testbed in {"", each.name}
    ]
    delays = cell.procedure in DELAYS
    return [
        f"{check.name.replace('_', ' ')}: {check.found}"
        for environment in known
        for check in environment.checks
        if check.is_finding
        and (check.touches_delays if delays else not check.touches_delays_alone)
    ]


def _machine(environment: Environment) -> list[tuple[str, str]]:
    virtual = {True: ", virtual machine", False: "", None: ""}[environment.hypervisor]
    cores = ", ".join(map(str, environment.cores_used))
    nodes = plural(environment.numa_nodes, "NUMA node")
    memory = f"{whole(environment.memory_mb)} MiB, {nodes}"
    huge = "used" if environment.hugepages_used else "not used"
    return [
        ("Operating system", environment.os),
        ("Kernel", environment.kernel),
        ("CPU", f"{environment.cpu_model}, {environment.cpus_total} CPUs{virtual}"),
        ("Cores of the tester", f"{cores}; control on {environment.main_core}"),
        ("CPU governor", _per_core(environment.governor)),
        ("CPU frequency", _frequency(environment)),
        ("Memory", memory),
        ("Huge pages", f"{environment.hugepages}, {huge}"),
    ]


def _per_core(values: dict[int, str]) -> str:
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    return ", ".join(f"core {core}: {value}" for core, value in sorted(values.items()))


def _frequency(environment: Environment) -> str:
    turbo = {True: "turbo on", False: "turbo off", None: "turbo unknown"}
    rates = {core: f"{mhz:,.0f} MHz" for core, mhz in environment.frequency_mhz.items()}
    tsc = f"TSC {environment.tsc_hz / 1e6:,.0f} MHz"
    return ", ".join([_per_core(rates), tsc, turbo[environment.turbo]]).lstrip(", ")


def _port(port: PortRecord) -> str:
    kernel = (port.kernel_driver, port.kernel_driver_version)
    speed = port.link_speed_mbps
    parts = [
        f"{port.device or MISSING} ({port.mac})",
        f"{port.driver} by {port.dpdk_name}",
        f"kernel driver {' '.join(k for k in kernel if k)}" if any(kernel) else "",
        f"{whole(speed)} Mbit/s reported" if speed else "speed not reported",
        f"MTU {port.mtu}" if port.mtu else "",
        f"flow control {port.flow_control}",
    ]
    return ", ".join(part for part in parts if part)


def _part(part: RunPart) -> tuple[str, str]:
    """When, and what was not as before."""
    changed = "; ".join(part.changes) or "nothing had changed"
    began = f"{moment(part.started_at)}: {changed}"
    return f"Resumed at trial {part.first_trial}", began


def _device(environment: Environment) -> list[tuple[str, str]]:
    """What RFC 9693 6 wants beside a result, in one row."""
    told = [f"{name}: {value}" for name, value in environment.device.items()]
    return [("Device under test", "; ".join(told))] if told else []


def _finding(check: MachineCheck) -> tuple[str, str]:
    """What may touch the results, and why; the cure is for next time."""
    why = f": {check.why}" if check.why else ""
    cure = f" (cure: {check.cure})" if check.cure else ""
    name = check.name.replace("_", " ")
    return f"{sentence(check.verdict)}: {name}", f"{check.found}{why}{cure}"


def _programs(environment: Environment) -> list[tuple[str, str]]:
    return [
        ("DPDK", environment.dpdk_version.removeprefix("DPDK ")),
        ("Engine", environment.engine_version),
        ("dutperf", environment.dutperf_version),
        ("Protocol", f"version {environment.protocol_version}"),
        ("Python", environment.python_version),
        ("Seed", str(environment.seed)),
        ("Started", moment(environment.started_at)),
    ]
