"""What the kernel's network path allows itself, for ports and devices that use it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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
