"""What `make test` leaves out: each name of the list is a test that exists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

TESTS = Path(__file__).parents[1]


def _exists(line: str) -> bool:
    path, _, name = line.partition("::")
    file = TESTS.parent / path
    function = re.compile(rf"^def {name.partition('[')[0]}\(", re.MULTILINE)
    return file.exists() and (not name or bool(function.search(file.read_text())))


def test_each_line_of_the_list_is_a_test() -> None:
    lines = (TESTS / "long.txt").read_text().splitlines()
    names = [line for line in lines if not line.startswith("#")]
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
