"""For tests that need the lab: the marks, raw sockets on its wires, a tester's part.

``from labtools import needs_lab, Wire, cross``; pytest puts this directory on the path.
"""

from __future__ import annotations

import ipaddress
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from pyroute2 import netns as kernel_netns
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import (
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6NDOptDstLLAddr,
    ICMPv6NDOptSrcLLAddr,
    IPv6,
)
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from dutperf.config.testbed import Testbed
from dutperf.lab import machine, netns
from dutperf.lab.machine import NEIGHBOUR_LIMITS
from dutperf.lab.processes import Process, plan_cpus
from dutperf.lab.state import StateFile
from dutperf.programs import postponed_signals
from dutperf.protocol.base import IpVersion, Side

PAYLOAD = b"dutperf lab test"
ALL_FRAMES = socket.htons(3)  # ETH_P_ALL
SO_RCVBUFFORCE = 33  # asm-generic/socket.h
TEST_NETWORKS = [
    ipaddress.ip_network(text) for text in ("198.18.0.0/15", "2001:2::/48")
]

needs_lab = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root"),
]
LAB_GROUP = "lab"
"""The group of tests that are ``tolerant``."""
tolerant = [*needs_lab, pytest.mark.tolerant, pytest.mark.xdist_group(LAB_GROUP)]
"""Of tests that need the lab and stand whatever a busy machine does: others may run
beside them, but none of another group on the lab."""


class Wire:
    """A raw socket on one interface; ``namespace`` None is the root's, all of them."""

    def __init__(self, namespace: str | None, interface: str | None = None) -> None:
        packet = (socket.AF_PACKET, socket.SOCK_RAW, ALL_FRAMES)
        with postponed_signals():  # pyroute2 forks, and ends its child by SIGTERM
            self._socket = kernel_netns.create_socket(namespace, *packet, flags=0)
        # Room for a trial's frames, which are read when it is over.
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        if interface is not None:
            self._socket.bind((interface, 3))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    @property
    def mac(self) -> str:
        """The interface's own address."""
        raw: bytes = self._socket.getsockname()[4]
        return raw.hex(":")

    def send(self, frame: Packet) -> None:
        self._socket.send(bytes(frame))

    def received(self, seconds: float) -> Iterator[bytes]:
        """Frames that came in during the next ``seconds``; not the socket's own."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self._socket], [], [], left)[0]:
                return
            frame, address = self._socket.recvfrom(65535)
            if address[2] != socket.PACKET_OUTGOING:
                yield frame


def addresses(frame: bytes) -> set[str]:
    """The IP addresses that ``frame`` is from, for, or asks about."""
    packet = Ether(frame)
    ends = {
        a for k in (IP, IPv6) if k in packet for a in (packet[k].src, packet[k].dst)
    }
    return ends | ({packet[ARP].psrc, packet[ARP].pdst} if ARP in packet else set())


def is_test_frame(frame: bytes) -> bool:
    """Whether it belongs to the networks that are for benchmarking."""
    ends = [ipaddress.ip_address(text) for text in addresses(frame)]
    return any(end in network for end in ends for network in TEST_NETWORKS)


def leftovers() -> list[Path]:
    """What is left of any lab: namespace files, the state file, the DUT's files."""
    paths = [netns.NETNS_DIRECTORY / name for name in netns.NAMESPACES]
    for name in netns.NAMESPACES:
        paths += netns.NETNS_DIRECTORY.glob(f"{name}-*")
    files = (StateFile().path, StateFile().dut_directory)
    named = StateFile(name="a").home.parent.glob("*")
    return [p for p in (*paths, *files, *named) if p.exists()]


def neighbour_limits() -> list[int]:
    """The machine's limits of all neighbour tables."""
    return [int(path.read_text()) for path in NEIGHBOUR_LIMITS if path.exists()]


def queue_and_nice() -> tuple[int, int | None]:
    """The length of the kernel's input queues, and the nice value of their thread.

    None if the DUT has no CPU of its own, or the thread is not to be seen.
    """
    frames = int(machine.BACKLOG.read_text())
    thread = machine.find_kernel_thread(f"ksoftirqd/{plan_cpus().dut}")
    if thread is None:
        return frames, None
    return frames, os.getpriority(os.PRIO_PROCESS, thread.pid)


def dut_processes() -> tuple[Process, ...]:
    """The processes of the lab that is up, or was."""
    state = StateFile().read()
    assert state is not None
    return state.processes


