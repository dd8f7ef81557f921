"""Frames beside the stream on real ports: sent, counted, and as others read them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from livetools import (
    BOTH,
    DEVICE,
    GATEWAYS,
    NO_ODD_FRAMES,
    STALLS,
    Trial,
    codes,
    counting,
    lab_neighbours,
    odd_frames,
    open_rings,
    ref_dut,
    running_engine,
    to_nobody,
)
from readers import needs_tshark, tag_of, tshark
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrHopByHop
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap

from dutperf.engine.client import Engine
from dutperf.protocol.base import IpVersion
from dutperf.protocol.methods import PreviewParams
from dutperf.protocol.result_messages import BesideResult, TrialResult
from dutperf.protocol.trial_messages import TrialRequest

pytestmark = counting(DEVICE)

FRAMES, BESIDE = 1000, 10
BROADCAST = "ff:ff:ff:ff:ff:ff"
ROUTING = {
    "left": ["198.18.0.1", "2001:2::1"],
    "right": ["198.19.0.1", "2001:2:0:8000::1"],
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("beside")) as it:
        yield it


def request(
    ip: IpVersion,
    trial_id: int = 1,
    mix: tuple[int, int] = (99, 100),
    **keys: Any,  # noqa: ANN401 - Trial's
) -> TrialRequest:
    """Broadcast frames of IPv4, hop-by-hop frames of IPv6; 1 % of a thousand."""
    headers = {"dst_mac": BROADCAST} if ip == 4 else {"ipv6_headers": ["hop-by-hop"]}
    return with_beside(ip, trial_id, mix, headers, **keys)


def flood(
    ip: IpVersion,
    trial_id: int = 1,
    mix: tuple[int, int] = (99, 100),
    **keys: Any,  # noqa: ANN401 - Trial's
) -> TrialRequest:
    """SYNs, each from another port."""
    size = [74 if ip == 4 else 94]
    ports = {"field": "src_port", "width": 16, "min": 1024, "max": 65535}
    syn = {"syn": True, "frame_sizes": size, "received_frame_sizes": size}
    return with_beside(ip, trial_id, mix, syn | {"vary": [ports]}, **keys)


def with_beside(
    ip: IpVersion,
    trial_id: int,
    mix: tuple[int, int],
    headers: dict[str, Any],
    **keys: Any,  # noqa: ANN401 - Trial's
) -> TrialRequest:
    given = {"size": 64 if ip == 4 else 92, "fps": FRAMES * 10, "ms": 100}
    data = Trial(ip, **given | keys).request(trial_id).model_dump()
    for way in data["directions"]:
        (stream,) = way["streams"]
        own = {"id": stream["id"] + 2, "name": "beside"}
        way["streams"] = [stream, stream | own | headers]
        way["mix"] = {"foreground": mix[0], "of": mix[1]}
    return TrialRequest.model_validate(data)


def stream_counts(result: TrialResult) -> list[tuple[int, int, int]]:
    """Of each direction's only stream: sent, received, lost."""
    found = []
    for way in result.directions:
        (stream,) = way.streams
        found.append((stream.sent, stream.received, stream.lost))
    return found


def beside(result: TrialResult) -> list[BesideResult | None]:
    return [way.beside for way in result.directions]


ALL = (FRAMES - BESIDE, FRAMES - BESIDE, 0)


@pytest.mark.parametrize("of", [request, flood])
@pytest.mark.parametrize("ip", [4, 6])
def test_on_a_wire_all_come_and_are_counted_apart(
    engine: Engine, ip: IpVersion, of: Callable[[IpVersion], TrialRequest]
) -> None:
    open_rings(engine)
    result = engine.measure(of(ip))
    assert codes(result) <= STALLS
    assert stream_counts(result) == [ALL, ALL]
    came = BesideResult(intended=BESIDE, sent=BESIDE, received=BESIDE)
    assert beside(result) == [came, came]
    assert odd_frames(result) == NO_ODD_FRAMES


def test_a_router_forwards_no_broadcast_and_passes(engine: Engine) -> None:
    """It drops what is not for its MAC address, and says so."""
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short), {"routing": ROUTING}) as device,
    ):
        engine.open_ports(device.ports())
        engine.set_neighbours(lab_neighbours())
        versions: tuple[IpVersion, ...] = (4, 6)
        for number, ip in enumerate(versions, 1):
            result = engine.measure(request(ip, number, hops=GATEWAYS))
            assert codes(result) <= STALLS
            assert stream_counts(result) == [ALL, ALL]
            ways = device.account(number).directions
            for way in result.directions:
                its = ways[way.name].background
                assert way.beside
                assert (way.beside.sent, way.beside.received) == (its.seen, its.left)
                assert its.left == (0 if ip == 4 else BESIDE)
                assert its.dropped_by_routing == BESIDE - its.left


