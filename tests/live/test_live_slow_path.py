"""The slow path: two hosts behind the taps of crossed ring ports reach each other."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from labtools import LAB_GROUP
from livetools import (
    STALLS,
    Trial,
    codes,
    counting,
    crossed_neighbours,
    ring_ports,
    running_engine,
)

from dutperf.engine.client import Engine
from dutperf.errors import EngineError
from dutperf.protocol.base import Side, VlanTag
from dutperf.protocol.port_messages import Tap
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialProgress

pytestmark = counting(LAB_GROUP)

SIDES: tuple[Side, ...] = ("left", "right")
HOSTS: dict[Side, str] = {"left": "192.0.2.1", "right": "192.0.2.2"}
ECHO = """
import socket
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.bind(("192.0.2.2", 7))
while True:
    data, asker = own.recvfrom(9000)
    own.sendto(data, asker)
"""
ASK = """
import socket, sys, time
count, size = map(int, sys.argv[1:])
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.bind(("192.0.2.1", 7))
own.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
own.settimeout(0.1)
for _ in range(100):  # until the other one is there
    own.sendto(b"hello", ("192.0.2.2", 7))
    try:
        own.recv(9000)
        break
    except TimeoutError:
        pass
own.settimeout(1)
print("ready", flush=True)
sys.stdin.readline()
came = set()
for number in range(count):
    data = number.to_bytes(4, "big").ljust(size, b".")
    own.sendto(data, ("192.0.2.2", 7))
    time.sleep(0.01)
try:
    while len(came) < count:
        came.update({own.recv(9000)} - {b"hello"})
except TimeoutError:
    pass
