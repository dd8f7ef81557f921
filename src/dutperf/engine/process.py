"""Starting and ending the engine process.

Everything that can be known beforehand is checked before the process is started. The
engine gets a session of its own, so that Ctrl-C reaches only Python, which then ends
the trial in order; and it ends by itself when its socket closes, so it never outlives
Python.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

from dutperf.engine.client import Ending, Engine, last_log_line
from dutperf.errors import EngineError, InputError, SetupError
from dutperf.plain_files import append_plain
from dutperf.programs import ends_within, find_engine
from dutperf.protocol.result_messages import TrialResult

# Which CPUs there are: those of the machine, not only those of the shell.


_MOST = 8192
"""As many as Linux can have."""


def existing_cpus() -> set[int]:
    """Those that a thread of ours may be put on.

    A CPU that is isolated (``isolcpus``) belongs to nobody's affinity until somebody
    asks for it; one that a container must not use is not given to who asks. So this
    thread asks for all, looks at what it got, and gives it back.
    """
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, range(_MOST))
    except OSError:  # a sandbox that lets nobody ask
        return before
    try:
        return os.sched_getaffinity(0)
    finally:
        os.sched_setaffinity(0, before)


_NAMESPACES = Path("/run/netns")
_MEMINFO = Path("/proc/meminfo")
_VMSTAT = Path("/proc/vmstat")
_END_TIMEOUT_S = 3.0
_LOADER_MESSAGE = "error while loading shared libraries"


def start_engine(
    *,
    worker_cpus: list[int],
    main_cpu: int,
    memory_mb: int,
    hugepages: bool,
    namespace: str | None,
    log_path: Path,
    pci: Sequence[str] = (),
) -> AbstractContextManager[Engine]:
    """Check the machine; return a context that starts the engine and ends it.

    Args:
        worker_cpus: CPUs of the workers, in role order.
        main_cpu: CPU of the engine's sleeping main thread.
        memory_mb: memory for DPDK, in MiB.
        hugepages: take it from huge pages.
        namespace: network namespace to run in; None: the caller's own.
        log_path: where the engine's and DPDK's messages are appended.
        pci: addresses of the devices that the engine may touch.

    Raises:
        InputError: a CPU does not exist.
        SetupError: not root, no engine, no namespace, or it does not start.
    """
    check_machine(worker_cpus, main_cpu, namespace)
    arguments = [
        str(find_engine()),
        *("--main-cpu", str(main_cpu)),
        *("--worker-cpus", ",".join(map(str, worker_cpus))),
        *("--memory-mb", str(memory_mb)),
        *("--hugepages", "on" if hugepages else "off"),
        *(f"--pci={address}" for address in pci),
    ]
    prefix = ["ip", "netns", "exec", namespace] if namespace else []
    return run_engine([*prefix, *arguments], log_path)


@contextlib.contextmanager
def run_engine(command: list[str], log_path: Path) -> Iterator[Engine]:
    """Run ``command`` with a control socket; yield the engine once it has answered."""
    ours, theirs = socket.socketpair()
    before = _ended_for_memory()
    with ours:
        with theirs:
            process = _spawn(command, theirs, log_path)
        engine = Engine(
            ours, log_path=log_path, how_it_ended=lambda: _how_it_ended(process, before)
        )
        try:
            # What reads results takes a while to build; the engine takes longer.
            TrialResult.model_rebuild()
            _await_start(engine, process, log_path)
            yield engine
        finally:
            _end(engine, process)


def check_machine(worker_cpus: list[int], main_cpu: int, namespace: str | None) -> None:
    """Check all that can be known before the engine is started.

    Raises:
        InputError: a CPU does not exist.
        SetupError: no engine, no such namespace, or not root, who alone enters one.
    """
    check_cpus(worker_cpus, main_cpu)
    if namespace:
        check_root()
        check_namespace(namespace)
    find_engine()


def check_root() -> None:
    """Raise SetupError unless we may open network devices."""
    if os.geteuid() != 0:
        raise SetupError(
            "measuring needs root: network devices and namespaces are opened",
            "run the same command with sudo",
        )


def check_cpus(worker_cpus: list[int], main_cpu: int) -> None:
    """Raise InputError when a CPU does not exist or is not ours to use."""
    available = existing_cpus()
    offered = ", ".join(map(str, sorted(available)))
    for key, cpus in (("cores", worker_cpus), ("main_core", [main_cpu])):
        missing = [cpu for cpu in cpus if cpu not in available]
        if missing:
            raise InputError(
                f"testbed key {key}: CPU {missing[0]} does not exist or is not "
                f"available here; available are {offered}",
                f"choose from {offered}",
            )


def choose_main_cpu(worker_cpus: list[int]) -> int:
    """A CPU that no worker uses, or the first worker's when there is none."""
    spare = os.sched_getaffinity(0) - set(worker_cpus)
    return min(spare) if spare else worker_cpus[0]


def check_namespace(namespace: str) -> None:
    """Raise SetupError when the network namespace does not exist."""
    if not (_NAMESPACES / namespace).exists():
        raise SetupError(
            f"the network namespace {namespace} (testbed key namespace) does not exist",
            "for the lab: run 'dutperf lab up linux-router'; "
            "otherwise correct the key, see 'ip netns list'",
        )


