"""A device's side that floods the tester: what is not the tester's is counted apart."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from livetools import (
    GATEWAYS,
    MS,
    NO_ODD_FRAMES,
    Trial,
    codes,
    engines_of,
    inside,
    kept_lab,
    lab_engine,
    needs_engine,
    odd_frames,
    usage,
)
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import (
    ICMPv6ND_NA,
    ICMPv6NDOptDstLLAddr,
    ICMPv6PacketTooBig,
    IPv6,
)
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from dutperf.engine.client import Engine

pytestmark = [*needs_engine, pytest.mark.lab]

STORM_S = 2.5
STORM = """
import itertools, socket, sys, time
said = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
said.bind(("left", 0))
frames = [bytes.fromhex(line) for line in sys.stdin.read().split()]
print("begun", flush=True)
end = time.monotonic() + float(sys.argv[1])
for number, frame in enumerate(itertools.cycle(frames), 1):
    said.send(frame)
    if number % 32 == 0:
        time.sleep(0.001)
        if time.monotonic() > end:
            break
print(number)
"""
"""Says one thing after another, some 20,000 a second: others need the CPU, too."""
TRIAL = Trial(
    fps=1000,
    ms=1000,
    hops=GATEWAYS,
    extra={"settle_ns": 300 * MS, "residual_wait_ns": 200 * MS},
)
GROWN_KB = 4096


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with (
        kept_lab(),
        lab_engine(tmp_path_factory.mktemp("floods"), "af_packet") as it,
    ):
        yield it


@contextmanager
def storm(frames: list[Packet]) -> Iterator[None]:
    """The device's left interface sends ``frames`` again and again."""
    words = ["ip", "netns", "exec", "dut", sys.executable, "-c", STORM, str(STORM_S)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n".join(bytes(frame).hex() for frame in frames))
        process.stdin.close()
        assert process.stdout.readline() == "begun\n"
        yield
        said = int(process.stdout.read())
        assert said > 5000


def mac(number: int) -> str:
    return f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}"


def foreign() -> list[Packet]:
    """Frames for the tester that are no test frames."""
    tester = inside("tester", "cat", "/sys/class/net/left/address").strip()
    noise = random.Random(1)  # noqa: S311 - not for secrets
    return [
        Ether(src=mac(number), dst=tester)
        / IP(src="198.18.0.1", dst="198.18.0.2")
        / UDP(sport=number, dport=7)
        / Raw(noise.randbytes(18 + number))
        for number in range(200)
    ]


def neighbours() -> list[Packet]:
    """Questions, for the tester and for others, and answers that nobody asked for."""
    said: list[Packet] = []
    for number in range(800):
        own, ether = mac(number), Ether(src=mac(number), dst="ff:ff:ff:ff:ff:ff")
        nobody = f"198.18.{8 + (number >> 8)}.{number & 255}"
        whom = "198.18.0.2" if number % 4 == 0 else nobody
        said.append(ether / ARP(op=1, hwsrc=own, psrc=nobody, pdst=whom))
        said.append(ether / ARP(op=2, hwsrc=own, psrc=nobody, pdst=nobody))
        stranger = f"2001:2:0:7::{number + 1:x}"
        said.append(
            Ether(src=own, dst="33:33:00:00:00:01")
            / IPv6(src=stranger, dst="ff02::1", hlim=255)
            / ICMPv6ND_NA(tgt=stranger, R=0, S=0, O=1)
            / ICMPv6NDOptDstLLAddr(lladdr=own)
        )
    return said


def errors() -> list[Packet]:
    """A device's complaints, of both IP versions."""
    tester = inside("tester", "cat", "/sys/class/net/left/address").strip()
    ether = Ether(src=mac(1), dst=tester)
    ipv4 = ether / IP(src="198.18.0.1", dst="198.18.0.2")
    ipv6 = ether / IPv6(src="2001:2::1", dst="2001:2::2")
    # Longer than a port's shortest frame, so nothing is padded.
    quoted = Raw(bytes(100))
    return [
        ipv4 / ICMP(type=3, code=13) / quoted,
        ipv4 / ICMP(type=11, code=0) / quoted,
        ipv6 / ICMPv6PacketTooBig() / quoted,
    ]


FLOODS: dict[str, Callable[[], list[Packet]]] = {
    "foreign frames": foreign,
    "errors": errors,
    "questions and answers": neighbours,
}


@pytest.mark.parametrize("name", FLOODS)
def test_what_a_flood_says_is_counted_and_changes_nothing(
    engine: Engine, name: str
) -> None:
    frames = FLOODS[name]()
    (pid,) = engines_of(os.getpid())
    engine.measure(TRIAL.request(1))
    before = usage(pid)
    with storm(frames):
        result = engine.measure(TRIAL.request(2))
    left, right = result.ports
    assert (left.foreign > 1000) == (name in {"foreign frames", "errors"})
    told = [(each.ip_version, each.type, each.code) for each in left.icmp]
    assert sorted(told) == (
        [(4, 3, 13), (4, 11, 0), (6, 2, 0)] if name == "errors" else []
    )
    assert sum(each.frames for each in left.icmp) in {0, left.foreign}
    assert (left.neighbour_requests > 100) == (name == "questions and answers")
    assert right.foreign == 0
    assert left.neighbour_conflicts == right.neighbour_conflicts == 0
    # What the tester itself dropped for the flood is not the device's loss.
    assert result.verdict.kind in {"pass", "invalid"}
    assert "neighbour_changed" not in codes(result)
    assert usage(pid).resident_kb - before.resident_kb < GROWN_KB
    assert usage(pid)[1:] == before[1:]
    quiet = engine.measure(TRIAL.request(3))
    assert odd_frames(quiet) == NO_ODD_FRAMES
    assert "neighbour_changed" not in codes(quiet)