@pytest.mark.parametrize("ip", [4, 6])
def test_of_syns_those_are_counted_that_came_each_once(
    engine: Engine, ip: IpVersion
) -> None:
    rules = [
        {"match": "other", "every": 10, "do": "drop"},
        {"match": "other", "every": 10, "do": "duplicate"},
    ]
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short), {"forward": {"rules": rules}}) as device,
    ):
        engine.open_ports(device.ports())
        trial = flood(ip, mix=(1, 2), directions=["forward"])
        result = engine.measure(to_nobody(trial))
    assert codes(result) <= STALLS
    assert stream_counts(result) == [(500, 500, 0)]
    assert beside(result) == [BesideResult(intended=500, sent=500, received=450)]
    assert {port.foreign for port in result.ports} == {0}


def test_a_trial_is_judged_and_ended_by_the_stream_alone(engine: Engine) -> None:
    """Half of the frames are beside it, and none of these comes; then it loses some."""
    lost = {"match": "background", "do": "drop"}
    late_loss = {"match": "foreground", "when": {"from_ns": 10**8, "to_ns": 2 * 10**8}}
    keys: dict[str, Any] = {"mix": (1, 2), "fps": 1000, "ms": 1500}
    extra = {"stop_when_lost": True, "residual_wait_ns": 2 * 10**8}
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short), {"forward": {"rules": [lost]}}) as device,
    ):
        engine.open_ports(device.ports())
        open_neighbours = lab_neighbours()
        device.client.configure({"routing": ROUTING, "forward": {"rules": [lost]}})
        engine.set_neighbours(open_neighbours)
        result = engine.measure(
            request(4, 1, hops=GATEWAYS, extra=extra, directions=["forward"], **keys)
        )
        assert codes(result) <= STALLS
        assert not result.ended_early
        assert stream_counts(result) == [(750, 750, 0)]
        assert beside(result) == [BesideResult(intended=750, sent=750, received=0)]
        device.client.configure(
            {"forward": {"rules": [lost, late_loss | {"do": "drop"}]}}
        )
        result = engine.measure(
            request(4, 2, hops=GATEWAYS, extra=extra, directions=["forward"], **keys)
        )
        assert result.ended_early
        assert "frames_lost" in codes(result)
        ((sent, received, missing),) = stream_counts(result)
        assert missing == sent - received > 40


def preview(engine: Engine, trial: TrialRequest, path: Path) -> list[bytes]:
    open_rings(engine)
    engine.preview(PreviewParams(trial=trial, count=300, path=str(path)))
    return [bytes(packet) for packet in rdpcap(str(path))]


@pytest.mark.parametrize("ip", [4, 6])
def test_scapy_finds_every_hundredth_and_nothing_else_changed(
    engine: Engine, tmp_path: Path, ip: IpVersion
) -> None:
    frames = preview(engine, request(ip), tmp_path / "frames.pcap")
    for way in (frames[:300], frames[300:]):
        packets = [Ether(frame) for frame in way]
        is_beside = [
            packet.dst == BROADCAST if ip == 4 else IPv6ExtHdrHopByHop in packet
            for packet in packets
        ]
        assert [n for n, it in enumerate(is_beside) if it] == [1, 101, 201]
        stream, other = packets[0], packets[1]
        layer = IP if ip == 4 else IPv6
        assert (other[layer].src, other[layer].dst) == (
            stream[layer].src,
            stream[layer].dst,
        )
        assert (other[UDP].sport, other[UDP].dport) == (
            stream[UDP].sport,
            stream[UDP].dport,
        )
        assert {len(frame) for frame in way} == {len(way[0])}
        assert {tag_of(way[n]).sequence for n in (1, 101, 201)} == {0, 1, 2}


@needs_tshark
@pytest.mark.parametrize("ip", [4, 6])
def test_tshark_finds_syns_without_data(
    engine: Engine, tmp_path: Path, ip: IpVersion
) -> None:
    path = tmp_path / "frames.pcap"
    preview(engine, flood(ip), path)
    columns = ["tcp.flags", "tcp.len", "tcp.checksum.status", "_ws.malformed"]
    rows = tshark(path, [*columns, "tcp.srcport"])
    assert [n for n, row in enumerate(rows[:300]) if row["tcp.flags"]] == [1, 101, 201]
    syns = [row for row in rows if row["tcp.flags"]]
    assert {tuple(row[c] for c in columns) for row in syns} == {
        ("0x0002", "0", "1", "")
    }
    assert len({row["tcp.srcport"] for row in syns}) > 1


@needs_tshark
@pytest.mark.parametrize("ip", [4, 6])
def test_tshark_finds_them_whole(engine: Engine, tmp_path: Path, ip: IpVersion) -> None:
    path = tmp_path / "frames.pcap"
    preview(engine, request(ip), path)
    own = "eth.dst" if ip == 4 else "ipv6.hopopts.nxt"
    columns = [own, "udp.checksum.status", "_ws.malformed"]
    rows = tshark(path, columns)
    found = [
        number
        for number, row in enumerate(rows)
        if row[own] == (BROADCAST if ip == 4 else "17")
    ]
    assert found == [1, 101, 201, 301, 401, 501]
    assert {row["udp.checksum.status"] for row in rows} == {"1"}
    assert {row["_ws.malformed"] for row in rows} == {""}
    assert len(rows) == 300 * len(BOTH)
