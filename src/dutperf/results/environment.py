"""``environment.json``: what a result depends on beside the device under test.

Collected without root and without changing anything. What the machine does not tell is
stored as null or "unknown", never guessed. The host's name is left out on purpose:
results are meant to be shown around.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer
from pydantic.dataclasses import dataclass

from dutperf import __version__
from dutperf.protocol.base import (
    Encapsulation,
    MplsLabel,
    PortNumber,
    Side,
    VlanTag,
    port_name,
)
from dutperf.protocol.methods import HelloResult
from dutperf.protocol.port_messages import PortsResult, PortStatus
from dutperf.results.model import RESULTS_SCHEMA_VERSION, RunPart, SchemaVersion
from dutperf.results.passport import Passport
from dutperf.results.units import Stored

# Which kernel driver is behind an interface, also in another network namespace.


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


# One thing of the tester's machine that may touch a result, as the doctor found it.


CheckVerdict = Literal["good", "doubtful", "bad", "unknown"]
"""doubtful: it may be seen in results; bad: it will, or nothing can be measured."""

_OF_DELAYS_ALONE = ("idle_states", "counter_synchrony")
_OF_DELAYS = (
    *_OF_DELAYS_ALONE,
    "preemptions_cpu",
    "steal_time",
    "governor",
    "turbo",
    "smt_siblings",
    "isolated_cpus",
    "time_stamp_counter",
    "port_",
)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class MachineCheck:
    """What was found, and unless that is good, why it matters and what to do.

    ``name`` is the same on each machine, so that records can be compared.
    """

    name: str
    verdict: CheckVerdict
    found: str
    why: str = ""
    cure: str = ""

    @property
    def touches_delays(self) -> bool:
        """Whether it may be seen in delays, too, and not in rates and losses alone."""
        return self.name.startswith(_OF_DELAYS)

    @property
    def touches_delays_alone(self) -> bool:
        """Whether rates and losses do not depend on it."""
        return self.name in _OF_DELAYS_ALONE

    @property
    def is_finding(self) -> bool:
        """Whether a reader of results should know it."""
        return self.verdict in ("doubtful", "bad")


_VIRTUAL = frozenset({"bridge", "dummy", "ipvlan", "macvlan", "tun", "veth", "vxlan"})
WITHOUT_MEDIUM = frozenset({"memif", "null", "ring", "vdev"})
"""Drivers whose frames take no time, whatever speed they name."""


class PortRecord(Stored):
    """One port of the tester."""

    name: Side
    number: PortNumber = Field(default=0, description="of several on its side")
    driver: str = Field(description="how the engine drives it, for example af_xdp")
    dpdk_name: str
    device: str
    mac: str
    link_speed_mbps: int | None = Field(description="null: the port does not say")
    numa_node: int | None = None
    mtu: int | None = None
    vlan: list[VlanTag] = Field(
        default=[], description="tags of all its frames, outermost first"
    )
    mpls: list[MplsLabel] = Field(
        default=[], description="labels of its test frames, outermost first"
    )
    encapsulation: Encapsulation | None = Field(
        default=None, description="outer headers of its test frames"
    )
    flow_control: str = "unknown"
    kernel_driver: str | None = Field(
        default=None, description="of the interface, for example veth or ixgbe"
    )
    kernel_driver_version: str | None = None

    @model_serializer(mode="wrap")
    def _as_of_one(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = plain(self)
        if not self.number:
            written.pop("number", None)
        return written

    @property
    def label(self) -> str:
        """Its name for people."""
        return port_name(self.name, self.number)

    @property
    def nominal(self) -> bool:
        """Whether frames take no time on the link, whatever speed it names."""
        return self.kernel_driver in _VIRTUAL or self.driver in WITHOUT_MEDIUM


class Environment(Stored):
    """Where, by what, and with which seed the run was made."""

    schema_version: SchemaVersion = RESULTS_SCHEMA_VERSION
    dutperf_version: str = __version__
    engine_version: str
    dpdk_version: str
    protocol_version: int
    python_version: str
    os: str
    kernel: str
    cpu_model: str
    cpus_total: int
    cores_used: list[int]
    main_core: int
    governor: dict[int, str] = Field(description='per used core, or "unknown"')
    turbo: bool | None = Field(description="null: the machine does not say")
    frequency_mhz: dict[int, float] = Field(description="used cores, where known")
    tsc_hz: int
    clock_offset_ns: int | None = Field(
        default=None, description="between the engine's cores; null: not recorded"
    )
    numa_nodes: int
    memory_mb: int
    hugepages: str = Field(description="as the kernel has them; see hugepages_used")
    hugepages_used: bool
    hypervisor: bool | None = Field(description="true: a virtual machine")
    ports: list[PortRecord]
    dut: str = Field(default="", description="the device under test, as described")
    device: dict[str, str] = Field(
        default={}, description="its parameters by RFC 9693 6, as the testbed has them"
    )
    place: str | None = Field(
        default=None, description="which of the run's testbeds; null: it has one"
    )
    checks: list[MachineCheck] = Field(default=[], description="what the doctor saw")
    passport: Passport | None = Field(
        default=None, description="the tester's own; null: none was known"
    )
    seed: int
    started_at: str = Field(description="ISO 8601, UTC")
    stands_in: str | None = Field(
        default=None,
        description="name of the equal testbed that was used instead; null: it itself",
    )
    clock_ahead_s: float | None = Field(
        default=None,
        description="of the clock of a host that measured for another machine before "
        "that machine's, which stores the run; null: it is one machine",
    )
    parts: list[RunPart] = Field(
        default=[], description="of a run that was resumed: those after the first"
    )


def environment_sum(stored: Mapping[str, Any], trial: int) -> str:
    """SHA-256 of an environment as it was stored when trial number ``trial`` began.

    Parts that were added later are left out: a run that goes on changes no sum.
    """
    parts = [part for part in stored.get("parts", []) if part["first_trial"] <= trial]
    known = {**stored, "parts": parts}
    text = json.dumps(known, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def collect_environment(
    hello: HelloResult,
    ports: PortsResult,
    cores: Sequence[int],
    main_core: int | None,
    seed: int,
    *,
    dut: str = "",
    device: Mapping[str, str] | None = None,
    namespace: str | None = None,
    place: str | None = None,
    checks: Sequence[MachineCheck] = (),
    passport: Passport | None = None,
    stands_in: str | None = None,
    root: Path = Path("/"),
    link_drivers: LinkDrivers = interface_driver,
) -> Environment:
    """Look at the machine; never fails for something it cannot find out.

    Args:
        hello: what the engine says of itself.
        ports: the open ports.
        cores: CPUs of the engine's workers.
        main_core: CPU of its sleeping main thread.
        seed: of the campaign.
        dut: description of the device under test.
        device: what is known of its parameters (RFC 9693 6).
        namespace: network namespace that the ports are in.
        place: which testbed this is, where there are several.
        checks: what the doctor saw.
        passport: what the tester can do itself.
        stands_in: name of the equal testbed that is used instead.
        root: where proc, sys and etc are; another one in tests.
        link_drivers: finds an interface's kernel driver.
    """
    main_cpu = hello.main_cpu if main_core is None else main_core
    used = sorted({*cores, main_cpu})
    cpu = root / "sys/devices/system/cpu"
    memory = _table(root / "proc/meminfo")
    this = computer(root)
    return Environment(
        engine_version=hello.engine_version,
        dpdk_version=hello.dpdk_version,
        protocol_version=hello.protocol_version,
        python_version=platform.python_version(),
        os=this.os,
        kernel=this.kernel,
        cpu_model=this.cpu_model,
        cpus_total=len(list(cpu.glob("cpu[0-9]*"))),
        cores_used=list(cores),
        main_core=main_cpu,
        governor={core: _governor(cpu, core) for core in used},
        turbo=_turbo(cpu),
        frequency_mhz=_frequencies(cpu, used),
        tsc_hz=hello.tsc_hz,
        clock_offset_ns=hello.clock_offset_ns,
        numa_nodes=len(list((root / "sys/devices/system/node").glob("node[0-9]*"))),
        memory_mb=this.memory_mb,
        hugepages=_hugepages(memory),
        hugepages_used=hello.hugepages,
        hypervisor=this.virtual,
        ports=[_port(port, namespace, link_drivers) for port in ports.ports],
        dut=dut,
        device=dict(device or {}),
        place=place,
        checks=list(checks),
        passport=passport,
        stands_in=stands_in,
        seed=seed,
        started_at=datetime.now(UTC).isoformat("T", "seconds"),
    )


class Computer(NamedTuple):
    """What every machine says of itself; ``virtual`` is None if this one does not."""

    os: str
    kernel: str
    cpu_model: str
    memory_mb: int
    virtual: bool | None


def computer(root: Path = Path("/")) -> Computer:
    """This one; see ``collect_environment``."""
    processors = _table(root / "proc/cpuinfo")
    memory = _table(root / "proc/meminfo")
    return Computer(
        os=_os_name(root),
        kernel=platform.release(),
        cpu_model=processors.get("model name", platform.machine() or "unknown"),
        memory_mb=_kilobytes(memory.get("MemTotal")) // 1024,
        virtual=_hypervisor(processors),
    )


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _table(path: Path) -> dict[str, str]:
    """``key : value`` lines; of a repeated key the first counts."""
    table: dict[str, str] = {}
    for line in (_read(path) or "").splitlines():
        key, _, value = line.partition(":")
        table.setdefault(key.strip(), value.strip())
    return table


def _os_name(root: Path) -> str:
    for line in (_read(root / "etc/os-release") or "").splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip('"')
    return platform.system() or "unknown"


def _governor(cpu: Path, core: int) -> str:
    return _read(cpu / f"cpu{core}/cpufreq/scaling_governor") or "unknown"


def _turbo(cpu: Path) -> bool | None:
    """The intel_pstate driver says "no turbo", the others say "boost"."""
    no_turbo = _read(cpu / "intel_pstate/no_turbo")
    if no_turbo is not None:
        return no_turbo == "0"
    boost = _read(cpu / "cpufreq/boost")
    return None if boost is None else boost == "1"


def _frequencies(cpu: Path, cores: Sequence[int]) -> dict[int, float]:
    texts = {core: _read(cpu / f"cpu{core}/cpufreq/scaling_cur_freq") for core in cores}
    return {core: int(text) / 1000 for core, text in texts.items() if text}


def _hypervisor(processors: dict[str, str]) -> bool | None:
    flags = processors.get("flags")
    return None if flags is None else "hypervisor" in flags.split()


def _hugepages(memory: dict[str, str]) -> str:
    if "HugePages_Total" not in memory:
        return "unknown"
    size_mb = _kilobytes(memory.get("Hugepagesize")) // 1024
    return f"{memory['HugePages_Total']} x {size_mb} MiB"


def _kilobytes(text: str | None) -> int:
    return int(text.split()[0]) if text else 0


def _port(
    status: PortStatus, namespace: str | None, link_drivers: LinkDrivers
) -> PortRecord:
    kernel = KernelDriver(None, None)
    if status.driver in ("af_packet", "af_xdp"):
        kernel = link_drivers(status.device, namespace)
    return PortRecord(
        name=status.name,
        number=status.number,
        driver=status.driver,
        dpdk_name=status.dpdk_name,
        device=status.device,
        mac=status.mac,
        link_speed_mbps=status.link_speed_mbps,
        numa_node=status.numa_node,
        mtu=status.mtu,
        vlan=status.vlan,
        mpls=status.mpls,
        encapsulation=status.encapsulation,
        flow_control=status.flow_control,
        kernel_driver=kernel.name,
        kernel_driver_version=kernel.version,
    )


# What differs between two values of the same shape, in words.


_ABSENT = object()


class Change(NamedTuple):
    """What stands at ``where`` in the old value and in the new one, as text."""

    where: str
    old: str
    new: str


def changes(old: Any, new: Any) -> Iterator[Change]:  # noqa: ANN401 - plain data
    """Each value that changed."""
    yield from _changes(old, new, "")


def differences(old: Any, new: Any) -> list[str]:  # noqa: ANN401 - plain data
    """One line for each value that changed: ``left.mtu: was 1500, is 9000``."""
    return [
        f"{change.where}: was {_short(change.old)}, is {_short(change.new)}"
        for change in changes(old, new)
    ]


def listed(lines: list[str], most: int = 10) -> str:
    """The first ``most`` of ``lines``, one a line."""
    more = len(lines) - most
    rest = [f"... and {more} more"] if more > 0 else []
    return "\n".join([*lines[:most], *rest])


def _changes(old: Any, new: Any, where: str) -> Iterator[Change]:  # noqa: ANN401
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            inner = f"{where}.{key}" if where else str(key)
            yield from _changes(old.get(key, _ABSENT), new.get(key, _ABSENT), inner)
    elif isinstance(old, list) and isinstance(new, list) and _nested(old + new):
        for index in range(max(len(old), len(new))):
            was, now = (v[index] if index < len(v) else _ABSENT for v in (old, new))
            yield from _changes(was, now, f"{where}[{index}]")
    elif old != new:
        yield Change(where, _shown(old), _shown(new))


def _nested(values: list[Any]) -> bool:
    """A list of numbers is told as one value."""
    return any(isinstance(value, dict | list) for value in values)


def _shown(value: Any) -> str:  # noqa: ANN401 - plain data
    if value is _ABSENT:
        return "absent"
    if isinstance(value, dict):
        named = value.get("procedure") or value.get("name")
        return f"a block of keys ({named})" if named else "a block of keys"
    return str(value)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
