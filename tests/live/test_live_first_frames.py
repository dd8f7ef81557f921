"""What a cell begins with, on the known-answer device: its ports are shared memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from livetools import SHORT, dutperf, needs_engine

from dutperf import lab
from dutperf.results import ResultsFile, load_results

pytestmark = [*needs_engine, pytest.mark.lab]

LAB = "known-answer"
SERVICE_FPS = 20_000


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    assert lab.running() == [], "a lab is up: take it down before these tests"
    yield
    lab.down(all_=True)


def measured(folder: Path, forward: dict[str, object], code: int) -> ResultsFile:
    """A search without any maximum rate on a device that does this to frames."""
    behaviour = folder / "behaviour.json"
    behaviour.write_text(json.dumps({"forward": forward}))
    dutperf("lab", "up", LAB, "--behaviour", str(behaviour))
    where = ("--lab", LAB, "--ip", "4", "--output", str(folder / "results"))
    search = ("--resolution", "20%", "--direction", "forward")
    done = dutperf("throughput", *where, *search, *SHORT)
    assert done.returncode == code, done.stderr
    return load_results(folder / "results")


def test_a_device_that_drops_everything_is_told_by_its_first_frames(
    tmp_path: Path,
) -> None:
    results = measured(tmp_path, {"rules": [{"do": "drop"}]}, code=1)
    assert {trial.role for trial in results.trials} == {"first_frames"}
    (reason,) = results.cells[0].reasons
    assert reason.code == "nothing_forwarded"
    assert "forward: none of 100 frames arrived" in reason.message


@pytest.mark.parametrize(
    ("ip", "said"),
    [(4, "ICMP TTL exceeded in transit"), (6, "ICMPv6 hop limit exceeded in transit")],
)
def test_a_router_says_itself_why_it_does_not_forward(
    tmp_path: Path, ip: int, said: str
) -> None:
    campaign = tmp_path / "campaign.yaml"
    campaign.write_text(
        f"{{schema_version: 1, name: ttl, lab: linux-router, procedures: "
        f"[{{procedure: throughput, ip: [{ip}], traffic: {{ttl: 1}}}}]}}"
    )
    done = dutperf("run", str(campaign), "--output", str(tmp_path / "results"))
    assert done.returncode == 1, done.stderr
    results = load_results(tmp_path / "results")
    (reason,) = results.cells[0].reasons
    assert said in reason.message
    assert "routes for a loop" in reason.hint
    assert any(port.icmp for t in results.trials for port in t.result.ports)


def test_a_probe_finds_where_the_search_may_begin_and_no_frame_of_it_comes_back(
    tmp_path: Path,
) -> None:
    service = {"rate_fps": SERVICE_FPS, "queue_frames": 1000}
    results = measured(tmp_path, {"service": service}, code=0)
    probes = [trial for trial in results.trials if trial.role == "probe"]
    assert probes
    for trial in probes:
        (stream,) = trial.result.directions[0].streams
        assert stream.sent > 0
        assert stream.received == 0
    (cell,) = results.cells
    assert cell.parameters["max_load_is"] == "tester"
    assert SERVICE_FPS / 2 < (cell.median or 0) < SERVICE_FPS * 2
