"""What somebody sent takes so much memory, time and disk, and no more."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dutperf.errors import DutperfError, InputError, SetupError
from dutperf.evidence.bounded import bounded
from dutperf.results.storage import storing

MIB = 1 << 20
SENT = Path("run.evidence.tar.gz")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def leave_files(of_bytes: int) -> None:
    path = Path(tempfile.mkdtemp()) / "file"
    with storing(path):
        path.write_bytes(bytes(of_bytes))


def too_much_memory() -> None:
    leave_files(1)
    assert list(range(10**9))


def too_much_time() -> None:
    leave_files(1)
    while True:
        pass


def killed() -> None:
    leave_files(1)
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_is_made_comes_back_and_temporary_files_go(temporary: Path) -> None:
    def work() -> int:
        leave_files(1)
        return os.getpid()

    assert bounded(work, SENT) != os.getpid()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("work", [too_much_memory, too_much_time, killed])
def test_too_much_is_refused_in_a_sentence(
    temporary: Path, work: Callable[[], None]
) -> None:
    with pytest.raises(InputError, match=f"{SENT} is refused: .* memory or .* CPU"):
        bounded(work, SENT, memory_bytes=4096 * MIB, cpu_s=2)
    assert list(temporary.iterdir()) == []


def test_no_file_grows_without_end(temporary: Path) -> None:
    with pytest.raises(DutperfError, match="File too large"):
        bounded(lambda: leave_files(2 * MIB), SENT, file_bytes=MIB)
    assert list(temporary.iterdir()) == []


def test_errors_come_back_as_they_are() -> None:
    def work() -> None:
        raise SetupError("nothing there", "install it")

    with pytest.raises(SetupError, match="nothing there") as told:
        bounded(work, SENT)
    assert told.value.hint == "install it"


def test_a_defect_keeps_its_file(temporary: Path) -> None:
    with pytest.raises(DutperfError, match="a defect in dutperf: ZeroDivisionError"):
        bounded(lambda: 1 // 0, SENT)
    (crash,) = temporary.iterdir()
    assert "ZeroDivisionError" in crash.read_text()


def test_interrupted_it_ends_at_once(temporary: Path) -> None:
    def work() -> None:
        leave_files(1)
        time.sleep(60)

    def interrupt() -> None:
        while not list(temporary.glob("*/*/file")):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    began = time.monotonic()
    watching = threading.Thread(target=interrupt)
    watching.start()
    with pytest.raises(KeyboardInterrupt):
        bounded(work, SENT)
    watching.join()
    assert time.monotonic() - began < 30
    assert list(temporary.iterdir()) == []
