"""Options of the traffic, and the frames command, on a FakeEngine."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dutperf.api import places
from dutperf.cli import app, run_command
from dutperf.config import Testbed
from dutperf.protocol.stream_messages import StreamRequest
from dutperf.run.engine_session import EngineStarter, Notify
from dutperf.simulation.fake_engine import FakeEngine, perfect

TESTBED = """\
name: simulated
left:
  port: {interface: left}
  ipv4: {address: 198.18.0.2, gateway: 198.18.0.1, virtual: 198.18.9.2}
  ipv6: {address: "2001:2::2", gateway: "2001:2::1"}
right:
  port: {interface: right}
  ipv4: {address: 198.19.0.2, gateway: 198.19.0.1}
  ipv6: {address: "2001:2:0:1::2", gateway: "2001:2:0:1::1", virtual: "2001:2:0:9::2"}
"""
QUICK = ["--restabilise-wait", "0", "--max-rate", "1000", "--output", "run"]

Run = Callable[..., int]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    simulated = FakeEngine(perfect())

    def prepare(_testbed: Testbed, _notify: Notify) -> EngineStarter:
        return lambda _log_path: contextlib.nullcontext(simulated)

    monkeypatch.chdir(tmp_path)
    Path("testbed.yaml").write_text(TESTBED)
    monkeypatch.setattr(places, "prepare_engine", prepare)
    monkeypatch.setattr(run_command, "prepare_engine", prepare)
    return simulated


def throughput(*options: str) -> int:
    return app.run(["throughput", "testbed.yaml", *QUICK, *options])


def parameters() -> dict[str, Any]:
    results = json.loads(Path("run/results.json").read_text())
    found: dict[str, Any] = results["cells"][0]["parameters"]
    return found


def foreground(engine: FakeEngine) -> StreamRequest:
    return engine.trials[0].directions[0].streams[0]


def test_ip_versions_are_given_for_each_side(engine: FakeEngine) -> None:
    assert throughput("--ip", "6-4") == 0
    sent = [d.streams[0].ip_version for d in engine.trials[0].directions]
    assert sent == [6, 4]


def test_every_traffic_option_reaches_the_trial(engine: FakeEngine) -> None:
    options = [
        *("--ip", "6", "--imix", "abg", "--mix", "2/3", "--background-ip", "4"),
        *("--source-ports", "increasing:5-9", "--destination-ports", "fixed:53"),
        *("--addresses", "100", "--networks", "256", "--ttl", "64", "--dscp", "46"),
        *("--df", "--flow-label", "random", "--mac", "random"),
    ]
    assert throughput(*options) == 0
    stream = foreground(engine)
    assert stream.frame_sizes == [84, 128, 1518]
    assert (stream.ttl, stream.dscp, stream.dst_port) == (64, 46, 53)
    fields = {v.field for v in stream.vary}
    assert fields == {"src_ip", "dst_ip", "src_port", "src_mac", "flow_label"}
    background = engine.trials[0].directions[0].streams[1]
    assert (background.ip_version, background.df) == (4, True)
    assert engine.trials[0].directions[0].mix is not None


def test_the_traffic_is_in_the_results_in_words(engine: FakeEngine) -> None:
    throughput("--ip", "6-4", "--mix", "90/10", "--source-ports", "fixed:7")
    found = parameters()
    assert engine.trials
    assert (found["ip"], found["ip_left"], found["ip_right"]) == ("6-4", 6, 4)
    assert found["frame_sizes"] == "84/64 (IPv6/IPv4)"
    assert found["ports"] == "source fixed 7, destination random 1-49151"
    assert found["mix"] == "90/10, background IPv6"
    assert (found["seed"], found["generator"]) == (1, "splitmix64-counter-3")


@pytest.mark.parametrize(
    ("ip", "option", "words"),
    [
        ("4", "--broadcast", "1 % broadcast frames"),
        ("6", "--hop-by-hop", "1 % hop-by-hop frames"),
    ],
)
def test_frames_beside_the_stream_are_told_wherever_the_result_is(
    engine: FakeEngine,
    capsys: pytest.CaptureFixture[str],
    ip: str,
    option: str,
    words: str,
) -> None:
    assert throughput("--ip", ip, option, "1") == 0
    told = capsys.readouterr().out
    assert f"{words}," in told or f"{words} " in told
    assert f"{words} beside the stream: " in told
    assert parameters()["beside"] == words
    assert [s.name for s in engine.trials[0].directions[0].streams] == [
        "foreground",
        "beside",
    ]
    results = json.loads(Path("run/results.json").read_text())
    (cell,) = results["cells"]
    assert [each["direction"] for each in cell["beside"]] == ["forward", "reverse"]
    assert words in cell["quantity"]


def test_fixed_ports_are_a_deviation(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    throughput("--ip", "4", "--source-ports", "fixed", "--verbose")
    assert engine.trials
    told = "deviation from RFC 4814 4.5 (SHOULD): random source ports 1024-65535: fixed"
    assert told in capsys.readouterr().out


def test_the_summary_names_an_imix_and_both_sizes(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    throughput("--ip", "6", "--imix", "aaafg")
    assert "IMIX - aaafg" in capsys.readouterr().out
    assert engine.trials


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--mix", "80/20"], "error: --mix 80/20 is no mix by name; for 80 %"),
        (["--networks", "300"], "error: --networks must be at most 256, not 300"),
        (["--addresses", "1"], "error: --addresses must be at least 2, not 1"),
        (["--imix", "aj"], "error: --imix the 16000-byte frames of letter j"),
        (["--source-ports", "any"], "error: --source-ports must be like random"),
        (["--source-ports", "random:9-5"], "error: --source-ports the range is empty"),
        (["--ttl", "256"], "error: --ttl must be at most 255"),
        (["--flow-label", "x"], "error: --flow-label must be 0 to 1048575"),
        (["--mac", "x"], "'x' is not one of"),
        (["--ip", "6-6"], "error: --ip must be 4, 6, '6-4' or '4-6', not '6-6'"),
        (
            ["--ip", "4", "--addresses", "300", "--networks", "256"],
            "traffic.networks.right: the networks take bits 16 to 23",
        ),
        (["--ip", "4-6"], "right.ipv4.virtual"),
        (["--ip", "6", "--broadcast", "1"], "IPv6 has no broadcast"),
        (["--ip", "4", "--hop-by-hop", "1"], "IPv4 has no hop-by-hop header"),
        (["--broadcast", "60"], "error: --broadcast must be at most 50"),
        (["--broadcast", "1", "--mix", "90/10"], "give mix or broadcast_percent"),
    ],
)
def test_wrong_traffic_exits_with_2_before_a_frame_is_sent(
    engine: FakeEngine,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    told: str,
) -> None:
    assert throughput(*options) == 2
    captured = capsys.readouterr().err
    assert told in " ".join(captured.split())
    assert captured.count("must be at most 256") <= 1
    assert engine.trials == []


def test_frames_are_written_without_a_trial(
    engine: FakeEngine,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    code = app.run(
        [
            *("frames", "testbed.yaml", "--ip", "6-4", "--count", "5"),
            *("--rate", "100", "--pcap", "x.pcap", "--networks", "256"),
        ]
    )
    assert code == 0
    assert engine.trials == []
    [asked] = engine.previews
    assert asked.path == str(Path.cwd() / "x.pcap")
    assert asked.trial.directions[0].rate_fps == 100
    told = capsys.readouterr()
    assert told.out == "10 frames of throughput-ip6-4-84-both-net256 are in x.pcap\n"
    assert "next hops: 2001:2::1 on the left answered in" in told.err


@pytest.mark.parametrize("where", [["testbed.yaml"], ["--lab", "linux-router"]])
def test_without_root_what_only_ports_and_neighbours_know_is_made_up(
    engine: FakeEngine,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    where: list[str],
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert app.run(["frames", *where, "--ip", "4", "--pcap", "x.pcap"]) == 0
    [asked] = engine.previews
    forward, reverse = (d.streams[0] for d in asked.trial.directions)
    assert (forward.dst_mac, reverse.dst_mac) == (
        "02:00:00:00:01:01",
        "02:00:00:00:01:02",
    )
    told = " ".join(capsys.readouterr().err.split())
    assert "without root no port is opened and no neighbour asked" in told
    assert "next hop on the left, 02:00:00:00:01:01" in told
    assert "answered in" not in told


def test_frames_need_a_file_to_go_to(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["frames", "testbed.yaml", "--pcap", "gone/x.pcap"]) == 2
    assert "there is no directory gone" in capsys.readouterr().err
    assert app.run(["frames", "testbed.yaml"]) == 2
    assert engine.previews == []


def test_numbers_of_flows_are_compared_in_a_table(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    flows = ["--flows", "1", "--flows", "16", "--flows-by", "addresses"]
    assert throughput("--ip", "4", *flows) == 0
    fields = engine.trials[-1].directions[0].streams[0].vary
    assert [field.size for field in fields] == [16, 16]
    out = " ".join(capsys.readouterr().out.split())
    assert "overload scalability (RFC 8219 10.2.1)" in out
    assert "│ 1 │ >= 1,000 │ │ │ 16 │ >= 1,000 │ │" in out
    assert "flows differ in source and destination addresses" in out
