"""Ownership and errors, with a topology that only remembers what it was told."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from labstates import FakeTopology, fake_topology, make_state

from dutperf import lab
from dutperf.errors import InputError, SetupError
from dutperf.lab import machine, topology
from dutperf.lab.processes import CpuPlan, Process
from dutperf.lab.state import ChangedSetting, StateFile
from dutperf.programs import postponed_signals, terminate_as_interrupt

NAME = "linux-router"
DEAD = Process(pid=2**22 + 1, start_ticks=1, boot_id="gone")


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeTopology:
    return fake_topology(monkeypatch, tmp_path)


@pytest.fixture
def other_process(kernel: FakeTopology, tmp_path: Path) -> int:
    """A lab that belongs to this process's parent, which surely runs."""
    from dutperf.lab.processes import find_process

    owner = find_process(os.getppid())
    StateFile(tmp_path).write(make_state(owner))
    kernel.present |= {"tester", "dut"}
    return os.getppid()


@pytest.fixture
def backlog(kernel: FakeTopology, tmp_path: Path) -> Path:
    """The setting of the machine, in place of the kernel's."""
    assert not kernel.present
    path = tmp_path / "backlog"
    path.write_text("1000\n")
    return path


def test_an_unknown_name_gets_the_nearest_one(kernel: FakeTopology) -> None:
    with pytest.raises(InputError, match="linux-ruter") as caught:
        lab.up("linux-ruter")
    assert "linux-router" in caught.value.hint
    assert not kernel.present


@pytest.mark.parametrize("call", [lab.up, lab.down])
def test_an_unknown_name_like_no_other_gets_the_list(
    kernel: FakeTopology, call: object
) -> None:
    assert callable(call)
    with pytest.raises(InputError) as caught:
        call("zzz")
    assert NAME in caught.value.hint
    assert not kernel.present


def test_a_kept_lab_stays_until_down(kernel: FakeTopology) -> None:
    lab.up(NAME)
    (status,) = lab.running()
    assert (status.name, status.owner, status.alive) == (NAME, None, True)
    assert lab.down() == [NAME]
    assert lab.running() == []
    assert not kernel.present


def test_a_second_up_returns_the_testbed_of_the_first(
    kernel: FakeTopology, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lab.up(NAME)
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {5, 6})
    kernel.broken = AssertionError("built twice")
    assert lab.up(NAME) == first


def test_a_kept_lab_without_its_namespaces_is_made_anew(kernel: FakeTopology) -> None:
    lab.up(NAME)
    kernel.present.remove("dut")
    assert not lab.dut_alive(NAME)
    assert not lab.running()[0].alive
    lab.up(NAME)
    assert lab.dut_alive(NAME)


def test_a_session_refuses_a_kept_lab_and_leaves_it(kernel: FakeTopology) -> None:
    lab.up(NAME)
    with pytest.raises(SetupError, match="kept") as caught, lab.session(NAME):
        pass
    assert "dutperf lab down" in caught.value.hint
    assert lab.dut_alive(NAME)
    assert kernel.present == {"tester", "dut"}


def test_a_session_owns_its_lab_and_takes_it_down(kernel: FakeTopology) -> None:
    with lab.session(NAME) as testbed:
        assert testbed.name == NAME
        assert lab.running()[0].owner == os.getpid()
    assert not kernel.present


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_session_takes_its_lab_down_on_any_error(
    kernel: FakeTopology, error: type[BaseException]
) -> None:
    with pytest.raises(error), lab.session(NAME):
        raise error
    assert not kernel.present
    assert lab.running() == []


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_session_ends_on_a_signal_and_restores_the_handlers(
    kernel: FakeTopology, signum: signal.Signals
) -> None:
    before = signal.getsignal(signum)
    with pytest.raises(KeyboardInterrupt), lab.session(NAME):
        os.kill(os.getpid(), signum)
    assert signal.getsignal(signum) is before
    assert not kernel.present


def test_a_lab_that_fails_half_way_leaves_nothing(kernel: FakeTopology) -> None:
    kernel.broken = SetupError("no veth")
    with pytest.raises(SetupError, match="no veth"):
        lab.up(NAME)
    assert not kernel.present
    assert lab.running() == []


def test_what_is_to_be_undone_is_on_record_before_the_lab_is_made(
    kernel: FakeTopology, backlog: Path, tmp_path: Path
) -> None:
    recorded: list[ChangedSetting] = []

    def build(_device: lab.LabDevice, _cpus: CpuPlan) -> None:
        state = StateFile(tmp_path).read()
        assert state is not None
        recorded.extend(state.settings)
        raise SetupError("no veth")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topology, "build", build)
        with pytest.raises(SetupError, match="no veth"):
            lab.up(NAME)
    assert [(s.path, s.before) for s in recorded] == [(backlog, 1000)]
    assert backlog.read_text() == "1000\n"
    assert not kernel.present


