"""``dutperf run --resume``: the program is killed and started again."""

from __future__ import annotations

import functools
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from programs import ProgramServer

import dutperf
from dutperf.results import ResultsFile, load_journal, load_results

PROGRAM = Path(__file__).parents[1] / "tools" / "simulated_program.py"
KILLS = 5
PATIENCE_S = 60
server = functools.cache(lambda: ProgramServer("--simulated"))
CAMPAIGN = """\
name: killed
testbed:
  name: simulated
  left:
    port: {interface: left}
    ipv4: {address: 198.18.0.2, gateway: 198.18.0.1}
  right:
    port: {interface: right}
    ipv4: {address: 198.19.0.2, gateway: 198.19.0.1}
procedures:
  - procedure: throughput
    frame_size: [64, 1518]
    max_rate_fps: 1000000
    resolution: 1%
    repeats: 2
    restabilise_wait_s: 0
  - procedure: frame-loss
    frame_size: [64]
    max_rate_fps: 1000000
    load_percent: [100, 50, 25]
    repeats: 2
    restabilise_wait_s: 0
  - procedure: latency
    frame_size: [64]
    rate_fps: 1000
    repeats: 5
    restabilise_wait_s: 0
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("campaign.yaml").write_text(CAMPAIGN)


def start(*arguments: str, campaign: str = "campaign.yaml") -> subprocess.Popen[str]:
    given = [campaign] if campaign else []
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), "run", *given, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(dutperf.__file__).parents[1])},
    )


def finish(*arguments: str, campaign: str = "campaign.yaml") -> tuple[int, str]:
    given = [campaign] if campaign else []
    done = server().run(["run", *given, *arguments], PATIENCE_S)
    return done.returncode, done.stderr


def kill_after(process: subprocess.Popen[str], trials: int, more_s: float) -> None:
    """Kill when so many trials are stored and a moment has passed."""
    end = time.monotonic() + PATIENCE_S
    while lines("killed") <= trials:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.002)
    time.sleep(more_s)
    process.kill()
    process.communicate()


def lines(directory: str) -> int:
    journal = Path(directory, "journal.jsonl")
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def told(results: ResultsFile) -> tuple[object, ...]:
    trials = [
        (t.number, t.cell, t.repeat, t.attempt, t.load_fps, t.request, t.result.verdict)
        for t in results.trials
    ]
    return results.complete, results.cells, trials


def test_killed_at_five_moments_it_ends_as_if_it_had_not_been() -> None:
    assert finish("--output", "whole")[0] == 0
    whole = load_results(Path("whole"))
    moments = random.Random(5)  # noqa: S311 - not for secrets
    stored = sorted(moments.sample(range(len(whole.trials) - 3), KILLS))
    for kill, trials in enumerate(stored):
        # Before the first kill there is nothing to resume.
        process = start(*(["--resume"] if kill else ["--output"]), "killed")
        kill_after(process, max(trials, lines("killed") - 1), moments.random() / 20)
        assert process.returncode == -9
    code, errors = finish("--resume", "killed", campaign="")
    assert code == 0, errors
    assert "finished trials are in killed/journal.jsonl" in errors
    resumed = load_results(Path("killed"))
    assert told(resumed) == told(whole)
    numbers = [record.number for record in load_journal(Path("killed")).records]
    assert numbers == list(range(1, len(whole.trials) + 1))
    assert Path("killed/report.html").exists()


def test_a_run_keeps_others_out_of_its_directory_until_it_is_killed() -> None:
    process = start("--output", "killed")
    try:
        while lines("killed") < 3:
            assert process.poll() is None
            time.sleep(0.002)
        os.kill(process.pid, 19)  # SIGSTOP: it stays in the middle of its work
        code, errors = finish("--resume", "killed")
    finally:
        process.kill()
        process.communicate()
    assert code == 2
    assert "killed is in use by another run" in errors
    assert finish("--resume", "killed")[0] == 0


def test_without_a_campaign_it_says_what_to_give() -> None:
    code, errors = finish(campaign="")
    assert code == 2
    assert "no campaign was given" in errors
    Path("empty").mkdir()
    code, errors = finish("--resume", "empty", campaign="")
    assert code == 2
    assert "empty has no campaign.yaml" in errors


def test_a_changed_campaign_exits_with_2_and_the_difference() -> None:
    assert finish("--output", "killed")[0] == 0
    changed = CAMPAIGN.replace("repeats: 5", "repeats: 6")
    Path("campaign.yaml").write_text(changed)
    code, errors = finish("--resume", "killed")
    assert code == 2
    assert "error: procedures[3].repeats: was 5, is 6" in errors


def test_a_new_directory_and_a_resumed_one_contradict_each_other() -> None:
    code, errors = finish("--resume", "killed", "--output", "other")
    assert code == 2
    assert "--resume continues in its own directory" in errors
