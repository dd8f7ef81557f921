"""MAP-E, MAP-T, lw4o6 and 6rd by their labs: relays and edges (RFC 7596, 7597, 5969).

The opposite is tried, too: a relay that does not check, one with another rule, one that
sends all to one edge. The tester tells each of them.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from livetools import dutperf, measured_in_lab, needs_engine
from readers import needs_tshark, tshark
from scapy.all import rdpcap
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6

from dutperf import lab
from dutperf.lab.devices.known_answer import BINDINGS, DOMAIN, RULE
from dutperf.results import CellResult, load_results

pytestmark = [*needs_engine, pytest.mark.lab]

LWAFTR = "known-answer-lw4o6"
SIXRD = "known-answer-6rd"
RELAYS = ["known-answer-map-e", "known-answer-map-t", LWAFTR, SIXRD]
EDGES = {
    "known-answer-map-e-ce": 252,
    "known-answer-map-t-ce": 252,
    "known-answer-lw4o6-b4": 256,
}
SIXRD_EDGE = "known-answer-6rd-ce"
OTHER_RULE = RULE.model_copy(update={"psid_offset": 5}).model_dump()
TUNNEL = {"kind": "ip", "local": "2001:2::1", "remote": "2001:db8::", "remote_bits": 40}
OTHER: dict[str, dict[str, Any]] = {
    "known-answer-map-e": {
        "encapsulation": {"left": TUNNEL},
        "map": {"left": OTHER_RULE},
    },
    "known-answer-map-t": {
        "translation": {"left": OTHER_RULE | {"prefix": "64:ff9b::/96"}}
    },
    LWAFTR: {
        "encapsulation": {
            "left": TUNNEL | {"remote": "2001:db8::1", "remote_bits": 48}
        },
        "binding_table": {
            "left": BINDINGS.model_copy(update={"psid_offset": 8}).model_dump()
        },
    },
    SIXRD: {
        "encapsulation": {
            "left": {
                "kind": "ip",
                "local": "198.18.0.1",
                "remote": "10.0.0.0",
                "remote_bits": 16,
            }
        },
        "sixrd": {"left": DOMAIN.model_dump() | {"ipv6_prefix": "2001:d00::/24"}},
    },
}
"""PSID or IPv4 suffix are elsewhere: hardly a port or prefix is the same edge's."""


@contextmanager
def up(name: str, told: dict[str, Any] | None, tmp_path: Path) -> Iterator[None]:
    """The lab, told something else after it is up: the testbed stays."""
    try:
        assert dutperf("lab", "up", name).returncode == 0
        if told:
            behaviour = tmp_path / "told.json"
            behaviour.write_text(json.dumps(told))
            assert dutperf("lab", "set", str(behaviour)).returncode == 0
        yield
    finally:
        lab.down(all_=True)


def found(name: str, path: Path, *options: str) -> CellResult:
    (cell,) = measured_in_lab(name, path, *options).cells
    return cell


@pytest.mark.parametrize("name", RELAYS)
def test_a_relay_of_the_same_rule_forwards_all(name: str, tmp_path: Path) -> None:
    cell = found(name, tmp_path / "run")
    assert cell.median == 20_000
    assert not [f for f in cell.findings if f.kind == "misdirected"]


@pytest.mark.parametrize("name", RELAYS)
def test_a_relay_takes_no_spoofed_frame(name: str, tmp_path: Path) -> None:
    options = ("--direction", "forward", "--spoofed", "10")
    cell = found(name, tmp_path / "run", *options)
    assert cell.median == 20_000
    (beside,) = cell.beside
    assert beside.sent > 0
    assert beside.received == 0


def test_a_relay_that_takes_them_is_told(tmp_path: Path) -> None:
    with up(RELAYS[0], {"encapsulation": {"left": TUNNEL}}, tmp_path):
        options = ("--direction", "forward", "--spoofed", "10")
        cell = found(RELAYS[0], tmp_path / "run", *options)
    (beside,) = cell.beside
    assert beside.received == beside.sent > 0


def test_the_kernel_as_lwaftr_sends_to_the_right_b4_and_takes_any(
    tmp_path: Path,
) -> None:
    """By routing rules for the port sets; nothing compares the tunnel's end."""
    cell = found("lw4o6", tmp_path / "run")
    assert cell.median is not None
    assert cell.median > 0
    assert not [f for f in cell.findings if f.kind == "misdirected"]
    options = ("--direction", "forward", "--spoofed", "10")
    (beside,) = found("lw4o6", tmp_path / "spoofed", *options).beside
    assert beside.received > 0


@pytest.mark.parametrize("name", RELAYS)
def test_a_relay_of_another_rule_forwards_to_others(name: str, tmp_path: Path) -> None:
    """Each of its frames comes, whole, and for another edge than its port says."""
    with up(name, OTHER[name], tmp_path):
        cell = found(name, tmp_path / "run", "--direction", "reverse")
    (reason,) = cell.reasons
    assert reason.code == "nothing_forwarded"
    assert " misdirected on the left port" in reason.message
    assert "another MAP rule" in reason.hint


