"""How long a CPU was busy, as the kernel counts what it was not."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

_IDLE = (4, 5)  # idle and iowait, of a CPU's fields in /proc/stat, its name included
_PROC = Path("/proc")


def busy_since_now(cpu: int, proc: Path = _PROC) -> Callable[[], int]:
    """What it returns tells the nanoseconds that ``cpu`` has been busy since."""
    began_ns, idle_ns = time.monotonic_ns(), _idle_ns(cpu, proc)

    def busy_ns() -> int:
        passed_ns = time.monotonic_ns() - began_ns
        return max(0, passed_ns - (_idle_ns(cpu, proc) - idle_ns))

    return busy_ns


def _idle_ns(cpu: int, proc: Path) -> int:
    for line in (proc / "stat").read_text("ascii").splitlines():
        name, *ticks = line.split()
        if name == f"cpu{cpu}":
            idle = sum(int(ticks[place - 1]) for place in _IDLE)
            return idle * 10**9 // os.sysconf("SC_CLK_TCK")
    return 0
