"""What belongs to the whole machine: a lab changes it, and sets it back when it goes.

The neighbour tables of all namespaces share their limits, and only the initial
namespace can set them. With Linux's 1,024 entries a DUT starves at a few hundred hosts.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dutperf.config.campaign import IN_FLIGHT_FRAMES
from dutperf.errors import SetupError
from dutperf.lab.processes import PROC, Process, find_process, is_running
from dutperf.lab.state import ChangedSetting, RaisedPriority

NEIGHBOURS = 2**18
"""Room for 65,536 hosts on both sides, by IPv4 as by IPv6."""
NEIGHBOUR_LIMITS = tuple(
    Path(f"/proc/sys/net/{family}/neigh/default/gc_thresh{number}")
    for family in ("ipv4", "ipv6")
    for number in (1, 2, 3)  # entries below the first are never collected
)


def settings_to_raise(paths: Iterable[Path], least: int) -> tuple[ChangedSetting, ...]:
    """Those of ``paths`` that are below ``least``, as ``settings_to_change``."""
    found = settings_to_change(paths, least)
    return tuple(setting for setting in found if setting.before < least)


def settings_to_change(paths: Iterable[Path], value: int) -> tuple[ChangedSetting, ...]:
    """Those of ``paths`` that are not ``value``; nothing is changed yet.

    Left out are those that this process does not see or may not change, as in most
    containers: the lab works without them, but not for as many hosts.
    """
    usable = [path for path in paths if os.access(path, os.W_OK)]
    found = [(path, int(path.read_text("ascii"))) for path in usable]
    return tuple(
        ChangedSetting(path=path, before=before, meanwhile=value)
        for path, before in found
        if before != value
    )


def change_settings(settings: Sequence[ChangedSetting]) -> None:
    """Sets what was found to change, once it is on record."""
    for setting in settings:
        _write(setting.path, setting.meanwhile)


def restore_settings(settings: Sequence[ChangedSetting]) -> None:
    """Sets everything back, but for what somebody has changed meanwhile."""
    for setting in settings:
        now = setting.path.read_text("ascii") if setting.path.exists() else ""
        if now.strip() == str(setting.meanwhile):
            _write(setting.path, setting.before)


def _write(path: Path, value: int) -> None:
    try:
        path.write_text(f"{value}\n", "ascii")
    except OSError as error:
        raise SetupError(
            f"cannot write {value} to {path}: {error.strerror}",
            "the lab needs the right to set it (CAP_NET_ADMIN)",
        ) from error


# A kernel DUT's input queue: shorter than the tester's own, and served at once.
#
#     wire --> input queue (netdev_max_backlog) --> ksoftirqd of the DUT's CPU --> wire
#
# A frame that waits there keeps one of the tester's buffers, so a queue that holds as
# many as the tester has never overflows: the tester stands still, and the DUT never
# loses a frame however slow it is. A short one overflows though the DUT is fast enough,
# when its CPU is away for a moment, as on a machine that other programs share. So the
# lab sets the queue as long as the tester's buffers allow, and gives the thread that
# serves it precedence, while it is up. Where they cannot be set the lab goes on, and
# its description says so.
#
# The queue's length is one for the whole machine, like the settings in ``machine``.


BACKLOG = Path("/proc/sys/net/core/netdev_max_backlog")
RECEIVE_BUFFER = Path("/proc/sys/net/core/rmem_default")
_SHORT_FRAME_BYTES = 832
"""What a query takes of a socket's buffer, as ``ss -m`` tells: 256 are its record's."""
QUEUES = 2
"""The kernel takes the whole input queue to a second one, and fills the first again."""
QUEUE_FRAMES = IN_FLIGHT_FRAMES * 3 // 4 // QUEUES
"""Both queues leave a quarter of a port's frames to all that is not in them."""
NICE = -20

_KERNEL_THREAD = 0x00200000  # PF_KTHREAD, linux/sched.h
_FLAGS = 6  # of the fields of /proc/PID/stat behind the name


@dataclass(frozen=True)
class Changes:
    """What is to be changed, and so to be undone later.

    Attributes:
        needed: settings without which the lab does not come up.
        wished: settings without which it does.
        priorities: likewise.
    """

    needed: tuple[ChangedSetting, ...] = ()
    wished: tuple[ChangedSetting, ...] = ()
    priorities: tuple[RaisedPriority, ...] = ()

    @property
    def settings(self) -> tuple[ChangedSetting, ...]:
        """All of them."""
        return self.needed + self.wished


