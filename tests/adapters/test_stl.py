"""TRex's stateless interface over a simulated device: scripts, and what is refused."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from dutperf.adapters import stl
from dutperf.adapters.stl import (
    STLVM,
    STLClient,
    STLError,
    STLFlowLatencyStats,
    STLFlowStats,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLTXSingleBurst,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmWrFlowVar,
)
from dutperf.protocol.trial_messages import TrialRequest

EXAMPLE = Path(__file__).parents[2] / "examples" / "python" / "stl_udp_both_ways.py"
FPS = 120_000


def udp(size: int = 60, **ip: Any) -> Packet:  # noqa: ANN401 - of IP
    """Of so many bytes without FCS."""
    head = (
        Ether() / IP(src="198.18.0.2", dst="198.19.0.2", **ip) / UDP(sport=1, dport=7)
    )
    return head / Raw(b"x" * (size - len(head)))


def stream(
    pkt: object = None,
    *,
    vm: STLScVmRaw | list[Any] | None = None,
    **keys: Any,  # noqa: ANN401 - as STLStream
) -> STLStream:
    keys.setdefault("mode", STLTXCont(pps=1000))
    return STLStream(
        packet=STLPktBuilder(pkt=udp() if pkt is None else pkt, vm=vm), **keys
    )


@pytest.fixture
def client() -> Iterator[STLClient]:
    with STLClient(server=f"simulated:{FPS}") as opened:
        opened.reset(ports=[0, 1])
        yield opened


def request(client: STLClient) -> TrialRequest:
    return client._background.trials[-1].record.request


def started(client: STLClient, **keys: Any) -> None:  # noqa: ANN401
    client.start(**keys)
    client.wait_on_traffic()


def run(client: STLClient, *streams: STLStream, **keys: Any) -> dict[Any, Any]:  # noqa: ANN401
    client.add_streams(list(streams), ports=[0])
    client.start(ports=[0], **{"duration": 1} | keys)
    client.wait_on_traffic(ports=[0])
    found: dict[Any, Any] = client.get_stats()
    return found


def test_packets_of_both_ports_are_counted(client: STLClient) -> None:
    client.add_streams(stream(), ports=[0, 1])
    client.start(mult="10kpps", duration=2)
    client.wait_on_traffic(timeout=60)
    assert not client.is_traffic_active()
    stats = client.get_stats()
    for port in (0, 1):
        assert stats[port]["opackets"] == stats[port]["ipackets"] == 20_000
        assert stats[port]["obytes"] == 20_000 * 60
        assert stats[port]["tx_pps"] == 10_000
    assert stats["total"]["opackets"] == 40_000
    client.clear_stats()
    assert client.get_stats()["total"]["opackets"] == 0


def test_what_the_device_loses_is_the_difference(client: STLClient) -> None:
    stats = run(client, stream(), mult=f"{2 * FPS}pps")
    assert stats[0]["opackets"] == 2 * FPS
    assert stats[1]["ipackets"] == pytest.approx(FPS, rel=0.01)


@pytest.mark.parametrize(
    ("mult", "rate_fps"),
    [
        ("1", 1000),
        (2, 2000),
        ("1.5", 1500),
        ("7kpps", 7000),
        ("0.01mpps", 10_000),
        ("1%", 148_810),
        ("84mbpsl1", 125_000),
        ("6.4mbps", 12_500),
    ],
)
def test_a_rate_is_what_mult_says(client: STLClient, mult: str, rate_fps: int) -> None:
    run(client, stream(), mult=mult)
    assert request(client).directions[0].rate_fps == rate_fps


def test_a_packet_stays_as_it_is_but_its_payload(client: STLClient) -> None:
    pkt = udp(200, ttl=9, tos=46 << 2, flags="DF")
    pkt[Ether].dst = "02:00:00:00:00:09"
    run(client, stream(pkt))
    (sent,) = request(client).directions[0].streams
    assert (sent.src_ip, sent.dst_ip) == ("198.18.0.2", "198.19.0.2")
    assert (sent.src_port, sent.dst_port, sent.ttl) == (1, 7, 9)
    assert (sent.dscp, sent.df, sent.frame_sizes) == (46, True, [204])
    assert sent.dst_mac == "02:00:00:00:00:09"
    assert sent.src_mac is None


def test_ipv6_and_bytes_are_packets_too(client: STLClient) -> None:
    pkt = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IPv6(
        src="2001:2::2", dst="2001:2:0:8000::2", hlim=7, tc=184, fl=5
    )
    run(client, stream(bytes(pkt / UDP(sport=5, dport=6) / Raw(b"x" * 18))))
    (sent,) = request(client).directions[0].streams
    assert (sent.ip_version, sent.ttl, sent.dscp, sent.flow_label) == (6, 7, 46, 5)
    assert sent.frame_sizes == [84]
    assert sent.src_mac == "02:00:00:00:00:01"


def test_a_field_engine_varies_whole_ranges(client: STLClient) -> None:
    """16 bits of ports, and addresses up and down."""
    vm = STLScVmRaw(
        [
            STLVmFlowVar("port", min_value=0, max_value=65535, size=2, op="random"),
            STLVmFlowVar(
                "host", min_value="198.18.0.2", max_value="198.18.0.101", op="inc"
            ),
            STLVmWrFlowVar("port", "UDP.sport"),
            STLVmWrFlowVar("host", "IP.src"),
            STLVmFixIpv4("IP"),
        ]
    )
    run(client, stream(vm=vm))
    (sent,) = request(client).directions[0].streams
    port, host = sent.vary
    assert (port.field, port.width, port.min, port.max) == ("src_port", 16, 0, 65535)
    assert (port.mode, host.mode, host.size) == ("random", "increasing", 100)
    assert host.min == 0xC6120002


def test_a_field_engine_step_by_step_is_the_same(client: STLClient) -> None:
    vm = STLVM()
    vm.var("low", min_value=1, max_value=50, size=1, op="dec")
    vm.write("low", "IP.dst", offset_fixup=3)
    vm.fix_chksum()
    run(client, stream(vm=vm))
    (sent,) = request(client).directions[0].streams
    (low,) = sent.vary
    assert (low.field, low.offset, low.width, low.mode) == (
        "dst_ip",
        24,
        8,
        "decreasing",
    )


def test_streams_that_differ_in_size_are_a_mix(client: STLClient) -> None:
    """The simple IMIX of TRex's examples: 7, 4 and 1 of twelve."""
    sizes = [
        stream(udp(size), mode=STLTXCont(pps=pps))
        for size, pps in ((60, 28), (590, 16), (1514, 4))
    ]
    run(client, *sizes, mult="1200pps")
    (sent,) = request(client).directions[0].streams
    assert sorted(sent.frame_sizes) == [64] * 7 + [594] * 4 + [1518]
    assert sent.frame_sizes[:3] != [64, 64, 64]
    assert request(client).directions[0].rate_fps == 1200


