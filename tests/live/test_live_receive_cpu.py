"""A lab that has a CPU for the tester's receive work: that CPU does it, or it is told.

Machines of two CPUs have none to spare, so these plans name one that does other work,
too; what is done where is the same.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from labtools import needs_lab
from livetools import SHORT, cpus, dutperf, inside, needs_engine

from dutperf import lab
from dutperf.api.places import open_testbed
from dutperf.config import PlannedTestbed
from dutperf.config.campaign import LabKeys
from dutperf.config.testbed import Testbed
from dutperf.errors import SetupError
from dutperf.lab import device_cpu, netns, presence
from dutperf.lab.device_cpu import receive_threads
from dutperf.lab.processes import CpuPlan
from dutperf.lab.state import LabState, StateFile
from dutperf.passport import keeping
from dutperf.passport.making import Maker, default_grid
from dutperf.passport.measuring import Thoroughness
from dutperf.results import load_journal
from dutperf.results.trial_record import TrialRecord

pytestmark = [*needs_engine, *needs_lab]

NAME = "linux-router"
LEAST_NS = 50
"""No kernel takes a frame in in less."""


KERNELS_FIRST = Path("/proc/2/comm")
sees_the_kernel = pytest.mark.skipif(
    not KERNELS_FIRST.exists() or KERNELS_FIRST.read_text() != "kthreadd\n",
    reason="in a container, which does not see the kernel's threads",
)


def planned(receive: int) -> CpuPlan:
    worker, dut = cpus(2)
    return CpuPlan(worker=worker, dut=dut, main=dut, receive=receive)


@contextmanager
def lab_receiving_on(cpu: int) -> Iterator[Testbed]:
    """The lab kept; a run that finds it does as its state says."""
    assert lab.running() == [], "a lab is up: take it down before these tests"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(presence, "plan_cpus", lambda _usable: planned(cpu))
        try:
            yield lab.up(NAME)
        finally:
            lab.down(all_=True)


def kept() -> LabState:
    state = StateFile().read()
    assert state is not None
    return state


def drive_by(driver: str) -> None:
    """Ports of the lab that is kept."""
    sides: dict[str, object] = {}
    for name, side in kept().testbed.sides.items():
        port = side.port.model_copy(update={"driver": driver})
        sides[name] = side.model_copy(update={"port": port})
    testbed = kept().testbed.model_copy(update=sides)
    StateFile().write(replace(kept(), testbed_keys=testbed.model_dump(mode="json")))


def ran_ns(pid: int) -> int:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def trials(output: Path, rate_fps: int) -> list[TrialRecord]:
    """Of a run on the lab that is up."""
    rates = ("--max-rate", str(rate_fps), "--load", "100", "--repeats", "1")
    done = dutperf(
        *("frame-loss", "--lab", NAME, "--ip", "4", "--direction", "both"),
        *(*rates, *SHORT, "--json", "--output", str(output)),
    )
    assert done.returncode in (0, 1), done.stderr
    found = [r for r in load_journal(output).records if r.role == "trial"]
    assert found
    return found


@sees_the_kernel
def test_threads_on_that_cpu_receive_until_the_lab_goes() -> None:
    before = receive_threads()
    _, cpu = cpus(2)
    with lab_receiving_on(cpu) as testbed:
        own = receive_threads() - before
        assert len(own) == 2
        for pid in own:
            assert os.sched_getaffinity(pid) == {cpu}
            assert os.getpriority(os.PRIO_PROCESS, pid) == device_cpu.NICE
        assert f"what it sends is taken in by CPU {cpu}" in testbed.description
        with lab.left_to_the_device():
            assert threaded() == {"0"}
        assert threaded() == {"1"}
    assert receive_threads() == before


def threaded() -> set[str]:
    files = [f"/sys/class/net/{side}/threaded" for side in netns.SIDES]
    return set(inside(netns.TESTER, "cat", *files).split())


@sees_the_kernel
@pytest.mark.parametrize(
    "drivers",
    [("af_xdp", "af_xdp"), ("af_packet", "af_packet"), ("af_xdp", "af_packet")],
)
def test_they_take_every_frame_in(tmp_path: Path, drivers: tuple[str, str]) -> None:
    """Of the second run on a lab, too: the first one's program has left its ports."""
    with lab_receiving_on(cpus(2)[1]):
        for number, driver in enumerate(drivers):
            drive_by(driver)
            records = trials(tmp_path / str(number), 2000)
            assert "fail" not in {record.result.verdict.kind for record in records}
            frames = sum(received(record) for record in records)
            assert sum(map(ran_ns, receive_threads())) > LEAST_NS * frames > 0


@sees_the_kernel
def test_an_engine_that_comes_after_another_is_served_likewise() -> None:
    with lab_receiving_on(cpus(2)[1]):
        before = receive_threads()
        lab.renew_receiving()
        assert len(receive_threads()) == len(before)
        assert not receive_threads() & before
        assert {tuple(os.sched_getaffinity(pid)) for pid in receive_threads()} == {
            (cpus(2)[1],)
        }


def received(record: TrialRecord) -> int:
    return sum(s.received for d in record.result.directions for s in d.streams)


@contextmanager
def starved() -> Iterator[None]:
    """Those threads get a small part of a CPU that has other work."""
    done = threading.Event()

    def starve() -> None:
        while not done.wait(0.02):
            for pid in receive_threads():
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, pid, -5)

    thread = threading.Thread(target=starve)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_what_they_have_no_time_for_is_not_the_devices_loss(tmp_path: Path) -> None:
    """They share the worker's CPU, which is never idle."""
    with lab_receiving_on(cpus(2)[0]), starved():
        records = trials(tmp_path / "r", 100_000)
    kinds = {record.result.verdict.kind for record in records}
    assert "fail" not in kinds
    codes = {reason.code for r in records for reason in r.result.verdict.reasons}
    assert "receiver_overflow" in codes
    for record in records:
        told = record.device_drops
        assert told is not None
        assert not any(
            "tx_dropped" in counters for counters in told.interfaces.values()
        )


def test_a_passport_has_both_figures(tmp_path: Path) -> None:
    plan = planned(cpus(2)[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(presence, "plan_cpus", lambda _usable: plan)
        loop = keeping.check_loop(
            keeping.loop_of(
                PlannedTestbed(lab=LabKeys(name=NAME), testbed=lab.plan(NAME))
            )
        )
        said: list[str] = []
        maker = Maker(tmp_path, open_testbed, pace=Thoroughness(0.05, 2, 1, "20%"))
        made = maker.made(loop, list(default_grid([4]))[:1], said.append)
    assert made.owner.receive_cpu == plan.receive
    (entry,) = made.entries
    assert entry.device_ns_per_frame
    assert entry.device_ns_if_shared
    assert "if it received for the tester, too" in said[0]


def test_without_ethtool_the_lab_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(presence, "plan_cpus", lambda _usable: planned(cpus(2)[1]))
    monkeypatch.setattr("shutil.which", lambda name: name != "ethtool" or None)
    with pytest.raises(SetupError, match="ethtool is missing"):
        lab.up(NAME)
    assert lab.running() == []


def test_a_kernel_that_cannot_leaves_it_to_the_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = subprocess.run

    def refused(command: list[str], **options: object) -> object:
        if "ethtool" in command:
            return subprocess.CompletedProcess(command, 1)
        return run(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr("subprocess.run", refused)
    with lab_receiving_on(cpus(2)[1]) as testbed:
        assert kept().receive_cpu is None
        assert "taken in by" not in testbed.description
