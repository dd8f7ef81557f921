"""Several labs at once: whose CPUs are whose, and what each leaves to the others."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from labstates import FakeTopology, fake_topology, make_state

from dutperf import busy, lab
from dutperf.config.campaign import LabKeys
from dutperf.config.testbed import Testbed
from dutperf.errors import BusyError, InputError, SetupError
from dutperf.lab import machine, netns, orders, presence
from dutperf.lab.devices import nftables
from dutperf.lab.devices.nftables import Tracking
from dutperf.lab.processes import CpuPlan, Process
from dutperf.lab.state import (
    ChangedSetting,
    LabState,
    RaisedPriority,
    StateFile,
    hand_over,
)

EIGHT = set(range(8))
DEAD = Process(pid=2**22 + 1, start_ticks=1, boot_id="gone")
RUN = "process 7 (dutperf throughput x.yaml), for 3 s"


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeTopology:
    monkeypatch.delenv(busy.VARIABLE)
    return fake_topology(monkeypatch, tmp_path)


@pytest.fixture
def eight(kernel: FakeTopology, monkeypatch: pytest.MonkeyPatch) -> FakeTopology:
    return on_cpus(kernel, monkeypatch, EIGHT)


@pytest.fixture
def two(kernel: FakeTopology, monkeypatch: pytest.MonkeyPatch) -> FakeTopology:
    return on_cpus(kernel, monkeypatch, {0, 1})


def on_cpus(
    kernel: FakeTopology, monkeypatch: pytest.MonkeyPatch, cpus: set[int]
) -> FakeTopology:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: cpus)
    monkeypatch.setattr(
        "dutperf.lab.device_cpu.move_receiving", lambda _device, _cpu: True
    )
    return kernel


def running_on(monkeypatch: pytest.MonkeyPatch, *cpus: int) -> None:
    """A run has these."""
    monkeypatch.setattr(presence, "owners_of_cpus", lambda: dict.fromkeys(cpus, RUN))


def state_of(directory: Path, name: str | None) -> LabState:
    state = StateFile(directory, name).read()
    assert state is not None
    return state


def cpus_of(directory: Path, name: str | None) -> set[int]:
    state = state_of(directory, name)
    return state.device_cpus | state.tester_cpus


def test_two_labs_are_up_at_once_and_go_one_by_one(eight: FakeTopology) -> None:
    lab.up("linux-router@a")
    lab.up("linux-router@b")
    both = {"tester-a", "dut-a", "tester-b", "dut-b"}
    assert eight.present == both
    assert [status.own_name for status in lab.running()] == ["a", "b"]
    assert lab.down(own_name="a") == ["linux-router@a"]
    assert eight.present == {"tester-b", "dut-b"}
    assert (lab.dut_alive("linux-router@a"), lab.dut_alive("linux-router@b")) == (
        False,
        True,
    )
    assert lab.down("linux-router@b") == ["linux-router@b"]
    assert not eight.present


def test_the_nameless_lab_is_one_of_them(eight: FakeTopology) -> None:
    lab.up("linux-router")
    lab.up("wire@a")
    assert eight.present == {"tester", "dut", "tester-a", "dut-a"}
    assert lab.down() == ["linux-router"]
    assert lab.down() == [], "a named one goes by its name alone"
    assert eight.present == {"tester-a", "dut-a"}


def test_all_labs_go_at_once_if_that_is_asked_for(
    kernel: FakeTopology, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_cpus(kernel, monkeypatch, set(range(12)))
    for name in ("linux-router", "linux-router@a", "wire@b"):
        lab.up(name)
    assert lab.down(all_=True) == ["linux-router", "linux-router@a", "wire@b"]
    assert not kernel.present


def test_a_name_belongs_to_one_lab(eight: FakeTopology) -> None:
    assert not eight.present
    lab.up("linux-router@a")
    with pytest.raises(SetupError, match="linux-router@a is up and kept") as caught:
        lab.up("wire@a")
    assert "dutperf lab down --name a" in caught.value.hint
    assert lab.down("wire@a") == []


def test_what_is_kept_in_the_place_of_a_lab_is_found_before_it_is_its_turn(
    eight: FakeTopology,
) -> None:
    lab.up("linux-router@a")
    before = set(eight.present)
    with pytest.raises(SetupError, match="linux-router@a is up and kept"):
        lab.check("wire@a")
    lab.check("linux-router@a")
    lab.check("wire@b")
    with pytest.raises(SetupError, match="does what it was told"):
        lab.check(LabKeys(name="linux-router@a", label="other"))
    assert eight.present == before
    eight.present.remove("dut-a")
    with pytest.raises(SetupError, match="has gone"):
        lab.check("linux-router@a")
    lab.check("wire@a")
    lab.down(own_name="a")
    lab.check("wire@a")


def test_cpus_that_a_kept_lab_has_are_missed_before_it_is_a_labs_turn(
    two: FakeTopology, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.up("linux-router@a")
    with pytest.raises(SetupError, match=r"CPU 0, 1: lab linux-router@a \(kept\)"):
        lab.check("wire@b")
    monkeypatch.setenv(busy.VARIABLE, "share")
    lab.check("wire@b")
    monkeypatch.delenv(busy.VARIABLE)
    lab.down(own_name="a")
    assert not two.present
    running_on(monkeypatch, 0, 1)
    lab.check("wire@b")


def test_labs_on_eight_cpus_share_none(eight: FakeTopology, tmp_path: Path) -> None:
    assert not eight.present
    lab.up("linux-router@a")
    lab.up("linux-router@b")
    first, second = cpus_of(tmp_path, "a"), cpus_of(tmp_path, "b")
    assert (len(first), len(second)) == (4, 4)
    assert first.isdisjoint(second)
    with pytest.raises(SetupError, match="free: none"), lab.session("wire@c"):
        pytest.fail("a third one's device would have another's CPU")


def test_a_lab_in_use_has_its_testers_cpus_too(
    eight: FakeTopology, tmp_path: Path
) -> None:
    assert not eight.present
    with lab.session("linux-router@a") as first, lab.session("linux-router") as other:
        assert set(first.cores).isdisjoint(other.cores)
        assert cpus_of(tmp_path, "a").isdisjoint(cpus_of(tmp_path, None))
        with (
            pytest.raises(BusyError, match=f"process {os.getpid()}") as caught,
            lab.session("linux-router@c"),
        ):
            pytest.fail("it has no CPU")
        assert "DUTPERF_BUSY=wait" in caught.value.hint


def test_a_run_keeps_its_cpus_from_labs(
    eight: FakeTopology, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert not eight.present
    running_on(monkeypatch, 0, 1, 6, 7)
    lab.up("linux-router")
    assert cpus_of(tmp_path, None) == {2, 3, 4, 5}


def test_on_two_cpus_the_second_lab_is_refused_and_told_why(two: FakeTopology) -> None:
    lab.up("linux-router@a")
    with pytest.raises(SetupError) as caught:
        lab.up("linux-router@b")
    assert "free: none" in caught.value.message
    assert "CPU 0, 1: lab linux-router@a (kept)" in caught.value.message
    assert "--share-cpus" in caught.value.hint
    assert not isinstance(caught.value, BusyError), "nobody waits for what is kept"
    assert two.present == {"tester-a", "dut-a"}


def test_a_lab_that_shares_says_with_whom_and_so_does_the_other(
    two: FakeTopology, tmp_path: Path
) -> None:
    lab.up("linux-router@a")
    second = lab.up("linux-router@b", share=True)
    assert "CPU 1 shared with lab linux-router@a" in second.description
    first = lab.attached("linux-router@a")
    assert "CPU 1 shared with lab linux-router@b" in first.description
    assert state_of(tmp_path, "b").shares_cpus
    assert [status.shares_cpus for status in lab.running()] == [False, True]
    lab.down(own_name="a")
    assert "shared" not in lab.attached("linux-router@b").description
    assert two.present


def test_a_lab_is_waited_for_until_the_run_ends(
    two: FakeTopology,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert not two.present
    monkeypatch.setenv(busy.VARIABLE, "wait")
    slept: list[float] = []
    age = iter(range(3, 9))

    def owners() -> dict[int, str]:
        return dict.fromkeys((0, 1), RUN.replace("3 s", f"{next(age)} s"))

    monkeypatch.setattr(presence, "owners_of_cpus", owners)

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            running_on(monkeypatch)

    monkeypatch.setattr("dutperf.busy.time.sleep", sleep)
    with lab.session("linux-router@a") as testbed:
        assert testbed.namespace == "tester-a"
    assert len(slept) == 3
    told = capsys.readouterr().err
    assert told.count("waiting: ") == 1
    assert RUN in told


def test_the_device_of_a_dead_owner_has_no_cpus(
    two: FakeTopology, tmp_path: Path
) -> None:
    dead = replace(make_state(DEAD), dut_cpu=1, name="a")
    StateFile(tmp_path, "a").write(dead)
    two.present |= {"tester", "dut"}
    lab.up("linux-router@b")
    assert state_of(tmp_path, "b").dut_cpu == 1
    assert two.present == {"tester-b", "dut-b"}, "what was left is removed"
    assert StateFile(tmp_path, "a").read() is None


def test_a_kept_lab_that_is_broken_has_its_cpus_still(two: FakeTopology) -> None:
    """Its device may spin, and its user wants to see what has happened."""
    lab.up("linux-router@a")
    two.present.remove("tester-a")
    with pytest.raises(SetupError, match="CPU 0, 1: lab linux-router@a"):
        lab.up("linux-router@b")
    two.present.remove("dut-a")
    lab.up("linux-router@b")


def test_more_cores_of_a_device_are_none_of_others(
    eight: FakeTopology, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert not eight.present
    monkeypatch.setattr(netns, "write_settings", lambda _namespace, _settings: None)
    lab.up("linux-router@a")
    lab.up("linux-router@b")
    own = StateFile(tmp_path, "a")
    with pytest.raises(InputError, match="1 can be spared"):
        orders.set_cores(2, own)
    lab.down(own_name="b")
    cpus = orders.set_cores(3, own)
    assert state_of(tmp_path, "a").device_cpus >= set(cpus)
    lab.up("linux-router@b")
    assert cpus_of(tmp_path, "b").isdisjoint(cpus)


def test_a_testbed_does_not_send_where_a_labs_device_works(
    two: FakeTopology, tmp_path: Path
) -> None:
    lab.up("linux-router@a")
    sides = make_state(None).testbed
    there = Testbed(name="there", left=sides.left, right=sides.right, cores=[1])
    with pytest.raises(SetupError, match="CPU 1, where the device of lab") as caught:
        lab.check_cpus(there)
    assert "--name a" in caught.value.hint
    lab.check_cpus(there.model_copy(update={"cores": [0]}))
    lab.check_cpus(there.model_copy(update={"namespace": "tester-a"}))
    assert two.present
    assert state_of(tmp_path, "a").owner is None


def test_a_lab_of_another_version_is_in_nobodys_way_but_a_new_labs(
    two: FakeTopology, tmp_path: Path
) -> None:
    lab.up("linux-router@a")
    strange = StateFile(tmp_path, "b")
    strange.write(make_state(None))
    strange.path.write_text("{}")
    assert lab.plan("wire@c").cores == [0]
    assert lab.attached("linux-router@a").name == "linux-router-a"
    with pytest.raises(SetupError, match="as this version writes it") as caught:
        lab.up("wire@c")
    assert "tester-b dut-b" in caught.value.hint
    assert lab.down(own_name="a") == ["linux-router@a"]
    assert not two.present


PATH = Path("/proc/sys/net/core/netdev_max_backlog")


def changed(before: int, meanwhile: int, path: Path = PATH) -> ChangedSetting:
    return ChangedSetting(path=path, before=before, meanwhile=meanwhile)


def lab_with(*settings: ChangedSetting, priorities: int = 0) -> LabState:
    raised = RaisedPriority(thread=DEAD, before=0, raised=-20)
    both = (raised,) * priorities
    return replace(make_state(None), settings=settings, priorities=both)


@pytest.mark.parametrize(
    ("gone", "stays", "left_to_set_back", "stays_with"),
    [
        pytest.param(
            [changed(1000, 6144)], [], [], [changed(1000, 6144)], id="found as it was"
        ),
        pytest.param(
            [changed(1000, 5000)],
            [changed(5000, 6144)],
            [],
            [changed(1000, 6144)],
            id="changed again",
        ),
        pytest.param(
            [changed(5000, 6144)],
            [changed(1000, 5000)],
            [changed(5000, 6144)],
            [changed(1000, 5000)],
            id="it changed again itself",
        ),
        pytest.param(
            [changed(1, 2)],
            [changed(1, 9, Path("/x"))],
            [],
            [changed(1, 9, Path("/x")), changed(1, 2)],
            id="another setting",
        ),
    ],
)
def test_the_last_lab_sets_back_what_was_before_the_first(
    tmp_path: Path,
    gone: list[ChangedSetting],
    stays: list[ChangedSetting],
    left_to_set_back: list[ChangedSetting],
    stays_with: list[ChangedSetting],
) -> None:
    heir = StateFile(tmp_path, "a")
    left = hand_over(lab_with(*gone, priorities=1), [(heir, lab_with(*stays))])
    assert list(left.settings) == left_to_set_back
    assert left.priorities == ()
    kept = state_of(tmp_path, "a")
    assert list(kept.settings) == stays_with
    assert len(kept.priorities) == 1


def test_a_lab_alone_sets_all_back_itself() -> None:
    alone = lab_with(changed(1, 2), priorities=1)
    assert hand_over(alone, []) == alone


@pytest.mark.parametrize("first", ["a", "b"])
def test_the_input_queue_is_set_back_when_the_last_lab_goes(
    eight: FakeTopology, tmp_path: Path, first: str
) -> None:
    assert not eight.present
    queue = tmp_path / "backlog"
    queue.write_text("1000\n")
    lab.up("linux-router@a")
    lab.up("linux-router@b")
    for name in (first, "b" if first == "a" else "a"):
        assert queue.read_text() == f"{machine.QUEUE_FRAMES}\n"
        lab.down(own_name=name)
    assert queue.read_text() == "1000\n"


def test_two_gateways_cannot_have_two_limits_of_connections(
    eight: FakeTopology, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert not eight.present
    limit = tmp_path / "conntrack_max"
    limit.write_text("1000000\n")
    monkeypatch.setattr(nftables, "LIMIT", limit)
    nat = replace(make_state(None), device="nft-nat44")
    StateFile(tmp_path).write(nat)
    eight.present |= {"tester", "dut"}
    orders.check_limit(StateFile(tmp_path, "a"), Tracking(1_000_000))
    with pytest.raises(SetupError, match="lab nft-nat44 would get 5,000, too"):
        orders.check_limit(StateFile(tmp_path, "a"), Tracking(5_000))
    orders.check_limit(StateFile(tmp_path), Tracking(5_000))


def test_a_plan_is_as_it_is_without_others_where_they_leave_too_little(
    two: FakeTopology,
) -> None:
    lab.up("linux-router@a")
    assert lab.planned_cpus("b") == CpuPlan(worker=0, dut=1, main=1)
    assert two.present