print(len(came))
"""
PROGRAMS: list[tuple[Side, str]] = [("right", ECHO), ("left", ASK)]
TAGS = [VlanTag(id=7), VlanTag(id=100)]


class Hosts:
    """A network namespace for each side, gone with this object."""

    def __init__(self) -> None:
        self._held = [
            subprocess.Popen(["unshare", "--net", "sleep", "300"]) for _ in SIDES
        ]
        own = Path("/proc/self/ns/net").readlink()
        for process in self._held:
            while Path(f"/proc/{process.pid}/ns/net").readlink() == own:
                time.sleep(0.01)

    def end(self) -> None:
        for process in self._held:
            process.kill()
            process.wait()

    def tap(self, side: Side) -> Tap:
        return Tap(network_namespace=self._namespace(side), interface="port")

    def set_up(self) -> None:
        for side in SIDES:
            self.run(side, "ip", "address", "add", f"{HOSTS[side]}/24", "dev", "port")
            self.run(side, "ip", "link", "set", "port", "up")

    def inside(self, side: Side) -> list[str]:
        return ["nsenter", f"--net={self._namespace(side)}"]

    def run(self, side: Side, *command: str) -> str:
        entered = [*self.inside(side), *command]
        done = subprocess.run(entered, capture_output=True, text=True, check=True)
        return done.stdout

    def echoes(self, count: int, size: int = 100) -> int:
        """How many of ``count`` datagrams from left to right came back; 10 ms apart."""
        return self.answered(self.asking(count, size))

    def asking(self, count: int, size: int = 100) -> dict[Side, subprocess.Popen[str]]:
        """Their programs, once these know each other: they take a while to start."""
        ends = {
            side: subprocess.Popen(
                [
                    *self.inside(side),
                    *(sys.executable, "-c", program, str(count), str(size)),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for side, program in PROGRAMS
        }
        told = ends["left"].stdout
        assert told is not None
        assert told.readline() == "ready\n"
        return ends

    def answered(self, ends: dict[Side, subprocess.Popen[str]]) -> int:
        """Has the left one begin; what ``echoes`` says."""
        said, _ = ends["left"].communicate("\n", timeout=30)
        ends["right"].kill()
        ends["right"].communicate()
        return int(said)

    def _namespace(self, side: Side) -> str:
        return f"/proc/{self._held[SIDES.index(side)].pid}/ns/net"


@contextmanager
def connected(directory: Path, **keys: Any) -> Iterator[tuple[Engine, Hosts]]:  # noqa: ANN401 - of a port
    """An engine on crossed rings with a host behind each port; ``keys`` of both."""
    hosts = Hosts()
    try:
        with running_engine(directory, memory_mb=1024) as engine:
            engine.open_ports(
                [
                    port.model_copy(update={"tap": hosts.tap(port.name), **keys})
                    for port in ring_ports(keys.get("mtu", 1500))
                ]
            )
            hosts.set_up()
            engine.set_neighbours(crossed_neighbours())
            yield engine, hosts
    finally:
        hosts.end()


def through(result: TrialResult) -> list[tuple[int, int, int]]:
    found = [port.slow_path for port in result.ports]
    return [(path.to_tap, path.from_tap, path.lost) for path in found if path]


@pytest.mark.parametrize("vlan", [[], TAGS[:1], TAGS], ids=["bare", "tag", "tags"])
def test_hosts_reach_each_other_between_trials_and_in_them(
    tmp_path: Path, vlan: list[VlanTag]
) -> None:
    with connected(tmp_path, vlan=vlan) as (engine, hosts):
        assert hosts.echoes(50) == 50
        begun = threading.Event()
        ends = hosts.asking(100)
        echoes: list[int] = []

        def ask() -> None:
            begun.wait(20)
            echoes.append(hosts.answered(ends))

        asking = threading.Thread(target=ask)
        asking.start()
        request = Trial(ms=3000, fps=2000).request()
        if vlan:
            ways = [
                way.model_copy(update={"vlan": vlan, "received_vlan": vlan})
                for way in request.directions
            ]
            request = request.model_copy(update={"directions": ways})
        told: list[TrialProgress] = []

        def on_progress(progress: TrialProgress) -> None:
            told.append(progress)
            if progress.phase == "running":
                begun.set()

        result = engine.measure(request, on_progress)
        asking.join()
        assert echoes == [100]
        assert codes(result) <= STALLS
        for way in result.directions:
            for stream in way.streams:
                assert (stream.lost, stream.duplicate) == (0, 0)
        for (to_tap, from_tap, lost), port in zip(
            through(result), result.ports, strict=True
        ):
            # Datagrams, hellos, and the hosts' questions to each other.
            assert 100 <= to_tap <= 220, (through(result), told)
            assert 100 <= from_tap <= 220
            assert lost == 0
            icmp = sum(message.frames for message in port.icmp)  # stays with the engine
            assert 100 <= port.foreign - icmp <= to_tap
            assert port.other_vlan == 0


def test_counts_are_those_of_one_trial(tmp_path: Path) -> None:
    with connected(tmp_path) as (engine, hosts):
        assert hosts.echoes(20) == 20
        result = engine.measure(Trial(ms=100).request())
        for counts in through(result):
            assert sum(counts) <= 4  # the hosts' kernels look after their neighbours


def test_large_frames_go_through_where_the_port_carries_them(tmp_path: Path) -> None:
    with connected(tmp_path, mtu=9000) as (engine, hosts):
        for side in SIDES:
            hosts.run(side, "ip", "link", "set", "port", "mtu", "9000")
        assert hosts.echoes(20, size=8000) == 20
        assert engine.measure(Trial(ms=50).request()).verdict.kind == "pass"


def test_a_flood_of_a_host_is_cut_and_counted_and_costs_no_test_frame(
    tmp_path: Path,
) -> None:
    with connected(tmp_path) as (engine, hosts):
        flood = (
            "import socket\n"
            "own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
            "while True:\n"
            "  try: own.sendto(bytes(100), ('192.0.2.2', 9))\n"
            "  except OSError: pass\n"
        )
        assert hosts.echoes(1) == 1  # they know each other
        flooding = subprocess.Popen(
            [*hosts.inside("left"), sys.executable, "-c", flood]
        )
        try:
            time.sleep(0.5)
            result = engine.measure(Trial(ms=1000, fps=2000).request())
        finally:
            flooding.kill()
            flooding.wait()
        assert codes(result) <= STALLS
        for way in result.directions:
            assert [s.lost for s in way.streams if result.verdict.kind != "fail"] == [0]
        left, _ = (port.slow_path for port in result.ports)
        assert left
        # A ring's worth each time that the control thread looks.
        assert 0 < left.from_tap <= 256 * 250


def test_without_a_tap_there_is_no_slow_path(tmp_path: Path) -> None:
    with running_engine(tmp_path) as engine:
        engine.open_ports(ring_ports())
        engine.set_neighbours(crossed_neighbours())
        result = engine.measure(Trial(ms=50).request())
        assert [port.slow_path for port in result.ports] == [None, None]


@pytest.mark.parametrize("namespace", ["/proc/1/nothing", "/etc/passwd"])
def test_a_namespace_that_is_none_is_refused(tmp_path: Path, namespace: str) -> None:
    with running_engine(tmp_path) as engine:
        ports = ring_ports()
        tap = Tap(network_namespace=namespace, interface="port")
        ports[0] = ports[0].model_copy(update={"tap": tap})
        with pytest.raises(EngineError, match="left: its slow path: cannot enter"):
            engine.open_ports(ports)
        engine.open_ports(ring_ports())
        engine.set_neighbours(crossed_neighbours())
        assert engine.measure(Trial(ms=50).request()).verdict.kind == "pass"
