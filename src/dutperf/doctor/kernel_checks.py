"""What the kernel's network path allows itself, for ports and devices that use it."""

from __future__ import annotations

from collections.abc import Iterator

from dutperf.doctor.check import Check, Machine

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
