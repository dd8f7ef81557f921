"""How the device's CPUs, or queues, shared a trial, by what its hooks printed.

A counter that goes on is read before the trial and after it, by one command; others
are set back before each trial. Read are:

* /proc/net/softnet_stat: packets that each CPU took from its input queue;
* /proc/interrupts: interrupts of network interfaces, each line's on each CPU;
* ethtool -S: rx_queue_0_packets, rx0_packets, rx-0.packets;
* ovs-appctl dpif-netdev/pmd-stats-show: packets that each PMD thread received;
* the known-answer device's account: frames served by each receive queue.

Shares of a part are wrong shares: what a command printed is read whole, or not at all,
and then it is said why.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dutperf.results.model import CellResult, QueueLoad
from dutperf.results.trial_record import NOT_KEPT, HookRun, TrialRecord

_SOFTNET = re.compile(r"[0-9a-f]{8}(?: [0-9a-f]{8}){8,}")
_SOFTNET_CPU = 12
"""Of a line's columns the one that has the CPU, since Linux 5.14."""
_ETHTOOL = re.compile(
    r"^ *rx(?:_queue_|_|-)?([0-9]+)[_.](?:rx_)?(?:packets|pkts|frames): *([0-9]+)$",
    re.M,
)
_PMD = re.compile(
    r"^pmd thread numa_id [0-9]+ core_id ([0-9]+):\s+packets received: ([0-9]+)$", re.M
)
_SERVED = re.compile(
    r"^(forward|reverse), frames served by each receive queue: ([0-9, ]+)$", re.M
)
_CPUS = re.compile(r"^ *CPU[0-9]+(?: +CPU[0-9]+)* *$", re.M)
"""The head of /proc/interrupts, which names the CPUs that are online."""
_OF_AN_INTERFACE = re.compile(
    r"(?:\S*[-.])?(?:tx-?rx|rx-?tx|rx|tx|input|output)[-.]?[0-9]+"  # ice, virtio, ena
    r"|(?:eth[0-9]|en[opsx][0-9a-z]|vif[0-9])[\w.]*"  # alone, or as of sfc, qede, Xen
    r"(?:-(?:q|fp-)?[0-9]+(?:-[rt]x)?)?"
    r"|(?:mlx5_comp|mana_q|gve-ntfy-blk)[0-9]+@\S+",
    re.IGNORECASE,
)
_KERNELS_BITS = 32
"""Of the kernel's counters of CPUs, which begin again at 0."""


@dataclass(frozen=True)
class Counted:
    """What a command printed: the count of each CPU, or queue.

    Attributes:
        counts: by name; of interrupts, with their line.
        starts_anew: the command or its program sets them back before each trial, so
            they need not be read twice.
        bits: of a counter, before it begins at 0 again.
        unread: why they cannot be read.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    starts_anew: bool = False
    bits: int = 64
    interrupts: bool = False
    unread: str = ""

    def load(self, name: str, count: int) -> QueueLoad:
        """That of one of them in the trial."""
        if self.interrupts:
            return QueueLoad(queue=name, interrupts=count)
        return QueueLoad(queue=name, frames=count)


def beside_queues(result: CellResult, records: Sequence[TrialRecord]) -> CellResult:
    """The result of a sweep with what the device's queues took."""
    if result.cell.spec.sweep is None:
        return result
    passed = [
        record
        for record in records
        if record.role == "trial" and record.result.verdict.kind == "pass"
    ]
    if not passed:
        return result
    fastest = max(passed, key=lambda record: record.load_fps)
    queues, unread = queue_loads(fastest.hooks)
    return result.model_copy(update={"queues": queues, "unread": unread})