def test_two_streams_are_counted_apart(client: STLClient) -> None:
    far = Ether() / IP(src="198.18.0.2", dst="198.19.0.3") / UDP() / Raw(b"x" * 18)
    stats = run(
        client,
        stream(mode=STLTXCont(pps=3000), flow_stats=STLFlowStats(pg_id=5)),
        stream(far, mode=STLTXCont(pps=1000), flow_stats=STLFlowLatencyStats(pg_id=7)),
    )
    flows = stats["flow_stats"]
    assert flows[5]["tx_pkts"] == {0: 3000, 1: 0, "total": 3000}
    assert flows[7]["rx_pkts"] == {0: 0, 1: 1000, "total": 1000}
    assert set(stats["latency"]) == {7}
    assert stats["latency"][7]["err_cntrs"] == {
        "dropped": 0,
        "out_of_order": 0,
        "dup": 0,
    }
    assert stats["latency"][7]["latency"]["total_max"] == 20.0
    assert set(client.get_pgid_stats([5])["flow_stats"]) == {5}


@pytest.mark.parametrize("total", [1, 12_345])
def test_a_burst_has_so_many_packets(client: STLClient, total: int) -> None:
    burst = STLTXSingleBurst(total_pkts=total, pps=5000)
    stats = run(client, stream(mode=burst), duration=-1)
    assert stats[0]["opackets"] == stats[1]["ipackets"] == total


def refusals() -> dict[str, tuple[Any, str]]:
    tagged = Ether() / Dot1Q(vlan=5) / IP() / UDP() / Raw(b"x" * 18)
    return {
        "tcp": (lambda: stream(Ether() / IP() / TCP() / Raw(b"x" * 40)), "protocol 6"),
        "vlan": (lambda: stream(tagged), "type 0x8100"),
        "short": (lambda: stream(Ether() / IP() / UDP()), "0 bytes of payload"),
        "cut": (lambda: stream(b"12345"), "ends before"),
        "object": (lambda: stream(object()), "Scapy's or bytes"),
        "none": (STLStream, "without a packet"),
        "ecn": (lambda: stream(udp(tos=1)), "ECN"),
        "next": (lambda: stream(next="other"), r"next='other'"),
        "isg": (lambda: STLTXCont(pps=1, percentage=2), "one rate"),
        "burst": (lambda: STLTXSingleBurst(total_pkts=0), "total_pkts=0"),
    }


