"""What `make test` leaves out: each name of the list is a test that exists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

TESTS = Path(__file__).parents[1]


def _exists(line: str) -> bool:
    path, *names = line.removeprefix("+ ").partition("[")[0].split("::")
    file = TESTS.parent / path
    if not file.exists():
        return False
    made = re.findall(r"^ *(?:def|class) (\w+)", file.read_text(), re.MULTILINE)
    return set(names) <= set(made)


def test_each_line_of_the_list_is_a_test() -> None:
    lines = (TESTS / "long.txt").read_text().splitlines()
    names = [line for line in lines if line and not line.startswith("#")]
    assert names
    assert [name for name in names if not _exists(name)] == []


def test_a_suite_that_does_not_exist_is_refused() -> None:
    done = subprocess.run(
        [TESTS.parent / "scripts/test-python", "false", "1", "lnog"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "lnog" in done.stderr
