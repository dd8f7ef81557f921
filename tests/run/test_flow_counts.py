"""A campaign over numbers of flows, on a device that suffers from many."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning import Run, campaign, spec

from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.procedures.scalability import scalability
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import ResultsFile, load_results
from dutperf.simulation.fake_engine import FakeEngine, step


def flows_of(trial: TrialRequest) -> int:
    [stream] = trial.directions[0].streams
    return max((field.size for field in stream.vary), default=1)


class Crowded(FakeEngine):
    """Forwards 320,000 frames a second of one flow, and 1,000 fewer for each more."""

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        """Simulate ``trial``."""
        self._dut = step(321_000 - 1000 * flows_of(trial))
        return super().measure(trial, on_progress)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> ResultsFile:
    asked = campaign(
        spec(resolution="1", flows=[1, 9, 33]),
        spec(procedure="pdv", rate_fps="throughput", flows=[1, 33], repeats=1),
    )
    path = tmp_path_factory.mktemp("flows") / "run"
    found = Run(path, Crowded(step(1)))(asked)
    assert load_results(path) == found
    return found


def test_degradation_is_told_against_one_flow(results: ResultsFile) -> None:
    search, *_ = results.scalability
    assert [(p.flows, p.value, p.degradation_percent) for p in search.points] == [
        (1, 320_000, None),
        (9, 312_000, 2.5),
        (33, 288_000, 10.0),
    ]


def test_delays_are_taken_at_the_throughput_with_as_many_flows(
    results: ResultsFile,
) -> None:
    own = [t for t in results.trials if t.role == "trial"]
    loads = {t.load_fps for t in own if t.cell.startswith("pdv")}
    assert loads == {320_000, 288_000}
    spread = next(s for s in results.scalability if s.name == "PDV, forward")
    assert [point.rate_fps for point in spread.points] == [320_000, 288_000]


def test_the_summary_can_be_made_again_from_the_cells(results: ResultsFile) -> None:
    assert scalability(results.cells) == results.scalability
    assert results.cells[1].parameters["flows"] == 9
    assert results.cells[1].parameters["ports"] == (
        "source increasing 1024-1032, destination fixed 7"
    )


def test_a_rate_for_each_flow_is_sent_and_told(tmp_path: Path) -> None:
    """Each number of flows in trials of its own, at so many times the rate of one."""
    asked = campaign(
        spec(procedure="pdv", rate_fps="1000 per flow", flows=[1, 4, 9], repeats=2)
    )
    found = Run(tmp_path / "run", FakeEngine(step(10**6)))(asked)
    assert load_results(tmp_path / "run") == found
    sent = {
        (flows_of(t.request), t.load_fps) for t in found.trials if t.role == "trial"
    }
    assert sent == {(1, 1000), (4, 4000), (9, 9000)}
    spread = next(s for s in found.scalability if s.name == "PDV, forward")
    assert spread.rate_per_flow_fps == 1000
    assert [point.rate_fps for point in spread.points] == [1000, 4000, 9000]
    assert found.cells[1].parameters["rate_fps"] == 4000
