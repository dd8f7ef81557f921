"""Labs as their file tells them, for tests without namespaces."""

from __future__ import annotations

from datetime import UTC, datetime

from dutperf.config.testbed import Testbed
from dutperf.lab import LABS
from dutperf.lab.state import LabState, Process


def make_state(owner: Process | None) -> LabState:
    device = LABS["linux-router"]
    return LabState(
        device=device.name,
        since=datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC),
        owner=owner,
        namespaces=("tester", "dut"),
        links=("tester/left",),
        testbed=Testbed(name=device.name, left=device.left, right=device.right),
    )
