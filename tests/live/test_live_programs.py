"""Programs of others in a lab: open traffic, measurements, TRex's client."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import snappi
from captures import datagrams, written
from labtools import leftovers, tolerant
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


def test_frames_of_a_capture_are_those_that_the_device_saw(tmp_path: Path) -> None:
    file = written(tmp_path / "a.pcap", datagrams(3, 100))
    asked = {"pcap": str(file), "addresses": 20}
    with (
        Tester(lab="known-answer") as tester,
        tester.traffic(ip=4, direction="both", traffic=asked) as traffic,
    ):
        trial = traffic.trial(2000, 0.5)
    assert [d.sent for d in trial.directions.values()] == [1000, 1000]
    assert trial.received == 2000
    (asked_it,) = [h for h in trial.record.hooks if h.command == ACCOUNT.command]
    for name in trial.directions:
        assert f"{name} foreground: seen 1000, left 1000" in asked_it.output


def test_a_signal_ends_a_trial_of_otg_and_leaves_nothing() -> None:
    command = [sys.executable, "-m", "dutperf", "serve", "--otg", "lab:known-answer"]
    with subprocess.Popen(
        [*command, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        assert server.stdout
        told = iter(server.stdout.readline, "")
        address = next(a for line in told for a in re.findall(r"http://\S+", line))
        api = snappi.api(location=address, verify=False)
        api.set_config(endless(api))
        asked = api.control_state()
        asked.traffic.flow_transmit.state = "start"
        api.set_control_state(asked)
        assert lab.dut_alive("known-answer")
        api._transport._session.close()
        server.send_signal(signal.SIGTERM)
        said, _ = server.communicate(timeout=60)
        assert "Traceback" not in said
    assert not lab.dut_alive("known-answer")
    assert leftovers() == []


def endless(api: Any) -> Any:  # noqa: ANN401
    """A flow from left to right until it is stopped."""
    config = api.config()
    config.ports.port(name="p1", location="left").port(name="p2", location="right")
    flow = config.flows.flow(name="there")[-1]
    flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = "p1", ["p2"]
    _, ip, udp = flow.packet.ethernet().ipv4().udp()
    ip.src.value, ip.dst.value = "198.18.0.2", "198.19.0.2"
    udp.src_port.value, udp.dst_port.value = 1024, 7
    flow.size.fixed = 128
    flow.rate.pps = 1000
    flow.duration.continuous  # noqa: B018 - it is chosen by that
    return config


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
