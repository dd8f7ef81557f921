"""Procedures on delays over two crossed rings: a wire without any delay of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from livetools import needs_engine
from planning import spec_with

from dutperf.config import Campaign, PlannedTestbed, Testbed
from dutperf.evidence import verify
from dutperf.results import CellResult, load_journal, load_results
from dutperf.run.campaign_run import results_again, run_campaign
from dutperf.run.engine_session import prepare_engine
from dutperf.run.local_executor import Surroundings

pytestmark = needs_engine

RINGS = Testbed.model_validate(
    {
        "name": "rings",
        "cores": [0],
        "left": {
            "port": {"ring": True},
            "ipv4": {"address": "198.18.0.2", "gateway": "198.19.0.2"},
        },
        "right": {
            "port": {"ring": True},
            "ipv4": {"address": "198.19.0.2", "gateway": "198.18.0.2"},
        },
    }
)
QUICK = {
    "trial_duration_s": 0.5,
    "settle_wait_s": 0.05,
    "residual_wait_s": 0.1,
    "restabilise_wait_s": 0,
    "lag_limit_ms": 5000,
}
FRAMES = 2000
SEARCH: dict[str, object] = {
    "procedure": "throughput",
    "max_rate_fps": FRAMES,
    "resolution": 1500,
}
SWEEP = {"timeout_sweep_ms": [0.000001, 99]}
SHORT = {"trial_duration_s": 0.2}


def measured(directory: Path, *specs: dict[str, object]) -> list[CellResult]:
    procedures = [spec_with(QUICK | spec) for spec in specs]
    campaign = Campaign(name="rings", testbed=[RINGS], procedures=procedures)
    around = Surroundings(open_engine=prepare_engine, write_report=lambda path: path)
    run = directory / "run"
    results = run_campaign(
        campaign,
        [PlannedTestbed(testbed=RINGS)],
        around,
        on_event=lambda _event: None,
        results_dir=run,
    )
    assert load_results(run) == results
    assert load_journal(run).records == tuple(results.trials)
    planned = [PlannedTestbed(testbed=RINGS)]
    checks = verify(run, lambda _c: planned, results_again).checks
    assert [told for check in checks for told in check.wrong] == []
    return results.cells


def test_delays_of_a_wire_are_the_testers_own(tmp_path: Path) -> None:
    load = {"rate_fps": 2 * FRAMES, "repeats": 2}
    tags = {"tags": 500, "first_tag_s": 0.25}
    cells = measured(
        tmp_path,
        {"procedure": "latency", **load, **tags},
        {"procedure": "pdv", **load},
        {"procedure": "ipdv", **load},
    )
    for cell in cells:
        assert cell.verdict == "pass"
        assert [(f.sent, f.lost) for f in cell.frames] == [(2 * FRAMES, 0)] * 2
        assert cell.delays is not None
        assert cell.delays.floor_ns <= (cell.delays.usual_bound_ns or 0)
        assert (cell.delays.usual_bound_ns or 0) <= cell.delays.bound_ns
        for measure in cell.measures:
            assert measure.count == 2
            assert measure.result.value is not None
            assert abs(measure.result.value) <= cell.delays.bound_ns
    measures = [measure for cell in cells for measure in cell.measures]
    values = {(m.name, m.direction): m.result.value or 0 for m in measures}
    assert 0 < values["TL", "forward"] <= values["WCL", "forward"]
    assert values["PDV", "reverse"] < values["D99.9", "reverse"]
    assert values["IPDV min", "forward"] < 0 < values["IPDV max", "forward"]
    samples = {m.name: m.samples for m in measures}
    assert samples["TL"] == [500, 500]
    assert samples["PDV"] == [FRAMES, FRAMES]
    assert samples["IPDV max"] == [FRAMES - 1, FRAMES - 1]


def test_delays_are_measured_at_the_throughput_with_as_many_flows(
    tmp_path: Path,
) -> None:
    short = SHORT | {"flows": [1, 5]}
    delays = {"procedure": "pdv", "rate_fps": "90% of throughput", "repeats": 1}
    cells = measured(tmp_path, SEARCH | short, delays | short)
    assert [cell.verdict for cell in cells] == ["pass"] * 4
    assert [cell.load and cell.load.rate_fps for cell in cells[2:]] == [1800, 1800]
    assert [cell.load and cell.load.cell for cell in cells[2:]] == [
        "throughput-ip4-64-both-flows1",
        "throughput-ip4-64-both-flows5",
    ]
    series = load_results(tmp_path / "run").scalability
    assert [each.name for each in series][:2] == ["throughput", "PDV, forward"]


def test_a_sweep_counts_the_slower_frames_of_a_trial_that_passes(
    tmp_path: Path,
) -> None:
    for timeout in ({}, {"frame_timeout_ms": 99}):
        directory = tmp_path / str(len(timeout))
        (cell,) = measured(directory, SEARCH | SWEEP | SHORT | timeout)
        assert (cell.verdict, cell.median) == ("pass", FRAMES)
        assert [t.loss_percent for t in cell.timeouts] == [100, 0]


@pytest.mark.parametrize("tolerance_percent", [0, 99])
def test_a_timeout_below_the_testers_own_share_is_not_held_against_the_device(
    tmp_path: Path, tolerance_percent: float
) -> None:
    judged = {
        "frame_timeout_ms": 0.000001,
        "loss_tolerance_percent": tolerance_percent,
    }
    (cell,) = measured(tmp_path, SEARCH | SHORT | judged)
    assert (cell.verdict, cell.median) == ("invalid", None)
    assert {"unstable", "receiver_lag"} <= {reason.code for reason in cell.reasons}
