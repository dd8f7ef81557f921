"""The download of examples/papers/004 works, and nothing of it is left behind."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from labtools import needs_lab

PAPER = Path(__file__).parents[2] / "examples" / "papers" / "004"
PROGRAM = PAPER / "http_download.py"
NAMESPACES = [
    Path("/run/netns", f"dutperf-http-{part}")
    for part in ("client", "device", "server")
]
FILES = Path("/run/dutperf-http")
DEADLINE_S = 15
INTERRUPTED = 130

pytestmark = [
    *needs_lab,
    pytest.mark.engine,
    pytest.mark.skipif(
        not (shutil.which("nginx") and shutil.which("wget")),
        reason="scripts/install-packages scripts/packages-papers.txt",
    ),
]


def leftovers() -> list[Path]:
    return [path for path in (*NAMESPACES, FILES) if path.exists()]


def processes(name: str) -> set[int]:
    """Of that program, in whatever namespace; not those that nobody has waited for."""
    done = subprocess.run(
        ["pgrep", "-r", "R,S,D", "-x", name],
        capture_output=True,
        text=True,
        check=False,
    )
    return {int(pid) for pid in done.stdout.split()}


def command(*arguments: str) -> list[str]:
    return [sys.executable, str(PROGRAM), "--repeats", "1", *arguments]


def wait_until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def times(result: dict[str, Any]) -> dict[str, float]:
    return {case["name"]: case["times_as_long"] for case in result["cases"]}


def test_a_delay_costs_what_rfc_2544_does_not_see(tmp_path: Path) -> None:
    before = processes("nginx")
    cases = ("--only=100 ms delay", "--only=0.1 % loss", "--size-mb=20")
    done = subprocess.run(
        command(*cases, f"--output={tmp_path}"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "http.json").read_text())
    longer = times(result)
    assert list(longer) == ["undisturbed", "100 ms delay", "0.1 % loss"]
    assert longer["100 ms delay"] > 3
    assert longer["0.1 % loss"] < longer["100 ms delay"] / 2
    _, delay, loss = result["cases"]
    [[met, chosen]] = delay["frames_met_and_chosen"]
    assert met == chosen
    assert met > 20_000_000 / 1514
    [[met, chosen]] = loss["frames_met_and_chosen"]
    assert 0 < chosen < met / 200
    assert delay["rfc2544_percent"] == 100
    assert loss["rfc2544_percent"] == pytest.approx(0.014, rel=0.05)
    page = (tmp_path / "http.html").read_text()
    assert "100 ms delay" in page
    assert "<script src=" not in page, "it needs no network"
    assert leftovers() == []
    assert processes("nginx") <= before


def test_what_ends_it_early_leaves_nothing_and_a_kill_is_cleaned_up_later() -> None:
    """SIGKILL leaves all; the next run, which is told to stop, takes it away, too."""
    assert stopped_in_mid_download(signal.SIGKILL) == -signal.SIGKILL
    assert len(leftovers()) == len(NAMESPACES) + 1
    assert stopped_in_mid_download(signal.SIGTERM) == INTERRUPTED
    assert leftovers() == []
    wait_until(lambda: not processes("wget") | processes("dutperf-refdut"))


def stopped_in_mid_download(number: signal.Signals) -> int:
    """The exit code of a run that gets this signal."""
    before = processes("wget")
    with subprocess.Popen(command("--size-mb=2000"), stderr=subprocess.PIPE) as run:
        wait_until(lambda: processes("wget") - before)
        run.send_signal(number)
        return run.wait(DEADLINE_S)


def test_no_case_is_guessed() -> None:
    done = subprocess.run(
        command("--only=1 % los"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "there are: undisturbed, 10 ms delay" in done.stderr
    assert leftovers() == []
