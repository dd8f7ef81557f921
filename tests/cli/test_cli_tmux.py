"""What an operator sees in a real terminal while hostile words pass through it."""

from __future__ import annotations

import os
import shlex
import shutil
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


def _search_path() -> str:
    here = Path(simulated_program.__file__).parent
    return os.pathsep.join([str(Path(dutperf.__file__).parents[1]), str(here)])


def _screen_with(tmux: Tmux, word: str) -> str:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        screen = tmux("capture-pane", "-p", "-J")
        if word in map(str.rstrip, screen.splitlines()):
            return screen
        time.sleep(0.1)
    pytest.fail(f"no {word} within {PATIENCE_S} s:\n{screen}")
