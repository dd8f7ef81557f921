"""Captures made from a seed, and what of them is to be sent, as scapy reads them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, NamedTuple

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import rdpcap, wrpcap

from dutperf.model.capture import Capture

PAYLOADS = (0, 17, 18, 19, 100, 511, 1000, 1452)
MACS: dict[str, Any] = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}


def datagram(
    payload: int = 100,
    *,
    ip: int = 4,
    source: int = 1,
    destination: int = 2,
    ports: tuple[int, int] = (5000, 53),
    vlan: bool = False,
) -> Packet:
    """One as hosts send it: not padded."""
    link = Ether(**MACS) / Dot1Q(vlan=7) if vlan else Ether(**MACS)
    ends: dict[str, Any] = {"src": f"10.0.0.{source}", "dst": f"10.1.0.{destination}"}
    if ip == 6:
        ends = {"src": f"fd00::{source}", "dst": f"fd00:1::{destination}"}
    packet = IP(**ends) if ip == 4 else IPv6(**ends)
    return link / packet / UDP(sport=ports[0], dport=ports[1]) / Raw(bytes(payload))


def datagrams(seed: int, number: int, ip: int = 4) -> list[Packet]:
    """Of three hosts to three, by few ports."""
    draw = random.Random(seed)  # noqa: S311
    return [
        datagram(
            draw.choice(PAYLOADS),
            ip=ip,
            source=draw.randint(1, 3),
            destination=draw.randint(4, 6),
            ports=(draw.choice([0, 5000, 65535]), draw.choice([53, 4500])),
        )
        for _ in range(number)
    ]


def written(path: Path, packets: list[Packet]) -> Path:
    wrpcap(str(path), packets)
    return path


class Sent(NamedTuple):
    """A frame by its length with FCS, its hosts and its ports."""

    size: int
    source: str
    destination: str
    src_port: int
    dst_port: int


def sent_in(path: Path) -> list[Sent]:
    """Those of ``path``, as a reader that has nothing to do with ours sees them."""
    found = []
    for frame in rdpcap(str(path)):
        ip = frame[IP] if IP in frame else frame[IPv6]
        ports = (frame[UDP].sport, frame[UDP].dport)
        length = max(64, len(frame) + 4 - 4 * (Dot1Q in frame))
        found.append(Sent(length, ip.src, ip.dst, *ports))
    return found


def timed_capture(*times_ns: int) -> Capture:
    """As it is read, at its own times: frames of one flow and one size."""
    reading = {
        "sha256": "0" * 64,
        "seen_frames": len(times_ns),
        "seen_bytes": 100 * len(times_ns),
        "flows": ["4 0 0 5000 53"],
        "frames": " ".join(["0:100"] * len(times_ns)),
        "times_ns": " ".join(map(str, times_ns)),
    }
    told = {"file": "a.pcap", "times": "original", "read": reading}
    return Capture.model_validate(told)
