"""The CPU of a lab's device: who else had it, what was dropped or received there."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dutperf.errors import SetupError
from dutperf.lab import netns
from dutperf.lab.netns import name_in_lab
from dutperf.lab.processes import PROC
from dutperf.lab.topology import INNER
from dutperf.programs import in_namespace

if TYPE_CHECKING:
    from dutperf.lab.devices.device import LabDevice

# How long others had the CPU of the lab's device while it wanted to run.
#
# The kernel tells of each thread how long it ran and how long it waited for a CPU
# (/proc/PID/schedstat). That one of the device's threads runs while another waits is
# the device's own affair, so it does not count. What the host of a virtual machine took
# is the CPU's steal time, in ticks of 10 ms.


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


# The tester's receive work in a lab: on a CPU of its own, where there is one.
#
#     DUT's CPU:       forwards --> queue of its interface --> ring of the tester's
#     receive CPU:                                             ring --> tester's socket
#
# A veth device hands a frame to its peer's receive side on the CPU that sends it, so
# the DUT pays for the tester's sockets. With GRO on, its peer has a ring and a NAPI
# context instead, and that one may be a thread. Test frames are not merged by it:
# nothing that is forwarded here is TCP, and no socket asks for merged UDP. The peer
# uses the ring only where the sender cannot cut segments, so that is switched off at
# the DUT's end.
#
# The ring is short (256 frames). Since Linux 6.16 a full one stops the sender's queue,
# if it has one; before, the frame is dropped, and counted at the DUT's interface.
# Either way what is lost there is lost by the tester, so ``sent`` counts what it should
# receive.


NICE = -20
"""As the thread that serves the DUT's input queue: see ``machine``."""


def move_receiving(device: LabDevice, cpu: int) -> bool:
    """Has the tester's receive work done by ``cpu``; False: this kernel cannot.

    May be said again, and has to be once another driver had the interfaces: a program
    that leaves one takes its ring away.
    """
    _set_rings(device, on=False)
    ends = list(device.homes)
    # Those of other namespaces have the same names.
    others = receive_threads(ends)
    moved = _set_rings(device, on=True) and _set_threaded(device.tester, ends, on=True)
    own = receive_threads(ends) - others
    if not moved or len(own) != len(ends):  # as in a container, which sees none
        _set_threaded(device.tester, ends, on=False)
        _set_rings(device, on=False)
        return False
    for pid in own:
        os.sched_setaffinity(pid, {cpu})
        os.setpriority(os.PRIO_PROCESS, pid, NICE)
    return True


@contextmanager
def left_to_the_device(own_name: str | None = None) -> Iterator[None]:
    """In the block the DUT's CPU does it again: for comparison, of two wires.

    ``own_name``: of several labs, which one; None: the nameless one.
    """
    tester = name_in_lab(netns.TESTER, own_name)
    _set_threaded(tester, netns.SIDES, on=False)
    try:
        yield
    finally:
        _set_threaded(tester, netns.SIDES, on=True)


def frames_sent(device: LabDevice) -> dict[str, int]:
    """Frames that the DUT has sent to each of the tester's ports so far, by its name.

    By the queues before its wires: what left them, waits in them, or was dropped there.
    """
    queues = {
        (home, queue["dev"]): queue
        for home in device.namespaces
        for queue in _queues(home)
    }
    return {
        port.label: queues[end]["packets"] + queues[end]["drops"] + queues[end]["qlen"]
        for port, end in (
            (port, (device.homes[name], name))
            for name, port in device.tester_ports.items()
        )
        if end in queues
    }


def _queues(namespace: str) -> list[dict[str, Any]]:
    command = in_namespace(namespace, "tc", "-s", "-j", "qdisc", "show")
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    queues: list[dict[str, Any]] = json.loads(told.stdout or "[]")
    return queues


def _set_rings(device: LabDevice, *, on: bool) -> bool:
    """What the DUT sends goes to a ring; else up to the sockets at once."""
    return all(
        _set_feature(home, end, "tso", on=not on)
        and _set_feature(device.tester, end, "gro", on=on)
        for end, home in device.homes.items()
    )


def _set_feature(namespace: str, end: str, name: str, *, on: bool) -> bool:
    command = ["ethtool", "-K", end, name, "on" if on else "off"]
    done = subprocess.run(
        in_namespace(namespace, *command), capture_output=True, check=False
    )
    return done.returncode == 0


def _set_threaded(tester: str, ends: Sequence[str], *, on: bool) -> bool:
    settings = {f"/sys/class/net/{end}/threaded": str(int(on)) for end in ends}
    try:
        netns.write_settings(tester, settings)
    except SetupError:
        return False
    return True


def receive_threads(ends: Sequence[str] = netns.SIDES) -> set[int]:
    """The kernel's threads that serve an interface of such a name anywhere."""
    found = set()
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                name = (entry / "comm").read_text("ascii", errors="replace")
                if name.startswith(tuple(f"napi/{end}-" for end in ends)):
                    found.add(int(entry.name))
    return found


# What a lab's device dropped, as far as its kernel counts it at its interfaces.
#
# Its CPU's input queue is one of the machine's, so the engine has counted that already.


DROPS = (
    "rx_dropped",
    "rx_errors",
    "rx_missed_errors",
    "tx_dropped",
    "tx_errors",
)


def drops(device: LabDevice, *, sent: bool = True) -> dict[str, dict[str, int]]:
    """The drops of each of the device's interfaces since they were made.

    Those of the wire between two boxes are told with the port of the box. ``sent``:
    also of what it sent to the tester; else those are the tester's: see
    ``move_receiving``.
    """
    found: dict[str, dict[str, int]] = {}
    for end, home in device.homes.items():
        names = {
            counter: f"/sys/class/net/{end}/statistics/{counter}"
            for counter in DROPS
            if sent or counter != "tx_dropped"
        }
        if INNER in device.interfaces[home]:
            for counter in DROPS:
                path = f"/sys/class/net/{INNER}/statistics/{counter}"
                names[f"{INNER} {counter}"] = path
        shown = netns.read_settings(home, list(names.values()))
        found[end] = {
            name: int(shown[path]) for name, path in names.items() if path in shown
        }
    return found
