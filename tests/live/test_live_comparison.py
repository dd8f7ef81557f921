"""Runs of a device that became slower by as much as it was told, compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from livetools import dutperf, needs_engine

pytestmark = [*needs_engine, pytest.mark.lab]

CAMPAIGN = """\
schema_version: 1
name: gate
seed: {seed}
lab:
  name: known-answer
  label: device
  behaviour: {{forward: {{service: {{rate_fps: {rate_fps}, queue_frames: 200}}}}}}
procedures:
  - procedure: throughput
    ip: [4]
    direction: forward
    repeats: 4
    resolution: 2%
    max_rate_fps: 40000
    trial_duration_s: 0.3
    settle_wait_s: 0.02
    residual_wait_s: 0.05
    restabilise_wait_s: 0.02
"""
BEFORE_FPS, AFTER_FPS = 20_000, 18_000


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs ``before`` and ``again`` of one device, ``slower`` of another."""
    root = tmp_path_factory.mktemp("runs")
    rates = {"before": BEFORE_FPS, "again": BEFORE_FPS, "slower": AFTER_FPS}
    for seed, (name, rate_fps) in enumerate(rates.items(), 1):
        campaign = root / f"{name}.yaml"
        campaign.write_text(CAMPAIGN.format(seed=seed, rate_fps=rate_fps))
        done = dutperf("run", str(campaign), "--output", str(root / name))
        assert done.returncode == 0, done.stderr
    return root


def test_a_known_difference_is_found_with_its_sign_and_size(runs: Path) -> None:
    between = (str(runs / "before"), str(runs / "slower"))
    gated = dutperf("compare", *between, "--fail-if-worse", "6%", "--json")
    assert gated.returncode == 4
    (figure,) = json.loads(gated.stdout)["figures"]
    assert figure["outcome"] == "worse"
    true_percent = 100 * (AFTER_FPS / BEFORE_FPS - 1)
    assert figure["lower"] < true_percent < figure["upper"] < 0
    assert figure["change"] == pytest.approx(true_percent, abs=2)


def test_no_difference_is_claimed_where_there_is_none(runs: Path) -> None:
    between = (str(runs / "before"), str(runs / "again"))
    gated = dutperf("compare", *between, "--fail-if-worse", "6%", "--json")
    assert gated.returncode == 0
    (figure,) = json.loads(gated.stdout)["figures"]
    assert figure["outcome"] == "none_shown"