def queue_changes(cpu: int | None) -> Changes:
    """Finds out what to change for a DUT on ``cpu``; nothing is changed yet.

    A thread that has this precedence stays as it is, and so does that of the tester's
    own CPU (``cpu`` None): it would take precedence over the tester there.
    """
    thread = server_of(cpu)
    nice = None if thread is None else _nice(thread)
    return Changes(
        wished=settings_to_change([BACKLOG], QUEUE_FRAMES),
        priorities=()
        if thread is None or nice is None or nice <= NICE
        else (RaisedPriority(thread=thread, before=nice, raised=NICE),),
    )


def apply_changes(changes: Changes) -> None:
    """Changes what is planned, once it is on record.

    Raises:
        SetupError: the machine does not allow what is needed.
    """
    change_settings(changes.needed)
    with contextlib.suppress(SetupError):
        change_settings(changes.wished)
    for priority in changes.priorities:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, priority.thread.pid, priority.raised)


def queue_length() -> int | None:
    """Frames that the input queue holds now; None if the kernel does not show it."""
    try:
        return int(BACKLOG.read_text("ascii"))
    except OSError:
        return None


def socket_frames() -> int:
    """Short frames that a UDP socket holds, if its program asks for no more."""
    return int(RECEIVE_BUFFER.read_text("ascii")) // _SHORT_FRAME_BYTES


def server_of(cpu: int | None) -> Process | None:
    """The thread that serves the queue of ``cpu``; None if it is not to be seen."""
    return None if cpu is None else find_kernel_thread(f"ksoftirqd/{cpu}")


def describe_queue(
    cpu: int | None,
    settings: Iterable[ChangedSetting],
    priorities: Iterable[RaisedPriority],
) -> str:
    """Queue and thread of a DUT on ``cpu`` as they are; what they were, if it is known.

    ``settings`` and ``priorities`` may have others among them.
    """
    said = [_describe_queue(settings)]
    if cpu is not None:
        said.append(_describe_thread(cpu, priorities))
    return ", ".join(said)


def restore_priorities(priorities: tuple[RaisedPriority, ...]) -> None:
    """Sets everything back, but for what somebody has changed meanwhile."""
    for priority in priorities:
        thread = priority.thread
        if is_running(thread) and _nice(thread) == priority.raised:
            try:
                os.setpriority(os.PRIO_PROCESS, thread.pid, priority.before)
            except OSError as error:
                raise SetupError(
                    f"cannot set thread {thread.pid} back to nice {priority.before}: "
                    f"{error.strerror}",
                    "the lab needs the right to set it (CAP_SYS_NICE)",
                ) from error


def find_kernel_thread(name: str, proc: Path = PROC) -> Process | None:
    """The kernel's own thread of that name; programs may call themselves the same.

    None in a container with process numbers of its own.
    """
    for pid, stat in _stats(proc):
        before, _, after = stat.rpartition(")")
        if before.partition("(")[2] != name:
            continue
        if int(after.split()[_FLAGS]) & _KERNEL_THREAD:
            return find_process(pid, proc)
    return None


def _stats(proc: Path) -> Iterator[tuple[int, str]]:
    for entry in proc.iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                stat = (entry / "stat").read_text("ascii", errors="replace")
                yield int(entry.name), stat


def _nice(thread: Process) -> int | None:
    try:
        return os.getpriority(os.PRIO_PROCESS, thread.pid)
    except OSError:
        return None


def _describe_queue(settings: Iterable[ChangedSetting]) -> str:
    now = queue_length()
    if now is None:
        return "input queue of unknown length (the kernel's setting is not shown here)"
    told = [f"set from {s.before}" for s in settings if _is_changed(s, now)]
    told.append(f"the tester has {IN_FLIGHT_FRAMES} in flight")
    if QUEUES * now >= IN_FLIGHT_FRAMES:
        told.append("too few to fill it: a slow device may hold the tester back")
    return f"input queue of {now} frames ({'; '.join(told)})"


def _is_changed(setting: ChangedSetting, now: int) -> bool:
    return setting.path == BACKLOG and setting.meanwhile == now


def _describe_thread(cpu: int, priorities: Iterable[RaisedPriority]) -> str:
    name, thread = f"ksoftirqd/{cpu}", server_of(cpu)
    nice = None if thread is None else _nice(thread)
    if nice is None:
        return f"{name} of unknown precedence (it is not shown here)"
    before = [p.before for p in priorities if p.thread == thread and p.raised == nice]
    raised = "".join(f" (raised from {nice})" for nice in before)
    return f"{name} at nice {nice}{raised}"
