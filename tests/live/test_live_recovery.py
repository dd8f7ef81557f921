"""A recovery and an outage that the known-answer device was told, found again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from livetools import dutperf, needs_engine

from dutperf.results import load_results
from dutperf.results.model import CellResult

pytestmark = [*needs_engine, pytest.mark.lab]

ROOT = Path(__file__).parents[2]
SET_NS = 200_000_000
BEHIND_NS = 20_000_000
"""For frames that a busy machine handed to the device later than they were due."""
CAMPAIGN = """\
schema_version: 1
name: interrupted
lab:
  name: known-answer
  label: device
  behaviour: {behaviour}
procedures:
  - ip: [4]
    repeats: 2
    settle_wait_s: 0.02
    residual_wait_s: 0.2
    restabilise_wait_s: 0.02
    max_rate_fps: 100000
"""
RECOVERY = """\
    procedure: system-recovery
    throughput_fps: 40000
    overload_duration_s: 1
    reduced_duration_s: 1
"""
OUTAGE = """\
    procedure: outage
    rate_fps: 20000
    trial_duration_s: 2
    trigger_after_s: 0.5
"""


def found(directory: Path, example: str, procedure: str) -> CellResult:
    """The only cell's result."""
    told = (ROOT / "examples/known-answer" / example).read_text("utf-8")
    behaviour = json.dumps(json.loads(told))
    campaign = directory / "campaign.yaml"
    campaign.write_text(CAMPAIGN.format(behaviour=behaviour) + procedure, "utf-8")
    done = dutperf("run", str(campaign), "--output", str(directory / "run"))
    assert done.returncode == 0, done.stderr
    (cell,) = load_results(directory / "run").cells
    return cell


def test_a_recovery_is_found(tmp_path: Path) -> None:
    cell = found(tmp_path, "recovery-200ms.json", RECOVERY)
    assert cell.bound is None
    assert cell.median == pytest.approx(SET_NS, abs=BEHIND_NS)


def test_an_outage_is_found_by_lost_frames_and_by_time_stamps(tmp_path: Path) -> None:
    cell = found(tmp_path, "outage-200ms.json", OUTAGE)
    assert cell.median == pytest.approx(SET_NS, abs=BEHIND_NS)
    assert cell.outage is not None
    for repeat in (r for d in cell.outage.directions for r in d.repeats):
        assert repeat is not None
        assert repeat.lost == pytest.approx(4000, abs=400)
        assert repeat.silence_ns == pytest.approx(SET_NS, abs=BEHIND_NS)
