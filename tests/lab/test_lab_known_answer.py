"""``known-answer``: started, told, asked and ended; frames through it as a router."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from labtools import (
    dut_processes,
    lab_holder,
    leftovers,
    queue_and_nice,
    tolerant,
)
from typer.testing import CliRunner

from dutperf import lab
from dutperf.api.places import open_testbed
from dutperf.cli.app import whole
from dutperf.config import PlannedTestbed
from dutperf.config.campaign import LabKeys
from dutperf.errors import InputError, SetupError
from dutperf.lab.devices import known_answer
from dutperf.lab.processes import is_running, plan_cpus
from dutperf.lab.state import StateFile
from dutperf.programs import find_engine


def _missing() -> str:
    try:
        known_answer.check_program()
    except SetupError as error:
        return error.message
    return ""


pytestmark = [
    *tolerant,
    pytest.mark.engine,
    pytest.mark.skipif(bool(_missing()), reason=_missing()),
]

NAME = "known-answer"
DROP = {"forward": {"rules": [{"every": 2, "do": "drop"}]}}
WRONG = {"forward": {"rules": [{"every": 2, "do": "lose"}]}}


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    assert lab.running() == [], "a lab is up: take it down before testing the lab"
    yield
    lab.down()
    assert leftovers() == []


def test_it_runs_on_the_cpu_of_the_dut_and_ends_with_the_lab() -> None:
    queues = queue_and_nice()
    testbed = lab.up(NAME)
    (process,) = dut_processes()
    usable = os.sched_getaffinity(0)
    assert queue_and_nice() == queues
    assert os.sched_getaffinity(process.pid) <= {plan_cpus().dut} or len(usable) == 1
    assert "dutperf-refdut" in testbed.description
    watch = lab.watch_device()
    assert watch is None or watch.processes() == [process.pid]
    assert "queue" not in testbed.description
    assert lab.known_answer_device().report().trials == ()
    lab.down()
    assert not is_running(process)
    assert not StateFile().dut_directory.exists()


def test_its_own_queue_counts_when_others_take_its_cpu() -> None:
    lab.up(NAME)
    watch = lab.watch_device()
    if watch is None:
        pytest.skip("the device has no CPU of its own here")
    assert watch.queue_frames == known_answer.RING_FRAMES
    service = {"rate_fps": 20_000, "queue_frames": 20}
    lab.known_answer_device().configure({"forward": {"service": service}})
    assert watch.queue_frames == service["queue_frames"]
    lab.known_answer_device().configure({})
    assert watch.queue_frames == known_answer.RING_FRAMES


def test_its_log_outlives_the_lab() -> None:
    lab.up(NAME)
    lab.down()
    log = known_answer.log_of(StateFile().dut_directory)
    assert '{"ready": true}' in log.read_text()


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_the_device_of_a_session_that_ended_goes(signum: signal.Signals) -> None:
    with lab_holder(NAME) as holder:
        (process,) = dut_processes()
        holder.send_signal(signum)
        holder.wait(10)
    lab.down()
    assert not is_running(process)


def test_a_dead_device_is_noticed_and_the_lab_made_anew() -> None:
    lab.up(NAME)
    (process,) = dut_processes()
    os.kill(process.pid, signal.SIGKILL)
    while is_running(process):
        time.sleep(0.01)
    assert not lab.dut_alive(NAME)
    with pytest.raises(SetupError, match="not running: it has ended"):
        lab.known_answer_device()
    with pytest.raises(SetupError, match="has gone: its process ended") as caught:
        open_testbed(PlannedTestbed(lab=LabKeys(name=NAME), testbed=lab.plan(NAME)))
    assert f"dutperf lab up {NAME}" in caught.value.hint
    lab.up(NAME)
    assert lab.known_answer_device().report().trials == ()


def test_a_wrong_behaviour_is_refused_with_its_place_and_leaves_no_lab() -> None:
    with pytest.raises(InputError, match=r"forward\.rules\[0\]\.do") as caught:
        lab.up(LabKeys(name=NAME, behaviour=WRONG))
    assert "drop" in caught.value.hint
    assert lab.running() == []


def test_a_kept_lab_takes_another_behaviour_and_refuses_a_wrong_one() -> None:
    lab.up(LabKeys(name=NAME, behaviour=DROP))
    (process,) = dut_processes()
    lab.up(LabKeys(name=NAME, behaviour={}))
    with pytest.raises(InputError, match="not an action"):
        lab.up(LabKeys(name=NAME, behaviour=WRONG))
    assert dut_processes() == (process,)
    assert is_running(process)


def test_another_lab_takes_no_behaviour() -> None:
    with pytest.raises(InputError, match="linux-router takes no behaviour") as caught:
        lab.up(LabKeys(name="linux-router", behaviour=DROP))
    assert NAME in caught.value.hint


def test_without_the_lab_there_is_nobody_to_ask() -> None:
    with pytest.raises(SetupError, match="no lab is up") as caught:
        lab.known_answer_device()
    assert f"dutperf lab up {NAME}" in caught.value.hint


def test_without_the_program_the_error_says_how_to_build_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine = tmp_path / "dutperf-engine"
    engine.write_text("")
    engine.chmod(0o755)
    monkeypatch.setenv("DUTPERF_ENGINE", str(engine))
    with pytest.raises(SetupError, match="dutperf-refdut is not found") as caught:
        lab.up(NAME)
    assert "make setup" in caught.value.hint


def test_a_device_that_does_not_start_is_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "dutperf-refdut"
    program.write_text("#!/bin/sh\necho no memory at all\nexit 3\n")
    program.chmod(0o755)
    engine = tmp_path / "dutperf-engine"
    engine.symlink_to(find_engine())
    monkeypatch.setenv("DUTPERF_ENGINE", str(engine))
    with pytest.raises(SetupError, match="no memory at all"):
        lab.up(NAME)


def test_the_commands_tell_and_ask_it(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    told.write_text(json.dumps(DROP))
    run = CliRunner().invoke
    assert run(whole(), ["lab", "up", NAME, "--behaviour", str(told)]).exit_code == 0
    assert run(whole(), ["lab", "set", str(told)]).exit_code == 0
    account = run(whole(), ["lab", "account"])
    assert json.loads(account.output)["trials"] == []
    with pytest.raises(InputError, match="no account of trial 7"):
        run(whole(), ["lab", "account", "--trial", "7"], catch_exceptions=False)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("{", "is not JSON"), ("[]", "must hold a JSON object"), (None, "cannot read")],
)
def test_a_file_that_is_no_behaviour_is_named(
    tmp_path: Path, content: str | None, complaint: str
) -> None:
    path = tmp_path / "behaviour.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=complaint) as caught:
        lab.read_behaviour(path)
    assert str(path) in caught.value.message
    assert caught.value.hint


def test_each_behaviour_with_a_label_is_a_lab_of_its_own() -> None:
    chosen = LabKeys(name=NAME, behaviour=DROP, label="every-second")
    assert lab.plan(chosen).name == f"{NAME}-every-second"
    with lab.session(chosen) as testbed:
        assert testbed.name == f"{NAME}-every-second"


def test_a_kept_device_is_not_told_otherwise_behind_its_keepers_back() -> None:
    lab.up(NAME)
    with pytest.raises(SetupError, match="does what it was told") as caught:
        lab.use(LabKeys(name=NAME, behaviour=DROP))
    assert "dutperf lab down" in caught.value.hint


def test_a_wrong_behaviour_is_refused_before_there_is_a_lab() -> None:
    with pytest.raises(InputError, match=r"forward\.rules\[0\]\.do is not an action"):
        lab.plan(LabKeys(name=NAME, behaviour=WRONG))
