"""Two labs side by side: each measured, each taken down, and nobody's CPU shared."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from labtools import (
    Wire,
    cross,
    is_test_frame,
    leftovers,
    neighbour_limits,
    queue_and_nice,
)
from livetools import SHORT, Running, command, dutperf, needs_engine

from dutperf import busy, lab
from dutperf.lab.processes import is_running
from dutperf.lab.state import StateFile
from dutperf.results import load_results

pytestmark = [*needs_engine, pytest.mark.lab]

two_cpus = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) > 3, reason="two labs have CPUs of their own here"
)
SLOW = ("--max-rate", "5000", "--ip", "4", "--frame-size", "128", *SHORT)


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    assert lab.running() == [], "a lab is up: take it down before these tests"
    before = neighbour_limits(), queue_and_nice()
    yield
    lab.down(all_=True)
    assert leftovers() == []
    assert (neighbour_limits(), queue_and_nice()) == before


def measured(name: str, output: Path, **environment: str) -> subprocess.Popen[str]:
    """A run that goes on; ``environment``: other variables."""
    return subprocess.Popen(
        command("throughput", "--lab", name, "--output", str(output), *SLOW),
        env=os.environ | environment,
        stderr=subprocess.PIPE,
        text=True,
    )


def forwarded(directory: Path) -> float | None:
    (cell,) = load_results(directory).cells
    return cell.median


def test_frames_of_one_lab_are_in_no_other() -> None:
    first, second = lab.up("linux-router@a"), lab.up("linux-router@b")
    with Wire("tester-b") as other:
        arrived = cross(first, 4, "left")
        assert arrived.payload.ttl == 9
        assert not any(is_test_frame(frame) for frame in other.received(0.3))
    assert cross(second, 6, "right").payload.hlim == 9


def test_two_labs_are_measured_at_once_and_go_one_by_one(tmp_path: Path) -> None:
    """Slowly: on two CPUs they share them, which is told."""
    names = ("known-answer@a", "linux-router@b")
    for name in names:
        lab.up(name)
    runs = [measured(name, tmp_path / name) for name in names]
    for name, run in zip(names, runs, strict=True):
        _, said = run.communicate(timeout=120)
        assert run.returncode in {0, 1}, said
        environment = (tmp_path / name / "environment.json").read_text()
        assert ("shared with lab" in environment) == (len(os.sched_getaffinity(0)) < 4)
    (device,) = (StateFile(name="a").read() or pytest.fail("gone")).processes
    done = dutperf("lab", "down", "--name", "a")
    assert done.stdout == "lab known-answer@a is down\n"
    assert not is_running(device)
    assert lab.dut_alive("linux-router@b")
    assert [status.own_name for status in lab.running()] == ["b"]
    assert dutperf("lab", "down", "--name", "b").returncode == 0


def test_a_named_lab_is_up_for_one_run_as_the_nameless_one_is(tmp_path: Path) -> None:
    done = dutperf(
        "throughput",
        "--lab",
        "known-answer@a",
        "--output",
        str(tmp_path / "out"),
        *SLOW,
    )
    assert done.returncode == 0, done.stderr
    assert forwarded(tmp_path / "out") == 5000
    assert lab.running() == []


def test_orders_reach_the_device_of_the_lab_that_is_named(tmp_path: Path) -> None:
    lab.up("known-answer@a")
    lab.up("known-answer@b")
    lossy = tmp_path / "lossy.json"
    lossy.write_text('{"forward": {"rules": [{"every": 2, "do": "drop"}]}}')
    done = dutperf("lab", "set", str(lossy), "--name", "b")
    assert done.returncode == 0, done.stderr
    for name, lost in (("a", False), ("b", True)):
        path = tmp_path / name
        run = measured(f"known-answer@{name}", path)
        run.communicate(timeout=120)
        assert (forwarded(path) != 5000) == lost


@two_cpus
def test_the_second_run_is_refused_or_waits_until_the_first_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(busy.VARIABLE, "refuse")
    long = ("--trial-duration", "60", "--ip", "4", "--frame-size", "128")
    first = ("throughput", "--lab", "known-answer@a", *long)
    with Running(*first, "--output", str(tmp_path / "first"), "--plain") as running:
        running.await_line("trial 1")
        refused = measured("wire@b", tmp_path / "refused")
        _, said = refused.communicate(timeout=60)
        assert refused.returncode == 3
        assert f"process {running.process.pid} (" in said
        assert "DUTPERF_BUSY=wait" in said
        assert not (topology_of("b")).exists()
        waiting = measured("wire@b", tmp_path / "waited", DUTPERF_BUSY="wait")
        assert waiting.stderr
        assert any("waiting: lab b needs 2 CPUs" in line for line in waiting.stderr)
        running.process.kill()
        running.process.wait()
        waiting.communicate(timeout=120)
        assert waiting.returncode in {0, 1}
    assert lab.running() == [], "the second removes what the killed one left"


def topology_of(name: str) -> Path:
    return Path("/run/netns") / f"tester-{name}"