def test_a_lab_that_is_up_already_does_not_record_the_raised_value(
    backlog: Path,
) -> None:
    description = lab.up(NAME).description
    assert f"input queue of {machine.QUEUE_FRAMES} frames (set from 1000" in description
    assert lab.up(NAME).description == description
    with pytest.raises(SetupError, match="kept"):
        lab.up("linux-router-hosts")
    assert backlog.read_text() == f"{machine.QUEUE_FRAMES}\n"
    lab.down()
    assert backlog.read_text() == "1000\n"


def test_a_kept_lab_is_described_as_it_is_when_it_is_measured(backlog: Path) -> None:
    lab.up(NAME)
    backlog.write_text("30000\n")
    for testbed in (lab.attached(NAME), lab.up(NAME)):
        assert "input queue of 30000 frames" in testbed.description
        assert "set from" not in testbed.description


def test_a_lab_that_is_not_kept_any_more_cannot_be_measured(
    kernel: FakeTopology,
) -> None:
    lab.up(NAME)
    kernel.present.clear()
    with pytest.raises(SetupError, match="not up any more"):
        lab.attached(NAME)


def test_a_lab_that_replaces_a_broken_one_restores_what_was_before_both(
    kernel: FakeTopology, backlog: Path
) -> None:
    lab.up(NAME)
    kernel.present.remove("dut")
    assert "set from 1000" in lab.up("linux-router-hosts").description
    lab.down()
    assert backlog.read_text() == "1000\n"


def test_the_lab_of_a_running_process_is_refused_by_its_number(
    other_process: int,
) -> None:
    for call in (lab.up, lab.down):
        with pytest.raises(SetupError, match=f"process {other_process}\\b"):
            call(NAME)
    assert lab.dut_alive(NAME)


def test_a_session_that_is_refused_leaves_the_other_lab(other_process: int) -> None:
    with pytest.raises(SetupError, match=str(other_process)), lab.session(NAME):
        pass
    assert lab.running()[0].owner == other_process


@pytest.mark.usefixtures("other_process")
def test_down_all_takes_the_lab_from_under_its_process(kernel: FakeTopology) -> None:
    assert lab.down(all_=True) == [NAME]
    assert not kernel.present


@pytest.mark.parametrize("made", [set(), {"tester"}, {"tester", "dut"}])
def test_remains_of_a_dead_process_make_room(
    kernel: FakeTopology, tmp_path: Path, made: set[str]
) -> None:
    StateFile(tmp_path).write(make_state(DEAD))
    kernel.present |= made
    assert not lab.running()[0].alive
    with lab.session(NAME):
        assert lab.running()[0].owner == os.getpid()
    assert not kernel.present


def test_down_removes_remains(kernel: FakeTopology, tmp_path: Path) -> None:
    StateFile(tmp_path).write(make_state(DEAD))
    kernel.present |= {"tester"}
    assert lab.down() == [NAME]
    assert not kernel.present


def test_namespaces_of_somebody_else_are_not_touched(kernel: FakeTopology) -> None:
    kernel.present |= {"dut"}
    with pytest.raises(SetupError, match="dut exists") as caught:
        lab.up(NAME)
    assert "ip netns del dut" in caught.value.hint
    assert lab.down() == []
    assert kernel.present == {"dut"}


def test_without_a_lab_down_has_nothing_to_do(kernel: FakeTopology) -> None:
    assert lab.down() == []
    assert lab.down(NAME) == []
    assert not lab.dut_alive(NAME)
    assert not kernel.present


def test_without_root_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(SetupError, match="root") as caught:
        lab.up(NAME)
    assert caught.value.hint == "run as root"


def test_without_iproute2_the_error_names_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda _name: None)
    with pytest.raises(SetupError) as caught:
        lab.up(NAME)
    assert "iproute2" in caught.value.hint


def test_without_tayga_its_lab_names_the_package(
    kernel: FakeTopology, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    with pytest.raises(SetupError, match="tayga is missing") as caught:
        lab.up("tayga-siit")
    assert "apt-get install tayga" in caught.value.hint
    assert not kernel.present
    assert lab.running() == []


def test_signals_wait_for_the_end_of_a_postponed_block() -> None:
    steps = []

    def interrupted() -> None:
        with terminate_as_interrupt():
            with postponed_signals():
                os.kill(os.getpid(), signal.SIGTERM)
                steps.append("finished")
            steps.append("not reached")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert steps == ["finished"]


def test_a_program_with_a_handler_of_its_own_keeps_it() -> None:
    seen = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: seen.append(number))
    try:
        with terminate_as_interrupt():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]
