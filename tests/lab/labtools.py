"""For tests that need the lab: the marks, raw sockets on its wires, a tester's part.

``from labtools import needs_lab, Wire, cross``; pytest puts this directory on the path.
"""

from __future__ import annotations

import ipaddress
import os
import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from pyroute2 import netns
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import (
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6NDOptDstLLAddr,
    IPv6,
)
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from dutperf.config.testbed import Testbed
from dutperf.engine.protocol import IpVersion, Side
from dutperf.lab import topology
from dutperf.lab.interruption import postponed_signals
from dutperf.lab.state import STATE_DIRECTORY

PAYLOAD = b"dutperf lab test"
ALL_FRAMES = socket.htons(3)  # ETH_P_ALL
TEST_NETWORKS = [
    ipaddress.ip_network(text) for text in ("198.18.0.0/15", "2001:2::/48")
]

needs_lab = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root"),
]


class Wire:
    """A raw socket on one interface; ``namespace`` None is the root's, all of them."""

    def __init__(self, namespace: str | None, interface: str | None = None) -> None:
        packet = (socket.AF_PACKET, socket.SOCK_RAW, ALL_FRAMES)
        with postponed_signals():  # pyroute2 forks, and ends its child by SIGTERM
            self._socket = netns.create_socket(namespace, *packet, flags=0)
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
    """What is left of any lab: namespace files and the state file."""
    paths = [topology.NETNS_DIRECTORY / name for name in topology.NAMESPACES]
    return [p for p in (*paths, STATE_DIRECTORY / "lab.json") if p.exists()]


def answer(wire: Wire, frame: Ether, address: str) -> None:
    """Answers an ARP or ND request for ``address`` as a tester does."""
    if ARP in frame and frame[ARP].op == 1 and frame[ARP].pdst == address:
        asked = frame[ARP]
        reply = ARP(
            op=2, hwsrc=wire.mac, psrc=address, hwdst=asked.hwsrc, pdst=asked.psrc
        )
        wire.send(Ether(src=wire.mac, dst=frame.src) / reply)
    if ICMPv6ND_NS in frame and frame[ICMPv6ND_NS].tgt == address:
        wire.send(
            Ether(src=wire.mac, dst=frame.src)
            / IPv6(src=address, dst=frame[IPv6].src, hlim=255)
            / ICMPv6ND_NA(tgt=address, R=0, S=1, O=1)
            / ICMPv6NDOptDstLLAddr(lladdr=wire.mac)
        )


def test_frame(testbed: Testbed, version: IpVersion, sender: Side, dst: str) -> Ether:
    """A UDP frame from one side of the tester to the other, as it leaves."""
    receiver: Side = "right" if sender == "left" else "left"
    ends = [getattr(testbed, side).ip(version).address for side in (sender, receiver)]
    network = (
        IP(src=ends[0], dst=ends[1], ttl=10)
        if version == 4
        else IPv6(src=ends[0], dst=ends[1], hlim=10)
    )
    return Ether(dst=dst) / network / UDP(sport=49184, dport=7) / Raw(PAYLOAD)


test_frame.__test__ = False  # type: ignore[attr-defined]


def cross(testbed: Testbed, version: IpVersion, sender: Side) -> Ether:
    """Sends one frame through the DUT; returns it as it arrives on the other side."""
    receiver: Side = "right" if sender == "left" else "left"
    own = getattr(testbed, receiver).ip(version).address
    namespace = testbed.namespace
    with Wire(namespace, sender) as near, Wire(namespace, receiver) as far:
        frame = test_frame(testbed, version, sender, dut_mac(testbed, sender))
        frame.src = near.mac
        near.send(frame)
        for raw in far.received(3.0):
            arrived = Ether(raw)
            if UDP in arrived and bytes(arrived[UDP].payload).startswith(PAYLOAD):
                return arrived
            answer(far, arrived, own)
    raise AssertionError(f"no IPv{version} frame arrived on the {receiver} side")


def dut_mac(testbed: Testbed, side: Side) -> str:
    """The DUT's MAC address, found by ARP as a tester does."""
    addresses = getattr(testbed, side).ipv4
    with Wire(testbed.namespace, side) as wire:
        ask = ARP(hwsrc=wire.mac, psrc=addresses.address, pdst=addresses.gateway)
        wire.send(Ether(src=wire.mac, dst="ff:ff:ff:ff:ff:ff") / ask)
        for raw in wire.received(2.0):
            frame = Ether(raw)
            if ARP in frame and frame[ARP].op == 2:
                return str(frame[ARP].hwsrc)
    raise AssertionError(f"{addresses.gateway} did not answer ARP on the {side} side")