def has_interface(namespace: str | None, interface: str) -> bool:
    """Whether it exists in a network namespace; None: in our own."""
    prefix = ["ip"] if namespace is None else ["ip", "-n", namespace]
    try:
        done = subprocess.run(
            [*prefix, "link", "show", "dev", interface],
            capture_output=True,
            check=False,
            timeout=_END_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return True  # nobody can tell: opening the port will
    return done.returncode == 0


def more_huge_pages(meminfo: Mapping[str, int], needed_mb: int) -> str:
    """The command after which so much is free; what others have stays theirs."""
    size_kb = meminfo.get("Hugepagesize") or 2048
    taken = meminfo.get("HugePages_Total", 0) - meminfo.get("HugePages_Free", 0)
    pages = taken - (-needed_mb * 1024 // size_kb)
    return f"echo {pages} > /proc/sys/vm/nr_hugepages"


def choose_hugepages(
    setting: Literal["auto", "off"],
    *,
    memory_mb: int,
    pci: bool,
    meminfo: Path = _MEMINFO,
) -> tuple[bool, str]:
    """Decide about huge pages; the text is a notice for the user, or empty.

    Raises:
        SetupError: PCI ports need huge pages and there are not enough; or without
            them this machine has not so much memory free.
    """
    fields = _meminfo(meminfo)
    free_mb = fields.get("HugePages_Free", 0) * fields.get("Hugepagesize", 0) // 1024
    if setting == "auto" and free_mb >= memory_mb:
        return True, ""
    remedy = more_huge_pages(fields, memory_mb)
    if pci:
        cause = (
            "testbed key hugepages is off"
            if setting == "off"
            else f"{free_mb} MiB of {memory_mb} MiB (key memory_mb) are free"
        )
        raise SetupError(
            f"PCI ports need huge pages: {cause}", f"set hugepages to auto and {remedy}"
        )
    available_mb = fields.get("MemAvailable", memory_mb * 1024) // 1024
    if memory_mb > available_mb:
        raise SetupError(
            f"testbed key memory_mb: {memory_mb:,} MiB are asked for, and "
            f"{available_mb:,} MiB of this machine are free",
            "lower memory_mb, or end what else runs",
        )
    if setting == "off":
        return False, ""
    notice = (
        "no huge pages: running with --no-huge; slower and not for PCI ports: " + remedy
    )
    return False, notice


def _meminfo(path: Path) -> dict[str, int]:
    """Counts and kB."""
    lines = [line.split(":", 1) for line in path.read_text().splitlines()]
    return {parts[0]: int(parts[1].split()[0]) for parts in lines if len(parts) == 2}


def _spawn(
    command: list[str], control: socket.socket, log_path: Path
) -> subprocess.Popen[bytes]:
    descriptor = control.fileno()
    try:
        opened = append_plain(log_path)
    except OSError as error:
        raise SetupError(
            f"cannot write {log_path}: {error.strerror}",
            "give a directory that this user may write to, without links in it",
        ) from error
    with opened as log:
        try:
            return subprocess.Popen(
                [*command, "--control-fd", str(descriptor)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[descriptor],
                start_new_session=True,
            )
        except OSError as error:
            raise SetupError(
                f"cannot start {command[0]}: {error.strerror}",
                "'ip' is in the Debian package iproute2"
                if command[0] == "ip"
                else "run 'make setup' again",
            ) from error


def _await_start(
    engine: Engine, process: subprocess.Popen[bytes], log_path: Path
) -> None:
    try:
        engine.hello()
    except EngineError as error:
        log = log_path.read_text(errors="replace")
        if _LOADER_MESSAGE in log or process.poll() == 127:
            raise SetupError(
                "the engine cannot start, a shared library is missing: "
                f"{last_log_line(log_path)}",
                "install DPDK: apt-get install libdpdk-dev, then 'make setup' again",
            ) from error
        raise


def _how_it_ended(process: subprocess.Popen[bytes], before: int | None) -> Ending:
    """``before``: see ``_ended_for_memory``, when the engine was started."""
    try:
        status = process.wait(_END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return Ending("it closed its socket")
    if status == -signal.SIGKILL:
        return Ending("signal 9", _why_killed(before, _ended_for_memory()))
    return Ending(f"signal {-status}" if status < 0 else f"exit status {status}")


def _why_killed(before: int | None, now: int | None) -> str:
    if before is None or now is None:
        return "somebody killed it, or the kernel did for lack of memory: see dmesg"
    if now > before:
        return (
            "memory ran out, and the kernel killed it: free some, or ask for less "
            "(testbed key memory_mb, fewer connections, shorter trials)"
        )
    return "somebody killed it; by the kernel's record memory was not short"


def _ended_for_memory() -> int | None:
    """How many processes the kernel ended for lack of memory; None: it does not say."""
    for line in _VMSTAT.read_text().splitlines() if _VMSTAT.exists() else ():
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return None


def _end(engine: Engine, process: subprocess.Popen[bytes]) -> None:
    """By request, then by closing the socket, SIGTERM and SIGKILL; never waits long."""
    try:
        if process.poll() is None:
            with contextlib.suppress(EngineError):
                engine.shutdown()
        engine.close()
        _wait(process, process.terminate)
        _wait(process, process.kill)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], otherwise: Callable[[], None]) -> None:
    if ends_within(process, _END_TIMEOUT_S):
        process.wait()
    else:
        otherwise()
