"""``--standard`` and ``--quick``: what a campaign or a command becomes by them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from dutperf.api import places
from dutperf.cli import app
from dutperf.config import Testbed, load_campaign
from dutperf.results import load_results
from dutperf.run.engine_session import EngineStarter, Notify
from dutperf.simulation.fake_engine import FakeEngine, step

TESTBED = """\
name: simulated
left:
  port: {interface: left}
  ipv4: {address: 198.18.0.2, gateway: 198.18.0.1}
right:
  port: {interface: right}
  ipv4: {address: 198.19.0.2, gateway: 198.19.0.1}
"""
CAMPAIGN = """\
name: presets
testbed: testbed.yaml
procedures:
  - {procedure: throughput, max_rate_fps: 1000000, trial_duration_s: 7, repeats: 2}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("testbed.yaml").write_text(TESTBED)
    Path("campaign.yaml").write_text(CAMPAIGN)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    return used(monkeypatch, FakeEngine(step(300_000)))


def used(monkeypatch: pytest.MonkeyPatch, engine: FakeEngine) -> FakeEngine:
    """From now on commands measure with ``engine``."""

    def prepare(_testbed: Testbed, _notify: Notify) -> EngineStarter:
        return lambda _log_path: contextlib.nullcontext(engine)

    monkeypatch.setattr(places, "prepare_engine", prepare)
    return engine


def run(*more: str) -> int:
    return app.run(["run", "campaign.yaml", *more])


def test_a_quick_run_says_that_the_file_is_not_followed(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--quick", "--output", "out") == 0
    assert (
        "notice: --quick: times, repeats, tags and resolution are not those of "
        "campaign.yaml"
    ) in capsys.readouterr().err
    assert {trial.duration_ns for trial in engine.trials[1:]} == {10**9}
    assert len(load_results(Path("out")).cells[0].repeats) == 1


def test_it_is_resumed_by_the_same_flag_or_by_what_was_stored(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    used(monkeypatch, FakeEngine(step(300_000), troubles={4: KeyboardInterrupt()}))
    assert run("--quick", "--output", "out") == 130
    assert run("--resume", "out") == 2
    assert "trial_duration_s: was 1.0, is 7.0" in capsys.readouterr().err
    assert run("--quick", "--resume", "out") == 0
    done = load_results(Path("out"))
    assert done.complete
    stored = load_campaign(Path("out/campaign.yaml"))
    assert stored.preset is None
    assert stored.procedures[0].trial_duration_s == 1
    assert app.run(["run", "out/campaign.yaml", "--resume", "out"]) == 0


def test_an_option_wins_over_the_preset(engine: FakeEngine) -> None:
    arguments = ["--max-rate", "1000000", "--trial-duration", "3", "--output", "out"]
    assert app.run(["throughput", "testbed.yaml", "--quick", *arguments]) == 0
    (cell,) = load_results(Path("out")).cells
    assert engine.trials[-1].duration_ns == 3 * 10**9
    assert cell.parameters["settle_wait_s"] == 0.1
    assert cell.parameters["resolution"] == "5%"


@pytest.mark.usefixtures("engine")
def test_the_throughput_that_a_latency_needs_is_as_quick() -> None:
    arguments = ["--rate", "throughput", "--max-rate", "1000000", "--output", "out"]
    assert app.run(["latency", "testbed.yaml", "--quick", *arguments]) == 0
    found, latency = load_results(Path("out")).cells
    assert found.parameters["resolution"] == "5%"
    assert (latency.parameters["tags"], len(latency.repeats)) == (500, 3)
    own = [t for t in load_results(Path("out")).trials if t.role == "trial"]
    assert {trial.request.duration_ns for trial in own} == {10**9}


@pytest.mark.parametrize("command", [["run", "campaign.yaml"], ["throughput", "x"]])
def test_both_at_once_are_refused(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert app.run([*command, "--standard", "--quick"]) == 2
    told = "--standard and --quick contradict each other"
    assert told in capsys.readouterr().err
    assert not engine.trials
