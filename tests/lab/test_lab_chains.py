"""Devices of two boxes in a chain (RFC 8219 4.2): what is on the wire between them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from labtools import (
    PAYLOAD,
    Wire,
    deliver,
    dut_processes,
    ip_packet,
    lab_holder,
    leftovers,
    needs_lab,
    neighbour_limits,
    opposite,
    queue_and_nice,
)
from readers import needs_tshark, tshark
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet
from scapy.utils import wrpcap

from dutperf import lab
from dutperf.config.testbed import Testbed
from dutperf.errors import SetupError
from dutperf.lab import device_cpu, netns, topology
from dutperf.lab.devices.device import Box, Way
from dutperf.lab.orders import set_cores
from dutperf.lab.processes import is_running, plan_cpus
from dutperf.protocol.base import Side

CHAINS = [name for name, device in lab.LABS.items() if len(device.boxes) > 1]
GATEWAYS = ["464xlat", "4in6"]
PROGRAMS = {"464xlat": "tayga", "4in6": "conntrack"}
COLUMNS = [
    "frame.protocols",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "ipv6.nxt",
    "ipv6.hlim",
    "udp.srcport",
    "udp.dstport",
    "udp.checksum",
    "udp.checksum.status",
    "vxlan.vni",
    "vxlan.flags",
]
LONGEST = PAYLOAD.ljust(1500 - 20 - 8, b".")
INSIDE, OUTSIDE, PUBLIC = "10.0.0.2", "198.19.0.2", "198.19.0.1"
PORTS, BACK = (10_000, 50_000), (50_000, 10_000)


def in_a_lab(test: Callable[..., None]) -> Callable[..., None]:
    """Marks a test as one that brings a lab up."""
    for mark in needs_lab:
        test = mark(test)
    return test


@pytest.fixture
def nothing_left() -> Iterator[None]:
    assert lab.running() == [], "a lab is up: take it down before testing the lab"
    before = neighbour_limits(), queue_and_nice()
    yield
    lab.down()
    assert leftovers() == []
    assert (neighbour_limits(), queue_and_nice()) == before


def check_programs(name: str) -> None:
    program = PROGRAMS.get(name)
    if program and shutil.which(program) is None:
        pytest.skip(f"needs {program}")


def up(name: str) -> Testbed:
    check_programs(name)
    return lab.up(name)


@dataclass
class Crossing:
    """One frame as it was on the wire between the boxes, and as it arrived."""

    between: bytes
    row: dict[str, str]
    arrived: Ether


def cross_over(
    testbed: Testbed,
    path: Path,
    sender: Side,
    packet: Packet,
    ports: tuple[int, int] = PORTS,
) -> Crossing:
    """Sends one frame, and has tshark read what came to the second box of its way."""
    home = lab.LABS[testbed.name].homes[opposite(sender)]
    with Wire(home, "inner") as wire:
        arrived = deliver(testbed, sender, packet, ports)
        frames = [raw for raw in wire.received(0.5) if PAYLOAD in raw]
    (between,) = frames
    wrpcap(str(path / "inner.pcap"), [Ether(between)])
    (row,) = tshark(path / "inner.pcap", COLUMNS, str(PORTS[1]))
    return Crossing(between, row, arrived)


@in_a_lab
@needs_tshark
@pytest.mark.usefixtures("nothing_left")
def test_between_clat_and_plat_ipv4_is_ipv6(tmp_path: Path) -> None:
    testbed = up("464xlat")
    host, server = "2001:2:0:c1a7::2", "2001:2:0:6464::c613:2"
    there = cross_over(testbed, tmp_path, "left", ip_packet(INSIDE, OUTSIDE))
    back = cross_over(testbed, tmp_path, "right", ip_packet(OUTSIDE, PUBLIC), BACK)
    for way, ends, ports in (
        (there, (host, server), PORTS),
        (back, (server, host), BACK),
    ):
        row = way.row
        assert row["frame.protocols"] == "eth:ethertype:ipv6:udp:data"
        assert (row["ipv6.src"], row["ipv6.dst"]) == ends
        assert row["ipv6.nxt"] == "17"
        assert row["ipv6.hlim"] == "7"
        assert (int(row["udp.srcport"]), int(row["udp.dstport"])) == ports
        assert row["udp.checksum.status"] == "1"
        assert IPv6 not in way.arrived
        assert way.arrived[IP].ttl == 10 - (testbed.hops or 0)
    assert (there.arrived[IP].src, there.arrived[IP].dst) == (PUBLIC, OUTSIDE)
    assert (back.arrived[IP].src, back.arrived[IP].dst) == (OUTSIDE, INSIDE)


@in_a_lab
@needs_tshark
@pytest.mark.usefixtures("nothing_left")
def test_each_host_of_the_clat_has_an_ipv6_address(tmp_path: Path) -> None:
    testbed = up("464xlat")
    for host, group in ((3, "1"), (254, "fc")):
        packet = ip_packet(f"10.0.0.{host}", OUTSIDE)
        there = cross_over(testbed, tmp_path, "left", packet)
        assert there.row["ipv6.src"] == f"2001:2:0:c1a7::{group}:2"
        assert there.arrived[IP].src == PUBLIC


@in_a_lab
@needs_tshark
@pytest.mark.usefixtures("nothing_left")
def test_between_b4_and_aftr_ipv4_is_in_ipv6(tmp_path: Path) -> None:
    testbed = up("4in6")
    b4, aftr = "2001:2:0:b4::1", "2001:2:0:af::1"
    there = cross_over(testbed, tmp_path, "left", ip_packet(INSIDE, OUTSIDE))
    back = cross_over(testbed, tmp_path, "right", ip_packet(OUTSIDE, PUBLIC), BACK)
    for way, outer, inner in (
        (there, (b4, aftr), (INSIDE, OUTSIDE)),
        (back, (aftr, b4), (OUTSIDE, INSIDE)),
    ):
        row = way.row
        assert row["frame.protocols"] == "eth:ethertype:ipv6:ip:udp:data"
        assert row["ipv6.nxt"] == "4", "no routing header between"
        assert (row["ipv6.src"], row["ipv6.dst"]) == outer
        assert (row["ip.src"], row["ip.dst"]) == inner
        assert row["udp.checksum.status"] == "1"
        assert way.arrived[IP].ttl == 10 - (testbed.hops or 0)
    assert (there.arrived[IP].src, there.arrived[IP].dst) == (PUBLIC, OUTSIDE)
    assert (back.arrived[IP].src, back.arrived[IP].dst) == (OUTSIDE, INSIDE)


VXLAN_HEADERS = 14 + 20 + 8 + 8


@in_a_lab
@needs_tshark
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("sender", "ends", "outer"),
    [
        ("left", ("198.18.0.2", "198.19.0.2"), ("10.255.0.1", "10.255.0.2")),
        ("right", ("2001:2:0:8000::2", "2001:2::2"), ("10.255.0.2", "10.255.0.1")),
    ],
)
def test_between_the_bridges_frames_are_whole_in_vxlan(
    tmp_path: Path, sender: Side, ends: tuple[str, str], outer: tuple[str, str]
) -> None:
    testbed = up("vxlan")
    there = cross_over(testbed, tmp_path, sender, ip_packet(*ends))
    row = there.row
    inner = "ipv6" if ":" in ends[0] else "ip"
    assert row["frame.protocols"] == (
        f"eth:ethertype:ip:udp:vxlan:eth:ethertype:{inner}:udp:data"
    )
    assert row["ip.src"].split(",")[0] == outer[0]
    assert row["ip.dst"].split(",")[0] == outer[1]
    assert row["udp.dstport"].split(",")[0] == "4789"
    assert row["udp.checksum"].split(",")[0] == "0x0000"
    assert (row["vxlan.vni"], int(row["vxlan.flags"], 16)) == ("42", 0x0800)
    assert there.between[VXLAN_HEADERS:] == bytes(there.arrived)
    kind = IPv6 if inner == "ipv6" else IP
    assert (there.arrived[kind].src, there.arrived[kind].dst) == ends
    assert getattr(there.arrived[kind], "hlim" if kind is IPv6 else "ttl") == 10


@in_a_lab
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("name", CHAINS)
def test_the_longest_frames_pass_in_one_piece(name: str) -> None:
    testbed = up(name)
    ends = (INSIDE, OUTSIDE) if name in GATEWAYS else ("198.18.0.2", OUTSIDE)
    answered = (OUTSIDE, PUBLIC) if name in GATEWAYS else (OUTSIDE, "198.18.0.2")
    ways: dict[Side, tuple[tuple[str, str], tuple[int, int]]] = {
        "left": (ends, PORTS),
        "right": (answered, BACK),
    }
    for sender, ((src, dst), ports) in ways.items():
        packet = IP(src=src, dst=dst, ttl=10, flags="DF")
        arrived = deliver(testbed, sender, packet, ports, payload=LONGEST)
        assert arrived[IP].len == 1500
        assert bytes(arrived[UDP].payload) == LONGEST


@in_a_lab
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("name", GATEWAYS)
def test_nobody_comes_in_from_outside_to_an_inner_address(name: str) -> None:
    testbed = up(name)
    for inner in (INSIDE, "10.64.0.2"):
        with pytest.raises(AssertionError, match="did not arrive"):
            deliver(testbed, "right", ip_packet(OUTSIDE, inner), BACK, wait_s=0.3)


@in_a_lab
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_that_a_killed_process_left_is_removed(name: str) -> None:
    check_programs(name)
    with lab_holder(name) as holder:
        processes = dut_processes()
        holder.kill()
        holder.wait(10)
    assert netns.existing(netns.NAMESPACES) == ["tester", "dut", "dut2"]
    assert not lab.running()[0].alive
    assert lab.down() == [name]
    assert leftovers() == []
    assert not any(map(is_running, processes))


@in_a_lab
@pytest.mark.usefixtures("nothing_left")
def test_a_chain_without_its_second_box_is_broken() -> None:
    up("vxlan")
    subprocess.run(["ip", "netns", "del", "dut2"], check=True)
    assert not lab.dut_alive("vxlan")
    assert not lab.running()[0].alive


@in_a_lab
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.skipif(plan_cpus().dut is None, reason="needs two CPUs")
def test_all_wires_of_both_boxes_are_steered_to_one_cpu() -> None:
    description = up("vxlan").description
    cpu = plan_cpus().dut
    assert f"steered to CPU {cpu} by RPS" in description
    netns.write_settings("dut2", {netns.steering_path("inner"): "0"})
    assert "inner of dut2 not" in lab.attached("vxlan").description
    set_cores(1)
    assert f"steered to CPU {cpu} by RPS" in lab.attached("vxlan").description


@in_a_lab
@pytest.mark.usefixtures("nothing_left")
def test_what_the_wire_between_drops_is_told_with_its_box() -> None:
    testbed = up("vxlan")
    device = lab.LABS["vxlan"]
    ends = ip_packet("198.18.0.2", "198.19.0.2")
    deliver(testbed, "left", ends)
    before = device_cpu.drops(device)
    subprocess.run(
        ["ip", "-n", "dut2", "link", "set", "inner", "mtu", "500"], check=True
    )
    with pytest.raises(AssertionError, match="did not arrive"):
        deliver(testbed, "left", ends, wait_s=0.3, payload=LONGEST)
    after = device_cpu.drops(device)
    rises = {
        (side, name): count - before[side][name]
        for side, counts in after.items()
        for name, count in counts.items()
    }
    rose = {key: rise for key, rise in rises.items() if rise}
    assert rose == {("left", "inner tx_dropped"): 1, ("right", "inner rx_dropped"): 1}


@in_a_lab
@pytest.mark.usefixtures("nothing_left")
def test_the_description_tells_how_ipv4_gets_into_ipv6() -> None:
    testbed = up("4in6")
    found = subprocess.run(
        ["ip", "-n", "dut", "-d", "link", "show", "type", "ip6tnl"],
        capture_output=True,
        text=True,
        check=False,
    )
    by = "ip6_tunnel" if "softwire" in found.stdout else "SRv6 (encap.red, End.DX4)"
    assert f"IPv4 in IPv6 by {by}" in testbed.description


@in_a_lab
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("name", CHAINS)
def test_hooks_tell_what_both_boxes_did(name: str) -> None:
    testbed = up(name)
    told = [
        subprocess.run(hook.shown, capture_output=True, text=True, check=True).stdout
        for hook in (*testbed.hooks.before_trial, *testbed.hooks.after_trial)
    ]
    assert sum("inner@" in text for text in told) == 2


REFUSED = SetupError("unknown device type")


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"best", "other"}, ["link add name best type best", "use best"]),
        ({"other"}, ["link add name other type other", "use other"]),
    ],
)
def test_a_box_takes_the_first_way_that_the_kernel_has(
    monkeypatch: pytest.MonkeyPatch, known: set[str], expected: list[str]
) -> None:
    assert commands_of(monkeypatch, known) == expected


def test_a_box_that_has_no_way_says_what_the_kernel_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(SetupError, match="unknown device type"):
        commands_of(monkeypatch, set())


def commands_of(monkeypatch: pytest.MonkeyPatch, known: set[str]) -> list[str]:
    """What a kernel with these kinds of links was told."""
    done: list[str] = []

    def run_ip(_namespace: str, commands: Sequence[str]) -> None:
        if commands[0].startswith("link add") and commands[0].split()[-1] not in known:
            raise REFUSED
        done.extend(commands)

    monkeypatch.setattr(netns, "run_ip", run_ip)
    ways = [Way(each, f"{each} type {each}", (f"use {each}",)) for each in NAMES]
    topology.open_way("dut", Box(ways=tuple(ways)))
    return done


NAMES = ("best", "other")
