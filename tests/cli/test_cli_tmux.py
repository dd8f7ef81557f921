"""What an operator sees in a real terminal: in mid-search, and of hostile words."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import simulated_program
from simulated_program import PLACE

import dutperf

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="Debian's tmux is missing"
)

HOSTILE = r"\033[2J\033[H\033]0;owned\007\033[?1049h\033[31m\302\2332J\033(0boom"
SHOWN = r"\x1b[2J\x1b[H\x1b]0;owned\x07\x1b[?1049h\x1b[31m\x9b2J\x1b(0boom"
CAMPAIGN = f"""\
name: demo
{PLACE}\
  hooks:
    after_trial:
      - command: [sh, -c, 'printf "$1"; exit 3', sh, '{HOSTILE}']
procedures:
  - procedure: frame-loss
    load_percent: [100]
    max_rate_fps: 1000
    restabilise_wait_s: 0
    settle_wait_s: 0
    residual_wait_s: 0
"""
SEARCH = """\
  - procedure: throughput
    trial_duration_s: 1
    repeats: 1
    restabilise_wait_s: 0
    settle_wait_s: 0
    residual_wait_s: 0
"""
PATIENCE_S = 120

Tmux = Callable[..., str]


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    """Gives orders to a server of its own."""

    def call(*arguments: str) -> str:
        server = ["tmux", "-f", "/dev/null", "-S", str(tmp_path / "tmux")]
        return subprocess.run(
            [*server, *arguments], capture_output=True, text=True, check=True
        ).stdout

    yield call
    with contextlib.suppress(subprocess.CalledProcessError):  # its last window is gone
        call("kill-server")


def test_a_hook_cannot_clear_the_screen_or_change_the_title(
    tmux: Tmux, tmp_path: Path
) -> None:
    (tmp_path / "campaign.yaml").write_text(CAMPAIGN, "utf-8")
    program = [sys.executable, simulated_program.__file__, "run", "campaign.yaml"]
    script = tmp_path / "script"
    script.write_text(
        f"export PYTHONPATH={shlex.quote(_search_path())}\n"
        f"cd {shlex.quote(str(tmp_path))}\n"
        f"echo BEFORE; {shlex.join(program)}; echo AFTER; cat\n",
        "utf-8",
    )
    tmux("new-session", "-d", "-x", "240", "-y", "150", f"sh {script}")
    title = tmux("display-message", "-p", "#{pane_title}")
    screen = _screen_with(tmux, "AFTER")
    assert screen.startswith("BEFORE\n")
    assert f"ended with exit code 3: {SHOWN}" in screen
    assert "invalid" in screen
    assert tmux("display-message", "-p", "#{pane_title}") == title
    assert tmux("display-message", "-p", "#{alternate_on}") == "0\n"
    coloured = tmux("capture-pane", "-p", "-e")
    assert any(r"\x1b[2J" in line for line in coloured.splitlines())
    for line in coloured.splitlines():
        if "boom" in line:
            assert "\x1b[31m\\" not in line


@pytest.mark.parametrize("columns", [80, 160])
def test_the_terminal_in_mid_search(tmux: Tmux, tmp_path: Path, columns: int) -> None:
    # The view is drawn four times in a second, which the simulation is faster than.
    hooks = "  hooks: {after_trial: [{command: [sleep, '0.3']}]}\n"
    campaign = f"name: demo\n{PLACE}{hooks}procedures:\n{SEARCH}"
    (tmp_path / "campaign.yaml").write_text(campaign, "utf-8")
    program = [sys.executable, simulated_program.__file__, "run", "campaign.yaml"]
    settings = {
        "PYTHONPATH": _search_path(),
        # The program stands still in its seventh trial, so the screen does, too.
        simulated_program.FAULT_VARIABLE: "sending:SIGSTOP",
    }
    shell = f"cd {shlex.quote(str(tmp_path))}; echo $$ > pid; exec env " + shlex.join(
        [f"{key}={value}" for key, value in settings.items()] + program
    )
    # tmux wakes a child of its own that stops, but not that child's child.
    size = ["-x", str(columns), "-y", "40"]
    tmux("new-session", "-d", *size, f"sh -c {shlex.quote(shell)}; exit")
    pid = _pid_in(tmp_path / "pid")
    try:
        _wait_until(lambda: _is_stopped(pid))
        screen = tmux("capture-pane", "-p")
    finally:
        os.kill(pid, signal.SIGKILL)
    told = screen[screen.index("[1/1]") :].splitlines()
    assert max(map(len, told)) <= 79  # so none is wrapped
    assert any("throughput-ip4-64-both" in line for line in told)
    assert any("fps" in line and "pass" in line for line in told)
    assert any("trial 4" in line for line in told)
    assert any("to go" in line for line in told)


def _pid_in(file: Path) -> int:
    _wait_until(lambda: file.exists() and file.read_text("utf-8").endswith("\n"))
    return int(file.read_text("utf-8"))


def _is_stopped(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
    return stat.rpartition(")")[2].split()[0] == "T"


def _search_path() -> str:
    here = Path(simulated_program.__file__).parent
    return os.pathsep.join([str(Path(dutperf.__file__).parents[1]), str(here)])


def _screen_with(tmux: Tmux, word: str) -> str:
    def screen() -> str:
        return tmux("capture-pane", "-p", "-J")

    _wait_until(lambda: word in map(str.rstrip, screen().splitlines()))
    return screen()


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s"
        time.sleep(0.1)
