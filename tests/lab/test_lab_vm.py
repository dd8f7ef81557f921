"""``linux-vm``: a virtual machine as the device, and what it leaves.

Its guest is emulated where there is no KVM, and slow: rates are low.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from labtools import lab_holder, leftovers, needs_lab
from livetools import measured_in_lab

from dutperf import lab
from dutperf.errors import SetupError
from dutperf.lab import netns
from dutperf.lab.devices import virtual_machine
from dutperf.lab.processes import Process, is_running, plan_cpus
from dutperf.lab.state import StateFile

NAME = "linux-vm"

pytestmark = [*needs_lab, pytest.mark.usefixtures("nothing_left")]
measured = partial(measured_in_lab, NAME)


@pytest.fixture
def nothing_left() -> Iterator[None]:
    yield
    lab.down(all_=True)
    assert leftovers() == []


def guest() -> Process:
    state = StateFile().read()
    assert state is not None
    [process] = state.processes
    return process


@pytest.mark.parametrize("ip", ["4", "6"])
@pytest.mark.parametrize("networks", ["1", "256"])
def test_it_is_a_router_and_says_nothing_of_its_own(
    tmp_path: Path, ip: str, networks: str
) -> None:
    low = ("--max-rate", "500", "--networks", networks)
    # When its links come up, it tells of its groups, for as long as a kernel may.
    results = measured(tmp_path / "run", "--ip", ip, *low, "--settle-wait", "1.2")
    (cell,) = results.cells
    assert cell.verdict == "pass"
    assert not [each for each in cell.findings if each.kind == "altered"]
    trials = [trial.result for trial in results.trials if trial.role == "trial"]
    streams = [s for trial in trials for way in trial.directions for s in way.streams]
    # TTL and hop limit fall by one: inspected frames are as they should be.
    assert sum(each.inspected.frames for each in streams if each.inspected) > 0
    ports = [port for trial in results.trials for port in trial.result.ports]
    assert sum(port.foreign for port in ports) == 0


def test_the_tester_may_go_and_come_again(tmp_path: Path) -> None:
    lab.up(NAME)
    first = guest()
    for run in ("first", "second"):
        (cell,) = measured(tmp_path / run, "--ip", "4", "--max-rate", "500").cells
        assert cell.verdict == "pass"
    assert guest() == first
    assert is_running(first)


@pytest.mark.skipif(plan_cpus().dut is None, reason="needs two CPUs")
def test_all_of_it_is_on_the_devices_cpu_and_taken_down_whole() -> None:
    testbed = lab.up(NAME)
    process = guest()
    cpu = plan_cpus().dut
    assert f"on CPU {cpu}" in testbed.description
    for thread in Path(f"/proc/{process.pid}/task").iterdir():
        assert os.sched_getaffinity(int(thread.name)) == {cpu}
    assert lab.running()[0].alive
    assert lab.down() == [NAME]
    assert not is_running(process)
    assert leftovers() == []
    assert not StateFile().dut_directory.exists()


def test_one_that_a_killed_process_left_is_removed() -> None:
    with lab_holder(NAME) as holder:
        process = guest()
        holder.kill()
        holder.wait(10)
    assert not lab.running()[0].alive
    assert lab.down() == [NAME]
    assert leftovers() == []
    assert not is_running(process)


def test_what_the_guest_says_is_told_if_it_does_not_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        virtual_machine, "configuration", lambda _: "ip link set nowhere up\n"
    )
    with pytest.raises(SetupError, match=r"No such device; .*cannot be configured"):
        lab.up(NAME)
    assert lab.running() == []
    assert netns.leftovers(netns.NAMESPACES) == []
