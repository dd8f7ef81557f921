"""Datagrams in their packets: scapy makes the same and reads them."""

from __future__ import annotations

import ipaddress
import random

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Raw

from dutperf.packets import Datagram, read_udp, udp_packet

ENDS = {4: ("198.18.0.2", "198.18.0.1"), 6: ("2001:2::2", "2001:2::1")}
LAYERS = {4: IP, 6: IPv6}


def datagram(version: int, payload: bytes) -> Datagram:
    source, destination = map(ipaddress.ip_address, ENDS[version])
    return Datagram(source, destination, 49_999, 161, payload)


@pytest.mark.parametrize("version", [4, 6])
def test_any_payload_is_a_sound_packet_and_comes_back(version: int) -> None:
    rng = random.Random(version)  # noqa: S311 - repeatable
    for size in [0, 1, 2, *(rng.randrange(1400) for _ in range(50))]:
        sent = datagram(version, rng.randbytes(size))
        packet = udp_packet(sent, hops=64, traffic_class=0xC0)
        layer = LAYERS[version](packet)
        for each in (layer, layer[UDP]):
            each.fields.pop("chksum", None)
        assert bytes(layer) == packet
        assert (layer.src, layer.dst) == ENDS[version]
        assert bytes(layer[UDP].payload) == sent.payload
        assert read_udp(packet + bytes(7)) == sent


@pytest.mark.parametrize("version", [4, 6])
def test_a_damaged_or_cut_packet_is_none(version: int) -> None:
    packet = udp_packet(datagram(version, b"abc" * 20), hops=64)
    # Of IPv6's header no checksum covers class, flow label, length and hop limit.
    uncovered = {6: {0, 1, 2, 3, 4, 5, 7}, 4: set()}[version]
    for place in range(len(packet)):
        assert read_udp(packet[:place]) is None
        damaged = bytearray(packet)
        damaged[place] ^= 0x10
        if place not in uncovered:
            assert read_udp(bytes(damaged)) is None, place
    assert read_udp(b"") is None


def test_without_a_checksum_ipv4_is_sound_and_ipv6_is_not() -> None:
    for version, sound in ((4, True), (6, False)):
        source, destination = ENDS[version]
        layer = LAYERS[version](src=source, dst=destination)
        packet = bytes(layer / UDP(sport=161, dport=5, chksum=0) / Raw(b"abc"))
        assert (read_udp(packet) is not None) == sound
