"""Stops workers of a running engine, as a machine does that has other work."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from pathlib import Path

from livetools import engines_of


def worker_works(pid: int) -> int | None:
    """Which thread of the engine other than the first runs, once one does; for 5 s."""
    deadline_s = time.monotonic() + 5
    while time.monotonic() < deadline_s:
        for task in Path(f"/proc/{pid}/task").iterdir():
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            if int(task.name) != pid and state == "R":
                return int(task.name)
        time.sleep(0.001)
    return None


PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
ANY_THREAD = 0x40000000  # __WALL


def stop_worker(after_s: float, for_s: float) -> threading.Thread:
    """Stop the worker alone, as a tracer can: the engine's other threads go on."""
    pid = engines_of(os.getpid())[-1]  # a fixture may keep an older one
    libc = ctypes.CDLL(None, use_errno=True)

    def stop() -> None:
        worker = worker_works(pid)
        if worker is None:
            return  # the trial was over before others left this thread a CPU
        time.sleep(after_s)
        assert libc.ptrace(PTRACE_SEIZE, worker, None, None) == 0, ctypes.get_errno()
        try:
            assert libc.ptrace(PTRACE_INTERRUPT, worker, None, None) == 0
            os.waitpid(worker, ANY_THREAD)
            time.sleep(for_s)
        finally:
            libc.ptrace(PTRACE_DETACH, worker, None, None)

    thread = threading.Thread(target=stop)
    thread.start()
    return thread