@pytest.mark.parametrize("what", refusals())
def test_what_cannot_be_done_exactly_is_named(what: str) -> None:
    make, told = refusals()[what]
    with pytest.raises(STLError, match=told):
        make()


@pytest.mark.parametrize(
    ("commands", "told"),
    [
        ([STLVmWrFlowVar("x", "IP.src")], "has no 'x'"),
        ([STLVmFlowVar("x"), STLVmWrFlowVar("x", "IP.ttl")], "writes to 'IP.ttl'"),
        ([STLVmFlowVar("x"), STLVmWrFlowVar("x", 26)], "writes to 26"),
        ([STLVmFlowVar("x"), STLVmWrFlowVar("x", "IPv6.src")], "another IP version"),
        ([STLVmFlowVar("x"), STLVmWrFlowVar("x", "UDP.sport")], "more than it has"),
        ([STLVmFlowVar("x", step=2), STLVmWrFlowVar("x", "IP.src")], "a step"),
        (
            [STLVmFlowVar("x", op=cast("Any", "sub")), STLVmWrFlowVar("x", "IP.src")],
            "'sub'",
        ),
        (
            [STLVmFlowVar("x", max_value=256, size=1), STLVmWrFlowVar("x", "IP.src")],
            "256",
        ),
        ([STLVmFlowVar("x"), STLVmWrFlowVar("x", "IP.src", add_val=1)], "add_val"),
        ([object()], "object is not there"),
    ],
)
def test_a_field_engine_that_is_another_is_named(
    client: STLClient, commands: list[Any], told: str
) -> None:
    client.add_streams(stream(vm=commands), ports=[0])
    with pytest.raises(STLError, match=told):
        client.start(ports=[0], duration=1)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"mult": "fast"}, "mult 'fast'"),
        ({"mult": "0"}, "mult '0'"),
        ({"mult": "1", "total": True}, "total=True"),
        ({"mult": "200%"}, "is more than"),
        ({"ports": [2]}, "port 2"),
        ({"ports": [1]}, "no port has streams"),
    ],
)
def test_a_start_that_cannot_be_is_named_and_sends_nothing(
    client: STLClient, keys: dict[str, Any], told: str
) -> None:
    client.add_streams(stream(), ports=[0])
    with pytest.raises(STLError, match=told):
        started(client, **{"duration": 1} | keys)
    assert client.get_stats()["total"]["opackets"] == 0


def test_mixes_and_bursts_that_are_none_are_named(client: STLClient) -> None:
    three = [stream(udp(ttl=n), mode=STLTXCont(pps=1000)) for n in (1, 2, 3)]
    with pytest.raises(STLError, match="3 streams of a port"):
        run(client, *three)
    client.reset()
    counted = [stream(udp(n), flow_stats=STLFlowStats(n)) for n in (60, 100)]
    with pytest.raises(STLError, match="differ in size only"):
        run(client, *counted)
    client.reset()
    odd = [
        stream(udp(), mode=STLTXCont(pps=1000)),
        stream(udp(90), mode=STLTXCont(pps=1)),
    ]
    with pytest.raises(STLError, match="a mix of 1001"):
        run(client, *odd)
    client.reset()
    with pytest.raises(STLError, match="beside another stream"):
        run(client, stream(mode=STLTXSingleBurst(5, pps=1000)), stream(udp(90)))


def test_what_trex_has_and_this_has_not_is_named(client: STLClient) -> None:
    assert not hasattr(client, "push_pcap")
    with pytest.raises(STLError, match="push_pcap is not there"):
        client.push_pcap("x.pcap")  # type: ignore[operator]


@pytest.mark.parametrize(
    ("server", "told"),
    [
        ("", "where to measure"),
        ("simulated:fast", "server"),
        ("lab:x", "'x'"),
    ],
)
def test_a_place_that_is_none_is_named(server: str, told: str) -> None:
    with pytest.raises(STLError, match=told), STLClient(server=server):
        pass


def test_the_example_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "lost 0" in capsys.readouterr().out


def test_all_names_are_there() -> None:
    assert all(hasattr(stl, name) for name in stl.__all__)


def test_counts_are_of_no_more_trials_than_can_be_kept(
    client: STLClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dutperf.adapters.in_background.MOST_TRIALS", 2)
    client.add_streams(stream(mode=STLTXSingleBurst(pps=1000, total_pkts=10)), ports=0)
    for count in (10, 20):
        started(client, ports=0)
        assert client.get_stats()[0]["opackets"] == count
    with pytest.raises(STLError, match="2 trials are counted together"):
        client.start(ports=0)
    assert client.get_stats()[0]["opackets"] == 20
    client.clear_stats()
    started(client, ports=0)
    assert client.get_stats()[0]["opackets"] == 10
