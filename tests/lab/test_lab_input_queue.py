"""The input queue of a DUT, with a file and a thread of our own for the kernel's."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from dutperf.config.campaign import IN_FLIGHT_FRAMES
from dutperf.errors import SetupError
from dutperf.lab import LABS, machine
from dutperf.lab.machine import (
    QUEUE_FRAMES,
    apply_changes,
    describe_queue,
    find_kernel_thread,
    queue_changes,
    restore_priorities,
)
from dutperf.lab.processes import Process, this_process

CPU = 3
KERNEL = 0x00200000


@dataclass
class FakeKernel:
    """A queue's length, and the nice values of threads by their number."""

    backlog: Path
    thread: Process
    nice: dict[int, int] = field(default_factory=dict)
    forbidden: bool = False

    def get(self, _which: int, pid: int) -> int:
        if pid not in self.nice:
            raise ProcessLookupError(errno.ESRCH, "No such process")
        return self.nice[pid]

    def set(self, which: int, pid: int, nice: int) -> None:
        self.get(which, pid)
        if self.forbidden:
            raise PermissionError(errno.EACCES, "Permission denied")
        self.nice[pid] = nice

    @property
    def state(self) -> tuple[int, int]:
        return int(self.backlog.read_text()), self.nice[self.thread.pid]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeKernel:
    """This process stands for the thread, so that it runs."""
    thread = this_process()
    fake = FakeKernel(tmp_path / "backlog", thread, {thread.pid: 0})
    fake.backlog.write_text("1000\n")
    monkeypatch.setattr(machine, "BACKLOG", fake.backlog)
    monkeypatch.setattr(machine, "find_kernel_thread", lambda _name: fake.thread)
    monkeypatch.setattr("os.getpriority", fake.get)
    monkeypatch.setattr("os.setpriority", fake.set)
    return fake


def undo(changes: machine.Changes) -> None:
    machine.restore_settings(changes.settings)
    restore_priorities(changes.priorities)


def told(changes: machine.Changes, cpu: int | None = CPU) -> str:
    return describe_queue(cpu, changes.settings, changes.priorities)


def test_what_the_kernel_queues_is_less_than_the_tester_has_in_flight() -> None:
    """Or the queue never overflows: the device would hold the tester back.

    The kernel's queue takes one frame more than its length, and there are two of them.
    """
    assert IN_FLIGHT_FRAMES > 2 * (QUEUE_FRAMES + 1)
    assert IN_FLIGHT_FRAMES // 2 <= 2 * QUEUE_FRAMES


def test_planning_changes_nothing(kernel: FakeKernel) -> None:
    queue_changes(CPU)
    assert kernel.state == (1000, 0)


@pytest.mark.parametrize("before", [1, 1000, 16384])
def test_the_queue_is_set_and_preferred_and_set_back(
    kernel: FakeKernel, before: int
) -> None:
    """A longer one, too: it would never overflow."""
    kernel.backlog.write_text(f"{before}\n")
    changes = queue_changes(CPU)
    apply_changes(changes)
    assert told(changes) == (
        f"input queue of {QUEUE_FRAMES} frames (set from {before}; the tester has "
        f"{IN_FLIGHT_FRAMES} in flight), ksoftirqd/3 at nice -20 (raised from 0)"
    )
    assert kernel.state == (QUEUE_FRAMES, -20)
    undo(changes)
    assert kernel.state == (before, 0)


def test_a_queue_and_a_thread_that_are_so_already_are_left_alone(
    kernel: FakeKernel,
) -> None:
    kernel.backlog.write_text(f"{QUEUE_FRAMES}\n")
    kernel.nice[kernel.thread.pid] = -20
    changes = queue_changes(CPU)
    apply_changes(changes)
    assert told(changes) == (
        f"input queue of {QUEUE_FRAMES} frames (the tester has {IN_FLIGHT_FRAMES} in "
        "flight), ksoftirqd/3 at nice -20"
    )
    undo(changes)
    assert kernel.state == (QUEUE_FRAMES, -20)


def test_a_second_plan_does_not_take_changed_values_for_the_original(
    kernel: FakeKernel,
) -> None:
    apply_changes(queue_changes(CPU))
    second = queue_changes(CPU)
    assert (second.settings, second.priorities) == ((), ())
    assert kernel.state == (QUEUE_FRAMES, -20)


def test_what_somebody_changed_meanwhile_stays_and_is_told(kernel: FakeKernel) -> None:
    changes = queue_changes(CPU)
    apply_changes(changes)
    kernel.backlog.write_text("50000\n")
    kernel.nice[kernel.thread.pid] = -5
    said = told(changes)
    assert "input queue of 50000 frames (the tester has" in said
    assert "may hold the tester back" in said
    assert said.endswith("ksoftirqd/3 at nice -5")
    undo(changes)
    assert kernel.state == (50000, -5)


def test_changes_on_record_that_were_never_made_are_not_undone(
    kernel: FakeKernel,
) -> None:
    undo(queue_changes(CPU))
    assert kernel.state == (1000, 0)


