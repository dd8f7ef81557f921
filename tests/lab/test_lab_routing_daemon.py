"""FRR as the device, BIRD beside the tester: OSPF and BGP through its ports."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from labtools import needs_lab
from livetools import SHORT, Running, dutperf

from dutperf import lab
from dutperf.lab.state import StateFile
from dutperf.results import ResultsFile, load_journal, load_results

pytestmark = [*needs_lab]

LAB = "linux-router-frr"
DEAD_S = lab.LABS[LAB].routing.ospf.dead_s


def measured(path: Path, *options: str) -> ResultsFile:
    done = dutperf(
        "throughput",
        *("--lab", LAB, "--networks", "256", "--max-rate", "20000"),
        *("--output", str(path), *SHORT, *options),
    )
    assert done.returncode in {0, 1}, done.stderr
    return load_results(path)


@pytest.mark.parametrize("protocol", ["ospf", "bgp"])
def test_256_networks_are_reached_once_they_were_told(
    tmp_path: Path, protocol: str
) -> None:
    """By each IP version; and nothing is left of it."""
    ips = ("--ip", "4", "--ip", "6")
    results = measured(tmp_path / "run", *ips, "--routes", protocol)
    assert [cell.verdict for cell in results.cells] == ["pass", "pass"]
    for trial in results.trials:
        sides = [(session.port, session.open) for session in trial.routing]
        assert sides == [("left", True), ("right", True)]
        for port in trial.result.ports:
            assert port.slow_path
            assert port.slow_path.lost == 0
    told = {session.ip_version for t in results.trials for session in t.routing}
    assert told == {4, 6}
    for cell in results.cells:
        assert not any("RFC 2544 13" in each.rfc for each in cell.deviations)
        assert not any(finding.kind == "routing_fell" for finding in cell.findings)
    programs = [path.read_text().strip() for path in Path("/proc").glob("[0-9]*/comm")]
    assert not {"bird", "zebra", "ospfd", "ospf6d", "bgpd"} & set(programs)
    assert lab.running() == []


def test_a_device_that_stops_speaking_is_told_of(tmp_path: Path) -> None:
    """Its OSPF daemon stands still for longer than the dead interval, and goes on."""
    path = tmp_path / "run"
    with Running(
        *("pdv", "--lab", LAB, "--ip", "4", "--networks", "256", "--repeats", "1"),
        *("--routes", "ospf", "--direction", "forward", "--rate", "2000"),
        *("--output", str(path), *SHORT, "--trial-duration", "9"),
    ) as running:
        running.await_line("first frames")
        daemon = _process("ospfd")
        os.kill(daemon, signal.SIGSTOP)
        try:
            time.sleep(DEAD_S + 2)
        finally:
            os.kill(daemon, signal.SIGCONT)
        code, said = running.end(within_s=120)
    assert code in {0, 1}, said
    (cell,) = load_results(path).cells
    (finding,) = [each for each in cell.findings if each.kind == "routing_fell"]
    assert "gave up the routing daemon" in finding.message
    sessions = [each for r in load_journal(path).records for each in r.routing]
    assert any(each.falls for each in sessions)


def _process(name: str) -> int:
    """One of the lab's."""
    state = StateFile().read()
    assert state
    (found,) = [
        process.pid
        for process in state.processes
        if Path(f"/proc/{process.pid}/comm").read_text().strip() == name
    ]
    return found
