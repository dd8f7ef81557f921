"""What of the machine is checked, beside CPUs and ports; and all checks in order."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dutperf import busy
from dutperf.config import Testbed
from dutperf.doctor import SHARED_DRIVERS, Check, Machine, listed
from dutperf.doctor.cpu_checks import (
    Watch,
    cpu_checks,
    missing_check,
    preemption_checks,
    watch,
)
from dutperf.doctor.port_checks import Ask, ask, port_checks, version_check
from dutperf.engine.process import (
    choose_main_cpu,
    existing_cpus,
    more_huge_pages,
    start_engine,
)
from dutperf.errors import DutperfError
from dutperf.lab import netns
from dutperf.lab.presence import others, present
from dutperf.lab.processes import plan_cpus
from dutperf.lab.state import LabState, StateFile
from dutperf.results.units import duration

# What the kernel's network path allows itself, for ports and devices that use it.


_BUDGET = 300
_BACKLOG = 1000


def kernel_checks(machine: Machine) -> Iterator[Check]:
    """Budgets and queues; forwarding by the kernel depends on them."""
    yield _at_least(
        machine,
        "softnet_budget",
        "proc/sys/net/core/netdev_budget",
        _BUDGET,
        "frames that the kernel takes from its queues at once; with fewer a kernel "
        "device drops earlier",
    )
    yield _at_least(
        machine,
        "input_queue",
        "proc/sys/net/core/netdev_max_backlog",
        _BACKLOG,
        "frames that wait for a CPU; a lab sets its own",
    )


def _at_least(machine: Machine, name: str, path: str, least: int, why: str) -> Check:
    value = machine.number(path)
    if value is None:
        return Check(name, "unknown", "the kernel does not say")
    if value >= least:
        return Check(name, "good", f"{value:,} frames")
    setting = path.removeprefix("proc/sys/").replace("/", ".")
    cure = f"sysctl -w {setting}={least}"
    return Check(name, "doubtful", f"{value:,} frames, usually {least:,}", why, cure)


class SoftnetCounts(NamedTuple):
    """Of all CPUs since boot, in frames and in times."""

    dropped: int
    squeezed: int


def softnet_counts(machine: Machine) -> SoftnetCounts | None:
    """What CPUs had no room for, and how often they left work for later."""
    text = machine.text("proc/net/softnet_stat")
    if not text:
        return None
    lines = [line.split() for line in text.splitlines()]
    return SoftnetCounts(
        *(sum(int(line[place], 16) for line in lines) for place in (1, 2))
    )


def drops_check(machine: Machine, before: SoftnetCounts | None) -> Check:
    """What was dropped since ``before``, while nothing was measured."""
    after = softnet_counts(machine)
    if before is None or after is None:
        return Check("softnet_drops", "unknown", "the kernel does not say")
    dropped, squeezed = (now - then for now, then in zip(after, before, strict=True))
    found = f"{dropped:,} frames, work left for later {squeezed:,} times"
    if not dropped:
        return Check("softnet_drops", "good", found)
    return Check(
        "softnet_drops",
        "doubtful",
        found,
        "something on this machine overflows a CPU's input queue now, which a device "
        "in the kernel shares",
        "end what sends; larger queue: sysctl -w net.core.netdev_max_backlog=10000",
    )


# Memory: huge pages, what is free, and whether devices may reach it.


_LEAST_FREE_MB = 1024


def memory_checks(
    machine: Machine, needed_mb: int, *, pci: bool, vfio: bool
) -> Iterator[Check]:
    """For an engine that takes ``needed_mb``.

    ``pci``: on NICs of its own; ``vfio``: not only such as the kernel shares.
    """
    memory = machine.table("proc/meminfo")
    yield _huge_pages(memory, needed_mb, pci=pci)
    yield _free(memory, needed_mb)
    if vfio:
        yield _iommu(machine)


def _huge_pages(memory: dict[str, str], needed_mb: int, *, pci: bool) -> Check:
    if "HugePages_Free" not in memory:
        return Check("huge_pages", "unknown", "the kernel has none")
    size_kb = _kb(memory, "Hugepagesize")
    free_mb = int(memory["HugePages_Free"].split()[0]) * size_kb // 1024
    found = f"{free_mb} MiB free, {needed_mb} MiB needed"
    if free_mb >= needed_mb:
        return Check("huge_pages", "good", found)
    return Check(
        "huge_pages",
        "bad" if pci else "doubtful",
        found,
        "NICs cannot be driven without them"
        if pci
        else "the engine runs without, and is slower",
        more_huge_pages({key: _kb(memory, key) for key in memory}, needed_mb),
    )


def _free(memory: dict[str, str], needed_mb: int) -> Check:
    if "MemAvailable" not in memory:
        return Check("free_memory", "unknown", "the kernel does not say")
    free_mb = _kb(memory, "MemAvailable") // 1024
    if free_mb >= needed_mb + _LEAST_FREE_MB:
        return Check("free_memory", "good", f"{free_mb:,} MiB available")
    return Check(
        "free_memory",
        "bad" if free_mb < needed_mb else "doubtful",
        f"{free_mb:,} MiB available",
        f"the engine takes {needed_mb} MiB; a machine that swaps stops the tester",
        "end what else runs, or lower memory_mb of the testbed",
    )


def _iommu(machine: Machine) -> Check:
    groups = machine.root / "sys/kernel/iommu_groups"
    count = len(list(groups.glob("*"))) if groups.is_dir() else 0
    if count:
        return Check("iommu", "good", f"{count} groups")
    unsafe = machine.text("sys/module/vfio/parameters/enable_unsafe_noiommu_mode")
    return Check(
        "iommu",
        "doubtful" if unsafe == "Y" else "bad",
        "none; VFIO works without" if unsafe == "Y" else "none",
        "VFIO hands a NIC to a program by it",
        "boot with intel_iommu=on iommu=pt (or amd_iommu=on), or load vfio with "
        "enable_unsafe_noiommu_mode=1",
    )


def _kb(memory: dict[str, str], key: str) -> int:
    return int(memory.get(key, "0").split()[0])


# What earlier runs left: programs that still spin, and labs that nobody uses.


PROGRAMS = ("dutperf-engine", "dutperf-refdut")
NAMESPACES = Path("run/netns")


def leftover_checks(
    machine: Machine, lab_namespaces: tuple[str, ...]
) -> Iterator[Check]:
    """Of processes and of the lab's namespaces; those of a run that goes on count."""
    yield _processes(machine)
    yield _namespaces(machine, lab_namespaces)


