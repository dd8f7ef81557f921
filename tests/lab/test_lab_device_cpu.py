"""Who else had the device's CPU, by accounts of the kernel that the test writes."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from dutperf import lab
from dutperf.errors import SetupError
from dutperf.lab import refdut_socket
from dutperf.lab.device_cpu import DeviceCpuWatch

TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
CPU = 1


class FakeProc:
    """Threads that ran and waited, and a CPU that was stolen from."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.steal(0)

    def thread(self, process: int, thread: int, ran_ns: int, waited_ns: int) -> None:
        task = self.root / str(process) / "task" / str(thread)
        task.mkdir(parents=True, exist_ok=True)
        (task / "schedstat").write_text(f"{ran_ns} {waited_ns} 7\n")

    def steal(self, ticks: int) -> None:
        lines = [f"{cpu} 1 2 3 4 5 6 7 {ticks} 0 0" for cpu in ("cpu", f"cpu{CPU}")]
        (self.root / "stat").write_text("\n".join([*lines, "cpu10 1 2 3", "intr 0\n"]))

    def watch(self, *processes: int) -> DeviceCpuWatch:
        return DeviceCpuWatch(CPU, lambda: processes, 100, self.root)


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


def test_what_a_thread_waited_is_told_since_the_start(proc: FakeProc) -> None:
    proc.thread(5, 5, ran_ns=1000, waited_ns=70)
    taken_ns = proc.watch(5).started()
    assert taken_ns() == 0
    proc.thread(5, 5, ran_ns=9000, waited_ns=100)
    assert taken_ns() == 30


def test_what_the_host_took_is_told_too(proc: FakeProc) -> None:
    proc.thread(5, 5, ran_ns=1000, waited_ns=70)
    taken_ns = proc.watch(5).started()
    proc.steal(3)
    assert taken_ns() == 3 * TICK_NS


def test_of_a_device_that_was_restarted_the_host_s_share_alone_is_known(
    proc: FakeProc,
) -> None:
    """The new process ran meanwhile; it is no other's time that the old one waited."""
    working = [[5, 6]]
    watch = DeviceCpuWatch(CPU, lambda: working[0], 100, proc.root)
    for process in (5, 6, 7):
        proc.thread(process, process, ran_ns=1000, waited_ns=70)
    taken_ns = watch.started()
    proc.thread(5, 5, ran_ns=2000, waited_ns=900_000)
    proc.steal(2)
    assert taken_ns() > 2 * TICK_NS
    working[0] = [5, 7]
    assert taken_ns() == 2 * TICK_NS


def test_that_its_own_threads_wait_for_each_other_does_not_count(
    proc: FakeProc,
) -> None:
    """A translator waits for the kernel's thread, which has precedence."""
    for process in (5, 6):
        proc.thread(process, process, ran_ns=0, waited_ns=0)
    taken_ns = proc.watch(5, 6).started()
    proc.thread(5, 5, ran_ns=400, waited_ns=0)
    proc.thread(6, 6, ran_ns=300, waited_ns=400)
    assert taken_ns() == 0
    proc.thread(6, 6, ran_ns=300, waited_ns=450)
    assert taken_ns() == 50


def test_a_device_that_ends_or_keeps_no_account_is_no_obstacle(proc: FakeProc) -> None:
    proc.thread(5, 5, ran_ns=1, waited_ns=1)
    taken_ns = proc.watch(5, 99).started()
    (proc.root / "5" / "task" / "5" / "schedstat").unlink()
    assert taken_ns() == 0


def test_without_a_lab_nobody_knows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from dutperf.lab import orders
    from dutperf.lab.state import StateFile

    monkeypatch.setattr(orders, "StateFile", partial(StateFile, tmp_path))
    assert lab.watch_device() is None


def _service(queue_frames: int, **more: object) -> dict[str, object]:
    return {"service": {"rate_fps": 9, "queue_frames": queue_frames, **more}}


@pytest.mark.parametrize(
    ("behaviour", "frames"),
    [
        ({}, 100),
        ({"forward": {}}, 100),
        ({"forward": _service(20)}, 20),
        ({"forward": _service(0)}, 0),
        ({"forward": _service(30), "reverse": _service(20)}, 20),
        ({"forward": _service(20, withhold=True), "reverse": _service(30)}, 30),
        ({"reverse": _service(20, withhold=True)}, 100),
        ({"forward": _service(5000)}, 100),
    ],
)
def test_a_queue_of_its_own_bridges_less_than_the_port(
    tmp_path: Path, behaviour: dict[str, object], frames: int
) -> None:
    """As the device was told last, also while a watch is there."""
    control = tmp_path / "control"
    watch = DeviceCpuWatch(
        CPU, list, 100, own_frames=lambda: refdut_socket.queue_told(control)
    )
    assert watch.queue_frames == 100
    for told, expected in (({"forward": _service(7)}, 7), (behaviour, frames)):
        refdut_socket.note_queue(control, told)
        assert watch.queue_frames == expected


def test_what_cannot_be_kept_is_said(tmp_path: Path) -> None:
    """A lab that was taken down in the same moment."""
    with pytest.raises(SetupError, match="own-queue: No such file"):
        refdut_socket.note_queue(tmp_path / "gone" / "control", {})