def test_where_the_tester_is_on_the_cpu_its_thread_gets_no_precedence(
    kernel: FakeKernel,
) -> None:
    changes = queue_changes(None)
    apply_changes(changes)
    assert "ksoftirqd" not in told(changes, None)
    assert kernel.state == (QUEUE_FRAMES, 0)


def test_precedence_that_is_refused_is_said_and_the_queue_is_set_yet(
    kernel: FakeKernel,
) -> None:
    kernel.forbidden = True
    changes = queue_changes(CPU)
    apply_changes(changes)
    assert told(changes).endswith("ksoftirqd/3 at nice 0")
    assert kernel.state == (QUEUE_FRAMES, 0)
    undo(changes)
    assert kernel.state == (1000, 0)


def test_a_thread_that_is_not_shown_is_said(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "find_kernel_thread", lambda _name: None)
    changes = queue_changes(CPU)
    apply_changes(changes)
    assert "ksoftirqd/3 of unknown precedence (it is not shown" in told(changes)
    assert kernel.state == (QUEUE_FRAMES, 0)


def test_a_thread_that_went_away_is_no_obstacle(kernel: FakeKernel) -> None:
    changes = queue_changes(CPU)
    kernel.nice.clear()
    apply_changes(changes)
    assert "ksoftirqd/3 of unknown precedence" in told(changes)
    undo(changes)
    assert kernel.backlog.read_text() == "1000\n"


def test_a_number_that_another_thread_has_by_now_is_left_alone(
    kernel: FakeKernel,
) -> None:
    changes = queue_changes(CPU)
    apply_changes(changes)
    (priority,) = changes.priorities
    gone = replace(priority.thread, start_ticks=1)
    restore_priorities((replace(priority, thread=gone),))
    assert kernel.state == (QUEUE_FRAMES, -20)


def test_a_priority_that_cannot_be_set_back_is_named(kernel: FakeKernel) -> None:
    changes = queue_changes(CPU)
    apply_changes(changes)
    kernel.forbidden = True
    with pytest.raises(SetupError, match=r"back to nice 0: Permission denied"):
        restore_priorities(changes.priorities)


@pytest.mark.parametrize(
    ("length", "held_back"), [(QUEUE_FRAMES - 1, False), (IN_FLIGHT_FRAMES, True)]
)
def test_a_read_only_queue_is_described_as_it_is(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch, length: int, held_back: bool
) -> None:
    kernel.backlog.write_text(f"{length}\n")
    monkeypatch.setattr("os.access", lambda _path, _mode: False)
    changes = queue_changes(CPU)
    apply_changes(changes)
    assert f"input queue of {length} frames (the tester" in told(changes)
    assert ("may hold the tester back" in told(changes)) == held_back
    assert kernel.state == (length, -20)


@pytest.mark.usefixtures("kernel")
def test_a_queue_that_refuses_the_value_is_described_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_path: Path, _text: str, _encoding: str) -> int:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    changes = queue_changes(CPU)
    monkeypatch.setattr(Path, "write_text", refuse)
    apply_changes(changes)
    assert "input queue of 1000 frames (the tester" in told(changes)


def test_a_queue_that_is_not_shown_is_said(kernel: FakeKernel) -> None:
    kernel.backlog.unlink()
    changes = queue_changes(CPU)
    apply_changes(changes)
    assert "input queue of unknown length" in told(changes)
    assert kernel.nice[kernel.thread.pid] == -20


def make_thread(proc: Path, pid: int, name: str, flags: int) -> None:
    (proc / str(pid)).mkdir(parents=True)
    after = f"S 2 0 0 0 -1 {flags} {' '.join('0' * 12)} {pid}00 0"
    (proc / str(pid) / "stat").write_text(f"{pid} ({name}) {after}")


def test_the_thread_of_a_cpu_is_found_among_its_namesakes(tmp_path: Path) -> None:
    make_thread(tmp_path, 4, "ksoftirqd/1", 0)  # a program that calls itself so
    make_thread(tmp_path, 5, "ksoftirqd/12", KERNEL | 0x40)
    make_thread(tmp_path, 6, "ksoftirqd/1", KERNEL | 0x40)
    (tmp_path / "7").mkdir()  # has ended since the directory was read
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("b1\n")
    found = find_kernel_thread("ksoftirqd/1", tmp_path)
    assert found == Process(pid=6, start_ticks=600, boot_id="b1")
    assert find_kernel_thread("ksoftirqd/2", tmp_path) is None


def test_what_a_server_answers_waits_in_its_socket_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """However long the input queue is: 256 queries, as Linux has it."""
    buffer = tmp_path / "rmem_default"
    buffer.write_text("212992\n")
    monkeypatch.setattr(machine, "RECEIVE_BUFFER", buffer)
    router = LABS["linux-router"].queue_frames()
    assert router > 256
    servers = {
        name: device.queue_frames()
        for name, device in LABS.items()
        if any(daemon.answers for daemon in device.daemons)
    }
    assert servers == dict.fromkeys(("unbound-dns64", "unbound", "bind-dns64"), 256)
    assert LABS["linux-router-snmp"].queue_frames() == router
