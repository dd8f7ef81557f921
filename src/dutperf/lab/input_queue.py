"""A kernel DUT's input queue: deep, and served before other work on the DUT's CPU.

    wire --> input queue (netdev_max_backlog) --> ksoftirqd of the DUT's CPU --> wire

Linux queues 1,000 frames, some 1-3 ms of traffic. On a machine that other programs
share, the DUT's CPU is away for longer than that now and then, and the queue overflows
though the DUT is fast enough. So the lab makes it deeper and gives the thread that
serves it precedence, while the lab is up. Both are good for the DUT, not necessary:
where they cannot be set the lab goes on, and its description says so.

The queue's length is one for the whole machine, like the settings in ``machine``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dutperf.errors import SetupError
from dutperf.lab import machine
from dutperf.lab.state import (
    PROC,
    Process,
    RaisedPriority,
    RaisedSetting,
    find_process,
    is_running,
)

BACKLOG = Path("/proc/sys/net/core/netdev_max_backlog")
FRAMES = 16384
"""As deep as the tester's own rings: 40 ms at 400,000 frames per second."""
NICE = -20

_KERNEL_THREAD = 0x00200000  # PF_KTHREAD, linux/sched.h
_FLAGS = 6  # of the fields of /proc/PID/stat behind the name


@dataclass(frozen=True)
class Changes:
    """What is to be changed for a DUT on ``cpu``, and so to be undone later.

    Attributes:
        cpu: None if the tester's worker is on the DUT's CPU; the thread would take
            precedence over the tester there, and is left alone.
        thread: the one that serves the queue; None if it is not to be seen.
    """

    cpu: int | None
    thread: Process | None
    settings: tuple[RaisedSetting, ...]
    priorities: tuple[RaisedPriority, ...]


def plan(cpu: int | None) -> Changes:
    """Finds out what to change; nothing is changed yet.

    A longer queue stays as it is, and so does a thread that has this precedence.
    """
    thread = None if cpu is None else find_kernel_thread(f"ksoftirqd/{cpu}")
    nice = None if thread is None else _nice(thread)
    return Changes(
        cpu=cpu,
        thread=thread,
        settings=machine.settings_to_raise([BACKLOG], FRAMES),
        priorities=()
        if thread is None or nice is None or nice <= NICE
        else (RaisedPriority(thread=thread, before=nice, raised=NICE),),
    )


def apply(changes: Changes) -> str:
    """Changes what is planned, once it is on record; says how the queue is now."""
    refused = ""
    try:
        machine.raise_settings(changes.settings)
    except SetupError as error:
        refused = error.message
    said = [_describe_queue(changes, refused)]
    if changes.cpu is not None:
        said.append(_describe_thread(changes, _prefer(changes.priorities)))
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


def _prefer(priorities: tuple[RaisedPriority, ...]) -> str:
    """Gives precedence; what was refused, or nothing."""
    for priority in priorities:
        try:
            os.setpriority(os.PRIO_PROCESS, priority.thread.pid, priority.raised)
        except OSError as error:
            return error.strerror or "refused"
    return ""


def _describe_queue(changes: Changes, refused: str) -> str:
    try:
        now = int(BACKLOG.read_text("ascii"))
    except OSError:
        return "input queue of unknown length (the kernel's setting is not shown here)"
    if now < FRAMES:
        reason = refused or f"{BACKLOG} is read-only here"
        return f"input queue of {now} frames only ({reason})"
    raised = "".join(f" (raised from {s.before})" for s in changes.settings)
    return f"input queue of {now} frames{raised}"


def _describe_thread(changes: Changes, refused: str) -> str:
    name = f"ksoftirqd/{changes.cpu}"
    if changes.thread is None:
        return f"{name} without precedence (it is not shown here)"
    if refused:
        return f"{name} without precedence (cannot set nice {NICE}: {refused})"
    raised = "".join(f" (raised from {p.before})" for p in changes.priorities)
    return f"{name} at nice {_nice(changes.thread)}{raised}"