def test_hosts_with_tunnels_of_their_own_may_be_sent_to_by_one(tmp_path: Path) -> None:
    """The known-answer device has one address for all of them."""
    tunnel = {"kind": "ip", "local": "2001:2::1", "remote": "2001:2::2"}
    behaviour = {"encapsulation": {"left": tunnel | {"remote_bits": 96}}}
    path = tmp_path / "hosts.json"
    path.write_text(json.dumps(behaviour))
    try:
        up = dutperf("lab", "up", "known-answer", "--behaviour", str(path))
        assert up.returncode == 0, up.stderr
        options = ("--ip", "4", "--frame-size", "128", "--addresses", "10")
        cell = found("known-answer", tmp_path / "run", *options)
    finally:
        lab.down(all_=True)
    assert cell.median == 20_000
    assert not [f for f in cell.findings if f.kind == "misdirected"]


@pytest.mark.parametrize("name", EDGES)
def test_how_many_ports_an_edge_uses_is_the_capacity_of_its_table(
    name: str, tmp_path: Path
) -> None:
    """All of its set: 63 ranges of 4 (RFC 7597 appendix A.1), or one of 256 ports."""
    dutperf(
        *("table-capacity", "--lab", name, "--first", "50", "--connections", "1000"),
        *("--max-rate", "5000", "--settle-wait", "0", "--restabilise-wait", "0"),
        *("--phase-timeout", "100", "--output", str(tmp_path / "run")),
    )
    (cell,) = load_results(tmp_path / "run").cells
    assert cell.median == EDGES[name]


def test_an_edge_of_6rd_forwards_both_ways_by_its_own_tunnel_alone(
    tmp_path: Path,
) -> None:
    assert found(SIXRD_EDGE, tmp_path / "run").median == 20_000
    ends = {"kind": "ip", "local": "10.0.0.19", "remote": "198.19.0.2"}
    with up(SIXRD_EDGE, {"encapsulation": {"right": ends}}, tmp_path):
        cell = found(SIXRD_EDGE, tmp_path / "other", "--direction", "forward")
    (reason,) = cell.reasons
    assert reason.code == "nothing_forwarded"
    assert "100 with other VLAN tags or labels on the right port" in reason.message


@needs_tshark
def test_tshark_reads_what_edges_and_internet_send(tmp_path: Path) -> None:
    for name, stack in (
        ("known-answer-map-e", "eth:ethertype:ipv6:ip:udp"),
        ("known-answer-map-t", "eth:ethertype:ipv6:udp"),
        (LWAFTR, "eth:ethertype:ipv6:ip:udp"),
    ):
        rule = BINDINGS if name == LWAFTR else RULE
        behind = 16 - rule.psid_offset - rule.psid_bits
        path = tmp_path / f"{name}.pcap"
        done = dutperf(
            *("frames", "--lab", name, "--pcap", str(path), "--count", "50"),
        )
        assert done.returncode == 0, done.stderr
        columns = ["frame.protocols", "udp.checksum.status", "_ws.malformed"]
        rows = tshark(path, columns, ports="7")
        assert {row["udp.checksum.status"] for row in rows} == {"1"}
        assert {row["_ws.malformed"] for row in rows} == {""}
        kinds = {row["frame.protocols"].removesuffix(":data") for row in rows}
        assert any(kind.startswith(stack) for kind in kinds)
        from_edges = [packet for packet in rdpcap(str(path)) if IPv6 in packet]
        assert from_edges
        for packet in from_edges:
            psid = packet[UDP].sport >> behind & 0xFF
            number = int(ipaddress.IPv6Address(packet[IPv6].src)) >> 16
            embedded = str(ipaddress.IPv4Address(number & 0xFFFFFFFF))
            inner = packet[IP].src if IP in packet else embedded
            assert packet[IPv6].src == rule.address(inner, psid)


@needs_tshark
def test_tshark_reads_what_edges_of_6rd_send(tmp_path: Path) -> None:
    path = tmp_path / "6rd.pcap"
    done = dutperf(*("frames", "--lab", SIXRD, "--pcap", str(path), "--count", "50"))
    assert done.returncode == 0, done.stderr
    columns = [
        "frame.protocols",
        "ip.checksum.status",
        "udp.checksum.status",
        "_ws.malformed",
    ]
    rows = tshark(path, columns)
    assert {row["_ws.malformed"] for row in rows} == {""}
    assert {row["udp.checksum.status"] for row in rows} == {"1"}
    in_tunnel = [row for row in rows if ":ip:ipv6:" in row["frame.protocols"]]
    assert {row["ip.checksum.status"] for row in in_tunnel} == {"1"}
    from_edges = [packet for packet in rdpcap(str(path)) if IP in packet]
    assert len(from_edges) == len(in_tunnel) > 0
    for packet in from_edges:
        assert packet[IP].src == DOMAIN.edge_of(packet[IPv6].src)
    senders = {packet[IP].src for packet in from_edges}
    assert len(senders) > 0.9 * len(from_edges)
