"""The example project, run as its owners run it; and what its owners are told."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2] / "examples" / "pytest-project"
ONE = """
def test_one(dutperf):
    {body}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PROJECT, tmp_path / "project"))


def run(project: Path, *options: str) -> tuple[int, str]:
    """As ``pytest`` in the project; by ``-p`` whether or not dutperf is installed."""
    plugin = ("-p", "dutperf.automation.pytest_plugin", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, *options],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done.returncode, done.stdout


def run_one(project: Path, body: str, *options: str) -> str:
    (project / "test_router.py").write_text(ONE.format(body=body))
    code, told = run(project, *options)
    assert code == 1
    return told


def test_the_example_passes_with_a_device_that_is_fast_enough(project: Path) -> None:
    code, told = run(project, "--dutperf-simulated", "120000")
    assert code == 0, told
    assert "4 passed" in told


def test_a_device_that_is_too_slow_is_told_in_the_fields_words(
    project: Path, tmp_path: Path
) -> None:
    results = tmp_path / "kept"
    code, told = run(
        project, "--dutperf-simulated", "90000", "--dutperf-results", str(results)
    )
    assert code == 1
    assert re.search(
        r"throughput-ip4-64-both: not met: asked for at least 100,000 fps, found "
        r"8\d,\d{3} fps \(1 repeat, .*\); verdict pass",
        told,
    )
    report = re.search(r"report: (\S+)", told)
    assert report
    assert Path(report[1]).is_file()
    assert Path(report[1]).is_relative_to(results)


def test_a_lower_bound_that_is_enough_holds_and_one_that_is_not_is_named(
    project: Path,
) -> None:
    told = run_one(
        project,
        "found = dutperf.measure('throughput', preset='quick', frame_size=[64],"
        " max_rate_fps=50_000); found.assert_at_least(50_000);"
        " found.assert_at_least(60_000)",
        "--dutperf-simulated",
        "120000",
    )
    assert "cannot tell: asked for at least 60,000 fps, found >= 50,000 fps" in told
    assert "a lower bound (set)" in told


def test_what_may_be_more_is_not_at_most_a_bound(project: Path) -> None:
    told = run_one(
        project,
        "dutperf.measure('throughput', preset='quick', frame_size=[64],"
        " max_rate_fps=50_000).assert_at_most(60_000)",
        "--dutperf-simulated",
        "120000",
    )
    assert "cannot tell: asked for at most 60,000 fps, found >= 50,000 fps" in told


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("dutperf.measure('thruput')", "no procedure 'thruput'"),
        ("dutperf.measure('throughput', frames=[64])", "frames"),
        ("dutperf.measure('throughput', preset='fast')", "no preset 'fast'"),
    ],
)
def test_what_is_asked_wrongly_is_told_with_what_to_do(
    project: Path, body: str, said: str
) -> None:
    told = run_one(project, body, "--dutperf-simulated", "1000")
    assert said in told
    assert "test_router.py:" not in told.partition("short test summary")[0]


def test_no_place_and_no_rate_are_told(project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\n")
    told = run_one(project, "dutperf.measure('throughput')")
    assert "no testbed and no lab is given" in told
    code, _ = run(project, "--dutperf-simulated", "many")
    assert code != 0


def test_another_bound_than_the_figures_unit_is_refused(project: Path) -> None:
    told = run_one(
        project,
        "dutperf.measure('throughput', preset='quick', frame_size=[64])"
        ".assert_at_least('2 ms')",
        "--dutperf-simulated",
        "120000",
    )
    assert "'2 ms' is of another unit: the figure is in fps" in told
