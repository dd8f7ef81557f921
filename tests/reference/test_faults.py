"""``docs/faults.md`` names the test of each fault."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "faults.md"
TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def rows() -> list[str]:
    lines = [row for row in TABLE.read_text().splitlines() if row.startswith("|")]
    return lines[2:]


def test_each_fault_has_a_test_that_there_is() -> None:
    assert rows()
    for row in rows():
        named = TEST.findall(row)
        assert named, f"no test: {row}"
        for file, test in named:
            source = (ROOT / "tests" / file).read_text()
            assert f"\ndef {test}(" in source, f"{file} has no {test}"
