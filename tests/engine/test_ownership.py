"""Who has a port or a CPU, and that nobody else gets it meanwhile."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from dutperf import busy
from dutperf.busy import owned, owned_cpus, owners_of_cpus
from dutperf.errors import BusyError, InputError, SetupError

LEFT = {"7-t/left": "interface t-left"}
BOTH = LEFT | {"7-t/right": "interface t-right"}
HOLDER = """
import sys
from pathlib import Path
from dutperf.busy import owned
with owned({"7-t/left": "interface t-left"}, Path(sys.argv[1])):
    print("owned", flush=True)
    sys.stdin.read()
"""


def holder(directory: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "owned\n"
    return process


def test_a_port_in_use_is_refused_with_its_owner_and_age(tmp_path: Path) -> None:
    process = holder(tmp_path)
    told = rf"interface t-left is in use by process {process.pid} \(.*\), for \d+ s"
    with pytest.raises(SetupError, match=told), owned(BOTH, tmp_path):
        pytest.fail("it has an owner")
    process.communicate()
    with owned(BOTH, tmp_path):
        pass


def test_a_killed_owner_leaves_nothing_stale(tmp_path: Path) -> None:
    process = holder(tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.communicate()
    with owned(LEFT, tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_owner_left_goes_with_the_next_of_any_port(
    tmp_path: Path,
) -> None:
    killed, living = holder(tmp_path), "7-t/right"
    killed.kill()
    killed.communicate()
    with owned({living: "interface t-right"}, tmp_path):
        (file,) = tmp_path.iterdir()
        assert file.name == quote(living, safe="")
        with owned({"8-t/left": "another"}, tmp_path):
            assert file.exists()
    assert list(tmp_path.iterdir()) == []


def test_what_was_owned_is_free_again_and_other_ports_always_were(
    tmp_path: Path,
) -> None:
    refused = pytest.raises(SetupError, match="t-left")
    other = {"7-t/right": "the other"}
    with owned(LEFT, tmp_path), owned(other, tmp_path), refused, owned(LEFT, tmp_path):
        pytest.fail("one owner at a time, in one process, too")
    with owned(BOTH, tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_says_nothing_still_locks(tmp_path: Path) -> None:
    with owned(LEFT, tmp_path):
        (file,) = tmp_path.iterdir()
        file.write_text("")
        with pytest.raises(SetupError, match=str(os.getpid())), owned(LEFT, tmp_path):
            pytest.fail("it is locked")


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    where = tmp_path / "file" / "ports"
    with pytest.raises(SetupError, match=re.escape(str(where))), owned(LEFT, where):
        pytest.fail("there is no such directory")


CPU_HOLDER = """
import sys
from pathlib import Path
from dutperf.busy import owned_cpus
alone, shared, directory = sys.argv[1:]
cpus = [[int(cpu) for cpu in text.split()] for text in (alone, shared)]
with owned_cpus(*cpus, Path(directory)):
    print("owned", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def cpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv(busy.VARIABLE)
    return tmp_path / "cpus"


def cpu_holder(directory: Path, alone: str, shared: str = "") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", CPU_HOLDER, alone, shared, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "owned\n"
    return process


def test_two_runs_share_no_cpu_and_the_second_is_told_who_has_it(cpus: Path) -> None:
    first = cpu_holder(cpus, "0 7", "1")
    told = rf"CPU 7 is in use by process {first.pid} \(.*\), for \d+ s"
    with pytest.raises(BusyError, match=told) as caught, owned_cpus([7, 3], [], cpus):
        pytest.fail("it has an owner")
    assert "DUTPERF_BUSY=wait" in caught.value.hint
    with owned_cpus([2, 3], [4], cpus):
        assert owners_of_cpus(cpus).keys() == {0, 1, 2, 3, 4, 7}
        assert f"process {first.pid} " in owners_of_cpus(cpus)[7]
    assert owners_of_cpus(cpus).keys() == {0, 1, 7}, "also those that were refused"
    first.communicate()
    assert owners_of_cpus(cpus) == {}
    assert list(cpus.iterdir()) == []


def test_main_threads_share_a_cpu_but_not_with_one_that_measures(cpus: Path) -> None:
    first = cpu_holder(cpus, "2", "0")
    with owned_cpus([3], [0], cpus):
        assert owners_of_cpus(cpus).keys() == {0, 2, 3}
    with pytest.raises(BusyError, match="CPU 0"), owned_cpus([0], [], cpus):
        pytest.fail("a main thread is there")
    with pytest.raises(BusyError, match="CPU 2"), owned_cpus([3], [2], cpus):
        pytest.fail("somebody measures there")
    first.communicate()


def test_a_cpu_that_is_asked_for_twice_is_alone(cpus: Path) -> None:
    with (
        owned_cpus([1], [1], cpus),
        pytest.raises(BusyError),
        owned_cpus([], [1], cpus),
    ):
        pytest.fail("it is owned alone")


def test_a_killed_run_has_no_cpu_any_more(cpus: Path) -> None:
    first = cpu_holder(cpus, "0 1")
    first.kill()
    first.communicate()
    assert owners_of_cpus(cpus) == {}
    with owned_cpus([0, 1], [], cpus):
        pass


def test_a_run_waits_for_its_cpus_if_that_is_chosen(
    cpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(busy.VARIABLE, "wait")
    first = cpu_holder(cpus, "0")
    monkeypatch.setattr("time.sleep", lambda _seconds: first.communicate())
    with owned_cpus([0], [], cpus):
        assert first.poll() == 0
    told = f"waiting: CPU 0 is in use by process {first.pid}"
    assert capsys.readouterr().err.count(told) == 1


def test_a_worker_that_ends_does_not_go_on_waiting(
    cpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy.wait_by_default()
    monkeypatch.setattr("time.sleep", lambda _seconds: busy.give_up_waiting(now=True))
    try:
        with (
            owned_cpus([0], [], cpus),
            pytest.raises(BusyError),
            owned_cpus([0], [], cpus),
        ):
            pytest.fail("it is owned")
    finally:
        busy.give_up_waiting(now=False)


def test_who_shares_takes_no_cpu_from_others(
    cpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cpu_holder(cpus, "0")
    monkeypatch.setenv(busy.VARIABLE, "share")
    with owned_cpus([0], [], cpus):
        assert f"process {first.pid} " in owners_of_cpus(cpus)[0]
    first.communicate()


def test_a_choice_that_there_is_not_is_told(
    cpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(busy.VARIABLE, "hurry")
    with (
        pytest.raises(InputError, match="'hurry'") as caught,
        owned_cpus([0], [], cpus),
    ):
        pytest.fail("nobody knows what to do")
    assert "refuse, wait, share" in caught.value.hint


def test_many_that_want_a_cpu_at_once_have_it_one_by_one(
    cpus: Path, tmp_path: Path
) -> None:
    program = """
import os, sys
from pathlib import Path
from dutperf.busy import owned_cpus
for _ in range(20):
    with owned_cpus([0], [], Path(sys.argv[1])):
        mark = Path(sys.argv[2])
        mark.touch(exist_ok=False)
        mark.unlink()
"""
    command = [sys.executable, "-c", program, str(cpus), str(tmp_path / "mark")]
    environment = os.environ | {busy.VARIABLE: "wait"}
    racers = [
        subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        for _ in range(4)
    ]
    assert [racer.wait() for racer in racers] == [0] * 4


LOCKER = """
import fcntl, os, sys
try:
    fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)
    print("locked", flush=True)
except OSError as error:
    print(error.strerror, flush=True)
sys.stdin.read()
"""


def locker(path: Path, user: str | None = None) -> subprocess.Popen[str]:
    """A program that is not ours, and locks what it can open."""
    return subprocess.Popen(
        ["python3", "-c", LOCKER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        user=user,
        cwd="/",
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="acts as two users")
@pytest.mark.parametrize("made_before", [False, True])
def test_an_ordinary_user_cannot_keep_others_from_measuring(made_before: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        ports = Path(name) / "dutperf/ports"
        if made_before:  # by a version that let everybody in
            ports.mkdir(parents=True)
        with owned(LEFT, ports):
            pass
        assert oct(ports.stat().st_mode & 0o777) == "0o700"
        other = locker(ports, "nobody")
        assert other.stdout
        assert other.stdout.readline() == "Permission denied\n"
        with owned(LEFT, ports):
            pass
        other.communicate()


def test_who_keeps_a_lock_is_named_and_not_waited_for_for_ever(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = locker(tmp_path)
    assert other.stdout
    assert other.stdout.readline() == "locked\n"
    began = time.monotonic()
    descriptor = os.open(tmp_path, os.O_RDONLY)
    named = rf"{tmp_path} is locked by process {other.pid} \(.*python3 -c .*\) of user "
    with pytest.raises(BusyError, match=f"(?s){named}.*more than 1 s"):
        busy.take_turn(descriptor, tmp_path, most_s=1.2)
    assert time.monotonic() - began < 10
    assert re.search(f"(?s)waiting: {named}", capfd.readouterr().err)
    other.communicate()
    busy.take_turn(descriptor, tmp_path)
    os.close(descriptor)


def test_a_port_that_is_locked_by_no_tester_is_told_with_who_that_is(
    tmp_path: Path,
) -> None:
    path = tmp_path / quote("7-t/left", safe="")
    path.touch()
    other = locker(path)
    assert other.stdout
    assert other.stdout.readline() == "locked\n"
    with (
        pytest.raises(
            BusyError, match=rf"in use by process {other.pid} \(.*python3 -c"
        ),
        owned(LEFT, tmp_path),
    ):
        pytest.fail("it is locked")
    other.communicate()
