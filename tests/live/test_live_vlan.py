"""VLAN tags on real ports: crossed rings, and a device that exchanges them.

What is sent carries the sender's tags, what comes in must carry the receiver's, and so
with ARP and neighbour discovery.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from livetools import (
    BOTH,
    DEVICE,
    ENDS,
    GATEWAYS,
    MACS,
    NO_ODD_FRAMES,
    STALLS,
    Trial,
    codes,
    counting,
    crossed_neighbours,
    inspected,
    lab_neighbours,
    odd_frames,
    other_vlan,
    ref_dut,
    ring_ports,
    running_engine,
    tagged,
)
from readers import needs_tshark, tag_of, tshark, with_good_checksums
from scapy.layers.inet import UDP
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.packet import Packet
from scapy.utils import rdpcap

from dutperf.engine.client import Engine
from dutperf.errors import EngineError
from dutperf.protocol.base import IpVersion, VlanTag
from dutperf.protocol.methods import ERROR_INVALID_PARAMS, PreviewParams
from dutperf.protocol.port_messages import NeighboursParams
from dutperf.protocol.result_messages import Inspected
from dutperf.protocol.stream_messages import FieldVariation
from dutperf.protocol.trial_messages import TrialRequest
from tools.calibrate.truth import Counts, by_account
from tools.calibrate.truth import by_result as counts

pytestmark = counting(DEVICE)

Tags = list[VlanTag]
NONE: Tags = []
ONE: Tags = [VlanTag(id=10, pcp=5)]
TWO: Tags = [VlanTag(tpid=0x88A8, id=4094, pcp=7), VlanTag(id=100)]
FRAMES = 500


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("vlan")) as it:
        yield it


def request(
    left: Tags,
    right: Tags,
    trial: Trial | None = None,
    trial_id: int = 1,
    **stream: Any,  # noqa: ANN401 - StreamRequest's
) -> TrialRequest:
    """``stream``: other keys of each stream."""
    plain = (trial or Trial(size=128)).request(trial_id)
    ways = []
    for way in plain.directions:
        ends = (left, right) if way.name == "forward" else (right, left)
        streams = [each.model_copy(update=stream) for each in way.streams]
        keys = {"vlan": ends[0], "received_vlan": ends[1], "streams": streams}
        ways.append(way.model_copy(update=keys))
    return plain.model_copy(update={"directions": ways})


def unaltered(arrived: int, ttl: int) -> Inspected:
    """Every 61st of so many frames, each as it was sent but for its hops."""
    return Inspected(frames=-(-arrived // 61), least_ttl=ttl, most_ttl=ttl)


@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("tags", [ONE, TWO], ids=["802.1Q", "802.1ad"])
def test_tagged_ports_find_each_other_and_exchange_every_frame(
    engine: Engine, tags: Tags, ip: IpVersion
) -> None:
    engine.open_ports(tagged(ring_ports(), tags, tags))
    found = engine.set_neighbours(crossed_neighbours()).neighbours
    assert all(neighbour.mac for neighbour in found)
    result = engine.measure(request(tags, tags, Trial(ip, 128)))
    assert codes(result) <= STALLS
    assert counts(result) == dict.fromkeys(BOTH, Counts(FRAMES, FRAMES))
    assert odd_frames(result) == NO_ODD_FRAMES
    assert other_vlan(result) == [0, 0]
    assert inspected(result) == [unaltered(FRAMES, ttl=10)] * 2


@pytest.mark.parametrize(
    ("left", "right"),
    [(ONE, NONE), (NONE, ONE), (ONE, [VlanTag(id=11)]), (TWO, TWO[:1]), (TWO[1:], TWO)],
)
def test_a_frame_with_other_tags_is_lost_and_counted(
    engine: Engine, left: Tags, right: Tags
) -> None:
    engine.open_ports(tagged(ring_ports(), left, right))
    engine.set_neighbours(NeighboursParams(ports=[]))
    trial = request(left, right, dst_mac="02:00:00:00:00:09")
    result = engine.measure(trial)
    assert counts(result) == dict.fromkeys(BOTH, Counts(FRAMES, 0, FRAMES))
    assert other_vlan(result) == [FRAMES, FRAMES]
    assert odd_frames(result) == NO_ODD_FRAMES


def test_a_port_that_does_not_know_its_neighbours_tags_finds_nobody(
    engine: Engine,
) -> None:
    engine.open_ports(tagged(ring_ports(), ONE, NONE))
    found = engine.set_neighbours(crossed_neighbours(timeout_ms=50)).neighbours
    assert [neighbour.mac for neighbour in found] == [None] * 4


def test_a_trial_with_other_tags_than_its_ports_is_refused(engine: Engine) -> None:
    engine.open_ports(tagged(ring_ports(), ONE, TWO))
    engine.set_neighbours(NeighboursParams(ports=[]))
    for left, right, where in ((NONE, TWO, "forward: vlan"), (ONE, ONE, "received_")):
        with pytest.raises(EngineError, match=where) as refused:
            engine.measure(request(left, right))
        assert refused.value.rpc_code == ERROR_INVALID_PARAMS


@pytest.mark.parametrize("size", [1514, 1518])
def test_the_mtu_has_room_for_one_tag_and_no_second(engine: Engine, size: int) -> None:
    engine.open_ports(tagged(ring_ports(), [ONE[0], ONE[0]], NONE))
    engine.set_neighbours(NeighboursParams(ports=[]))
    asked = Trial(size=size, directions=["forward"])
    trial = request([ONE[0], ONE[0]], NONE, asked, dst_mac="02:00:00:00:00:09")
    if size == 1518:
        with pytest.raises(EngineError, match="can carry, 1514"):
            engine.measure(trial)
    else:
        assert other_vlan(engine.measure(trial)) == [0, FRAMES]


def preview(engine: Engine, tags: Tags, ip: IpVersion, path: Path) -> list[bytes]:
    engine.open_ports(tagged(ring_ports(), tags, tags))
    trial = request(tags, tags, Trial(ip, 128))
    params = PreviewParams(trial=trial, count=3, path=str(path))
    assert engine.preview(params).frames == 6
    return [bytes(packet) for packet in rdpcap(str(path))]


@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("tags", [ONE, TWO], ids=["802.1Q", "802.1ad"])
def test_scapy_finds_the_tags_and_behind_them_the_frame_as_without(
    engine: Engine, tmp_path: Path, tags: Tags, ip: IpVersion
) -> None:
    plain = preview(engine, NONE, ip, tmp_path / "plain.pcap")
    frames = preview(engine, tags, ip, tmp_path / "tagged.pcap")
    for number, frame in enumerate(frames):
        packet: Packet = Ether(frame)
        assert packet.src == MACS["left" if number < 3 else "right"]
        seen = []
        while isinstance(packet.payload, Dot1Q | Dot1AD):
            tpid, packet = packet.type, packet.payload
            seen.append(VlanTag(tpid=tpid, id=packet.vlan, pcp=packet.prio))
        assert seen == tags
        assert packet[UDP].sport == 0xC020
        assert tag_of(frame).sequence == number % 3
        bare = frame[:12] + frame[12 + 4 * len(tags) :]
        assert len(bare) == 124
        assert with_good_checksums(bare) == bare
        assert bare == plain[number]


@needs_tshark
def test_tshark_finds_both_tags_and_every_checksum_good(
    engine: Engine, tmp_path: Path
) -> None:
    preview(engine, TWO, 6, tmp_path / "frames.pcap")
    columns = ["ieee8021ad.id", "vlan.id", "udp.checksum.status", "ipv6.src"]
    for row in tshark(tmp_path / "frames.pcap", columns):
        assert row["ieee8021ad.id"] == "4094"
        assert row["vlan.id"] == "100"
        assert row["udp.checksum.status"] == "1"
        assert row["ipv6.src"] in ENDS[6]


RANGE: Tags = [VlanTag(id=100, last_id=199, pcp=3), VlanTag(id=5)]
VARIED = [FieldVariation(field="vlan_id", width=12, min=100, max=199)]
IN_TURN = [VARIED[0].model_copy(update={"mode": "increasing"})]


@pytest.mark.parametrize("ip", [4, 6])
def test_frames_of_a_range_of_vlans_all_arrive(
    engine: Engine, ip: IpVersion, tmp_path: Path
) -> None:
    engine.open_ports(tagged(ring_ports(), RANGE, RANGE))
    found = engine.set_neighbours(crossed_neighbours()).neighbours
    assert all(neighbour.mac for neighbour in found)
    trial = request(RANGE, RANGE, Trial(ip, 128), vary=VARIED)
    result = engine.measure(trial)
    assert codes(result) <= STALLS
    assert counts(result) == dict.fromkeys(BOTH, Counts(FRAMES, FRAMES))
    assert other_vlan(result) == [0, 0]
    assert inspected(result) == [unaltered(FRAMES, ttl=10)] * 2
    path = tmp_path / "frames.pcap"
    engine.preview(PreviewParams(trial=trial, count=FRAMES, path=str(path)))
    ids = []
    for packet in rdpcap(str(path)):
        outer = packet[Dot1Q]
        assert (outer.prio, outer.payload.vlan, outer.payload.prio) == (3, 5, 0)
        ids.append(outer.vlan)
    assert set(ids) <= set(range(100, 200))
    assert len(set(ids)) > 95


@pytest.mark.parametrize(("first", "last"), [(101, 199), (100, 198)])
def test_a_frame_outside_of_the_range_is_lost_and_counted(
    engine: Engine, first: int, last: int
) -> None:
    narrow = [RANGE[0].model_copy(update={"id": first, "last_id": last}), RANGE[1]]
    engine.open_ports(tagged(ring_ports(), RANGE, narrow))
    engine.set_neighbours(NeighboursParams(ports=[]))
    asked = Trial(size=128, directions=["forward"])
    trial = request(RANGE, narrow, asked, vary=IN_TURN, dst_mac="02:00:00:00:00:09")
    result = engine.measure(trial)
    lost = FRAMES // 100
    assert counts(result)["forward"] == Counts(FRAMES, FRAMES - lost, lost)
    assert other_vlan(result) == [0, lost]


def test_an_id_without_a_tag_is_refused(engine: Engine) -> None:
    engine.open_ports(tagged(ring_ports(), NONE, NONE))
    engine.set_neighbours(NeighboursParams(ports=[]))
    with pytest.raises(EngineError, match="vlan_id"):
        engine.measure(request(NONE, NONE, vary=VARIED))


def test_a_device_that_takes_in_many_vlans_is_measured(engine: Engine) -> None:
    """It answers neighbours in the first one, and sends to the other side untagged."""
    left = [VlanTag(id=100, last_id=199)]
    behaviour = EXCHANGED | {"vlan": {"left": [tag.model_dump() for tag in left]}}
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short), behaviour) as device,
    ):
        engine.open_ports(tagged(device.ports(), left, NONE))
        found = engine.set_neighbours(lab_neighbours()).neighbours
        assert all(neighbour.mac for neighbour in found)
        asked = Trial(4, 128, hops=GATEWAYS, directions=["forward"])
        result = engine.measure(request(left, NONE, asked, vary=VARIED))
        lost = FRAMES // 7
        assert counts(result)["forward"] == Counts(FRAMES, FRAMES - lost, lost)
        assert other_vlan(result) == [0, 0]


SIDES = {"left": ONE, "right": TWO}
EXCHANGED = {
    "vlan": {side: [tag.model_dump() for tag in tags] for side, tags in SIDES.items()},
    "routing": {
        "left": ["198.18.0.1", "2001:2::1"],
        "right": ["198.19.0.1", "2001:2:0:8000::1"],
    },
    "forward": {"rules": [{"every": 7, "do": "drop"}]},
}


def test_a_device_that_exchanges_tags_is_measured_as_one_without(
    engine: Engine,
) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short), EXCHANGED) as device,
    ):
        engine.open_ports(tagged(device.ports(), ONE, TWO))
        found = engine.set_neighbours(lab_neighbours()).neighbours
        assert all(neighbour.mac for neighbour in found)
        for number, ip in enumerate(ENDS, 1):
            asked = Trial(ip, 128, hops=GATEWAYS)
            result = engine.measure(request(ONE, TWO, asked, number))
            lost = FRAMES // 7
            assert counts(result) == by_account(device.account(number))
            assert counts(result) == {
                "forward": Counts(FRAMES, FRAMES - lost, lost),
                "reverse": Counts(FRAMES, FRAMES),
            }
            assert odd_frames(result) == NO_ODD_FRAMES
            assert other_vlan(result) == [0, 0]
            assert inspected(result) == [
                unaltered(FRAMES - lost, ttl=9),
                unaltered(FRAMES, ttl=9),
            ]
