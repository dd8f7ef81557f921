"""A router that knows no network beyond its links but what the tester tells it."""

from __future__ import annotations

from pathlib import Path

import pytest
from labtools import needs_lab
from livetools import SHORT, dutperf

from dutperf.results import ResultsFile, load_results

pytestmark = [*needs_lab]


def measured(path: Path, ip: str, *options: str) -> ResultsFile:
    done = dutperf(
        "throughput",
        *("--lab", "linux-router-rip", "--ip", ip, "--networks", "256"),
        *("--max-rate", "20000", "--output", str(path), *SHORT, *options),
    )
    assert done.returncode in {0, 1}, done.stderr
    return load_results(path)


@pytest.mark.parametrize(("ip", "packets"), [("4", 11), ("6", 5)])
def test_256_networks_are_reached_once_they_were_told(
    tmp_path: Path, ip: str, packets: int
) -> None:
    results = measured(tmp_path / "told", ip, "--routes", "rip")
    (cell,) = results.cells
    assert cell.verdict == "pass"
    assert all(
        port.announced == packets
        for trial in results.trials
        for port in trial.result.ports
        if trial.role != "probe"
    )
    rules = {each.requirement for each in cell.deviations}
    assert not any("routing update with all networks" in rule for rule in rules)


@pytest.mark.parametrize(("ip", "said"), [("4", (3, 0)), ("6", (1, 0))])
def test_without_they_are_not_and_the_router_says_so(
    tmp_path: Path, ip: str, said: tuple[int, int]
) -> None:
    results = measured(tmp_path / "untold", ip)
    (cell,) = results.cells
    assert cell.median is None
    assert any(
        (message.type, message.code) == said
        for trial in results.trials
        for port in trial.result.ports
        for message in port.icmp
    )


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_changing_routes_of_others_cost_no_frame(
    tmp_path: Path, direction: str
) -> None:
    results = measured(
        tmp_path / "changes",
        "4",
        *("--routes", "rip", "--route-changes", "--direction", direction),
    )
    (cell,) = results.cells
    assert cell.verdict == "pass"
    sides = {"forward": ("right", "left"), "reverse": ("left", "right")}[direction]
    for trial in results.trials:
        announced = {str(p.name): p.announced for p in trial.result.ports}
        assert (announced[sides[0]], announced[sides[1]]) == (11, 1)
