"""What the known-answer device loses in each trial of a soak is what was found."""

from __future__ import annotations

from pathlib import Path

import pytest
from livetools import dutperf, needs_engine

from dutperf.results import load_results

pytestmark = [*needs_engine, pytest.mark.lab]

CAMPAIGN = """\
schema_version: 1
name: soaked
lab:
  name: known-answer
  label: device
  behaviour: {forward: {rules: [{every: 100, do: drop}]}}
procedures:
  - procedure: soak
    ip: [4]
    rate_fps: 5000
    trial_duration_s: 0.2
    hours: 0.0006
    settle_wait_s: 0.02
    residual_wait_s: 0.2
"""
EACH = 10
"""Frames of 1,000 forward."""


def test_each_trial_has_the_losses_that_were_told(tmp_path: Path) -> None:
    campaign = tmp_path / "campaign.yaml"
    campaign.write_text(CAMPAIGN, "utf-8")
    done = dutperf("run", str(campaign), "--output", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    verified = dutperf("verify", str(tmp_path / "run"))
    assert verified.returncode == 0, verified.stdout + verified.stderr
    (cell,) = load_results(tmp_path / "run").cells
    assert cell.soak
    assert cell.soak.trials == 11
    assert 2 * cell.soak.valid > cell.soak.trials
    assert len(cell.soak.losses) == cell.soak.lossy == cell.soak.valid
    assert all(abs(each.lost - EACH) <= 1 for each in cell.soak.losses)
    assert cell.soak.sent == 2000 * cell.soak.valid
    ways = [s for s in cell.soak.series if s.name == "p50"]
    assert [s.direction for s in ways] == ["forward", "reverse"]
