"""Watts of a router in the lab, by a meter that counts the frames it takes in."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from livetools import dutperf, kept_lab, needs_engine

from dutperf.results import load_results

pytestmark = [*needs_engine, pytest.mark.lab]

METER = """\
import json, os, subprocess, sys, time
folder, state = sys.argv[1:]
count = ["ip", "netns", "exec", "dut", "sh", "-c",
         "cat /sys/class/net/*/statistics/rx_packets"]
now = time.monotonic(), sum(map(int, subprocess.check_output(count).split()))
before = json.load(open(state)) if os.path.exists(state) else [now[0] - 1, now[1]]
json.dump(now, open(state, "w"))
print(40 + 1e-3 * (now[1] - before[1]) / (now[0] - before[0]))
"""


def test_a_known_answer_meter_is_found(tmp_path: Path) -> None:
    """40 W, and a milliwatt for each frame a second."""
    meter, state = tmp_path / "meter.py", tmp_path / "state"
    meter.write_text(METER, "utf-8")
    path = tmp_path / "testbed.yaml"
    with kept_lab() as testbed:
        power = {
            "command": [sys.executable, str(meter), "dut", str(state)],
            "accuracy_percent": 1,
            "every_s": 0.2,
            "averaging_s": 0.2,  # a reading is of the time since the one before
        }
        told = json.loads(testbed.model_dump_json(exclude_none=True))
        path.write_text(json.dumps(told | {"power": power}), "utf-8")
        done = dutperf(
            *("power", str(path), "--ip", "4", "--rate", "5000", "--load", "20,100"),
            *("--trial-duration", "4", "--settle-wait", "0.05"),
            *("--residual-wait", "0.2", "--restabilise-wait", "0.1"),
            *("--output", str(tmp_path / "run")),
        )
        assert done.returncode == 0, done.stderr
        assert "nJ/bit at full load" in done.stdout + done.stderr
    verified = dutperf("verify", str(tmp_path / "run"))
    assert verified.returncode == 0, verified.stdout + verified.stderr
    (cell,) = load_results(tmp_path / "run").cells
    assert cell.power
    idle, fifth, full = cell.power.points
    for point, truth in ((idle, 40.0), (fifth, 42.0), (full, 50.0)):
        assert point.watts, point.why
        assert abs(point.watts.watts - truth) <= point.watts.bound_w
        assert point.watts.bound_w < 0.05 * truth
    assert full.marginal
    assert full.marginal.packet_nj == pytest.approx(1e6, abs=1.2e5)
