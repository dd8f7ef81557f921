"""``dutperf export-histograms`` as a user types it, after a run on a FakeEngine."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from dutperf.api import places
from dutperf.cli import app
from dutperf.config import Testbed
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


@pytest.fixture
def run_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("testbed.yaml").write_text(TESTBED)

    def prepare(_testbed: Testbed, _notify: Notify) -> EngineStarter:
        return lambda _log_path: contextlib.nullcontext(FakeEngine(step(50_000)))

    monkeypatch.setattr(places, "prepare_engine", prepare)
    quick = ["--restabilise-wait", "0", "--max-rate", "100000", "--output", "run"]
    assert app.run(["throughput", "testbed.yaml", *quick]) in (0, 1)
    return tmp_path / "run"


def test_a_run_is_exported_beside_itself_and_its_files_are_named(
    run_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert app.run(["export-histograms", "run"]) == 0
    named = capsys.readouterr().out.split()
    trials = [t for t in load_results(run_directory).trials if t.role == "trial"]
    assert len(named) == len(trials) > 3
    for name, trial in zip(named, trials, strict=True):
        reader = HistogramLogReader(name, HdrHistogram(1, 2**47, 3))
        with reader.input_file:
            first = reader.get_next_interval_histogram()
        stream = trial.result.directions[0].streams[0]
        assert first.get_total_count() == stream.received


def test_another_directory_may_be_given(run_directory: Path) -> None:
    assert app.run(["export-histograms", str(run_directory), "--output", "logs"]) == 0
    assert list(Path("logs").glob("*.hlog"))
    assert not (run_directory / "histograms").exists()


def test_a_directory_without_results_is_an_input_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["export-histograms", str(tmp_path)]) == 2
    assert "neither results.json nor journal.jsonl" in capsys.readouterr().err
