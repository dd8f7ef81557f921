"""SNMP queries that the known-answer device leaves unanswered, as results tell them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from livetools import needs_engine, ref_dut
from planning import TESTBED, spec_with

from dutperf.config import Campaign, PlannedTestbed, Testbed
from dutperf.lab.refdut_socket import AgentAccount
from dutperf.protocol.base import Side
from dutperf.results import ResultsFile
from dutperf.run.campaign_run import run_campaign
from dutperf.run.engine_session import prepare_engine
from dutperf.run.local_executor import Surroundings

pytestmark = needs_engine

SECONDS = 4
ROUTING = {
    "left": ["198.18.0.1", "2001:2::1"],
    "right": ["198.19.0.1", "2001:2:0:1::1"],
}
ASKING = {
    "procedure": "frame-loss",
    "load_percent": [100],
    "max_rate_fps": 1000,
    "trial_duration_s": SECONDS,
    "settle_wait_s": 0.05,
    "residual_wait_s": 0.2,
    "restabilise_wait_s": 0,
    "traffic": {"management": True},
}


def measured(
    directory: Path, agent: dict[str, Any], **keys: object
) -> tuple[ResultsFile, AgentAccount]:
    """What is found of a device with that agent, and what it says itself."""
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short), {"routing": ROUTING, **agent}) as device,
    ):
        testbed = _testbed(device.sockets)
        campaign = Campaign(
            name="asking",
            testbed=[testbed],
            procedures=[spec_with(ASKING | keys)],
        )
        results = run_campaign(
            campaign,
            [PlannedTestbed(testbed=testbed)],
            Surroundings(open_engine=prepare_engine, write_report=lambda path: path),
            on_event=lambda _event: None,
            results_dir=directory / "run",
        )
        account = device.client.report().agent
    assert account
    return results, account


def _testbed(sockets: dict[Side, str]) -> Testbed:
    """That of the plan's tests, whose gateways the device is."""
    plain = TESTBED.model_dump(mode="json", exclude_unset=True)
    for side, socket in sockets.items():
        plain[side]["port"] = {"memif": socket}
    return Testbed.model_validate(plain)


@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize(
    ("agent", "unanswered"),
    [
        ({}, 0),
        ({"agent": {"unanswered_every": 3}}, SECONDS // 3),
        ({"agent": {"unanswered_every": 1}}, SECONDS),
    ],
)
def test_as_many_are_unanswered_as_the_device_left(
    tmp_path: Path, agent: dict[str, Any], unanswered: int, ip: int
) -> None:
    results, account = measured(tmp_path, agent, ip=[ip])
    (cell,) = results.cells
    assert cell.verdict == "pass"
    count = cell.management
    assert count
    assert count.wrong == 0
    # Of trials that were worth nothing on a busy machine the device tells, too.
    ports = [p for trial in results.trials for p in trial.result.ports]
    asked, answered = (
        sum(p.announced for p in ports),
        sum(len(p.answers) for p in ports),
    )
    assert (answered, asked - answered) == (account.answered, account.unanswered)
    if len(results.trials) == 1:
        assert (count.asked, count.answered) == (asked, answered)
        assert account.unanswered == unanswered
    found = next((f for f in cell.findings if f.kind == "unanswered"), None)
    assert (found is not None) == (account.unanswered > 0)
    if found:
        assert found.numbers == {"asked": count.asked, "answered": count.answered}
    for port in ports:
        assert port.foreign == len(port.answers), "a query goes nowhere else"
