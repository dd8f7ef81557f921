"""Runs of the program, each a process of its own, its modules loaded once."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path


class ProgramServer:
    """The process that ``program_server.py`` describes; ``options`` are its own."""

    def __init__(self, *options: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("program_server.py"), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self._process.kill)

    def run(
        self, arguments: Sequence[str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        asking, answers = self._process.stdin, self._process.stdout
        assert asking is not None
        assert answers is not None
        with (
            tempfile.NamedTemporaryFile("r+") as out,
            tempfile.NamedTemporaryFile("r+") as err,
        ):
            asked = {
                "arguments": arguments,
                "directory": str(Path.cwd()),
                "environment": dict(os.environ),
                "stdout": out.name,
                "stderr": err.name,
            }
            asking.write(json.dumps(asked) + "\n")
            asking.flush()
            pid = int(answers.readline())
            try:
                in_time = select.select([answers], [], [], timeout_s)[0]
            except BaseException:  # of whoever ends the tests
                os.kill(pid, signal.SIGINT)
                raise
            if not in_time:
                os.kill(pid, signal.SIGKILL)
            code = int(answers.readline())
            done = subprocess.CompletedProcess(arguments, code, out.read(), err.read())
        assert in_time, f"after {timeout_s} s it still ran: {done}"
        return done
