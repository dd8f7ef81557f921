"""A recovery and an outage that the known-answer device was told, found again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
  - ip: [{ip}]
    traffic: {traffic}
    repeats: {repeats}
    settle_wait_s: 0.02
    residual_wait_s: 0.2
    restabilise_wait_s: 0.02
    max_rate_fps: 100000
"""
RECOVERY = """\
    procedure: system-recovery
    throughput_fps: 40000
    overload_duration_s: 1
    reduced_duration_s: 0.6
"""
OUTAGE = """\
    procedure: outage
    rate_fps: 20000
    trial_duration_s: 1.6
    trigger_after_s: 0.5
"""


BESIDE = [
    pytest.param(4, {}, id="nothing"),
    pytest.param(4, {"broadcast_percent": 1}, id="broadcast"),
    pytest.param(6, {"hop_by_hop_percent": 50}, id="hop-by-hop"),
]
"""What is beside the stream: a router drops broadcast frames, it forwards others."""


def found(
    directory: Path,
    example: str,
    procedure: str,
    ip: int,
    traffic: dict[str, Any],
) -> CellResult:
    """The only cell's result, of a device that loses frames of the stream alone."""
    told = (ROOT / "examples/known-answer" / example).read_text("utf-8")
    behaviour = json.loads(told)
    for direction in ("forward", "reverse"):
        for rule in behaviour[direction]["rules"]:
            rule["match"] = "foreground"
    text = CAMPAIGN.format(
        behaviour=json.dumps(behaviour),
        ip=ip,
        traffic=json.dumps(traffic),
        repeats=1 if traffic else 2,
    )
    campaign = directory / "campaign.yaml"
    campaign.write_text(text + procedure, "utf-8")
    done = dutperf("run", str(campaign), "--output", str(directory / "run"))
    assert done.returncode == 0, done.stderr
    verified = dutperf("verify", str(directory / "run"))
    assert verified.returncode == 0, verified.stdout + verified.stderr
    (cell,) = load_results(directory / "run").cells
    for count in cell.beside:
        assert count.received == (count.sent if ip == 6 else 0)
    return cell


@pytest.mark.parametrize(("ip", "traffic"), BESIDE)
def test_a_recovery_is_found(tmp_path: Path, ip: int, traffic: dict[str, Any]) -> None:
    cell = found(tmp_path, "recovery-200ms.json", RECOVERY, ip, traffic)
    assert cell.bound is None
    assert cell.median == pytest.approx(SET_NS, abs=BEHIND_NS)


@pytest.mark.parametrize(("ip", "traffic"), BESIDE)
def test_an_outage_is_found_by_lost_frames_and_by_time_stamps(
    tmp_path: Path, ip: int, traffic: dict[str, Any]
) -> None:
    cell = found(tmp_path, "outage-200ms.json", OUTAGE, ip, traffic)
    assert cell.median == pytest.approx(SET_NS, abs=BEHIND_NS)
    assert cell.outage is not None
    share = 1 - sum(traffic.values()) / 100
    for repeat in (r for d in cell.outage.directions for r in d.repeats):
        assert repeat is not None
        assert repeat.lost == pytest.approx(4000 * share, abs=400 * share)
        assert repeat.silence_ns == pytest.approx(SET_NS, abs=BEHIND_NS)
