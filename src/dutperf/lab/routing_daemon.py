"""BIRD in the DUT: takes routes from the tester by RIPv2, for the kernel."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from dutperf.errors import SetupError
from dutperf.lab import processes, topology
from dutperf.lab.state import Process, is_running

START_TIMEOUT_S = 5.0
POLL_S = 0.02

CONFIGURATION = """\
router id 198.18.0.1;
protocol device {}
protocol kernel {
  ipv4 { import none; export all; };
}
protocol rip {
  ipv4 { import all; export none; };
  interface "left", "right" { version 2; mode multicast; passive yes; };
}
"""
"""Routes that nobody told again for three minutes are given up (RFC 2453 3.8)."""


def start(cpu: int | None, directory: Path, record: Callable[[Process], None]) -> None:
    """Starts BIRD and waits until it runs.

    ``directory`` takes its files. ``record`` is called before BIRD itself runs, which
    goes on after this process has ended, on ``cpu`` alone if one is given.

    Raises:
        SetupError: it ended, or said nothing.
    """
    settings, control = directory / "bird.conf", directory / "bird.ctl"
    settings.write_text(CONFIGURATION, "ascii")
    log = directory / "bird.log"
    process = processes.start(
        ["bird", "-f", "-c", str(settings), "-s", str(control)],
        namespace=topology.DUT,
        cpu=cpu,
        log=log,
        record=record,
    )
    deadline = time.monotonic() + START_TIMEOUT_S
    while not control.exists():
        if not is_running(process) or time.monotonic() > deadline:
            said = log.read_text("utf-8", errors="replace").strip()
            raise SetupError(
                f"BIRD did not start: {said or 'it said nothing'}",
                "it needs version 2 (on Debian the package bird2)",
            )
        time.sleep(POLL_S)
