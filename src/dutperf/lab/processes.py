"""The DUT's processes, which outlive their maker, but not the lab; and its CPUs.

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
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dutperf.errors import InputError, SetupError

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


# Which CPU does what: the tester's worker and the DUT must not share one.
#
# A veth device runs the receiver's work on the sender's CPU. Receive packet steering
# (RPS) at the DUT's interfaces moves forwarding to a CPU of its own; that is the
# difference between measuring the DUT and measuring the two together. What the DUT
# sends is received on its CPU likewise, unless there is a third one for that
# (``receive``).


@dataclass(frozen=True)
class CpuPlan:
    """CPU numbers. ``dut`` is None where the machine has but one CPU to use.

    ``receive``: takes in what the DUT sends; None: the DUT's own CPU has to.
    """

    worker: int
    dut: int | None
    main: int
    receive: int | None = None

    def describe(self) -> str:
        """Says where the DUT works, as part of the testbed's description."""
        if self.dut is None:
            return f"on the tester's own CPU {self.worker} (no other is usable)"
        return f"steered to CPU {self.dut} by RPS"

    def describe_process(self) -> str:
        """As ``describe``, for a DUT that is a process and not the kernel."""
        return self.describe() if self.dut is None else f"on CPU {self.dut}"


def plan_cpus(usable: Collection[int] | None = None) -> CpuPlan:
    """Gives the worker the first usable CPU, the DUT the last one.

    The main thread, which sleeps during trials, takes one that is free, or else the
    DUT's. Of three CPUs it shares one with the kernel's receive work, of more it need
    not. ``usable`` defaults to the CPUs that this process may run on.
    """
    cpus = sorted(os.sched_getaffinity(0) if usable is None else usable)
    if len(cpus) == 1:
        return CpuPlan(worker=cpus[0], dut=None, main=cpus[0])
    receive = cpus[-2] if len(cpus) > 2 else None
    return CpuPlan(worker=cpus[0], dut=cpus[-1], main=cpus[1], receive=receive)


def cpus_of_mask(mask: str) -> list[int]:
    """The CPUs in a mask as ``rps_cpus`` shows it: 32-bit words, highest first."""
    bits = int(mask.replace(",", "") or "0", 16)
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1]


def rps_mask(*cpus: int) -> str:
    """The mask of some CPUs as ``rps_cpus`` takes it: 32-bit words, highest first."""
    bits = sum(1 << cpu for cpu in set(cpus))
    words = max(1, -(-bits.bit_length() // 32))
    return ",".join(
        f"{bits >> 32 * n & 0xFFFFFFFF:08x}" for n in reversed(range(words))
    )


def dut_cpus(plan: CpuPlan, usable: Collection[int] | None = None) -> list[int]:
    """Those that the DUT may have, its own first: none that the tester needs.

    Of two CPUs the DUT's one is also the main thread's, which sleeps during trials.
    """
    if plan.dut is None:
        return []
    cpus = sorted(os.sched_getaffinity(0) if usable is None else usable)
    taken = {plan.worker, plan.main, plan.receive}
    return [plan.dut, *(c for c in reversed(cpus) if c not in taken | {plan.dut})]


def core_numbers(usable: Collection[int] | None = None) -> list[int]:
    """1, 2, 4 and so on, and as many as the DUT may have on this machine.

    Raises:
        InputError: it has none that is not the tester's, too.
    """
    most = len(dut_cpus(plan_cpus(usable), usable))
    if not most:
        raise InputError(
            "this machine has one CPU, which tester and device share",
            "take the key cores out, or a machine with more CPUs",
        )
    return [*(2**n for n in range(most.bit_length()) if 2**n < most), most]
