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
from dutperf.adapters.netconf.traffic import ANALYZER, GENERATOR, Sides
from dutperf.adapters.stl import (
    STLClient,
    STLFlowStats,
    STLPktBuilder,
    STLStream,
    STLTXSingleBurst,
)
from dutperf.api import Tester
from dutperf.config.campaign import LabKeys
from dutperf.lab.devices.known_answer import ACCOUNT
from dutperf.run.hook_runs import run_hooks

NO_MAC = "00:00:00:00:00:00"

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


def test_a_netconf_analyzer_counts_what_the_device_let_through() -> None:
    """Bursts of seven frames; the device drops each second frame, and says so."""
    packet = Ether(src=NO_MAC, dst=NO_MAC) / IP(src="198.18.0.2", dst="198.19.0.2")
    data = bytes(packet / UDP(sport=1024, dport=7) / Raw(b"x" * 82)).hex().upper()
    drop = {"forward": {"rules": [{"every": 2, "do": "drop"}]}}
    lab.up(LabKeys(name="known-answer", behaviour=drop))
    with Tester(lab="known-answer") as tester:
        sides = Sides(tester)
        left = {
            "testframe-type": "dutperf-testframe:testframe",
            "frame-size": 128,
            "frame-data": data,
            "interframe-gap": 50_000,
            "frames-per-burst": 7,
            "interburst-gap": 1_000_000,
            "total-frames": "1400",
        }
        sides.apply({}, interfaces(left={GENERATOR: left}, right={ANALYZER: {}}))
        sides.join()
        counts = sides.state()["right"]
        (hook,) = run_hooks([ACCOUNT], "after_trial")
    assert "forward foreground: seen 1400, left 700" in hook.output
    assert (counts["pkts"], counts["octets"]) == ("700", str(700 * 128))
    stats = counts["testframe-stats"]
    assert stats["sequence-errors"] in ("699", "700")  # the last one may be missing
    assert stats["latency"]["samples"] == "700"
    why = sides.why_unknown()
    assert not why or why.startswith("other programs used the device's CPU")


def interfaces(**sides: dict[str, object]) -> dict[str, object]:
    each = [
        {"name": name, "type": "iana-if-type:ethernetCsmacd", **told}
        for name, told in sides.items()
    ]
    return {"ietf-interfaces:interfaces": {"interface": each}}
