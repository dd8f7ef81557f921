"""How long the tester's CPUs are away: a loop that does nothing but look at the clock.

What it misses a tester would miss, too. On a virtual machine the host takes time that
no process of this one has; the kernel counts it as stolen.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass

from dutperf.doctor.check import Check, Machine
from dutperf.results.units import duration

GAP_NS = 100_000
"""Shorter ones are interrupts, and Python's own."""
_LONG_NS = 1_000_000
_MUCH = 0.01
_STOLEN = 0.001


@dataclass(frozen=True)
class Gaps:
    """What one CPU was away for, in ``watched_ns``."""

    count: int
    longest_ns: int
    sum_ns: int
    watched_ns: int


Watch = Callable[[int, float], Gaps]
"""(CPU, seconds) -> its gaps."""


def watch(cpu: int, seconds: float) -> Gaps:
    """Spin on that CPU for so long; the process may run where it did, afterwards."""
    before = os.sched_getaffinity(0)
    collecting = gc.isenabled()
    gc.disable()
    try:
        os.sched_setaffinity(0, {cpu})
        return gaps_of(time.perf_counter_ns, round(seconds * 1e9))
    finally:
        os.sched_setaffinity(0, before)
        if collecting:
            gc.enable()


def gaps_of(now_ns: Callable[[], int], watched_ns: int) -> Gaps:
    """Of a clock that is read again and again."""
    count = longest = away = 0
    begin = last = now_ns()
    while last - begin < watched_ns:
        now = now_ns()
        gap = now - last
        if gap >= GAP_NS:
            count, longest, away = count + 1, max(longest, gap), away + gap
        last = now
    return Gaps(count, longest, away, last - begin)


def preemption_checks(
    machine: Machine, cpus: Set[int], seconds: float, spin: Watch = watch
) -> Iterator[Check]:
    """One for each CPU, one after the other, and what the host took meanwhile."""
    before = _stolen(machine)
    for cpu in sorted(cpus):
        yield _told(cpu, spin(cpu, seconds))
    after = _stolen(machine)
    if before is None or after is None:
        yield Check("steal_time", "unknown", "the kernel does not count it")
        return
    ticks, all_ticks = (b - a for a, b in zip(before, after, strict=True))
    share = ticks / all_ticks if all_ticks else 0.0
    yield _steal(share)


def _told(cpu: int, gaps: Gaps) -> Check:
    name = f"preemptions_cpu{cpu}"
    share = gaps.sum_ns / gaps.watched_ns if gaps.watched_ns else 0.0
    found = f"none above {duration(GAP_NS)} in {_about(gaps.watched_ns)}"
    if gaps.count:
        found = (
            f"{gaps.count} in {_about(gaps.watched_ns)}, the longest "
            f"{_about(gaps.longest_ns)}, {share:.2%} of the time"
        )
    if gaps.longest_ns < _LONG_NS and share < _MUCH:
        return Check(name, "good", found)
    return Check(
        name,
        "bad" if share >= 10 * _MUCH else "doubtful",
        found,
        "the tester stands still as long: trials are invalid or have to be repeated, "
        "and a device on this machine loses what its queue does not hold",
        "keep other work off these CPUs, isolate them, or measure when the machine is "
        "quiet",
    )


def _about(value_ns: float) -> str:
    return duration(float(f"{value_ns:.3g}"))


def _steal(share: float) -> Check:
    found = f"{share:.2%} of the time of all CPUs"
    if share < _STOLEN:
        return Check("steal_time", "good", found)
    return Check(
        "steal_time",
        "doubtful",
        found,
        "the host of this virtual machine gave its CPUs to others",
        "ask for CPUs of its own (pinned), or use a machine that is not virtual",
    )


def _stolen(machine: Machine) -> tuple[int, int] | None:
    """Stolen and all ticks, since boot."""
    line = (machine.text("proc/stat") or "").partition("\n")[0].split()
    if len(line) < 9 or line[0] != "cpu":
        return None
    ticks = [int(number) for number in line[1:9]]
    return ticks[7], sum(ticks)
