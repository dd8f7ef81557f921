"""``dutperf serve`` as a process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PATIENCE_S = 120


class Serving:
    """The process, and the address that it printed."""

    def __init__(self, root: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dutperf", "serve", str(root), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stdout
        self.address = self.process.stdout.readline().strip()

    def end(self, signum: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Its exit code, and what it printed on standard error."""
        self.process.send_signal(signum)
        _, said = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, said


@contextlib.contextmanager
def serving(root: Path, *options: str) -> Iterator[Serving]:
    found = Serving(root, *options)
    try:
        yield found
    finally:
        found.process.kill()
        found.process.communicate()
