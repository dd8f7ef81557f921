"""The CPUs that the tester spins on: clocks, sleep, and who shares them."""

from __future__ import annotations

import gc
import math
import os
import time
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass

from dutperf.config import Testbed
from dutperf.config.testbed import ROLES
from dutperf.doctor import Check, Machine, cpus_in, listed
from dutperf.protocol.base import line_rate_fps
from dutperf.protocol.port_messages import PortSpec
from dutperf.results.units import duration

_CPU = "sys/devices/system/cpu"
_SLOW_WAKE_US = 50
"""A CPU that takes longer to wake delays the first frame after a pause by as much."""


def cpu_checks(machine: Machine, cpus: Set[int]) -> Iterator[Check]:
    """Of the CPUs that the tester uses."""
    yield _governor(machine, cpus)
    yield _turbo(machine)
    yield _idle_states(machine, cpus)
    yield _siblings(machine, cpus)
    yield _isolation(machine, cpus)
    yield _counter(machine)


def missing_check(testbed: Testbed, there: Set[int]) -> Iterator[Check]:
    """One if the testbed names CPUs that are not there."""
    main = [] if testbed.main_core is None else [testbed.main_core]
    missing = {*testbed.cores, *main} - there
    if missing:
        yield Check(
            "missing_cpus",
            "bad",
            f"{listed(missing)} of the testbed (cores, main_core) does not exist or is "
            "not available here",
            "the engine does not start, so nothing can be measured",
            f"choose from {', '.join(map(str, sorted(there)))}",
        )


def _governor(machine: Machine, cpus: Set[int]) -> Check:
    told = {
        cpu: machine.text(f"{_CPU}/cpu{cpu}/cpufreq/scaling_governor") for cpu in cpus
    }
    known = {name for name in told.values() if name}
    if not known:
        return Check("governor", "unknown", "the kernel does not set frequencies")
    slow = {cpu for cpu, name in told.items() if name and name != "performance"}
    if not slow:
        return Check("governor", "good", "performance")
    return Check(
        "governor",
        "doubtful",
        f"{', '.join(sorted(known))} on {listed(slow)}",
        "a core that changes its frequency changes what the tester can offer, and the "
        "delays that it adds",
        "cpupower frequency-set --governor performance",
    )


def _turbo(machine: Machine) -> Check:
    no_turbo = machine.text(f"{_CPU}/intel_pstate/no_turbo")
    boost = machine.text(f"{_CPU}/cpufreq/boost")
    if no_turbo is None and boost is None:
        return Check("turbo", "unknown", "the machine does not say")
    if no_turbo == "1" or boost == "0":
        return Check("turbo", "good", "off")
    return Check(
        "turbo",
        "doubtful",
        "on",
        "how fast a core is depends on heat and on what the others do, so repeats of "
        "one rate may differ",
        "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > "
        "/sys/devices/system/cpu/cpufreq/boost",
    )


def _idle_states(machine: Machine, cpus: Set[int]) -> Check:
    slowest: dict[str, int] = {}
    for cpu in cpus:
        folder = machine.root / _CPU / f"cpu{cpu}/cpuidle"
        for state in sorted(folder.glob("state*")):
            path = str(state.relative_to(machine.root))
            if machine.text(f"{path}/disable") == "1":
                continue
            name = machine.text(f"{path}/name") or state.name
            slowest[name] = max(
                slowest.get(name, 0), machine.number(f"{path}/latency") or 0
            )
    if not slowest:
        return Check("idle_states", "unknown", "the kernel does not choose idle states")
    name = max(slowest, key=lambda each: slowest[each])
    found = f"the deepest is {name}, {slowest[name]} us to wake up"
    if slowest[name] <= _SLOW_WAKE_US:
        return Check("idle_states", "good", found)
    return Check(
        "idle_states",
        "doubtful",
        found,
        "the tester's CPUs never sleep during a trial, but a device on this machine "
        "does: the first frames after a pause wait for it",
        "boot with intel_idle.max_cstate=1 processor.max_cstate=1, or keep "
        "/dev/cpu_dma_latency open with 0",
    )


def _siblings(machine: Machine, cpus: Set[int]) -> Check:
    shared: set[int] = set()
    known = False
    for cpu in cpus:
        text = machine.text(f"{_CPU}/cpu{cpu}/topology/thread_siblings_list")
        if text is None:
            continue
        known = True
        others = cpus_in(text) - {cpu}
        shared |= {cpu, *others} if others else set()
    if not known:
        return Check("smt_siblings", "unknown", "the machine does not say")
    if not shared and "hypervisor" in _flags(machine):
        alone = "none visible in this virtual machine"
        return Check("smt_siblings", "unknown", alone)
    if not shared:
        return Check("smt_siblings", "good", "each CPU used is a core of its own")
    return Check(
        "smt_siblings",
        "doubtful",
        f"{listed(shared)} are threads of shared cores",
        "what runs on the sibling (the device, in a lab) takes part of the core away: "
        "the tester is slower while the device works",
        "choose cores whose siblings are idle, or switch SMT off: echo off > "
        "/sys/devices/system/cpu/smt/control",
    )


