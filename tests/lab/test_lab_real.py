"""The real thing: namespaces, wires and Linux forwarding. One lab at a time."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from labtools import (
    Wire,
    addresses,
    cross,
    deliver,
    ip_packet,
    is_test_frame,
    lab_holder,
    leftovers,
    neighbour_limits,
    queue_and_nice,
    tolerant,
)
from pyroute2 import netns as kernel_netns
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from dutperf import lab
from dutperf.config.testbed import Testbed
from dutperf.errors import SetupError
from dutperf.lab import machine, netns
from dutperf.lab.machine import NEIGHBOURS
from dutperf.lab.processes import plan_cpus, rps_mask
from dutperf.protocol.base import IpVersion, Side

pytestmark = tolerant

NAME = "linux-router"
SAME_GATEWAY = {"known-answer-nat46", "known-answer-nat64", "known-answer-nat66"}
"""The program of known-answer-nat44 on the same wires; only its table differs."""


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    assert lab.running() == [], "a lab is up: take it down before testing the lab"
    before = neighbour_limits(), queue_and_nice()
    yield
    lab.down()
    assert leftovers() == []
    assert (neighbour_limits(), queue_and_nice()) == before


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[str]]:
    """A process that has a lab up and waits."""
    with lab_holder(NAME) as process:
        yield process


def root_interfaces() -> list[str]:
    return sorted(name for _, name in socket.if_nameindex())


def test_up_and_down_leave_the_machine_as_it_was() -> None:
    before = root_interfaces()
    lab.up(NAME)
    assert lab.dut_alive(NAME)
    assert root_interfaces() == before
    assert lab.down(NAME) == [NAME]
    assert root_interfaces() == before
    assert leftovers() == []


def test_no_interface_is_ever_in_the_root_namespace() -> None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as news:
        news.bind((0, 1))  # RTMGRP_LINK
        news.setblocking(False)
        with lab.session(NAME):
            pass
        heard = b""
        while True:
            try:
                heard += news.recv(65535)
            except BlockingIOError:
                break
    assert b"left\0" not in heard
    assert b"right\0" not in heard


@pytest.mark.parametrize("version", [4, 6])
def test_the_router_forwards_both_ways(version: IpVersion) -> None:
    senders: tuple[Side, ...] = ("left", "right")
    with lab.session(NAME) as testbed:
        for sender in senders:
            arrived = cross(testbed, version, sender)
            left = arrived[IP].ttl if version == 4 else arrived[IPv6].hlim
            assert left == 9


@pytest.mark.parametrize("name", ["linux-router", "linux-router-hosts"])
def test_networks_behind_the_tester_are_reached(name: str) -> None:
    """Where IPv4 has no networks these are hosts of the link: it comes to the same."""
    ways: dict[Side, list[tuple[str, str]]] = {"left": [], "right": []}
    for network in (1, 255):
        ways["left"] += [
            ("198.18.0.2", f"198.19.{network}.2"),
            ("2001:2::2", f"2001:2:0:80{network:02x}::2"),
        ]
        ways["right"] += [
            ("198.19.0.2", f"198.18.{network}.2"),
            ("2001:2:0:8000::2", f"2001:2:0:{network:x}::2"),
        ]
    with lab.session(name) as testbed:
        for sender, ends in ways.items():
            for src, dst in ends:
                arrived = deliver(testbed, sender, ip_packet(src, dst))
                assert addresses(bytes(arrived)) == {src, dst}


@pytest.mark.parametrize(
    ("name", "asked"),
    [("linux-router", "198.19.0.2"), ("linux-router-hosts", "198.19.3.77")],
)
def test_ipv4_hosts_are_routed_in_one_lab_and_resolved_in_the_other(
    name: str, asked: str
) -> None:
    with lab.session(name) as testbed:
        deliver(testbed, "left", ip_packet("198.18.0.2", "198.19.3.77"))
        known = _inside(netns.DUT, "ip", "-4", "neigh", "show", "dev", "right")
    assert known.split()[0] == asked


def test_no_test_frame_is_seen_in_the_root_namespace() -> None:
    versions: tuple[IpVersion, ...] = (4, 6)
    with Wire(None) as root, lab.session(NAME) as testbed:
        crossed = [bytes(cross(testbed, version, "left")) for version in versions]
        seen = list(root.received(0.2))
    assert all(is_test_frame(frame) for frame in crossed)
    assert not any(is_test_frame(frame) for frame in seen)


def test_the_root_namespace_capture_sees_what_is_sent_there() -> None:
    """The control of the test above: its socket hears the root namespace at all."""
    with Wire(None) as root, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.sendto(b"heard?", ("127.0.0.1", 9))
        heard = [Ether(frame) for frame in root.received(1.0)]
    assert any(UDP in p and bytes(p[UDP].payload) == b"heard?" for p in heard)


IDLE_S = 1.2
"""Kernels ask for routers and tell of groups a second after a link is up."""
# A routing daemon joins a multicast group, of which its kernel tells the link.
QUIET = [n for n, d in lab.LABS.items() if n not in SAME_GATEWAY and not d.daemons]


@pytest.mark.parametrize("name", QUIET)
def test_an_idle_link_carries_no_frames(name: str) -> None:
    with lab.session(name), Wire(netns.TESTER) as both:
        seen = [Ether(frame).summary() for frame in both.received(IDLE_S)]
    assert seen == []


def test_the_testers_kernel_does_not_answer() -> None:
    with lab.session(NAME) as testbed:
        cross(testbed, 4, "left")
        with Wire(netns.DUT, "right") as dut:
            cross(testbed, 4, "left")
            kinds = [Ether(frame).summary() for frame in dut.received(0.3)]
    assert kinds == []


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_the_dut_is_steered_to_its_cpu() -> None:
    cpu = plan_cpus().dut
    assert cpu is not None
    with lab.session(NAME) as testbed:
        for side in netns.SIDES:
            path = f"/sys/class/net/{side}/queues/rx-0/rps_cpus"
            mask = _inside(netns.DUT, "cat", path).strip()
            assert int(mask.replace(",", ""), 16) == int(
                rps_mask(cpu).replace(",", ""), 16
            )
    assert cpu not in testbed.cores


def test_the_dut_has_no_neighbours_before_the_first_frame() -> None:
    with lab.session(NAME):
        assert _inside(netns.DUT, "ip", "neigh") == ""


def test_a_setting_that_the_kernel_does_not_have_is_named() -> None:
    with (
        lab.session(NAME),
        pytest.raises(SetupError, match="/proc/sys/net/no/such") as caught,
    ):
        netns.write_settings(netns.DUT, {"/proc/sys/net/no/such": "1"})
    assert "kernel" in caught.value.hint


def test_a_dut_deleted_in_mid_session_is_noticed_and_the_rest_removed() -> None:
    with lab.session(NAME):
        kernel_netns.remove(netns.DUT)
        assert not lab.dut_alive(NAME)
    assert leftovers() == []


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_a_session_and_leaves_nothing(
    holder: subprocess.Popen[str], signum: signal.Signals
) -> None:
    holder.send_signal(signum)
    holder.wait(10)
    assert leftovers() == []


def test_the_lab_of_a_live_process_is_not_taken(holder: subprocess.Popen[str]) -> None:
    with pytest.raises(SetupError, match=str(holder.pid)):
        lab.up(NAME)
    assert lab.running()[0].owner == holder.pid
    assert lab.dut_alive(NAME)


def test_up_removes_what_a_killed_process_left(holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait(10)
    assert len(leftovers()) == 4
    assert not lab.running()[0].alive
    with lab.session(NAME) as testbed:
        cross(testbed, 4, "left")


def test_the_limits_of_neighbours_are_raised_until_the_lab_goes() -> None:
    before = neighbour_limits()
    with lab.session(NAME):
        assert set(neighbour_limits()) == {NEIGHBOURS}
    assert neighbour_limits() == before


def test_limits_that_a_killed_process_left_raised_are_set_back(
    holder: subprocess.Popen[str],
) -> None:
    holder.kill()
    holder.wait(10)
    assert set(neighbour_limits()) == {NEIGHBOURS}
    lab.down()
    assert NEIGHBOURS not in neighbour_limits()


needs_own_queue = pytest.mark.skipif(
    not os.access(machine.BACKLOG, os.W_OK) or queue_and_nice()[1] is None,
    reason="needs the initial namespaces and two CPUs",
)
SET_AND_PREFERRED = (machine.QUEUE_FRAMES, machine.NICE)


@needs_own_queue
@pytest.mark.parametrize("name", ["linux-router", "linux-router-hosts"])
def test_the_input_queue_is_set_and_preferred_until_the_lab_goes(name: str) -> None:
    before = queue_and_nice()
    assert before != SET_AND_PREFERRED
    testbed = lab.up(name)
    assert queue_and_nice() == SET_AND_PREFERRED
    assert f"input queue of {machine.QUEUE_FRAMES} frames" in testbed.description
    assert f"ksoftirqd/{plan_cpus().dut} at nice -20" in testbed.description
    lab.down()
    assert queue_and_nice() == before


@needs_own_queue
def test_a_queue_that_a_killed_process_left_changed_is_set_back() -> None:
    before = queue_and_nice()
    with lab_holder(NAME) as holder:
        holder.kill()
        holder.wait(10)
    assert queue_and_nice() == SET_AND_PREFERRED
    lab.down()
    assert queue_and_nice() == before


@needs_own_queue
@pytest.mark.parametrize("second", [NAME, "linux-router-hosts"])
def test_a_lab_after_a_killed_one_restores_what_was_before_both(second: str) -> None:
    before = queue_and_nice()
    with lab_holder(NAME) as holder:
        holder.kill()
        holder.wait(10)
    lab.up(second)
    assert queue_and_nice() == SET_AND_PREFERRED
    lab.up(second)
    lab.down()
    assert queue_and_nice() == before


@needs_own_queue
def test_a_lab_that_is_refused_changes_no_queue(
    holder: subprocess.Popen[str],
) -> None:
    with pytest.raises(SetupError, match=str(holder.pid)):
        lab.up("linux-router-hosts")
    assert queue_and_nice() == SET_AND_PREFERRED


@needs_own_queue
def test_a_longer_queue_is_shorter_while_the_lab_is_up() -> None:
    """It would never overflow: the device would hold the tester back."""
    before = machine.BACKLOG.read_text()
    try:
        machine.BACKLOG.write_text("50000\n")
        with lab.session(NAME) as testbed:
            assert queue_and_nice() == SET_AND_PREFERRED
            assert "(set from 50000; the tester has" in testbed.description
        assert machine.BACKLOG.read_text() == "50000\n"
    finally:
        machine.BACKLOG.write_text(before)


@needs_own_queue
def test_a_kept_lab_is_described_as_it_is_when_it_is_measured() -> None:
    cpu = plan_cpus().dut
    assert f"steered to CPU {cpu} by RPS" in lab.up(NAME).description
    netns.write_settings(netns.DUT, {netns.steering_path("left"): "0"})
    told = f"steered by RPS: left not, right to CPU {cpu}"
    assert told in lab.attached(NAME).description
    netns.write_settings(netns.DUT, {netns.steering_path("right"): "0"})
    assert "on the tester's own CPU" in lab.attached(NAME).description


@needs_own_queue
def test_the_lab_knows_who_works_for_the_device_and_what_waits_for_it() -> None:
    with lab.session(NAME):
        watch = lab.watch_device()
        assert watch is not None
        thread = machine.server_of(plan_cpus().dut)
        assert thread is not None
        assert (watch.cpu, watch.processes()) == (plan_cpus().dut, [thread.pid])
        assert watch.queue_frames == machine.QUEUE_FRAMES
        assert watch.started()() >= 0


def test_a_namespace_file_left_half_made_is_removed_with_the_lab() -> None:
    lab.up(NAME)
    kernel_netns.remove(netns.DUT)
    (netns.NETNS_DIRECTORY / netns.DUT).touch()
    assert not lab.dut_alive(NAME)
    lab.up(NAME)
    assert lab.dut_alive(NAME)


def test_a_namespace_that_is_not_ours_survives() -> None:
    kernel_netns.create(netns.DUT)
    try:
        with pytest.raises(SetupError, match="not made by dutperf"):
            lab.up(NAME)
        assert lab.down() == []
        assert netns.existing(netns.NAMESPACES) == [netns.DUT]
    finally:
        kernel_netns.remove(netns.DUT)


def test_links_go_though_a_process_still_sits_in_the_lab() -> None:
    lab.up(NAME)
    with Wire(netns.TESTER, "left") as inside:
        lab.down()
        with pytest.raises(OSError, match=r"No such device|is down"):
            inside.send(Ether())


def test_two_at_once_make_one_lab() -> None:
    command = [sys.executable, "-c", f"from dutperf import lab; lab.up({NAME!r})"]
    both = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(20) for process in both] == [0, 0]
    assert lab.dut_alive(NAME)


def test_testbed_names_what_is_there() -> None:
    with lab.session(NAME) as testbed:
        assert isinstance(testbed, Testbed)
        assert testbed.namespace == "tester"
        for side in netns.SIDES:
            port = getattr(testbed, side).port.interface
            assert f"{port}@" in _inside("tester", "ip", "-o", "link", "show", port)


def _inside(namespace: str, *command: str) -> str:
    return subprocess.run(
        ["ip", "netns", "exec", namespace, *command],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