def _processes(machine: Machine) -> Check:
    found = sorted(_running(machine))
    if not found:
        return Check("other_processes", "good", "no other engine or device runs")
    told = ", ".join(f"{name} (process {pid})" for pid, name in found)
    return Check(
        "other_processes",
        "doubtful",
        told,
        "they spin on CPUs that a measurement here would share",
        "wait for the run that they belong to; if there is none, end them: kill PID",
    )


def _running(machine: Machine) -> Iterator[tuple[int, str]]:
    for folder in (machine.root / "proc").glob("[0-9]*"):
        text = machine.text(f"proc/{folder.name}/cmdline") or ""
        name = Path(text.partition("\0")[0]).name
        if name in PROGRAMS:
            yield int(folder.name), name


def _namespaces(machine: Machine, lab_namespaces: tuple[str, ...]) -> Check:
    there = [n for n in lab_namespaces if (machine.root / NAMESPACES / n).exists()]
    if not there:
        return Check("labs", "good", "no lab is up")
    return Check(
        "labs",
        "doubtful",
        f"namespaces {', '.join(there)}",
        "a lab that is up is used as it is, with what was set in it",
        "dutperf lab status; dutperf lab down",
    )


# Whether somebody else works on the CPUs that a testbed uses: another lab's device.


_WHY = "a device works whenever it has frames, and some all the time: each takes time"


Sharing = Callable[[Testbed | None, set[int]], Check]


def sharing_check(testbed: Testbed | None, cores: set[int]) -> Check:
    """Of the labs that are up, and of what the user allows.

    ``cores``: the tester's; those of its lab's device count, too, if it is one.
    """
    own = _lab_of(testbed)
    cpus = cores | (own.device_cpus if own else set())
    labs = others(StateFile(name=own.name)) if own else list(present())
    shared = {s.title: cpus & s.device_cpus for _, s in labs if cpus & s.device_cpus}
    if shared:
        told = "; ".join(f"{listed(c)}: lab {name}" for name, c in shared.items())
        return Check(
            "shared_cpus",
            "bad",
            f"other labs work on the same CPUs: {told}",
            _WHY,
            "take them down, see 'dutperf lab status'",
        )
    if busy.choice() == "share":
        return Check(
            "shared_cpus",
            "doubtful",
            f"other runs may use the same CPUs: {busy.VARIABLE}=share",
            "what another run does on a CPU is missing here",
            f"unset {busy.VARIABLE}, or {busy.VARIABLE}=wait",
        )
    return Check("shared_cpus", "good", "no other lab works on the same CPUs")


