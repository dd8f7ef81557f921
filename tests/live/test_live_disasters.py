"""What goes wrong in the middle of a run: nothing is lost, left behind, or untold."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from labtools import dut_processes, leftovers, tolerant
from livetools import (
    LAB,
    SHORT,
    Running,
    codes,
    command,
    dutperf,
    inside,
    kept_lab,
    needs_engine,
)
from pyroute2 import netns

from dutperf import lab
from dutperf.results import load_journal, load_results

pytestmark = [*needs_engine, *tolerant]

SECOND_TRIAL = ("--load", "100", "--load", "50", "--max-rate", "1000", "--ip", "4")
"""Two trials of 3 s; the tests wait for the first and disturb the second, in time."""
SLOW = [*SHORT[2:], "--trial-duration", "3"]


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    assert lab.running() == []
    yield
    lab.down(all_=True)
    assert leftovers() == []


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def run(output: Path) -> Iterator[Running]:
    """The program, its second trial sending."""
    where = ("--lab", LAB, "--output", str(output))
    with Running("frame-loss", *where, *SECOND_TRIAL, *SLOW) as program:
        program.await_trial()
        assert soon(sending, 30)
        yield program


def sending() -> bool:
    """Whether frames reach the device now."""
    told = "cat", "/sys/class/net/left/statistics/rx_packets"
    before = int(inside("dut", *told))
    time.sleep(0.05)
    return int(inside("dut", *told)) > before + 5


def gone(process: int) -> bool:
    return not Path(f"/proc/{process}").exists()


def soon(condition: Callable[[], bool], seconds: float = 5) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def kept_trials(output: Path) -> int:
    """How many trials the journal has; results and report must have the same."""
    journal = load_journal(output)
    stored = load_results(output)
    assert not journal.truncated
    assert not stored.complete
    assert list(journal.records) == stored.trials
    assert (output / "report.html").exists()
    return len(journal.records)


def test_killed_dutperf_takes_the_engine_with_it_and_the_next_lab_cleans_up(
    run: Running, output: Path
) -> None:
    engines = run.engines()
    assert engines
    run.process.kill()
    run.process.wait(5)
    assert soon(lambda: all(map(gone, engines)))
    assert len(load_journal(output).records) == run.trials
    assert leftovers()
    assert dutperf("lab", "up", LAB).returncode == 0
    assert dutperf("lab", "down").stdout == f"lab {LAB} is down\n"
    assert json.loads(dutperf("lab", "list", "--json").stdout)["labs"] == []


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_the_results_and_leaves_nothing(
    run: Running, output: Path, signum: signal.Signals
) -> None:
    engines = run.engines()
    os.killpg(run.process.pid, signum)
    code, stderr = run.end()
    assert code == 130
    assert "interrupted" in stderr
    assert str(output) in stderr
    assert all(map(gone, engines))
    assert leftovers() == []
    assert kept_trials(output) == run.trials


def test_a_killed_engine_is_an_error_that_names_the_last_trial(
    run: Running, output: Path
) -> None:
    for engine in run.engines():
        os.kill(engine, signal.SIGKILL)
    code, stderr = run.end()
    assert code == 3
    assert "signal 9" in stderr
    assert f"the last finished trial is {run.trials}" in stderr
    assert kept_trials(output) == run.trials
    assert leftovers() == []
    goes_on(output)
    assert leftovers() == []


def test_a_deleted_device_is_said_to_be_gone(run: Running, output: Path) -> None:
    netns.remove("dut")
    code, stderr = run.end()
    assert code == 3
    assert "the device under test has gone" in stderr
    assert kept_trials(output) >= 1


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with kept_lab():
        options = ["--lab", LAB, "--ip", "4", "--max-rate", "1000", *SHORT]
        options += ["--load", "50", "--repeats", "100"]
        program = command("frame-loss", "--output", str(disk / "r"), *options)
        script = 'mount -t tmpfs -o size=64k dutperf "$0" && exec "$@"'
        in_private = ["unshare", "-m", "sh", "-c", script, str(disk), *program]
        done = subprocess.run(in_private, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert str(disk / "r") in done.stderr
    assert "No space left on device" in done.stderr
    assert "hint: free some space" in done.stderr
    assert "Traceback" not in done.stderr
    assert "incomplete: the run ended before its last cell" in done.stdout


def test_a_program_whose_reader_leaves_finishes_its_work(output: Path) -> None:
    where = ("--lab", LAB, "--ip", "4", "--output", str(output))
    program = command("throughput", *where, *SHORT, "--max-rate", "2000")
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as it:
        for stream in (it.stdout, it.stderr):
            assert stream is not None
            stream.close()
        assert it.wait(30) in {0, 1}
    assert load_results(output).complete


def test_two_programs_do_not_share_a_lab(run: Running, tmp_path: Path) -> None:
    second = str(tmp_path / "second")
    run.process.send_signal(signal.SIGSTOP)  # else it may be over before the other
    done = dutperf("throughput", "--lab", LAB, "--output", second, *SHORT)
    run.process.send_signal(signal.SIGCONT)
    assert done.returncode == 3
    assert f"in use by process {run.process.pid}" in done.stderr
    assert run.end()[0] in {0, 1}


def goes_on(output: Path) -> None:
    """The next run works at once, and ends what this one began."""
    before = load_journal(output).records
    done = dutperf("run", "--resume", str(output))
    assert done.returncode in {0, 1}, done.stderr
    results = load_results(output)
    assert results.complete
    assert tuple(results.trials[: len(before)]) == before


IMPATIENT = """
from dutperf.engine import client, process
client.CALL_TIMEOUT_S = process._END_TIMEOUT_S = 1.0
client.Engine.__init__.__kwdefaults__["end_timeout_s"] = 1.0
"""
"""Instead of the half minute that a busy engine may take."""


def test_an_engine_that_hangs_is_given_up_and_ended(output: Path) -> None:
    where = ("--lab", LAB, "--output", str(output))
    with Running("frame-loss", *where, *SECOND_TRIAL, *SLOW, patch=IMPATIENT) as run:
        run.await_trial()
        engines = run.engines()
        for engine in engines:
            os.kill(engine, signal.SIGSTOP)
        code, stderr = run.end()
    assert code == 3
    assert "the engine did not answer within" in stderr
    assert f"during trial {run.trials + 1}" in stderr
    assert f"then go on where it ended: dutperf run --resume {output}" in stderr
    assert all(map(gone, engines))
    assert leftovers() == []
    assert kept_trials(output) == run.trials


def test_a_device_whose_process_ended_is_said_to_be_gone(output: Path) -> None:
    where = ("--lab", "known-answer", "--output", str(output))
    with Running("frame-loss", *where, *SECOND_TRIAL, *SLOW) as run:
        run.await_trial()
        (device,) = dut_processes()
        os.kill(device.pid, signal.SIGKILL)
        code, stderr = run.end()
    assert code == 3
    assert "the device under test has gone: its process ended" in stderr
    assert leftovers() == []
    assert kept_trials(output) >= run.trials


def test_a_link_that_goes_down_and_comes_back_costs_a_trial(
    run: Running, output: Path
) -> None:
    for state in ("down", "up"):
        inside("dut", "ip", "link", "set", "right", state)
    code, stderr = run.end()
    assert code in {0, 1}, stderr
    trials = load_results(output).trials
    (spoilt,) = [t for t in trials if "link_changed" in codes(t.result)]
    assert spoilt.result.verdict.kind == "invalid"
    again = trials[spoilt.number]
    assert (again.load_fps, again.attempt) == (spoilt.load_fps, 2)
    assert "link_changed" not in codes(again.result)


def test_killed_while_its_lab_goes_down_it_loses_nothing(
    run: Running, output: Path
) -> None:
    (engine,) = run.engines()
    run.await_trial()
    assert soon(lambda: gone(engine), 20)  # the lab goes next
    run.process.kill()
    run.process.wait(5)
    goes_on(output)  # from the journal alone
    dutperf("lab", "down")
    assert leftovers() == []