@contextmanager
def lab_holder(name: str) -> Iterator[subprocess.Popen[str]]:
    """Another process, which has the lab up and waits."""
    program = (
        "import time; from dutperf import lab\n"
        f"with lab.session({name!r}): print('up', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield process
        process.kill()


def answer(wire: Wire, frame: Ether) -> None:
    """Answers an ARP or ND request, whomever it asks for."""
    if ARP in frame and frame[ARP].op == 1:
        asked = frame[ARP]
        reply = ARP(
            op=2, hwsrc=wire.mac, psrc=asked.pdst, hwdst=asked.hwsrc, pdst=asked.psrc
        )
        wire.send(Ether(src=wire.mac, dst=frame.src) / reply)
    if ICMPv6ND_NS in frame:
        target = frame[ICMPv6ND_NS].tgt
        wire.send(
            Ether(src=wire.mac, dst=frame.src)
            / IPv6(src=target, dst=frame[IPv6].src, hlim=255)
            / ICMPv6ND_NA(tgt=target, R=0, S=1, O=1)
            / ICMPv6NDOptDstLLAddr(lladdr=wire.mac)
        )


def cross(testbed: Testbed, version: IpVersion, sender: Side) -> Ether:
    """Sends one frame to the other side's real address; returns it as it arrives."""
    receiver = opposite(sender)
    ends = (getattr(testbed, side).ip(version).address for side in (sender, receiver))
    return deliver(testbed, sender, ip_packet(*ends))


def deliver(
    testbed: Testbed,
    sender: Side,
    packet: Packet,
    ports: tuple[int, int] = (49184, 7),
    wait_s: float = 3.0,
    payload: bytes = PAYLOAD,
) -> Ether:
    """Sends ``packet`` with the test's payload; returns it as the other side gets it.

    The receiver answers ARP and ND for every address. ``payload`` begins with the
    test's.
    """
    receiver = opposite(sender)
    version: IpVersion = 4 if IP in packet else 6
    namespace = testbed.namespace
    mac = dut_mac(testbed, sender, version)
    with Wire(namespace, sender) as near, Wire(namespace, receiver) as far:
        datagram = UDP(sport=ports[0], dport=ports[1]) / Raw(payload)
        near.send(Ether(src=near.mac, dst=mac) / packet / datagram)
        for raw in far.received(wait_s):
            arrived = Ether(raw)
            if UDP in arrived and bytes(arrived[UDP].payload).startswith(PAYLOAD):
                return arrived
            answer(far, arrived)
    raise AssertionError(f"{packet.summary()} did not arrive on the {receiver} side")


def opposite(side: Side) -> Side:
    return "right" if side == "left" else "left"


def ip_packet(src: str, dst: str) -> Packet:
    """A header of the version of ``src``, with the TTL of RFC 2544 C.2.6.4."""
    if ":" in src:
        return IPv6(src=src, dst=dst, hlim=10)
    return IP(src=src, dst=dst, ttl=10)


def dut_mac(testbed: Testbed, side: Side, version: IpVersion) -> str:
    """The next hop's MAC address, found by ARP or ND as a tester does."""
    hosts = getattr(testbed, side).ip(version)
    other = getattr(testbed, opposite(side)).ip(version)
    if other and hosts.gateway == other.address:  # nothing routes between them
        with Wire(testbed.namespace, opposite(side)) as far:
            return far.mac
    with Wire(testbed.namespace, side) as wire:
        wire.send(_question(wire.mac, hosts.address, hosts.gateway))
        for raw in wire.received(2.0):
            frame = Ether(raw)
            if ARP in frame and frame[ARP].op == 2:
                return str(frame[ARP].hwsrc)
            if ICMPv6ND_NA in frame:
                return str(frame.src)
    raise AssertionError(f"{hosts.gateway} did not answer on the {side} side")


def _question(mac: str, own: str, target: str) -> Ether:
    if ":" not in target:
        ask = ARP(hwsrc=mac, psrc=own, pdst=target)
        return Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / ask
    group = ipaddress.ip_address(f"ff02::1:ff00:{int(target.rpartition(':')[2], 16):x}")
    return (
        Ether(src=mac, dst=f"33:33:{group.packed[-4:].hex(':')}")
        / IPv6(src=own, dst=str(group), hlim=255)
        / ICMPv6ND_NS(tgt=target)
        / ICMPv6NDOptSrcLLAddr(lladdr=mac)
    )