def _lab_of(testbed: Testbed | None) -> LabState | None:
    """The lab that the testbed is of, if it is one that is up."""
    tester = testbed.namespace if testbed else None
    return next((s for _, s in present() if s.namespaces[0] == tester), None)


# Whether the counters of the tester's cores agree: the engine has looked.
#
# A frame is stamped on the sender's core and judged on the receiver's. The engine hands
# stamps back and forth between its cores and bounds how far they are apart.


_MEMORY_MB = 128
_GOOD_NS = 1_000
_BAD_NS = 100_000

Offset = Callable[[Sequence[int]], int]
"""CPUs -> how far their counters are apart at most, in nanoseconds."""


def engine_offset_ns(cpus: Sequence[int]) -> int:
    """Asks an engine on these CPUs, which opens no port.

    Raises:
        DutperfError: it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="dutperf-doctor-") as directory:
        engine = start_engine(
            worker_cpus=list(cpus),
            main_cpu=choose_main_cpu(list(cpus)),
            memory_mb=_MEMORY_MB,
            hugepages=False,
            namespace=None,
            log_path=Path(directory) / "log",
        )
        with engine as started:
            return started.hello().clock_offset_ns


def synchrony_check(cpus: Sequence[int], offset: Offset = engine_offset_ns) -> Check:
    """Of the tester's workers."""
    if len(cpus) == 1:
        return Check("counter_synchrony", "good", "one core sends and receives")
    if os.geteuid() != 0:
        return Check(
            "counter_synchrony", "unknown", "the engine looks, which needs root"
        )
    try:
        return told(offset(cpus))
    except DutperfError as error:
        why = "no engine starts on these cores, so nothing can be measured"
        return Check("counter_synchrony", "bad", error.message, why, error.hint)


def told(offset_ns: int) -> Check:
    """By what the engine found."""
    found = f"at most {duration(offset_ns)} apart"
    if offset_ns <= _GOOD_NS:
        return Check("counter_synchrony", "good", found)
    return Check(
        "counter_synchrony",
        "bad" if offset_ns >= _BAD_NS else "doubtful",
        found,
        "a delay is the difference of the stamps of two cores: it is wrong by as much",
        "use cores of one socket; of a virtual machine, ask for an invariant TSC and "
        "pinned CPUs",
    )


# All checks, in the order in which they are told.


WITHOUT_TESTBED_MB = 512


def examine(
    testbed: Testbed | None = None,
    *,
    seconds: float = 2.0,
    before: bool = True,
    machine: Machine = Machine(),  # noqa: B008 - it is frozen
    answer: Ask = ask,
    spin: Watch = watch,
    offset: Offset = engine_offset_ns,
    sharing: Sharing = sharing_check,
) -> list[Check]:
    """Look at the machine as ``testbed`` uses it; without one as a lab would.

    Args:
        testbed: whose cores, memory and ports.
        seconds: how long each of the tester's CPUs is watched; 0: not at all.
        before: nothing of the run has begun, so what already runs is not its own.
        machine: where to read.
        answer: runs programs that are asked.
        spin: watches a CPU.
        offset: how far the counters of these CPUs are apart.
        sharing: who else works on these CPUs.
    """
    cores = testbed.cores if testbed else [plan_cpus().worker]
    there = existing_cpus()
    cpus = set(cores) & there
    needed_mb = testbed.memory_mb if testbed else WITHOUT_TESTBED_MB
    nics = testbed.nics if testbed else []
    vfio = any(machine.driver_of(nic) not in SHARED_DRIVERS for nic in nics)
    dropped = softnet_counts(machine)
    return [
        *([version_check(answer)] if before else ()),
        *(missing_check(testbed, there) if testbed else ()),
        *(cpu_checks(machine, cpus) if cpus else ()),
        *([synchrony_check(cores, offset)] if cpus == set(cores) else ()),
        sharing(testbed, cpus),
        *(preemption_checks(machine, cpus, seconds, spin) if seconds else ()),
        *memory_checks(machine, needed_mb, pci=bool(nics), vfio=vfio),
        *kernel_checks(machine),
        *([drops_check(machine, dropped)] if seconds else ()),
        *(port_checks(machine, testbed, answer) if testbed else ()),
        *(leftover_checks(machine, _lab_namespaces()) if before else ()),
    ]


def _lab_namespaces() -> tuple[str, ...]:
    """Those that labs have: the nameless one's, and those of labs with names."""
    named = (name for _, state in present() for name in state.namespaces)
    return tuple(dict.fromkeys([*netns.NAMESPACES, *named]))
