"""What the frames look like: in previews, and on the device's own interfaces.

Readers that share no code with the engine look at them: see ``readers``.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from labtools import LAB_GROUP, Wire
from livetools import (
    DRIVERS,
    ENDS,
    GATEWAYS,
    MACS,
    Trial,
    counting,
    kept_lab,
    lab_engine,
    measured_once,
    open_rings,
    running_engine,
)
from planning import spec_with
from readers import (
    MAGIC,
    TAG,
    Tag,
    needs_tshark,
    tag_of,
    tshark,
    with_good_checksums,
    without_stamp,
)
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet
from scapy.utils import rdpcap

from dutperf.config import Campaign, Testbed, expand
from dutperf.engine.client import Engine
from dutperf.protocol.base import Driver, IpVersion
from dutperf.protocol.methods import PreviewParams
from dutperf.protocol.stream_messages import StreamRequest
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.run.trial_request import trial_request
from tools.calibrate.truth import by_result as counts

pytestmark = counting(LAB_GROUP)

KINDS: list[tuple[IpVersion, int]] = [
    *((4, size) for size in (64, 65, 128, 1001, 1518)),
    *((6, size) for size in (84, 85, 128, 1001, 1518)),
]
COUNT = 20


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("frames")) as it:
        open_rings(it)
        yield it


def preview(
    engine: Engine, trial: Trial, path: Path, trial_id: int = 515
) -> list[bytes]:
    """The first frames of both directions, forward ones first."""
    params = PreviewParams(trial=trial.request(trial_id), count=COUNT, path=str(path))
    assert engine.preview(params).frames == 2 * COUNT
    return [bytes(packet) for packet in rdpcap(str(path))]


@pytest.mark.parametrize(("ip", "size"), KINDS)
def test_scapy_finds_in_a_preview_what_was_asked_for(
    engine: Engine, tmp_path: Path, ip: IpVersion, size: int
) -> None:
    frames = preview(engine, Trial(ip=ip, size=size), tmp_path / "frames.pcap")
    ends = [*[ENDS[ip]] * COUNT, *[ENDS[ip][::-1]] * COUNT]
    macs = [*[tuple(MACS.values())] * COUNT, *[tuple(MACS.values())[::-1]] * COUNT]
    for frame, end, mac in zip(frames, ends, macs, strict=True):
        packet = Ether(frame)
        network = packet[IP] if ip == 4 else packet[IPv6]
        assert len(frame) == size - 4
        assert (packet.src, packet.dst) == mac
        assert (network.src, network.dst) == end
        assert (network.ttl if ip == 4 else network.hlim) == 10
        assert (packet[UDP].sport, packet[UDP].dport) == (0xC020, 7)
        assert with_good_checksums(frame) == frame


@pytest.mark.parametrize(("ip", "size"), KINDS)
def test_the_payload_counts_up_and_ends_in_the_tag(
    engine: Engine, tmp_path: Path, ip: IpVersion, size: int
) -> None:
    frames = preview(
        engine, Trial(ip=ip, size=size, fps=1000), tmp_path / "frames.pcap"
    )
    for number, frame in enumerate(frames):
        payload = bytes(Ether(frame)[UDP].payload)[: -TAG.size]
        assert payload == bytes(i % 256 for i in range(len(payload)))
        sequence, stream = number % COUNT, number // COUNT
        assert tag_of(frame) == Tag(
            MAGIC, 515, stream, 0, sequence, sequence * 1_000_000 + stream * 500_000
        )


@needs_tshark
@pytest.mark.parametrize("ip", [4, 6])
def test_tshark_finds_every_checksum_good(
    engine: Engine, tmp_path: Path, ip: IpVersion
) -> None:
    parts = []
    for size in [size for version, size in KINDS if version == ip]:
        parts.append(tmp_path / f"{size}.pcap")
        preview(engine, Trial(ip=ip, size=size), parts[-1])
    good = ("1" if ip == 4 else "", "1", "")
    assert tshark_finds(parts, tmp_path) == [good] * 2 * COUNT * len(parts)


def tshark_finds(parts: list[Path], tmp_path: Path) -> list[tuple[str, ...]]:
    """Per frame: IP checksum, UDP checksum (1: good), and whether it is malformed."""
    merged = tmp_path / "all.pcap"
    subprocess.run(["mergecap", "-w", merged, *parts], check=True)
    columns = ["ip.checksum.status", "udp.checksum.status", "_ws.malformed"]
    return [tuple(row.values()) for row in tshark(merged, columns)]


def test_a_preview_sends_nothing(engine: Engine, tmp_path: Path) -> None:
    before = engine.port_status()
    preview(engine, Trial(), tmp_path / "frames.pcap")
    assert engine.port_status() == before


@pytest.mark.lab
@pytest.mark.tolerant
@pytest.mark.usefixtures("lab_up")
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(("ip", "size"), [(4, 64), (4, 1518), (6, 84), (6, 129)])
def test_the_device_gets_exactly_the_previewed_frames(
    tmp_path: Path, driver: Driver, ip: IpVersion, size: int
) -> None:
    trial = Trial(ip=ip, size=size, fps=1000, ms=COUNT, hops=GATEWAYS)
    with lab_engine(tmp_path, driver) as engine:
        expected = preview(engine, trial, tmp_path / "frames.pcap")
        with Wire("dut", "left") as left, Wire("dut", "right") as right:
            result = measured_once(engine, trial.request(515))
            seen = [tagged(wire) for wire in (left, right)]
    assert {c.received for c in counts(result).values()} == {COUNT}
    for captured, previewed in zip(
        seen, (expected[:COUNT], expected[COUNT:]), strict=True
    ):
        assert [*map(without_stamp, captured)] == [*map(without_stamp, previewed)]
        assert [*map(with_good_checksums, captured)] == captured
        stamps = [tag_of(frame).stamp_ns for frame in captured]
        assert stamps == sorted(stamps)


@pytest.mark.lab
@pytest.mark.tolerant
@pytest.mark.usefixtures("lab_up")
@pytest.mark.parametrize("ip", [4, 6])
def test_what_the_device_forwards_has_one_hop_less_and_good_checksums(
    tmp_path: Path, ip: IpVersion
) -> None:
    trial = Trial(ip=ip, fps=1000, ms=COUNT, hops=GATEWAYS, directions=("forward",))
    # AF_PACKET ports leave the frames to other sockets, too.
    with (
        lab_engine(tmp_path, "af_packet") as engine,
        Wire("tester", "right") as right,
    ):
        measured_once(engine, trial.request(515))
        frames = tagged(right)
    assert [tag_of(frame).sequence for frame in frames] == list(range(COUNT))
    for frame in frames:
        packet = Ether(frame)
        assert (packet[IP].ttl if ip == 4 else packet[IPv6].hlim) == 9
        assert with_good_checksums(frame) == frame


def tagged(wire: Wire) -> list[bytes]:
    """The frames with a tag that came in at ``wire``."""
    frames = wire.received(0.2)
    return [f for f in frames if UDP in Ether(f) and tag_of(f).magic == MAGIC]


@pytest.fixture(scope="module")
def lab_up() -> Iterator[None]:
    with kept_lab():
        yield


@pytest.mark.parametrize("by", ["ports", "addresses"])
@pytest.mark.parametrize("ip", [4, 6])
def test_frames_make_exactly_as_many_flows_as_asked_for(
    engine: Engine, tmp_path: Path, ip: IpVersion, by: str
) -> None:
    path = tmp_path / "flows.pcap"
    trial = of_flows(ip, {"flows": 5, "flows_by": by})
    params = PreviewParams(trial=trial, count=20, path=str(path))
    assert engine.preview(params).frames == 40
    packets = rdpcap(str(path))
    forward = [four_tuple(packet) for packet in packets[:20]]
    assert Counter(Counter(forward).values()) == {4: 5}
    answers = [four_tuple(packet) for packet in packets[20:]]
    assert [(b, a, d, c) for a, b, c, d in answers] == forward


def of_flows(ip: IpVersion, traffic: dict[str, object]) -> TrialRequest:
    """A trial as the plan makes it, by way of the next hops that the rings know."""
    sides = {
        side: {
            "port": {"ring": True},
            f"ipv{ip}": {"address": ENDS[ip][n], "gateway": GATEWAYS[ip][n]},
        }
        for n, side in enumerate(("left", "right"))
    }
    testbed = Testbed.model_validate({"name": "rings"} | sides)
    asked = {"procedure": "throughput", "ip": [ip], "traffic": traffic}
    spec = spec_with(asked)
    [cell] = expand(Campaign(name="x", testbed=testbed, procedures=[spec]), testbed)
    trial = trial_request(testbed, cell, 1000, 515)
    directions = [
        direction.model_copy(update={"streams": [by_way_of(hop, direction.streams[0])]})
        for hop, direction in zip(ENDS[ip][::-1], trial.directions, strict=True)
    ]
    return trial.model_copy(update={"directions": directions})


def by_way_of(next_hop: str, stream: StreamRequest) -> StreamRequest:
    return stream.model_copy(update={"next_hop": next_hop})


def four_tuple(packet: Packet) -> tuple[str, str, int, int]:
    network = packet[IP] if IP in packet else packet[IPv6]
    return network.src, network.dst, packet[UDP].sport, packet[UDP].dport
