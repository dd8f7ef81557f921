"""The example suite for Robot Framework, run by Robot Framework."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

SUITE = Path(__file__).parents[2] / "examples" / "robot" / "router.robot"


def run(output: Path, fps: int) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit code, which is that of failed tests, and of each status and message."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "robot",
            *("--outputdir", str(output)),
            *("--variable", f"RESULTS:{output / 'results'}"),
            *("--variable", f"SIMULATED_FPS:{fps}"),
            str(SUITE),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    tests = ET.parse(output / "output.xml").iter("test")  # noqa: S314 - just written
    told = {}
    for test in tests:
        status = test.find("status")
        assert status is not None
        told[test.attrib["name"]] = (status.attrib["status"], status.text or "")
    return done.returncode, told


def test_the_suite_passes_with_a_device_that_is_fast_enough(tmp_path: Path) -> None:
    code, told = run(tmp_path, 120_000)
    assert told == {
        "It Forwards Enough": ("PASS", ""),
        "It Is Quick At Half Of Its Load": ("PASS", ""),
    }
    assert code == 0


def test_a_device_that_is_too_slow_fails_with_what_was_found(tmp_path: Path) -> None:
    code, told = run(tmp_path, 40_000)
    assert code == 2
    status, message = told["It Forwards Enough"]
    assert status == "FAIL"
    first, *_, report = message.splitlines()
    assert first.startswith("throughput-ip4-64-both: not met: asked for at least ")
    assert "100,000 fps, found 39,963 fps (1 repeat" in first
    assert "; verdict pass" in first
    assert Path(report.removeprefix("report: ")).is_file()
