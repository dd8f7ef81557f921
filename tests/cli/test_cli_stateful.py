"""Procedures on open connections, by the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dutperf.cli import app

TESTBED = """\
schema_version: 1
name: gateway
cores: [0, 1]
left:
  port: {interface: tl}
  ipv4: {address: 198.18.0.2, gateway: 198.18.0.1, virtual: 198.19.0.1}
right:
  port: {interface: tr}
  ipv4: {address: 198.19.0.2, gateway: 198.19.0.1}
"""
PHASES = ["--stateful", "--connections", "1000", "--phase1-rate", "50000"]


@pytest.fixture
def testbed(tmp_path: Path) -> str:
    path = tmp_path / "testbed.yaml"
    path.write_text(TESTBED)
    return str(path)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--stateful"], "--connections is missing"),
        (["--stateful", "--connections", "5"], "--phase1-rate is missing"),
        ([*PHASES, "--phase1-rate", "fast"], "--phase1-rate must be whole frames"),
        ([*PHASES, "--phase2-after", "9"], "before the end of phase 1"),
        ([*PHASES, "--dut-timeout", "30"], "must live 63.02 s"),
        ([*PHASES, "--public-addresses", "2001:2::9"], "receives IPv4"),
        ([*PHASES, "--phase1-rate", "2000000"], "shorter than 1 ms"),
        ([*PHASES, "--networks", "256"], "networks must be left out"),
        (
            [*PHASES, "--initiator-ports", "7-9", "--responder-ports", "1-2"],
            "1000 are more than the 6 combinations",
        ),
    ],
)
@pytest.mark.parametrize("procedure", ["throughput", "frame-loss"])
def test_what_cannot_be_is_refused_before_anything_is_opened(
    procedure: str,
    options: list[str],
    told: str,
    testbed: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = app.run([procedure, testbed, "--max-rate", "1000", *options])
    shown = " ".join(capsys.readouterr().err.split())
    assert told in shown
    assert code == 2


CAMPAIGN = """\
name: phases
testbed: testbed.yaml
procedures:
  - procedure: connection-rate
    max_rate_fps: 100000
    stateful: {connections: 70000, source_ports: 1-65535}
  - procedure: throughput
    max_rate_fps: 100000
    stateful:
      connections: 70000
      source_ports: 1-65535
      phase1_rate: 50% of connection-rate
  - procedure: latency
    rate_fps: 1000
    trial_duration_s: 120
    stateful: {connections: 4000, phase1_rate: 1000, dut_timeout_s: 140}
"""


def test_the_plan_tells_the_times_of_the_phases_and_what_the_device_needs(
    testbed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(testbed).with_name("campaign.yaml")
    path.write_text(CAMPAIGN)
    assert app.run(["run", str(path), "--dry-run", "--json"]) == 0
    shown = capsys.readouterr()
    notices = " ".join(shown.err.split())
    assert "opened at 50% of connection-rate" in notices
    assert "phase 2 starts 5 s after phase 1, and takes 120 s" in notices
    assert "should be at least 139.7 s; it is 140 s" in notices
    assert "65,535 pairs of address and port" in notices
    cells = json.loads(shown.out)["cells"]
    found = {cell["id"]: cell for cell in cells}
    latency = found["latency-ip4-64-both-4000connections-1000fps"]
    assert latency["stateful"] == {
        "connections": 4000,
        "phase1_rate_fps": 1000,
        "wait_ms": 500,
        "phase2_after_ms": 5000,
        "needed_dut_timeout_s": 139.7,
    }
    assert latency["trials"] == 40
    assert latency["duration_s"] > 20 * (5 + 120)
