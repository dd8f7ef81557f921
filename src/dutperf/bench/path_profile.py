"""Where the time of a CPU goes: samples of ``perf``, grouped by what we can change.

    perf record -g -C CPUS -> perf script -> [Sample] -> shares(samples, RULES)

A rule is a name and the functions that stand for it. A sample belongs to the first rule
of its list that one of the functions on its stack fits, so lists go from the inside
out: copying inside a system call counts as copying. What no rule takes is ``other``.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Whose = Literal["engine", "kernel", "idle", "other"]

_HZ = 997
"""A prime: samples must not keep step with the kernel's own ticks."""
_END_TIMEOUT_S = 10.0
_SCRIPT_TIMEOUT_S = 60.0
_KERNEL = "kernel.kallsyms"
_HEAD = re.compile(r"^(?P<comm>\S.*?)\s+\d+\s+\[(?P<cpu>\d+)\]")
_FRAME = re.compile(r"^\s+[0-9a-f]+\s+(?P<symbol>.*) \((?P<object>[^()]*)\)$")


@dataclass(frozen=True)
class Frame:
    """A function on a stack, and the program, library or kernel that it belongs to."""

    symbol: str
    object: str

    @property
    def in_kernel(self) -> bool:
        """Whether it is the kernel's."""
        return _KERNEL in self.object


@dataclass(frozen=True)
class StackSample:
    """What a CPU did at one moment; ``stack`` begins with the innermost function."""

    task: str
    cpu: int
    stack: tuple[Frame, ...]

    @property
    def in_kernel(self) -> bool:
        """Whether the innermost function is the kernel's."""
        return bool(self.stack) and self.stack[0].in_kernel


@dataclass(frozen=True)
class Rule:
    """One share: whose it is, its name, and which samples are part of it."""

    whose: Whose
    name: str
    fits: Callable[[StackSample], bool]


@dataclass(frozen=True)
class Share:
    """A share of a CPU's time."""

    whose: Whose
    name: str
    percent: float


@dataclass(frozen=True)
class CpuProfile:
    """Where the time of one CPU went.

    Attributes:
        shares: by rule, in the order of the rules; they add up to 100.
        kernel_percent: all samples of which the innermost function is the kernel's,
            but not its idle loop.
        ksoftirqd_percent: the part of it in the kernel's own thread for soft
            interrupts: there is more such work than fits in between.
        busy_percent: everything but the idle loop.
        top_kernel: the kernel's functions with the most samples, in percent of all.
        top_engine: those of the engine and its libraries, likewise.
    """

    cpu: int
    samples: int
    shares: list[Share]
    kernel_percent: float
    ksoftirqd_percent: float
    busy_percent: float
    top_kernel: list[tuple[str, float]]
    top_engine: list[tuple[str, float]]


def _within(pattern: str) -> Callable[[StackSample], bool]:
    wanted = re.compile(pattern)
    return lambda s: any(f.in_kernel and wanted.fullmatch(f.symbol) for f in s.stack)


def _innermost(pattern: str) -> Callable[[StackSample], bool]:
    wanted = re.compile(pattern)
    return lambda s: s.in_kernel and bool(wanted.fullmatch(s.stack[0].symbol))


def _of_engine(objects: str) -> Callable[[StackSample], bool]:
    wanted = re.compile(objects)
    return lambda s: (
        _is_worker(s) and not s.in_kernel and bool(wanted.search(_object(s)))
    )


def _object(sample: StackSample) -> str:
    return Path(sample.stack[0].object).name if sample.stack else ""


def _is_worker(sample: StackSample) -> bool:
    return sample.task.startswith("rte-worker")


def _is_idle(sample: StackSample) -> bool:
    return sample.task.startswith("swapper") and not _SOFTIRQ(sample)


_SOFTIRQ = _within(r"handle_softirqs|__do_softirq|net_rx_action")
_SYSCALL = _within(r".*do_syscall_64|entry_SYSCALL.*|el0t?_svc.*|do_el0_svc.*")
_SOCKET_RECEIVE = _within(
    r"tpacket_.*|packet_rcv.*|nft_do_chain_netdev|__xsk_.*|xsk_.*|veth_xdp_rcv.*|"
    r"do_xdp_generic|xdp_do_(generic_)?redirect"
)
_FORWARDING = _within(r"ip6?_rcv.*|ip6?_forward.*|ip6?_(finish_)?output.*|ipv6_rcv")
_COPY = _innermost(
    r".*memcpy.*|copy_user.*|rep_movs.*|_copy_(to|from).*|skb_(copy|store)_bits"
)

WORKER_RULES: Sequence[Rule] = (
    Rule("engine", "send, receive, vary", _of_engine(r"dutperf-engine")),
    Rule("engine", "DPDK's drivers and pools", _of_engine(r"librte_|libxdp|libbpf")),
    Rule("engine", "C library", _of_engine(r"")),
    Rule("kernel", "soft interrupts (of the DUT, too)", _SOFTIRQ),
    Rule("kernel", "copying frames", _COPY),
    Rule("kernel", "wire to the DUT (veth)", _within(r"veth_xmit|dev_hard_start_xmit")),
    Rule(
        "kernel",
        "socket, sending",
        _within(r"(packet|xsk)_sendmsg|tpacket_snd|__xsk_(generic_)?.*xmit"),
    ),
    Rule("kernel", "socket, receiving", _within(r"(packet|xsk)_(recvmsg|poll)")),
    Rule(
        "kernel",
        "entering and leaving system calls",
        lambda s: _is_worker(s) and s.in_kernel and _SYSCALL(s),
    ),
    Rule("idle", "idle", _is_idle),
)
"""For the CPU of the tester's worker."""

