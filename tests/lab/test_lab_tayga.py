"""``tayga-siit``: frames through a real translator, and nothing of it left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from labtools import (
    cross,
    deliver,
    dut_processes,
    ip_packet,
    lab_holder,
    leftovers,
    neighbour_limits,
    queue_and_nice,
    tolerant,
)
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6

from dutperf import lab
from dutperf.config.testbed import Testbed
from dutperf.errors import SetupError
from dutperf.lab.processes import Process, is_running, plan_cpus
from dutperf.lab.state import StateFile
from dutperf.protocol.base import Side

pytestmark = [
    *tolerant,
    pytest.mark.skipif(shutil.which("tayga") is None, reason="needs tayga"),
]

NAME = "tayga-siit"


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    assert lab.running() == [], "a lab is up: take it down before testing the lab"
    before = neighbour_limits(), queue_and_nice()
    yield
    lab.down()
    assert leftovers() == []
    assert (neighbour_limits(), queue_and_nice()) == before


@pytest.fixture
def translator() -> Iterator[Process]:
    """The translator of a kept lab."""
    lab.up(NAME)
    (process,) = dut_processes()
    yield process
    lab.down()
    assert not is_running(process)


def virtual_ends(testbed: Testbed, sender: Side) -> tuple[str, str]:
    """Source and destination of a frame that is to be translated."""
    if sender == "left":
        real, virtual = testbed.left.ip(6), testbed.right.virtual(6)
    else:
        real, virtual = testbed.right.ip(4), testbed.left.virtual(4)
    assert real is not None
    assert virtual is not None
    return real.address, virtual


def test_an_ipv6_frame_arrives_as_ipv4_with_the_mapped_addresses() -> None:
    with lab.session(NAME) as testbed:
        arrived = deliver(testbed, "left", ip_packet(*virtual_ends(testbed, "left")))
    assert IPv6 not in arrived
    assert (arrived[IP].src, arrived[IP].dst) == ("198.18.0.2", "198.19.0.2")
    assert (arrived[UDP].sport, arrived[UDP].dport) == (49184, 7)
    assert 0 < arrived[IP].ttl < 10


def test_an_ipv4_frame_arrives_as_ipv6_with_the_mapped_addresses() -> None:
    with lab.session(NAME) as testbed:
        arrived = deliver(testbed, "right", ip_packet(*virtual_ends(testbed, "right")))
    assert IP not in arrived
    assert arrived[IPv6].src == "2001:2:0:1000::2"
    assert arrived[IPv6].dst == "2001:2::2"
    assert arrived[IPv6].nh == 17, "no fragment header"
    assert 0 < arrived[IPv6].hlim < 10


@pytest.mark.parametrize("sender", ["left", "right"])
def test_native_ipv6_passes_untranslated(sender: Side) -> None:
    with lab.session(NAME) as testbed:
        arrived = cross(testbed, 6, sender)
    assert {arrived[IPv6].src, arrived[IPv6].dst} == {"2001:2::2", "2001:2:0:8000::2"}
    assert arrived[IPv6].hlim == 9


@pytest.mark.parametrize(("host", "group"), [(3, "1"), (12, "a"), (254, "fc")])
def test_each_host_has_a_mapping_of_its_own(host: int, group: str) -> None:
    left, right = f"2001:2::{group}:2", f"2001:2:0:1000::{group}:2"
    left_4, right_4 = f"198.18.0.{host}", f"198.19.0.{host}"
    with lab.session(NAME) as testbed:
        forward = deliver(testbed, "left", ip_packet(left, right))
        reverse = deliver(testbed, "right", ip_packet(right_4, left_4))
    assert (forward[IP].src, forward[IP].dst) == (left_4, right_4)
    assert (reverse[IPv6].src, reverse[IPv6].dst) == (right, left)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_the_translator_runs_on_the_cpu_of_the_dut(translator: Process) -> None:
    assert os.sched_getaffinity(translator.pid) == {plan_cpus().dut}


def test_down_ends_the_translator_and_removes_its_files(translator: Process) -> None:
    files = StateFile().dut_directory
    assert (files / "tayga-siit.conf").exists()
    lab.down()
    assert not is_running(translator)
    assert not files.exists()


def test_the_translator_of_a_kept_lab_outlives_its_maker() -> None:
    program = f"from dutperf import lab; lab.up({NAME!r})"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=20)
    (process,) = dut_processes()
    assert is_running(process)
    lab.down()
    assert not is_running(process)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_session_that_a_signal_ends_takes_its_translator_along(
    signum: signal.Signals,
) -> None:
    with lab_holder(NAME) as holder:
        (process,) = dut_processes()
        holder.send_signal(signum)
        holder.wait(10)
    assert not is_running(process)
    assert leftovers() == []


@pytest.mark.parametrize("name", [NAME, "linux-router"])
def test_the_next_lab_ends_the_translator_of_a_killed_process(name: str) -> None:
    with lab_holder(NAME) as holder:
        (process,) = dut_processes()
        holder.kill()
        holder.wait(10)
    assert is_running(process)
    with lab.session(name) as testbed:
        assert not is_running(process)
        cross(testbed, 6, "left")


def test_a_dead_translator_is_noticed_and_the_lab_made_anew(
    translator: Process,
) -> None:
    os.kill(translator.pid, signal.SIGKILL)
    while is_running(translator):
        time.sleep(0.01)
    assert not lab.dut_alive(NAME)
    assert not lab.running()[0].alive
    lab.up(NAME)
    assert lab.dut_alive(NAME)


def test_no_other_process_is_ended_though_it_has_the_name(
    translator: Process, tmp_path: Path
) -> None:
    program = tmp_path / "tayga"
    shutil.copy("/bin/sleep", program)
    bystander = os.posix_spawn(program, ["tayga", "60"], os.environ)
    lab.down()
    assert not is_running(translator)
    assert os.waitpid(bystander, os.WNOHANG) == (0, 0)
    os.kill(bystander, signal.SIGKILL)
    os.waitpid(bystander, 0)


def test_a_translator_that_does_not_start_is_quoted_and_nothing_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = lab.LABS[NAME]
    (box,) = device.boxes
    assert box.translator is not None
    wrong = replace(box.translator, pairs=(("198.18.0.2", "not-an-address"),))
    boxes = (replace(box, translator=wrong),)
    monkeypatch.setitem(lab.LABS, NAME, replace(device, boxes=boxes))
    with pytest.raises(SetupError, match="not-an-address"):
        lab.up(NAME)
    assert leftovers() == []
