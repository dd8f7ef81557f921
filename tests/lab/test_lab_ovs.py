"""``ovs-dpdk``: Open vSwitch's own data path as the device, and what it leaves."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from labtools import needs_lab
from livetools import SHORT, dutperf, measured_in_lab

from dutperf import lab
from dutperf.config.side import MemifPort
from dutperf.errors import SetupError
from dutperf.lab.devices import open_vswitch
from dutperf.lab.devices.open_vswitch import OVS_DPDK, RING_FRAMES, ROUTED, rules
from dutperf.lab.processes import plan_cpus
from dutperf.lab.state import ChangedSetting
from dutperf.results import load_results

NAME = "ovs-dpdk"


def in_a_lab(test: Callable[..., None]) -> Callable[..., None]:
    """Marks a test as one that brings a lab up."""
    for mark in needs_lab:
        test = mark(test)
    return test


PAGES = Path("/proc/sys/vm/nr_hugepages")


measured = partial(measured_in_lab, NAME)


def test_the_rules_know_the_addresses_and_macs_of_the_testbed() -> None:
    for name, side in ROUTED.items():
        port = getattr(OVS_DPDK, name).port
        assert isinstance(port, MemifPort)
        assert (port.mac, port.id, port.rx_queues) == (side.tester_mac, side.number, 2)
        assert port.ring_frames == RING_FRAMES
        gateways = [getattr(OVS_DPDK, name).ip(version).gateway for version in (4, 6)]
        assert list(side.own) == gateways
    for tracked in (False, True):
        text = "\n".join(rules(tracked=tracked))
        assert text.count("dec_ttl") == 4
        assert "priority=0,actions=drop" in text
        assert text.count("ct(commit)") == (2 if tracked else 0)


@in_a_lab
@pytest.mark.parametrize("ip", ["4", "6"])
@pytest.mark.parametrize("networks", ["1", "256"])
def test_it_is_a_router(tmp_path: Path, ip: str, networks: str) -> None:
    results = measured(tmp_path / "run", "--ip", ip, "--networks", networks)
    (cell,) = results.cells
    assert cell.verdict == "pass"
    # TTL and hop limit fall by one: inspected frames are as they should be.
    assert not [each for each in cell.findings if each.kind == "altered"]
    inspected = [
        stream.inspected.frames
        for trial in results.trials
        for way in trial.result.directions
        for stream in way.streams
        if stream.inspected and trial.role == "trial"
    ]
    assert sum(inspected) > 0


@in_a_lab
@pytest.mark.parametrize("ip", ["4", "6"])
def test_as_a_firewall_it_lets_in_what_belongs_to_a_connection(
    tmp_path: Path, ip: str
) -> None:
    """Of TCP all eight segments pass; of nobody's connection no frame does."""
    own = ("--lab", "ovs-dpdk-ct", "--ip", ip, "--max-rate", "1000", *SHORT)
    opened, alone = tmp_path / "opened", tmp_path / "alone"
    dutperf("tcp-connection-rate", "--until", "closed", *own, "--output", str(opened))
    load = ("--direction", "reverse", "--load", "100")
    dutperf("frame-loss", *load, *own, "--output", str(alone))
    (cell,) = load_results(opened).cells
    assert (cell.verdict, cell.median) == ("pass", 1000)
    trials = load_results(alone).trials
    ways = [way for trial in trials for way in trial.result.directions]
    assert sum(stream.sent for way in ways for stream in way.streams) > 0
    assert sum(stream.received for way in ways for stream in way.streams) == 0


@in_a_lab
def test_frames_to_another_mac_address_are_dropped(tmp_path: Path) -> None:
    results = measured(tmp_path / "run", "--ip", "4")
    probes = [trial for trial in results.trials if trial.role == "probe"]
    assert probes
    for trial in probes:
        for way in trial.result.directions:
            assert sum(stream.received for stream in way.streams) == 0


def _nice_of(name: str) -> list[int]:
    """Of the threads that run and have a name that begins so."""
    found = []
    for task in Path("/proc").glob("[0-9]*/task/[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if (task / "comm").read_text().startswith(name):
                found.append(os.getpriority(os.PRIO_PROCESS, int(task.name)))
    return found


@in_a_lab
def test_it_is_taken_down_whole() -> None:
    pages = PAGES.read_text()
    lab.up(NAME)
    try:
        assert lab.running()[0].alive
        assert _nice_of("pmd-") == [-20]  # nothing else forwards
        assert _nice_of("ovs-vswitchd") == [os.getpriority(os.PRIO_PROCESS, 0)]
        assert open_vswitch.pages_to_reserve() == () or pages != PAGES.read_text()
    finally:
        lab.down(NAME)
    assert lab.running() == []
    assert PAGES.read_text() == pages
    commands = [path.read_text().strip() for path in Path("/proc").glob("[0-9]*/comm")]
    assert not any(
        command.startswith(("ovsdb", "ovs-vswitchd")) for command in commands
    )


def test_pages_that_the_kernel_does_not_find_are_given_back(tmp_path: Path) -> None:
    file = tmp_path / "nr_hugepages"
    file.write_text("40\n")  # of 256 more than before
    with pytest.raises(SetupError, match="the kernel found 60 MiB") as refused:
        open_vswitch.check_pages((ChangedSetting(path=file, before=10, meanwhile=266),))
    assert file.read_text() == "10\n"
    assert "echo 266" in (refused.value.hint or "")


def test_enough_pages_are_no_trouble(tmp_path: Path) -> None:
    file = tmp_path / "nr_hugepages"
    file.write_text("266\n")
    open_vswitch.check_pages((ChangedSetting(path=file, before=10, meanwhile=266),))
    assert file.read_text() == "266\n"


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(SetupError) as refused:
        OVS_DPDK.check_programs(plan_cpus())
    assert "openvswitch-switch-dpdk" in (refused.value.hint or "")
