"""``scripts/step``: what a user of ``make`` sees of each step."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

STEP = Path(__file__).parents[2] / "scripts/step"


def step(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(STEP), *arguments],
        env=os.environ | {"GOAL": "demo"} | environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_a_step_says_what_it_is_and_hides_what_nobody_needs() -> None:
    done = step("building", "sh", "-c", "echo noise; echo more >&2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("] building\n")
    assert len(done.stdout.splitlines()) == 1


def test_its_output_may_be_shown_as_it_comes() -> None:
    done = step("-v", "measuring", "echo", "a table")
    assert done.stdout.splitlines()[1:] == ["a table"]


def test_a_step_that_fails_shows_its_output_and_ends_with_what_to_do() -> None:
    done = step("building", "sh", "-c", "echo noise; echo why >&2; exit 4")
    assert done.returncode == 4
    *output, last = done.stderr.splitlines()
    assert output == ["noise", "why"]
    assert "failed: building (exit code 4); next: " in last
    assert "make demo again" in last


def test_what_to_do_next_may_be_given() -> None:
    last = step("-n", "make format", "format", "false").stderr.splitlines()[-1]
    assert last.endswith("next: make format")


def test_an_interrupted_step_is_not_called_failed() -> None:
    done = step("measuring", "sh", "-c", "exit 130")
    assert done.returncode == 130
    assert "interrupted: measuring" in done.stderr
    assert "failed" not in done.stderr


def test_the_time_is_that_since_the_target_began() -> None:
    began = str(int(time.time()) - 3 * 60)
    assert step("later", STARTED=began).stdout.startswith("[3:0")
