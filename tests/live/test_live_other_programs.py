"""Other people's programs through the same gateway: its counters, theirs and ours."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labtools import tolerant
from livetools import SHORT, dutperf, inside, needs_engine

from dutperf import lab
from dutperf.results import load_journal

pytestmark = [*needs_engine, *tolerant]

CONNECTIONS, RATE_PER_S = 3000, 1000
"""About a tenth of what the gateway can."""
ENDS = {
    "client": ("left", "10.0.0.2/24", "10.0.0.1"),
    "server": ("right", "198.19.0.2/24", "198.19.0.1"),
}
NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log {folder}/access.log;
  server {{
    listen 198.19.0.2:80 backlog=4096;
    return 200 "an object of a few bytes";
  }}
}}
"""


def ip(*command: str) -> None:
    subprocess.run(["ip", *command], check=True, capture_output=True)


@contextmanager
def kernel_at_both_ends() -> Iterator[None]:
    """The lab's own wires, with a TCP stack at each end in place of the tester."""
    try:
        for namespace, (interface, address, gateway) in ENDS.items():
            ip("netns", "add", namespace)
            ip("-n", "tester", "link", "set", interface, "netns", namespace)
            ip("-n", namespace, "address", "add", address, "dev", interface)
            ip("-n", namespace, "link", "set", interface, "arp", "on", "up")
            ip("-n", namespace, "route", "add", "default", "via", gateway)
        yield
    finally:
        for namespace in ENDS:
            subprocess.run(["ip", "netns", "del", namespace], check=False)


@contextmanager
def nginx(folder: Path) -> Iterator[Path]:
    """The log of a server that answers any GET; a line for each."""
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder))
    command = ("ip", "netns", "exec", "server", "nginx", "-p", str(folder))
    server = subprocess.Popen([*command, "-c", str(config)])
    try:
        for _ in range(100):
            if (folder / "nginx.pid").exists():
                break
            time.sleep(0.05)
        yield folder / "access.log"
    finally:
        server.terminate()
        server.wait()


def tracked() -> int:
    """How many connections the gateway's kernel knows."""
    return int(inside("dut", "conntrack", "-C"))


def test_nginx_and_h2load_agree_with_the_gateway_and_with_us(tmp_path: Path) -> None:
    """As many connections, each with a GET: in conntrack, in the log, in our counts."""
    name = "nft-nat44"
    run = tmp_path / "run"
    try:
        assert dutperf("lab", "up", name).returncode == 0
        rate = ("--max-rate", f"{RATE_PER_S}", "--output", str(run))
        where = ("tcp-connection-rate", "--lab", name, "--ip", "4")
        assert dutperf(*where, *rate, *SHORT).returncode == 0
        passed = [
            record
            for record in load_journal(run).records
            if record.result.verdict.kind == "pass"
        ]
        last = passed[-1].result.tcp
        assert last is not None
        assert {s.received for s in last.segments} == {last.segments[0].sent}
        assert tracked() == last.segments[0].received
        inside("dut", "conntrack", "-F")
        (tmp_path / "nginx").mkdir()
        with kernel_at_both_ends(), nginx(tmp_path / "nginx") as log:
            load = inside(
                *("client", "h2load", "--h1", f"-n{CONNECTIONS}", f"-c{CONNECTIONS}"),
                *(f"-r{RATE_PER_S}", "http://198.19.0.2/"),
            )
            assert re.search(rf"{CONNECTIONS} succeeded, 0 failed", load), load
            assert len(log.read_text().splitlines()) == CONNECTIONS
            assert tracked() == CONNECTIONS
    finally:
        lab.down(all_=True)
