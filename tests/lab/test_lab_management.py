"""Management queries to real agents: Net-SNMP's, and the known-answer device's."""

from __future__ import annotations

from pathlib import Path

import pytest
from labtools import needs_lab
from livetools import SHORT, dutperf

from dutperf import packets
from dutperf.packets import read_udp
from dutperf.results import ResultsFile, load_results

pytestmark = [*needs_lab]


def measured(path: Path, lab: str, *options: str) -> ResultsFile:
    done = dutperf(
        "throughput",
        *("--lab", lab, "--management", "--max-rate", "20000"),
        *("--output", str(path), *SHORT, *options),
    )
    assert done.returncode in {0, 1}, done.stderr
    verified = dutperf("verify", str(path))
    assert verified.returncode == 0, verified.stdout + verified.stderr
    return load_results(path)


@pytest.mark.parametrize("ip", ["4", "6"])
@pytest.mark.parametrize("lab", ["linux-router-snmp", "known-answer"])
def test_each_query_is_answered_with_all_values(
    tmp_path: Path, lab: str, ip: str
) -> None:
    results = measured(tmp_path / "run", lab, "--ip", ip)
    (cell,) = results.cells
    count = cell.management
    assert cell.verdict == "pass"
    assert count
    assert count.asked == count.answered >= 1
    assert count.slowest_ns
    assert not any(finding.kind == "unanswered" for finding in cell.findings)
    for trial in results.trials:
        assert sum(port.announced for port in trial.result.ports) >= 1
    if lab == "known-answer":
        the_known_agent_tells_what_it_knows(results)


def the_known_agent_tells_what_it_knows(results: ResultsFile) -> None:
    """Answer n, of the same device: it runs for n seconds, and all counters are n."""
    told = []
    for trial in results.trials:
        for port in trial.result.ports:
            for answer in port.answers:
                datagram = read_udp(bytes.fromhex(answer.packet))
                assert datagram
                response = packets.read_response(datagram.payload)
                assert response
                told.append(list(response.values.values()))
    assert told[0] == [100 * told[0][1]] + 4 * [told[0][1]]
    assert [values[1] for values in told] == [
        told[0][1] + number for number in range(len(told))
    ]


def test_where_nobody_answers_the_result_says_so(tmp_path: Path) -> None:
    results = measured(tmp_path / "run", "linux-router", "--ip", "4")
    (cell,) = results.cells
    assert cell.verdict == "pass"
    assert cell.management
    assert cell.management.answered == 0
    (finding,) = (f for f in cell.findings if f.kind == "unanswered")
    assert "is there an agent" in finding.message
