"""Real frames through the device: what the tester counts is what the device says.

Only counts are judged: delays and rates are the machine's, too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from livetools import needs_engine

from tools.calibrate.measuring import ACCOUNTS
from tools.calibrate.model import load_calibration

pytestmark = [*needs_engine, pytest.mark.lab]


def test_losses_are_exact_on_packet_sockets(tmp_path: Path) -> None:
    output = tmp_path / "calibration"
    command = ("calibrate", "--quick", "--only", "loss", "--repeats", "1")
    where = ("--path", "af_packet", "--output", str(output))
    done = subprocess.run(
        [sys.executable, "-m", "tools", *command, *where],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "Traceback" not in done.stderr, done.stderr
    found = load_calibration(output)
    assert [row.path for row in found.rows] == ["af_packet"] * 2
    assert [row.reasons for row in found.rows] == [[]] * 2, done.stderr
    assert (done.returncode, found.missed, found.complete) == (0, 0, True)
    none, some = found.rows
    assert (none.account, none.found) == (0, 0)
    assert some.account is not None
    assert 200 < some.account < 800  # a hundredth of 40,000, drawn
    lines = (output / some.run / ACCOUNTS).read_text().splitlines()
    assert json.loads(lines[-1])["account"]["forward"]["foreground"]["seen"] == 20_000
