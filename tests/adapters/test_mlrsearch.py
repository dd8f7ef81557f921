"""The package MLRsearch measures with dutperf, beside dutperf's own use of it."""

from __future__ import annotations

import pytest
from MLRsearch import Config, MultipleLossRatioSearch, SearchGoal

from dutperf.adapters.mlrsearch import Measurer
from dutperf.api import SetupError, Tester
from dutperf.simulation import fake_engine
from dutperf.simulation.fake_engine import FakeEngine, perfect, step

FRAMES = {"ip": 4, "frame_size": 64, "direction": "both"}
FPS = 120_000
WIDTH = 0.005


def searched(measurer: Measurer, most_fps: int = 1_000_000) -> tuple[float, float]:
    config = Config()
    config.goals = [
        SearchGoal(
            loss_ratio=0.0,
            relative_width=WIDTH,
            initial_trial_duration=1.0,
            final_trial_duration=1.0,
            duration_sum=1.0,
        )
    ]
    config.max_load = most_fps
    search = MultipleLossRatioSearch(config=config)
    (found,) = search.search(measurer=measurer, debug=lambda _: None).values()
    return float(found.relevant_lower_bound), float(found.relevant_upper_bound)


def test_the_same_search_by_the_package_and_by_dutperf_agrees() -> None:
    with Tester(simulated_fps=FPS) as tester, tester.traffic(**FRAMES) as traffic:
        measurer = Measurer(traffic)
        lower_fps, upper_fps = searched(measurer)
        own = traffic.find(
            search="mlrsearch", trial_duration_s=1, resolution=f"{WIDTH:.1%}"
        )
    assert lower_fps <= FPS < upper_fps <= lower_fps * (1 + 2 * WIDTH)
    assert own.rate_fps is not None
    assert own.rate_fps == pytest.approx(lower_fps, rel=2 * WIDTH)
    assert len(measurer.trials) < 40


def test_counts_are_those_of_the_trial() -> None:
    with Tester(simulated_fps=FPS) as tester, tester.traffic(**FRAMES) as traffic:
        measurer = Measurer(traffic)
        result = measurer.measure(1.0, 2.0 * FPS)
    (trial,) = measurer.trials
    assert result.offered_count == result.intended_count == trial.sent == 4 * FPS
    assert result.loss_count == trial.lost
    assert result.loss_ratio == pytest.approx(0.5, abs=0.001)


def opened(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> Tester:
    monkeypatch.setattr(fake_engine, "FakeEngine", lambda _device: engine)
    return Tester(simulated_fps=FPS)


def test_what_the_tester_cannot_send_is_not_told_as_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tester = opened(FakeEngine(perfect(), tester_limit_fps=50_000), monkeypatch)
    with tester.traffic(**FRAMES) as traffic:
        result = Measurer(traffic).measure(1.0, 100_000.0)
    assert result.intended_count == 200_000
    assert result.offered_count <= 100_000
    assert result.loss_ratio >= 0.5


def test_a_trial_that_tells_nothing_is_run_again_and_then_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    once = FakeEngine(step(FPS), troubles={2: "link_changed"})
    with opened(once, monkeypatch).traffic(**FRAMES) as traffic:
        assert Measurer(traffic).measure(1.0, 1000.0).loss_count == 0
    always = FakeEngine(step(FPS), troubles=dict.fromkeys(range(2, 9), "link_changed"))
    with opened(always, monkeypatch).traffic(**FRAMES) as traffic:
        measurer = Measurer(traffic)
        with pytest.raises(SetupError, match="tell nothing"):
            measurer.measure(1.0, 1000.0)
    assert [trial.verdict for trial in measurer.trials] == ["invalid"]
