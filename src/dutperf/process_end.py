"""When a process of ours ends: at once, where ``Popen.wait`` looks every 50 ms."""

from __future__ import annotations

import os
import select
import subprocess


def ends_within(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Wait for its end, ``timeout_s`` at most; whether it has ended."""
    if process.poll() is not None:
        return True
    descriptor = os.pidfd_open(process.pid)
    try:
        ready, _, _ = select.select([descriptor], [], [], timeout_s)
        return bool(ready)
    finally:
        os.close(descriptor)
