"""``dutperf run --resume`` on real devices: killed, interrupted, and out of space."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from labtools import leftovers, neighbour_limits, queue_and_nice
from livetools import Running, command, dutperf, needs_engine

from dutperf import lab
from dutperf.config.campaign import LabKeys
from dutperf.lab.refdut_socket import Behaviour
from dutperf.results import ResultsFile, load_journal, load_results

pytestmark = [*needs_engine, pytest.mark.lab]

KILLS = 3
"""Five of them, on a simulated device: tests/cli/test_cli_resume.py."""
PATIENCE_S = 100
SERVED: Behaviour = {
    way: {"service": {"rate_fps": 10_000, "queue_frames": 500}}
    for way in ("forward", "reverse")
}
"""In 0.4 s it passes 11,250 fps; at 10,000 it may be stopped for 50 ms."""
RESOLUTION_FPS = 2500
TIMES = """
    ip: [4]
    trial_duration_s: 0.4
    settle_wait_s: 0.02
    residual_wait_s: 0.1
    restabilise_wait_s: 0.02
    lag_limit_ms: 5000
"""
CAMPAIGN = f"""\
name: killed
lab: {{lab}}
procedures:
  - procedure: throughput
    max_rate_fps: 20000
    resolution: {RESOLUTION_FPS}
    repeats: 2{TIMES}
  - procedure: frame-loss
    max_rate_fps: 20000
    load_percent: [100, 75, 50, 25]{TIMES}
"""


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    assert lab.running() == [], "a lab is up: take it down before these tests"
    before = neighbour_limits(), queue_and_nice()
    yield
    lab.down(all_=True)
    assert leftovers() == []
    assert (neighbour_limits(), queue_and_nice()) == before


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*where: str) -> Running:
    return Running("run", "campaign.yaml", *where)


def stored(directory: Path) -> int:
    """How many lines the journal has."""
    journal = directory / "journal.jsonl"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def finish(directory: Path) -> ResultsFile:
    """Resume once more, to the end: each trial is there once, and all files are."""
    done = dutperf("run", "campaign.yaml", "--resume", str(directory))
    assert done.returncode == 0, done.stderr
    results = load_results(directory)
    assert results.complete
    records = load_journal(directory).records
    assert [record.number for record in records] == list(range(1, len(records) + 1))
    assert list(records) == results.trials
    assert (directory / "report.html").exists()
    return results


def test_killed_at_three_moments_a_known_throughput_stays_what_it_was(
    folder: Path,
) -> None:
    (folder / "campaign.yaml").write_text(CAMPAIGN.format(lab="known-answer"))
    killed = folder / "killed"
    lab.up(LabKeys(name="known-answer", behaviour=SERVED))
    done = dutperf("run", "campaign.yaml", "--output", "whole")
    assert done.returncode == 0, done.stderr
    whole = load_results(folder / "whole")
    moments = random.Random(6)  # noqa: S311 - not for secrets
    for after in sorted(moments.sample(range(len(whole.trials) - 2), KILLS)):
        with run("--resume" if stored(killed) else "--output", "killed") as program:
            await_trials(program, killed, max(after, stored(killed) - 1))
            time.sleep(moments.uniform(0, 0.5))
            program.process.kill()
            assert program.process.wait(10) == -signal.SIGKILL
    results = finish(killed)
    assert [cell.id for cell in results.cells] == [cell.id for cell in whole.cells]
    for cell, same in zip(results.cells, whole.cells, strict=True):
        assert cell.verdict == same.verdict == "pass"
    medians = [cells[0].median for cells in (results.cells, whole.cells)]
    assert all(m and abs(m - 10_000) < RESOLUTION_FPS for m in medians), medians
    assert lab.dut_alive("known-answer")  # which the user brought up, not the run


def await_trials(program: Running, directory: Path, trials: int) -> None:
    """Returns when more than so many trials are stored."""
    end = time.monotonic() + PATIENCE_S
    while stored(directory) <= trials + 1:
        assert program.process.poll() is None, program.end()
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_lab_of_the_runs_own_comes_back_whenever_it_is_killed(folder: Path) -> None:
    """Also while it comes up, or while trials are taken from the journal."""
    (folder / "campaign.yaml").write_text(CAMPAIGN.format(lab="linux-router"))
    killed = folder / "killed"
    moments = random.Random(7)  # noqa: S311 - not for secrets
    for _ in range(3):
        resumable = (killed / "journal.jsonl").exists()
        with run("--resume" if resumable else "--output", "killed") as program:
            time.sleep(moments.uniform(0.5, 5))
            program.process.kill()
            program.process.wait(10)
    if not (killed / "journal.jsonl").exists():  # a slow machine: never got so far
        with run("--output", "killed") as program:
            await_trials(program, killed, 1)
    finish(killed)
    assert leftovers() == []


def test_a_resumed_run_may_be_interrupted_and_resumed(folder: Path) -> None:
    (folder / "campaign.yaml").write_text(CAMPAIGN.format(lab="linux-router"))
    output = folder / "r"
    for way, trials in (("--output", 1), ("--resume", 3)):
        with run(way, "r") as program:
            await_trials(program, output, trials)
            os.killpg(program.process.pid, signal.SIGINT)
            code, errors = program.end()
        assert code == 130
        assert "interrupted" in errors
        assert leftovers() == []
        kept = load_results(output)
        assert not kept.complete
        assert list(load_journal(output).records) == kept.trials
        assert (output / "report.html").exists()
    finish(output)


FULL = """
mount -t tmpfs -o size=64k dutperf disk || exit 99
"$@" --output disk/r; echo $? >codes
"$@" --resume disk/r; echo $? >>codes
mount -o remount,size=64m disk
"$@" --resume disk/r; echo $? >>codes
cp -r disk/r saved
"""


def test_a_full_disk_stops_a_resumed_run_until_there_is_room(folder: Path) -> None:
    (folder / "campaign.yaml").write_text(CAMPAIGN.format(lab="linux-router"))
    (folder / "disk").mkdir()
    program = ["unshare", "-m", "sh", "-c", FULL, "sh", *command("run")]
    done = subprocess.run(
        [*program, "campaign.yaml"], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert (folder / "codes").read_text().split() == ["3", "3", "0"], done.stderr
    assert done.stderr.count("No space left on device") == 2
    finish(folder / "saved")
    assert "finished trials are in disk/r/journal.jsonl" in done.stderr
