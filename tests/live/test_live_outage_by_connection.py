"""The known-answer gateway is out for a set time; so is each connection."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from livetools import dutperf, needs_engine

from dutperf.results import load_results
from dutperf.results.details import ConnectionOutage

pytestmark = [*needs_engine, pytest.mark.lab]

N = 1000
TURN_NS = 100_000_000
BEHIND_NS = 20_000_000
"""For frames that a busy machine handed to the device later than they were due."""
CAMPAIGN = """\
schema_version: 1
name: interrupted
lab:
  name: known-answer-nat44
  label: device
  behaviour: {behaviour}
procedures:
  - procedure: outage
    ip: [4]
    rate_fps: 10000
    trial_duration_s: 2
    trigger_after_s: 0.5
    by_connection: true
    stateful: {{connections: 1000, phase1_rate: 10000}}
    repeats: 1
    settle_wait_s: 0.02
    residual_wait_s: 0.2
    restabilise_wait_s: 0.02
    max_rate_fps: 100000
"""
"""Phase 1 is over before the device begins to lose frames of a trial, after 0.6 s."""


def found(directory: Path, rule: dict[str, Any]) -> ConnectionOutage:
    """What the only cell says of the responder's frames."""
    behaviour = {"reverse": {"rules": [rule | {"match": "foreground", "do": "drop"}]}}
    campaign = directory / "campaign.yaml"
    campaign.write_text(CAMPAIGN.format(behaviour=json.dumps(behaviour)), "utf-8")
    done = dutperf("run", str(campaign), "--output", str(directory / "run"))
    assert done.returncode == 0, done.stderr
    verified = dutperf("verify", str(directory / "run"))
    assert verified.returncode == 0, verified.stdout + verified.stderr
    (cell,) = load_results(directory / "run").cells
    assert cell.outage is not None
    by_way = {d.direction: d.by_connection for d in cell.outage.directions}
    (forward,), (reverse,) = by_way["forward"] or [], by_way["reverse"] or []
    assert forward is not None
    assert (forward.whole, forward.moved) == (N, 0)
    assert reverse is not None
    return reverse


def test_all_are_out_as_long_as_the_device_is(tmp_path: Path) -> None:
    rule = {"when": {"from_ns": 600_000_000, "to_ns": 1_000_000_000}}
    each = found(tmp_path, rule)
    assert (each.back, each.died, each.unclear) == (N, 0, 0)
    assert each.median_ns == pytest.approx(400_000_000, abs=TURN_NS + BEHIND_NS)
    assert each.last_back_ns == pytest.approx(1_100_000_000, abs=BEHIND_NS)
    assert max(each.out) == N
