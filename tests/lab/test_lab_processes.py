"""Processes of the DUT: on record before they run, ended for certain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from labtools import tolerant
from pyroute2 import netns

from dutperf.errors import SetupError
from dutperf.lab import processes
from dutperf.lab.processes import Process, is_running
from dutperf.programs import postponed_signals

pytestmark = tolerant

NAMESPACE = f"dutperf-test-{os.getpid()}"
SLEEP = ["sleep", "60"]


@pytest.fixture(autouse=True)
def namespace() -> Iterator[None]:
    netns.create(NAMESPACE)
    yield
    netns.remove(NAMESPACE)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def start(
    log: Path, command: list[str], seen: list[Process], cpu: int | None = None
) -> Process:
    return processes.start(
        command, namespace=NAMESPACE, cpu=cpu, log=log, record=seen.append
    )


def test_a_process_is_started_recorded_and_ended(log: Path) -> None:
    seen: list[Process] = []
    process = start(log, SLEEP, seen)
    assert seen == [process]
    assert is_running(process)
    processes.end(process)
    assert not Path(f"/proc/{process.pid}").exists()


def test_one_that_ends_instead_of_starting_is_told_with_its_words(log: Path) -> None:
    process = start(log, ["sh", "-c", "echo; echo no room; echo ask later"], [])
    with pytest.raises(SetupError) as told:
        processes.await_start(process, lambda: False, "the box", log, "give it room")
    assert str(told.value) == "the box did not start: no room; ask later"
    assert told.value.hint == "give it room"


def test_one_that_does_not_answer_is_told_with_the_time(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "START_TIMEOUT_S", 0.1)
    process = start(log, SLEEP, [])
    try:
        with pytest.raises(SetupError, match=r"within 0\.1 s: it said nothing"):
            processes.await_start(process, lambda: False, "the box", log, "")
        processes.await_start(process, lambda: True, "the box", log, "")
    finally:
        processes.end(process)


def test_a_process_holds_nothing_that_its_maker_inherited(log: Path) -> None:
    """As a pipe to tee, or the lock of a script that brings a lab up."""
    theirs, mine = os.pipe()
    os.set_inheritable(mine, True)
    os.set_blocking(theirs, False)
    process = start(log, SLEEP, [])
    try:
        os.close(mine)
        assert os.read(theirs, 1) == b""  # an error while anybody has it open
    finally:
        os.close(theirs)
        processes.end(process)


def test_a_process_runs_on_its_cpu_alone_and_with_signals_unblocked(log: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    with postponed_signals():
        process = start(log, SLEEP, [], cpu)
    try:
        assert os.sched_getaffinity(process.pid) == {cpu}
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert "SigBlk:\t0000000000000000" in status
    finally:
        processes.end(process)


def test_a_process_that_cannot_be_recorded_never_runs(
    log: Path, tmp_path: Path
) -> None:
    met: list[Process] = []

    def refuse(process: Process) -> None:
        met.append(process)
        raise OSError("disk full")

    trace = tmp_path / "ran"
    with pytest.raises(OSError, match="disk full"):
        processes.start(
            ["touch", str(trace)], namespace=NAMESPACE, cpu=None, log=log, record=refuse
        )
    os.waitpid(met[0].pid, 0)
    assert not trace.exists()


def test_a_process_whose_maker_is_killed_before_the_record_ends(log: Path) -> None:
    program = f"""
import dataclasses, json, os, pathlib, signal
from dutperf.lab import processes

def die(process):
    print(json.dumps(dataclasses.asdict(process)), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

log = pathlib.Path({str(log)!r})
where = {{"namespace": {NAMESPACE!r}, "cpu": None, "log": log}}
processes.start({SLEEP!r}, record=die, **where)
"""
    killed = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, check=False, timeout=20
    )
    process = Process(**json.loads(killed.stdout))
    deadline = time.monotonic() + 10
    while is_running(process) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(process)


def test_another_process_with_the_same_number_is_not_ended(log: Path) -> None:
    process = start(log, SLEEP, [])
    try:
        processes.end(replace(process, start_ticks=1))
        assert is_running(process)
    finally:
        processes.end(process)


def test_a_process_that_is_gone_is_ended_already(log: Path) -> None:
    process = start(log, SLEEP, [])
    processes.end(process)
    processes.end(process)
    assert not is_running(process)


def test_output_of_a_process_is_in_its_log(log: Path) -> None:
    process = start(log, ["sh", "-c", "echo out; echo err >&2; exec sleep 60"], [])
    try:
        while "err" not in log.read_text():
            assert is_running(process)
        assert log.read_text() == "out\nerr\n"
    finally:
        processes.end(process)
