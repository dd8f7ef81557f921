"""Programs of others in a lab: open traffic, measurements, TRex's client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from labtools import tolerant
from livetools import needs_engine
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from dutperf import lab
from dutperf.adapters.stl import (
    STLClient,
    STLFlowStats,
    STLPktBuilder,
    STLStream,
    STLTXSingleBurst,
)
from dutperf.api import Tester
from dutperf.lab.devices.known_answer import ACCOUNT
from dutperf.run.hook_runs import run_hooks

pytestmark = [*needs_engine, *tolerant]


@pytest.fixture(autouse=True)
def _no_lab_stays() -> Iterator[None]:
    yield
    lab.down(all_=True)


def test_trials_and_a_measurement_of_one_lab(tmp_path: Path) -> None:
    """The lab stays up between them, and the device saw each frame."""
    with Tester(lab="known-answer", results=tmp_path) as tester:
        with tester.traffic(ip=4, frame_size=64, direction="both") as traffic:
            trials = [traffic.trial(2000, 0.5) for _ in range(3)]
        measured = tester.measure(
            "throughput",
            ip=4,
            frame_size=64,
            max_rate_fps=2000,
            trial_duration_s=0.5,
            settle_wait_s=0,
            restabilise_wait_s=0,
            repeats=1,
        )
        assert lab.dut_alive("known-answer")
    assert not lab.dut_alive("known-answer")
    for trial in trials:
        assert trial.verdict != "fail"
        assert trial.sent == trial.received == 2000
        assert all(each.sent == 1000 for each in trial.directions.values())
        (asked,) = [h for h in trial.record.hooks if h.command == ACCOUNT.command]
        assert asked.succeeded
    assert measured.results.complete
    assert measured.report.is_file()


def test_packets_of_trex_arrive_as_they_were_described() -> None:
    """The device is a router: it forwards what is addressed to it, and counts it."""
    packet = Ether() / IP(src="198.18.0.2", dst="198.19.0.2", ttl=9) / UDP(dport=7)
    burst = STLStream(
        packet=STLPktBuilder(pkt=packet / Raw(b"x" * 30)),
        mode=STLTXSingleBurst(total_pkts=1234, pps=5000),
        flow_stats=STLFlowStats(pg_id=3),
    )
    with STLClient(server="lab:known-answer") as client:
        client.add_streams(burst, ports=[0])
        client.start(ports=[0])
        client.wait_on_traffic()
        stats = client.get_stats()
        (hook,) = run_hooks([ACCOUNT], "after_trial")
    assert stats[0]["opackets"] == stats[1]["ipackets"] == 1234
    assert stats[0]["obytes"] == 1234 * len(packet / Raw(b"x" * 30))
    assert stats["flow_stats"][3]["rx_pkts"]["total"] == 1234
    assert "forward foreground: seen 1234, left 1234" in hook.output
