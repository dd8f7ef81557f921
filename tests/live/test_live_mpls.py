"""Labelled frames on real ports, and as others read them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from livetools import (
    BOTH,
    DEVICE,
    ENDS,
    NO_ODD_FRAMES,
    STALLS,
    Trial,
    codes,
    counting,
    crossed_neighbours,
    headed,
    headed_request,
    odd_frames,
    other_vlan,
    running_engine,
)
from readers import needs_tshark, tag_of, tshark, with_good_checksums
from scapy.utils import rdpcap

from dutperf.engine.client import Engine
from dutperf.errors import EngineError
from dutperf.protocol.base import IpVersion, MplsLabel, VlanTag
from dutperf.protocol.methods import PreviewParams
from dutperf.protocol.port_messages import NeighboursParams
from tools.calibrate.truth import Counts
from tools.calibrate.truth import by_result as counts

pytestmark = counting(DEVICE)

Labels = list[MplsLabel]
NONE: Labels = []
ONE: Labels = [MplsLabel(label=16, tc=5, ttl=10)]
THREE: Labels = [
    MplsLabel(label=1_048_575, tc=7, ttl=255),
    MplsLabel(label=17),
    MplsLabel(label=18),
]
TAG = [VlanTag(id=10)]
FRAMES = 500


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("mpls")) as it:
        yield it


labelled = partial(headed, "mpls")
request = partial(headed_request, "mpls")


@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("labels", [ONE, THREE], ids=["one", "three"])
@pytest.mark.parametrize("vlan", [[], TAG], ids=["untagged", "tagged"])
def test_neighbours_are_found_without_labels_and_every_frame_arrives_with_them(
    engine: Engine, vlan: list[VlanTag], labels: Labels, ip: IpVersion
) -> None:
    engine.open_ports(labelled(labels, labels, vlan))
    found = engine.set_neighbours(crossed_neighbours()).neighbours
    assert all(neighbour.mac for neighbour in found)
    result = engine.measure(request(labels, labels, Trial(ip, 128), vlan))
    assert codes(result) <= STALLS
    assert counts(result) == dict.fromkeys(BOTH, Counts(FRAMES, FRAMES))
    assert odd_frames(result) == NO_ODD_FRAMES
    assert other_vlan(result) == [0, 0]
    inspected = [s.inspected for d in result.directions for s in d.streams]
    assert all(each and each.frames and not each.payload for each in inspected)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (ONE, NONE),
        (NONE, ONE),
        (ONE, [MplsLabel(label=17)]),
        (THREE, THREE[:2]),
        (THREE[1:], THREE),
    ],
)
def test_a_frame_with_other_labels_is_lost_and_counted(
    engine: Engine, left: Labels, right: Labels
) -> None:
    engine.open_ports(labelled(left, right))
    engine.set_neighbours(NeighboursParams(ports=[]))
    result = engine.measure(request(left, right, dst_mac="02:00:00:00:00:09"))
    assert counts(result) == dict.fromkeys(BOTH, Counts(FRAMES, 0, FRAMES))
    assert other_vlan(result) == [FRAMES, FRAMES]
    assert odd_frames(result) == NO_ODD_FRAMES


def test_traffic_class_and_ttl_may_change(engine: Engine) -> None:
    other = [MplsLabel(label=16, tc=1, ttl=9)]
    engine.open_ports(labelled(ONE, other))
    engine.set_neighbours(crossed_neighbours())
    result = engine.measure(request(ONE, other))
    assert counts(result) == dict.fromkeys(BOTH, Counts(FRAMES, FRAMES))


def test_a_trial_with_other_labels_than_its_ports_is_refused(engine: Engine) -> None:
    engine.open_ports(labelled(ONE, THREE))
    engine.set_neighbours(NeighboursParams(ports=[]))
    for left, right, where in ((NONE, THREE, "forward: mpls"), (ONE, ONE, "received_")):
        with pytest.raises(EngineError, match=where):
            engine.measure(request(left, right))


@pytest.mark.parametrize("size", [1510, 1511])
def test_the_mtu_carries_labels(engine: Engine, size: int) -> None:
    two = THREE[:2]
    engine.open_ports(labelled(two, NONE))
    engine.set_neighbours(NeighboursParams(ports=[]))
    asked = Trial(size=size, directions=["forward"])
    trial = request(two, NONE, asked, dst_mac="02:00:00:00:00:09")
    if size > 1510:
        with pytest.raises(EngineError, match="can carry, 1510"):
            engine.measure(trial)
    else:
        assert other_vlan(engine.measure(trial)) == [0, FRAMES]


def preview(
    engine: Engine, labels: Labels, ip: IpVersion, path: Path, vlan: list[VlanTag]
) -> list[bytes]:
    engine.open_ports(labelled(labels, labels, vlan))
    trial = request(labels, labels, Trial(ip, 128), vlan)
    params = PreviewParams(trial=trial, count=3, path=str(path))
    assert engine.preview(params).frames == 6
    return [bytes(packet) for packet in rdpcap(str(path))]


@pytest.mark.parametrize("ip", [4, 6])
def test_behind_the_labels_the_frame_is_as_without(
    engine: Engine, tmp_path: Path, ip: IpVersion
) -> None:
    plain = preview(engine, NONE, ip, tmp_path / "plain.pcap", [])
    frames = preview(engine, THREE, ip, tmp_path / "labelled.pcap", TAG)
    for number, frame in enumerate(frames):
        assert len(frame) == 124 + 4 + 12
        assert frame[12:16] == b"\x81\x00\x00\x0a"
        assert frame[16:18] == b"\x88\x47"
        bare = frame[:12] + plain[number][12:14] + frame[18 + 12 :]
        assert with_good_checksums(bare) == bare
        assert bare == plain[number]
        assert tag_of(frame).sequence == number % 3


@needs_tshark
@pytest.mark.parametrize("ip", [4, 6])
def test_tshark_finds_the_stack_and_every_checksum_good(
    engine: Engine, tmp_path: Path, ip: IpVersion
) -> None:
    preview(engine, THREE, ip, tmp_path / "frames.pcap", TAG)
    source = "ip.src" if ip == 4 else "ipv6.src"
    columns = [
        *("vlan.id", "mpls.label", "mpls.exp", "mpls.bottom", "mpls.ttl"),
        *("udp.checksum.status", "_ws.malformed", source),
    ]
    for row in tshark(tmp_path / "frames.pcap", columns):
        assert row["vlan.id"] == "10"
        assert row["mpls.label"] == "1048575,17,18"
        assert row["mpls.exp"] == "7,0,0"
        assert row["mpls.bottom"].replace("True", "1").replace("False", "0") == "0,0,1"
        assert row["mpls.ttl"] == "255,64,64"
        assert row["udp.checksum.status"] == "1"
        assert row["_ws.malformed"] == ""
        assert row[source] in ENDS[ip]
