"""Who has a port, and that nobody else gets it meanwhile."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from dutperf.engine import ownership
from dutperf.engine.ownership import owned
from dutperf.errors import SetupError

LEFT = {"7-t/left": "interface t-left"}
BOTH = LEFT | {"7-t/right": "interface t-right"}
HOLDER = """
import sys
from pathlib import Path
from dutperf.engine.ownership import owned
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


def test_a_file_that_its_owner_removes_meanwhile_is_not_taken_for_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one would make another file, and both would own the port."""
    opened = ownership._opened
    removed: list[Path] = []

    def opened_and_removed(path: Path) -> int:
        descriptor = opened(path)
        if not removed:
            removed.append(path)
            path.unlink()
        return descriptor

    monkeypatch.setattr(ownership, "_opened", opened_and_removed)
    with owned(LEFT, tmp_path):
        assert removed
        assert removed[0].exists()


def test_a_file_that_says_nothing_still_locks(tmp_path: Path) -> None:
    with owned(LEFT, tmp_path):
        (file,) = tmp_path.iterdir()
        file.write_text("")
        with pytest.raises(SetupError, match="another process"), owned(LEFT, tmp_path):
            pytest.fail("it is locked")


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    where = tmp_path / "file" / "ports"
    with pytest.raises(SetupError, match=re.escape(str(where))), owned(LEFT, where):
        pytest.fail("there is no such directory")
