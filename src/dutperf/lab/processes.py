"""Processes that are part of the DUT: they outlive their maker, but not the lab.

A process is on record before it does anything: it waits for a line on its standard
input, which comes once ``record`` has returned. If the maker dies earlier, the pipe
closes and the process ends by itself. Its number and start time stay the same through
both replacements, ``ip netns exec`` and the shell.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dutperf.errors import SetupError

PROC = Path("/proc")
START_TIMEOUT_S = 60.0
"""A machine that is full of other work takes ten; one that ended is told at once."""
END_TIMEOUT_MS = 5000
_START_POLL_S = 0.02

_WAIT_AND_BECOME = 'read -r line && exec "$@" </dev/null'


@dataclass(frozen=True)
class Process:
    """A process, told apart from any other that had or will have its number."""

    pid: int
    start_ticks: int
    boot_id: str


def find_process(pid: int, proc: Path = PROC) -> Process | None:
    """The process that has this number now; None if there is none or it is dead."""
    try:
        stat = (proc / str(pid) / "stat").read_text("ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # Field 2, the program's name, may hold blanks and brackets: count from its end.
    fields = stat.rpartition(")")[2].split()
    if fields[0] in "ZX":
        return None
    boot_id = (proc / "sys/kernel/random/boot_id").read_text("ascii").strip()
    return Process(pid=pid, start_ticks=int(fields[19]), boot_id=boot_id)


def this_process() -> Process:
    """The calling process as an owner."""
    owner = find_process(os.getpid())
    if owner is None:
        raise SetupError("/proc does not show this process", "mount /proc")
    return owner


def is_running(process: Process, proc: Path = PROC) -> bool:
    """Whether the very process that is meant still runs."""
    return find_process(process.pid, proc) == process


@dataclass(frozen=True)
class Programs:
    """How a device's programs are started.

    Attributes:
        cpu: on which they run alone; None: on any.
        directory: that takes their files.
        record: is called with each before it runs; it goes on after this process has
            ended.
    """

    cpu: int | None
    directory: Path
    record: Callable[[Process], None]

    def start(
        self,
        command: Sequence[str],
        runs: Callable[[], bool],
        *,
        namespace: str,
        name: str,
        log: Path,
        hint: str,
    ) -> Process:
        """Starts one, and waits until ``runs`` says that it does its work.

        Raises:
            SetupError: it ended, or does not; see ``await_start``.
        """
        process = start(
            command, namespace=namespace, cpu=self.cpu, log=log, record=self.record
        )
        await_start(process, runs, name, log, hint)
        return process


def start(
    command: Sequence[str],
    *,
    namespace: str,
    cpu: int | None,
    log: Path,
    record: Callable[[Process], None],
) -> Process:
    """Starts ``command`` in ``namespace``, on ``cpu`` alone if one is given.

    Its output goes to ``log``. It gets a session of its own, so that no Ctrl-C reaches
    it, and no signal mask: the caller may have postponed signals.

    Raises:
        SetupError: it ended at once.
    """
    waiting, ready = os.pipe()
    try:
        pid = _spawn(
            [*_exec_in(namespace), *command],
            stdin=waiting,
            log=log,
        )
        process = find_process(pid)
        if process is None:
            raise SetupError(f"cannot run {command[0]} in namespace {namespace}")
        if cpu is not None:
            os.sched_setaffinity(pid, {cpu})
        record(process)
        os.write(ready, b"\n")
    finally:
        os.close(waiting)
        os.close(ready)
    return process


def await_start(
    process: Process, runs: Callable[[], bool], name: str, log: Path, hint: str
) -> None:
    """Waits until ``runs`` says that the process does what it was started for.

    Raises:
        SetupError: it ended, or does not within ``START_TIMEOUT_S``; has the last lines
            of its ``log``.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while not runs():
        late = time.monotonic() > deadline
        if late or not is_running(process):
            lines = log.read_text("utf-8", errors="replace").splitlines()
            said = [line for line in lines if line.strip()]
            last = "; ".join(said[-3:]) or "it said nothing"
            within = f" within {START_TIMEOUT_S:g} s" if late else ""
            raise SetupError(f"{name} did not start{within}: {last}", hint)
        time.sleep(_START_POLL_S)


def end(process: Process) -> None:
    """Ends ``process`` by force if it is still the one that was meant.

    Raises:
        SetupError: it does not end.
    """
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        # The handle keeps meaning this process even if its number is given away now.
        if is_running(process):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            _wait(handle, process.pid)
    finally:
        os.close(handle)


def _exec_in(namespace: str) -> list[str]:
    return ["ip", "netns", "exec", namespace, "sh", "-c", _WAIT_AND_BECOME, "sh"]


def _spawn(command: list[str], *, stdin: int, log: Path) -> int:
    # Not subprocess: it has no signal mask, and complains of processes that live on.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawnp(
        command[0],
        command,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
            *((os.POSIX_SPAWN_CLOSE, fd) for fd in _inherited()),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=(signal.SIGPIPE,),
    )


def _inherited() -> Iterator[int]:
    """What the caller's caller left open: a pipe or lock would stay with the device."""
    for fd in (int(path.name) for path in Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(OSError):  # the one that lists them is closed again
            if fd > 2 and os.get_inheritable(fd):
                yield fd


def _wait(handle: int, pid: int) -> None:
    ended = select.poll()
    ended.register(handle, select.POLLIN)
    if not ended.poll(END_TIMEOUT_MS):
        raise SetupError(
            f"process {pid} of the lab does not end",
            "it hangs in the kernel; try again later",
        )
    # Somebody else's child is buried by whoever adopted it.
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PIDFD, handle, os.WEXITED)
