"""How long siitperf-tp takes to begin with many connections, and what memory they take.

Run it as root: ``python examples/papers/003/start_up.py``. No device: the tester's own
ports are crossed. Paper 003's three ways to four million connections, and ports alone
to ten times as many; each beside the same trial with a thousand.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SIITPERF = Path(sys.executable).with_name("siitperf-tp")
TESTBED = """schema_version: 1
name: crossed
left:
  port: {ring: true}
right:
  port: {ring: true}
"""
CONF = """IP-L-Vers 4
IP-R-Vers 4
IPv4-L-Real 10.0.0.2
IPv4-R-Real 198.19.0.2
MAC-L-DUT 02:00:00:00:00:02
MAC-R-DUT 02:00:00:00:00:01
Stateful 1
Forward 0
Responder-tuples 1
"""
PORTS = "Enumerate-ports 3\nFwd-var-sport 3\nFwd-var-dport 3\n"
ADDRESSES = """Enumerate-ips 3
IP-L-var 3
IP-R-var 3
IPv4-L-offset 2
IPv4-R-offset 2
"""


def _ports(sources: int, destinations: int) -> str:
    return (
        f"{PORTS}Fwd-sport-min 1\nFwd-sport-max {sources}\n"
        f"Fwd-dport-min 1\nFwd-dport-max {destinations}\n"
    )


def _addresses(sources: int, destinations: int) -> str:
    return (
        f"{ADDRESSES}IP-L-min 2\nIP-L-max {1 + sources}\n"
        f"IP-R-min 2\nIP-R-max {1 + destinations}\n"
    )


WAYS = {
    "ports only": (4_000_000, _ports(40_000, 100)),
    "addresses only": (4_000_000, _addresses(4_000, 1_000)),
    "both": (4_000_000, _addresses(10, 10) + _ports(400, 100)),
    "ports only, 40 million": (40_000_000, _ports(40_000, 1_000)),
}
FEW = 1000
DURATION_S = 1
WAIT_MS = 100
ATTEMPTS = 5


def _run(folder: Path, keys: str, connections: int, rate_fps: int) -> tuple[float, int]:
    """Seconds beyond the trial's own times, and the engine's memory in MiB at most.

    A trial that others on the machine made invalid is repeated.
    """
    (folder / "siitperf.conf").write_text(CONF + keys)
    phase1_ms = -(-1000 * connections // rate_fps)
    gap_ms = phase1_ms + WAIT_MS
    line = (
        f"84 1000 {DURATION_S} {WAIT_MS} 1 1 "
        f"{connections} {connections} {rate_fps} {WAIT_MS} {gap_ms}"
    )
    command = [SIITPERF, *line.split()]
    environment = {**os.environ, "DUTPERF_TESTBED": str(folder / "testbed.yaml")}
    printed = b""
    for _ in range(ATTEMPTS):
        begin = time.monotonic()
        with subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE
        ) as process:
            peak = _Peak(process.pid)
            printed, _ = process.communicate()
            memory_mib = peak.stop()
        took_s = time.monotonic() - begin
        if b"frames received" in printed:
            return took_s - (gap_ms + WAIT_MS) / 1000 - DURATION_S, memory_mib
    sys.exit(printed.decode())


class _Peak(threading.Thread):
    """Looks ten times a second at the memory of the process's child, the engine."""

    def __init__(self, parent: int) -> None:
        super().__init__(daemon=True)
        self._children = Path(f"/proc/{parent}/task/{parent}/children")
        self._ended = threading.Event()
        self._peak_mib = 0
        self.start()

    def run(self) -> None:
        while not self._ended.wait(0.1):
            try:
                for child in self._children.read_text().split():
                    status = Path(f"/proc/{child}/status").read_text()
                    peak = status.partition("VmHWM:")[2].split()
                    self._peak_mib = max(self._peak_mib, int(peak[0]) // 1024)
            except (OSError, IndexError):
                continue

    def stop(self) -> int:
        self._ended.set()
        self.join()
        return self._peak_mib


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rate", type=int, default=1_000_000, help="fps of phase 1")
    rate_fps = parser.parse_args().rate
    print("| connections | s beyond the trial | than with 1,000 | MiB more |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "testbed.yaml").write_text(TESTBED)
        for way, (connections, keys) in WAYS.items():
            few_s, few_mib = _run(folder, keys, FEW, rate_fps)
            many_s, many_mib = _run(folder, keys, connections, rate_fps)
            more = f"{many_s - few_s:+.2f} s | {many_mib - few_mib:,}"
            print(f"| {way} | {many_s:.2f} | {more} |", flush=True)


if __name__ == "__main__":
    main()
