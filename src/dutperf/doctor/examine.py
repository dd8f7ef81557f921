"""All checks, in the order in which they are told."""

from __future__ import annotations

from dutperf.config import Testbed
from dutperf.doctor.check import SHARED_DRIVERS, Check, Machine
from dutperf.doctor.cpu_checks import (
    Watch,
    cpu_checks,
    missing_check,
    preemption_checks,
    watch,
)
from dutperf.doctor.machine_checks import (
    Offset,
    Sharing,
    drops_check,
    engine_offset_ns,
    kernel_checks,
    leftover_checks,
    memory_checks,
    sharing_check,
    softnet_counts,
    synchrony_check,
)
from dutperf.doctor.port_checks import Ask, ask, port_checks, version_check
from dutperf.engine.process import existing_cpus
from dutperf.lab import netns
from dutperf.lab.cpus import plan_cpus
from dutperf.lab.presence import present

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
        *(leftover_checks(machine, _namespaces()) if before else ()),
    ]


def _namespaces() -> tuple[str, ...]:
    """Those that labs have: the nameless one's, and those of labs with names."""
    named = (name for _, state in present() for name in state.namespaces)
    return tuple(dict.fromkeys([*netns.NAMESPACES, *named]))