DUT_RULES: Sequence[Rule] = (
    Rule("kernel", "the tester's sockets", _SOCKET_RECEIVE),
    Rule("kernel", "forwarding", _FORWARDING),
    Rule("kernel", "steering and queues", _SOFTIRQ),
    Rule("engine", "the tester's workers", _is_worker),
    Rule("idle", "idle", _is_idle),
)
"""For the CPU to which a lab's device is steered."""


def cpu_profile(
    samples: Iterable[StackSample], cpu: int, rules: Sequence[Rule], top: int = 8
) -> CpuProfile | None:
    """The profile of ``cpu``; None when it has no samples."""
    own = [sample for sample in samples if sample.cpu == cpu]
    if not own:
        return None
    taken = Counter(_rule_of(sample, rules) for sample in own)

    def percent(count: int) -> float:
        return round(100 * count / len(own), 1)

    shares = [Share(r.whose, r.name, percent(taken[i])) for i, r in enumerate(rules)]
    shares.append(Share("other", "other processes", percent(taken[len(rules)])))
    busy = [sample for sample in own if not _is_idle(sample)]
    kernel = [sample for sample in busy if sample.in_kernel]
    engine = [s for s in busy if _is_worker(s) and s.stack and not s.in_kernel]
    return CpuProfile(
        cpu=cpu,
        samples=len(own),
        shares=shares,
        kernel_percent=percent(len(kernel)),
        ksoftirqd_percent=percent(sum(s.task.startswith("ksoftirqd") for s in own)),
        busy_percent=percent(len(busy)),
        top_kernel=_top(kernel, top, percent),
        top_engine=_top(engine, top, percent),
    )


def _rule_of(sample: StackSample, rules: Sequence[Rule]) -> int:
    fitting = (index for index, rule in enumerate(rules) if rule.fits(sample))
    return next(fitting, len(rules))


def _top(
    samples: list[StackSample], count: int, percent: Callable[[int], float]
) -> list[tuple[str, float]]:
    found = Counter(_name(sample.stack[0]) for sample in samples)
    return [(name, percent(times)) for name, times in found.most_common(count)]


def _name(frame: Frame) -> str:
    """Libraries without symbols count as a whole."""
    if frame.in_kernel or not frame.symbol.startswith(("[", "0x")):
        return frame.symbol
    return Path(frame.object).name


def parse_script(lines: Iterable[str]) -> Iterator[StackSample]:
    """The samples in the output of ``perf script -F comm,tid,cpu,ip,sym,dso``."""
    task, cpu, stack = "", -1, list[Frame]()
    for line in [*lines, ""]:
        if head := _HEAD.match(line):
            task, cpu, stack = head["comm"], int(head["cpu"]), []
        elif frame := _FRAME.match(line):
            stack.append(Frame(frame["symbol"].strip(), frame["object"]))
        elif not line.strip() and cpu >= 0:
            yield StackSample(task, cpu, tuple(stack))
            cpu = -1


class PerfProfiler:
    """Runs ``perf record`` on some CPUs while a block of time is interesting.

    ``start`` ... ``finish``. That there is no perf, or that it may not be used, is no
    error: ``finish`` returns no samples and ``trouble`` says why.
    """

    def __init__(self, cpus: Sequence[int]) -> None:
        self.trouble = ""
        self._cpus = cpus
        self._directory = tempfile.TemporaryDirectory(prefix="dutperf-perf-")
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Begin to sample; what an earlier block left is forgotten."""
        self.trouble = ""
        Path(self._data).unlink(missing_ok=True)
        program = shutil.which("perf")
        if program is None:
            self.trouble = "perf is not installed (Debian: apt-get install linux-perf)"
            return
        cpus = ",".join(map(str, self._cpus))
        self._process = subprocess.Popen(
            [program, "record", "-g", "-F", str(_HZ), "-C", cpus, "-o", self._data],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for us
        )
        _outrank(self._process.pid)

    def finish(self) -> list[StackSample]:
        """End the sampling; the samples."""
        process, self._process = self._process, None
        if process is None:
            self.trouble = self.trouble or "the trial ended before it was sampled"
            return []
        refused = process.poll() is not None
        process.send_signal(signal.SIGINT)  # how perf is asked to write its file
        said = _end(process)
        if refused:
            self.trouble = f"perf does not work here: {_last_line(said)}"
            return []
        return self._read()

    def close(self) -> None:
        """End what runs, remove what was written."""
        if self._process is not None:
            self._process.kill()
            _end(self._process)
        self._directory.cleanup()

    @property
    def _data(self) -> str:
        return os.fspath(Path(self._directory.name) / "perf.data")

    def _read(self) -> list[StackSample]:
        fields = "comm,tid,cpu,ip,sym,dso"
        done = subprocess.run(
            ["perf", "script", "-i", self._data, "-F", fields],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_SCRIPT_TIMEOUT_S,
        )
        samples = list(parse_script(done.stdout.splitlines()))
        if not samples:
            self.trouble = f"perf recorded nothing: {_last_line(done.stderr)}"
        return samples


def _outrank(pid: int) -> None:
    """Let a process run beside workers that have the highest priority.

    On CPUs that they fill it would start when the trial is over. The kernel may weigh
    processes by session (autogroup); where it does not, the file is missing.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, -20)
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text("-20")


def _end(process: subprocess.Popen[str]) -> str:
    try:
        return process.communicate(timeout=_END_TIMEOUT_S)[1] or ""
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[1] or ""


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it does not say why"