def queue_loads(hooks: Sequence[HookRun]) -> tuple[list[QueueLoad], list[str]]:
    """What each CPU, or queue, took in a trial; and what could not be read, and why."""
    before = {
        (*run.command, run.host): counted
        for run in hooks
        for counted in [counted_queues(run.output)]
        if run.moment == "before_trial" and (counted.counts or counted.unread)
    }
    found: dict[str, QueueLoad] = {}
    unread = []
    for run in hooks:
        if run.moment != "after_trial":
            continue
        now = counted_queues(run.output)
        began = before.get((*run.command, run.host))
        if why := now.unread or (began or now).unread or _gap(began, now):
            on = f" on {run.host}" if run.host else ""
            unread.append(f"{shlex.join(run.command)}{on}: {why}")
            continue
        for name, count in now.counts.items():
            rise = count - (began.counts.get(name, 0) if began else 0)
            if rise or began is None:
                found[name] = now.load(name, rise % 2**now.bits)
    return list(found.values()), unread


def _gap(before: Counted | None, now: Counted) -> str:
    """Why it is not known by how much each count rose; empty: it is."""
    if before is None:
        alone = now.counts and not now.starts_anew
        return "was not read before the trial, too (before_trial)" if alone else ""
    return next(_gaps(before.counts, now), "")


def _gaps(before: Mapping[str, int], now: Counted) -> Iterator[str]:
    for name in before:
        if name not in now.counts:
            yield f"{name} was not there any more after the trial"
    for name, count in now.counts.items():
        if name not in before and count:
            # A CPU that comes back goes on with what it counted when it went.
            yield f"{name} was not there before the trial"
        began = before.get(name, 0)
        if count < began and (count - began) % 2**now.bits >= 2 ** (now.bits - 1):
            yield f"{name} was set back in the trial, from {began:,} to {count:,}"


def counted_queues(text: str) -> Counted:
    """What a command printed; nothing, if no counter is in it."""
    found = _counted(text)
    if NOT_KEPT in text and (found.counts or found.unread):
        return Counted(
            unread="is too long to be kept whole: print the lines of the device's "
            "interfaces alone, each blank once (sed 's/  */ /g')"
        )
    return found


def _counted(text: str) -> Counted:
    if head := _CPUS.search(text):
        return _interrupts(head[0].split(), text[head.end() :].splitlines())
    lines = [line.split() for line in text.splitlines() if _SOFTNET.match(line.strip())]
    if lines:
        counts = {
            f"CPU {_cpu_of(number, columns)}": int(columns[0], 16)
            for number, columns in enumerate(lines)
        }
        return Counted(counts, bits=_KERNELS_BITS)
    found = {f"queue {name}": int(count) for name, count in _ETHTOOL.findall(text)}
    own = {f"CPU {name}": int(count) for name, count in _PMD.findall(text)}
    for direction, served in _SERVED.findall(text):
        each = enumerate(served.split(","))
        own |= {f"{direction} queue {n}": int(count) for n, count in each}
    return Counted(found | own, starts_anew=bool(own))


def _interrupts(cpus: Sequence[str], lines: Sequence[str]) -> Counted:
    """Each line has its number, a count for each CPU, how it comes, and for whom."""
    counts = Counter[str]()
    for words in map(str.split, lines):
        taken = words[1 : 1 + len(cpus)]
        if not words or not re.fullmatch(r"[0-9]+:", words[0]):
            continue
        if len(taken) < len(cpus) or not all(map(str.isdecimal, taken)):
            continue
        names = (word.rstrip(",") for word in words[1 + len(cpus) :])
        if line := next(filter(_OF_AN_INTERFACE.fullmatch, names), None):
            for cpu, count in zip(cpus, taken, strict=True):
                counts[f"{line} on {cpu.replace('CPU', 'CPU ')}"] += int(count)
    if not counts:
        return Counted(unread="no line is known as that of a network interface")
    return Counted(counts, bits=_KERNELS_BITS, interrupts=True)


def _cpu_of(number: int, columns: Sequence[str]) -> int:
    return int(columns[_SOFTNET_CPU], 16) if len(columns) > _SOFTNET_CPU else number