def _isolation(machine: Machine, cpus: Set[int]) -> Check:
    isolated = cpus_in(machine.text(f"{_CPU}/isolated") or "")
    missing = set(cpus) - isolated
    if not missing:
        return Check("isolated_cpus", "good", f"{listed(set(cpus))} isolated")
    return Check(
        "isolated_cpus",
        "doubtful",
        f"{listed(missing)} not isolated",
        "the kernel may run other work there: stalls of the tester, which make trials "
        "invalid",
        f"boot with isolcpus={','.join(map(str, sorted(cpus)))} and nohz_full of the "
        "same CPUs",
    )


_EMULATED = "QEMU TCG CPU"


def _counter(machine: Machine) -> Check:
    flags = _flags(machine)
    source = machine.text(
        "sys/devices/system/clocksource/clocksource0/current_clocksource"
    )
    if not flags:
        return Check("time_stamp_counter", "unknown", "the processor does not say")
    missing = [flag for flag in ("constant_tsc", "nonstop_tsc") if flag not in flags]
    told = f"clock source {source}" if source else "clock source not known"
    if machine.table("proc/cpuinfo").get("model name", "").startswith(_EMULATED):
        return Check(
            "time_stamp_counter",
            "doubtful",
            f"the host's clock, by QEMU's software emulation (TCG); {told}",
            "counts are exact; rates and delays are those of an emulated CPU",
            "use KVM, or a machine that is not emulated",
        )
    if not missing:
        return Check("time_stamp_counter", "good", f"constant and never stops; {told}")
    return Check(
        "time_stamp_counter",
        "bad" if "constant_tsc" in missing else "doubtful",
        f"without {', '.join(missing)}; {told}",
        "all delays and the schedule are taken from this counter: it has to run at one "
        "speed, and when a core sleeps, too",
        "use another machine; of a virtual one, ask for an invariant TSC",
    )


def _flags(machine: Machine) -> list[str]:
    return machine.table("proc/cpuinfo").get("flags", "").split()


# How long the tester's CPUs are away: a loop that does nothing but look at the clock.
#
# What it misses a tester would miss, too. On a virtual machine the host takes time that
# no process of this one has; the kernel counts it as stolen.


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


# What a tester takes for a link's speed: shares, cores, memory, before it is bought.
#
# Frames a second follow from the wire (RFC 2544 appendix B); what a core does is
# measured by ``dutperf bench`` or a passport, and else assumed. Memory is that of the
# engine's buffers (engine/src/dataplane/trial_run.cc, engine/src/dpdk/port.cc) and of
# its bits, one a frame (measure/sequence_tracker.h), kept once by share and once as a
# whole.


CORE_FPS = 10_000_000
"""What one core sends, or receives with checksums; more on most of today's CPUs."""
_ROOM_BYTES = 2048
_BUFFER_BYTES = _ROOM_BYTES + 128 + 128 + 64
"""With DPDK's headers and headroom, and what its pools put beside."""
_HISTOGRAMS_MB = 8
"""Of a share's recorder, with what a worker has of its own."""
_HUGE_PAGE_MB = 2
_EAL_MB = 32
"""DPDK's own: rings, tables, what is lost between buffers."""
_DESCRIPTORS = PortSpec(name="left", driver="pci")


@dataclass(frozen=True)
class ScalePlan:
    """Of both directions at the rate of a link.

    Attributes:
        line_fps: of each direction.
        cores: each sends or receives one share of one direction.
        memory_mb: the testbed's key: buffers, in huge pages.
        tracking_mb: the campaign's key: a bit a frame.
        other_mb: of other memory, with these bits.
    """

    line_fps: int
    shares: int
    cores: int
    memory_mb: int
    huge_pages: int
    tracking_mb: int
    other_mb: int


def scale_plan(
    link_mbps: int, frame_size: int, duration_s: float, core_fps: int = CORE_FPS
) -> ScalePlan:
    """For trials of ``duration_s`` with frames of one size, as long as a link has room.

    Args:
        link_mbps: of each direction.
        frame_size: bytes with FCS.
        duration_s: of a trial.
        core_fps: what a core sends, or receives.
    """
    line_fps = line_rate_fps(link_mbps, frame_size)
    shares = max(1, math.ceil(line_fps / core_fps))
    tracking_mb = _mb(math.ceil(line_fps * duration_s / 8))
    memory_mb = buffers_mb(shares)
    copies = 2 if shares > 1 else 1
    return ScalePlan(
        line_fps=line_fps,
        shares=shares,
        cores=ROLES * shares,
        memory_mb=memory_mb,
        huge_pages=math.ceil(memory_mb / _HUGE_PAGE_MB),
        tracking_mb=tracking_mb,
        other_mb=2 * (copies * tracking_mb + shares * _HISTOGRAMS_MB),
    )


def buffers_mb(shares: int, lanes: int = 1) -> int:
    """Of two ports; ``lanes``: frame sizes, paths and streams of a direction."""
    rx, tx = _DESCRIPTORS.rx_descriptors, _DESCRIPTORS.tx_descriptors
    received = 2 * rx * shares + tx * shares + 512
    sent = shares * (min(lanes, 2) * 2 * tx + max(lanes - 2, 0) * tx // 2)
    return _mb(2 * (received + sent) * _BUFFER_BYTES) + _EAL_MB


def _mb(amount: int) -> int:
    return math.ceil(amount / 2**20)
