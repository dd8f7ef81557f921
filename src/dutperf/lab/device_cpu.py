"""How long others had the CPU of the lab's device while it wanted to run.

The kernel tells of each thread how long it ran and how long it waited for a CPU
(/proc/PID/schedstat). That one of the device's threads runs while another waits is the
device's own affair, so it does not count. What the host of a virtual machine took is
the CPU's steal time, in ticks of 10 ms.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dutperf.lab.state import PROC

_STEAL = 8  # of the fields of a CPU in /proc/stat, its name included


class Waited(NamedTuple):
    """Of one thread, since it was started."""

    ran_ns: int
    waited_ns: int


@dataclass(frozen=True)
class DeviceCpuWatch:
    """The device's CPU and the processes that work there.

    Attributes:
        cpu: its number.
        processes: tells their numbers; threads of the kernel are processes, too.
        port_frames: how many frames wait in front of them without being lost.
        drops: what the device's interfaces have dropped so far.
        sent: what it has sent to each port so far, where another CPU receives it.
        own_frames: how many wait behind that; None: nothing limits them.
    """

    cpu: int
    processes: Callable[[], Sequence[int]]
    port_frames: int
    proc: Path = PROC
    drops: Callable[[], dict[str, dict[str, int]]] = dict
    sent: Callable[[], dict[str, int]] = dict
    own_frames: Callable[[], int | None] = lambda: None

    @property
    def queue_frames(self) -> int:
        """How many frames wait for them without being lost, as the device is now."""
        own = self.own_frames()
        return self.port_frames if own is None else min(own, self.port_frames)

    def started(self) -> Callable[[], int]:
        """Begins to watch; what it returns tells the nanoseconds taken since.

        Of a device that was restarted meanwhile only what the host took is known.
        """
        working = self.processes()
        before, stolen_ns = self._threads(working), self._stolen_ns()

        def taken_ns() -> int:
            taken = self._stolen_ns() - stolen_ns
            if self.processes() != working:
                return taken
            return taken + _waited_for_others(before, self._threads(working))

        return taken_ns

    def _threads(self, working: Sequence[int]) -> dict[int, Waited]:
        return dict(
            found for process in working for found in _threads(process, self.proc)
        )

    def _stolen_ns(self) -> int:
        for line in (self.proc / "stat").read_text("ascii").splitlines():
            name, *ticks = line.split()
            if name == f"cpu{self.cpu}" and len(ticks) >= _STEAL:
                return int(ticks[_STEAL - 1]) * 10**9 // os.sysconf("SC_CLK_TCK")
        return 0


def _threads(process: int, proc: Path) -> Iterator[tuple[int, Waited]]:
    try:
        for task in (proc / str(process) / "task").iterdir():
            ran_ns, waited_ns, _ = (task / "schedstat").read_text("ascii").split()
            yield int(task.name), Waited(int(ran_ns), int(waited_ns))
    except OSError:  # it has ended, or the kernel keeps no such account
        return


def _waited_for_others(
    before: Mapping[int, Waited], after: Mapping[int, Waited]
) -> int:
    """How long threads waited, without what the device's other threads ran."""
    both = before.keys() & after.keys()
    ran_ns = {thread: after[thread].ran_ns - before[thread].ran_ns for thread in both}
    all_ns = sum(ran_ns.values())
    return sum(
        max(0, after[t].waited_ns - before[t].waited_ns - (all_ns - ran_ns[t]))
        for t in both
    )
