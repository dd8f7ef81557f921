"""The hook ``during_trial`` of the labs: what forwards goes, and is there again."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from labtools import deliver, dut_processes, ip_packet, leftovers, tolerant
from scapy.packet import Packet

from dutperf import lab
from dutperf.config.testbed import Testbed
from dutperf.errors import SetupError
from dutperf.lab import netns, orders
from dutperf.lab.processes import is_running
from dutperf.lab.state import StateFile

pytestmark = tolerant

THROUGH: dict[str, list[Packet]] = {
    "linux-router": [
        ip_packet("198.18.0.2", "198.19.0.2"),
        ip_packet("198.18.0.2", "198.19.255.2"),
        ip_packet("2001:2::2", "2001:2:0:8000::2"),
        ip_packet("2001:2::2", "2001:2:0:80ff::2"),
    ],
    "nft-nat44": [ip_packet("10.0.0.2", "198.19.0.2")],
    "tayga-siit": [ip_packet("2001:2::2", "2001:2:0:1000::2")],
    "tayga-nat64": [ip_packet("2001:2::2", "2001:2:0:6464::c613:2")],
    "464xlat": [ip_packet("10.0.0.2", "198.19.0.2")],
    "4in6": [ip_packet("10.0.0.2", "198.19.0.2")],
    "vxlan": [
        ip_packet("198.18.0.2", "198.19.0.2"),
        ip_packet("2001:2::2", "2001:2:0:8000::2"),
    ],
}
PROGRAMS = {
    "nft-nat44": "conntrack",
    "tayga-siit": "tayga",
    "tayga-nat64": "tayga",
    "464xlat": "tayga",
    "4in6": "conntrack",
}


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    assert lab.running() == [], "a lab is up: take it down before testing the lab"
    yield
    lab.down()
    assert leftovers() == []


def deliver_soon(testbed: Testbed, packet: Packet) -> None:
    """A bridge forwards once its kernel has noticed that a link is there again."""
    for _ in range(10):
        with contextlib.suppress(AssertionError):
            deliver(testbed, "left", packet, wait_s=0.5)
            return
    deliver(testbed, "left", packet)


@pytest.mark.parametrize("name", THROUGH)
def test_a_device_forwards_again_as_before(name: str) -> None:
    program = PROGRAMS.get(name)
    if program and shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    testbed = lab.up(name)
    before = dut_processes()
    (hook,) = testbed.hooks.during_trial
    told = subprocess.run(hook.shown, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    for packet in THROUGH[name]:
        deliver_soon(testbed, packet)
    assert lab.dut_alive(name)
    after = dut_processes()
    assert len(after) == len(before)
    assert not any(map(is_running, before))


def test_connections_are_forgotten() -> None:
    if shutil.which("conntrack") is None:
        pytest.skip("needs conntrack")
    testbed = lab.up("nft-nat44")
    deliver(testbed, "left", THROUGH["nft-nat44"][0])
    assert "deleted" in orders.restart(StateFile())
    command = ["ip", "netns", "exec", netns.DUT, "conntrack", "-C"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "0"


def test_without_a_lab_it_says_so() -> None:
    with pytest.raises(SetupError, match="no lab is up"):
        orders.restart(StateFile())
