from __future__ import annotations

import os
from pathlib import Path

import pytest
from labstates import make_state

from dutperf.errors import SetupError
from dutperf.lab.processes import Process, find_process, is_running, this_process
from dutperf.lab.state import StateFile


def make_proc(
    root: Path, pid: int, start: int, state: str = "S", boot: str = "b1"
) -> Path:
    (root / str(pid)).mkdir(parents=True, exist_ok=True)
    fields = [str(number) for number in range(4, 22)]
    stat = f"{pid} (a) name (b) {state} {' '.join(fields)} {start} 99 98"
    (root / str(pid) / "stat").write_text(stat)
    (root / "sys/kernel/random").mkdir(parents=True, exist_ok=True)
    (root / "sys/kernel/random/boot_id").write_text(boot + "\n")
    return root


OWNER = Process(pid=77, start_ticks=1234, boot_id="b1")


def test_a_process_is_found_by_number_start_time_and_boot(tmp_path: Path) -> None:
    assert find_process(77, make_proc(tmp_path, 77, 1234)) == OWNER


def test_this_process_runs() -> None:
    assert this_process().pid == os.getpid()
    assert is_running(this_process())


@pytest.mark.parametrize(
    ("start", "state", "boot", "running"),
    [
        pytest.param(1234, "S", "b1", True, id="the same process"),
        pytest.param(1235, "S", "b1", False, id="number reused"),
        pytest.param(1234, "S", "b2", False, id="after a reboot"),
        pytest.param(1234, "Z", "b1", False, id="killed, not yet reaped"),
    ],
)
def test_an_owner_runs_only_if_it_is_the_very_same_process(
    tmp_path: Path, start: int, state: str, boot: str, running: bool
) -> None:
    proc = make_proc(tmp_path, 77, start, state, boot)
    assert is_running(OWNER, proc) is running


def test_an_owner_whose_number_is_free_is_dead(tmp_path: Path) -> None:
    assert not is_running(OWNER, tmp_path)


@pytest.mark.parametrize("owner", [OWNER, None], ids=["owned", "kept"])
def test_a_written_state_is_read_back_the_same(
    tmp_path: Path, owner: Process | None
) -> None:
    StateFile(tmp_path).write(make_state(owner))
    assert StateFile(tmp_path).read() == make_state(owner)


def test_writing_leaves_no_other_file(tmp_path: Path) -> None:
    StateFile(tmp_path).write(make_state(OWNER))
    StateFile(tmp_path).write(make_state(None))
    assert [p.name for p in tmp_path.iterdir()] == ["lab.json"]


def test_without_a_file_there_is_no_lab(tmp_path: Path) -> None:
    assert StateFile(tmp_path).read() is None
    StateFile(tmp_path).remove()


def test_a_damaged_file_is_named_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "lab.json").write_text('{"device": "linux-')
    with pytest.raises(SetupError, match=r"lab\.json") as caught:
        StateFile(tmp_path).read()
    assert "ip netns del" in caught.value.hint


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(SetupError, match="file/run"),
        StateFile(tmp_path / "file/run").locked(),
    ):
        pass


def test_the_lock_lets_one_process_in_at_a_time(tmp_path: Path) -> None:
    import fcntl

    with StateFile(tmp_path).locked():
        other = os.open(tmp_path, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)
