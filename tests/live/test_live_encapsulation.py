"""Frames inside outer headers on real ports, and as others read them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from livetools import (
    BOTH,
    DEVICE,
    ENDS,
    GATEWAYS,
    NO_ODD_FRAMES,
    STALLS,
    Trial,
    codes,
    counting,
    crossed_neighbours,
    headed,
    headed_request,
    lab_neighbours,
    odd_frames,
    other_vlan,
    ref_dut,
    running_engine,
)
from readers import needs_tshark, tag_of, tshark, with_good_checksums
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.utils import rdpcap

from dutperf.config.encapsulation import MapRule
from dutperf.engine.client import Engine
from dutperf.errors import EngineError
from dutperf.protocol.base import Encapsulation, IpVersion, VlanTag
from dutperf.protocol.methods import PreviewParams
from dutperf.protocol.port_messages import NeighboursParams
from dutperf.protocol.stream_messages import DirectionRequest, FieldCopy, FieldVariation
from dutperf.protocol.stream_parts import FollowingBits, ReceivedEnd
from tools.calibrate.truth import Counts, by_account
from tools.calibrate.truth import by_result as counts

pytestmark = counting(DEVICE)

FRAMES = 500
TAG = [VlanTag(id=10)]
OUTER = {4: ("10.0.0.1", "10.0.0.2"), 6: ("2001:db8:a::1", "2001:db8:a::2")}
VXLAN = {"vni": 77, "inner_mac": "02:00:00:00:00:77"}
SEGMENTS: dict[str, Any] = {
    "srh": {
        "segments": ["2001:db8:5::1", "2001:db8:5::2", "2001:db8:5::3"],
        "segments_left": 2,
        "tag": 7,
    },
    "received_srh": {
        "segments": ["2001:db8:6::1"],
        "segments_left": 0,
        "reduced": True,
    },
}
"""What goes has a routing header, what comes has none."""
KEYS: dict[str, dict[str, Any]] = {"vxlan": VXLAN, "srv6": SEGMENTS}
SENT: dict[str, Any] = {"dst_mac": "02:00:00:00:00:09"}
"""Frames to nobody: no next hop is asked for."""


def tunnel(kind: Any, outer: IpVersion, **keys: Any) -> Encapsulation:  # noqa: ANN401
    local, remote = OUTER[outer]
    more = KEYS.get(kind, {})
    given = {"kind": kind, "local": local, "remote": remote, **more, **keys}
    return Encapsulation.model_validate(given)


def other_end(of: Encapsulation | None) -> Encapsulation | None:
    return of and of.model_copy(
        update={
            "local": of.remote,
            "remote": of.local,
            "local_bits": of.remote_bits,
            "remote_bits": of.local_bits,
            "srh": of.received_srh,
            "received_srh": of.srh,
        }
    )


ports = partial(headed, "encapsulation")
request = partial(headed_request, "encapsulation")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("encapsulation")) as it:
        yield it


KINDS = [*product(("ip", "gre", "vxlan"), (4, 6)), ("srv6", 6)]


@pytest.mark.parametrize("inner", [4, 6])
@pytest.mark.parametrize(("kind", "outer"), KINDS)
@pytest.mark.parametrize("vlan", [[], TAG], ids=["untagged", "tagged"])
def test_neighbours_are_found_beside_a_tunnel_and_every_frame_arrives_in_it(
    engine: Engine, kind: str, outer: IpVersion, inner: IpVersion, vlan: list[VlanTag]
) -> None:
    left = tunnel(kind, outer)
    right = other_end(left)
    engine.open_ports(ports(left, right, vlan))
    found = engine.set_neighbours(crossed_neighbours()).neighbours
    assert all(neighbour.mac for neighbour in found)
    result = engine.measure(request(left, right, Trial(inner, 128), vlan))
    assert codes(result) <= STALLS
    assert counts(result) == dict.fromkeys(BOTH, Counts(FRAMES, FRAMES))
    assert odd_frames(result) == NO_ODD_FRAMES
    assert other_vlan(result) == [0, 0]
    inspected = [s.inspected for d in result.directions for s in d.streams]
    assert all(each and each.frames and not each.payload for each in inspected)


IP = tunnel("ip", 6)
OTHERS = [
    None,
    tunnel("ip", 4),
    tunnel("gre", 6),
    tunnel("vxlan", 6),
    tunnel("srv6", 6),
    tunnel("ip", 6, local="2001:db8:a::3"),
    tunnel("ip", 6, remote="2001:db8:a::3"),
]


@pytest.mark.parametrize("other", OTHERS)
def test_a_frame_in_another_tunnel_is_lost_and_counted(
    engine: Engine, other: Encapsulation | None
) -> None:
    right = other_end(other)
    engine.open_ports(ports(IP, right))
    engine.set_neighbours(NeighboursParams(ports=[]))
    result = engine.measure(request(IP, right, **SENT))
    assert counts(result) == dict.fromkeys(BOTH, Counts(FRAMES, 0, FRAMES))
    at_left, at_right = other_vlan(result)
    assert at_left == FRAMES
    # A port without a tunnel takes an outer header for any other packet.
    foreign = sum(port.foreign for port in result.ports)
    assert (at_right, foreign) == ((FRAMES, 0) if other else (0, FRAMES))


def test_the_wrong_vni_is_another_tunnel(engine: Engine) -> None:
    left, right = tunnel("vxlan", 4), other_end(tunnel("vxlan", 4, vni=78))
    engine.open_ports(ports(left, right))
    engine.set_neighbours(NeighboursParams(ports=[]))
    result = engine.measure(request(left, right, **SENT))
    assert counts(result) == dict.fromkeys(BOTH, Counts(FRAMES, 0, FRAMES))
    assert other_vlan(result) == [FRAMES, FRAMES]


def test_a_trial_in_another_tunnel_than_its_ports_is_refused(engine: Engine) -> None:
    right = other_end(IP)
    engine.open_ports(ports(IP, right))
    engine.set_neighbours(NeighboursParams(ports=[]))
    for left_of, right_of, where in (
        (None, right, "forward: encapsulation"),
        (IP, None, "received_encapsulation"),
    ):
        with pytest.raises(EngineError, match=where):
            engine.measure(request(left_of, right_of))


@pytest.mark.parametrize("size", [1478, 1479])
def test_the_mtu_carries_outer_headers(engine: Engine, size: int) -> None:
    right = other_end(IP)
    engine.open_ports(ports(IP, right))
    engine.set_neighbours(NeighboursParams(ports=[]))
    trial = request(IP, right, Trial(size=size, directions=["forward"]), **SENT)
    if size > 1478:
        with pytest.raises(EngineError, match="can carry, 1478"):
            engine.measure(trial)
    else:
        assert counts(engine.measure(trial))["forward"] == Counts(FRAMES, FRAMES)


HOSTS = FieldVariation(field="src_ip", offset=24, width=8, min=10, max=250)
TUNNELS = FieldCopy(field="outer_src", offset=120, width=8, of="src_ip", of_offset=24)


def test_each_host_has_a_tunnel_of_its_own(engine: Engine, tmp_path: Path) -> None:
    left = tunnel("ip", 6, local_bits=96)
    right = other_end(left)
    engine.open_ports(ports(left, right))
    engine.set_neighbours(crossed_neighbours())
    trial = request(
        left,
        right,
        Trial(size=128, directions=["forward"]),
        vary=[HOSTS],
        copies=[TUNNELS],
    )
    assert counts(engine.measure(trial))["forward"] == Counts(FRAMES, FRAMES)
    path = tmp_path / "hosts.pcap"
    engine.preview(PreviewParams(trial=trial, count=200, path=str(path)))
    hosts = set()
    for packet in map(bytes, rdpcap(str(path))):
        host = packet[54 + 15]
        assert packet[14 + 8 : 14 + 23] == bytes.fromhex("20010db8000a" + 9 * "00")
        assert packet[14 + 23] == host
        assert with_good_checksums(bare(packet, 40, 4)) == bare(packet, 40, 4)
        hosts.add(host)
    assert len(hosts) > 50
    # And one that compares the whole address knows few of them.
    exact = other_end(tunnel("ip", 6))
    engine.open_ports(ports(left, exact))
    engine.set_neighbours(crossed_neighbours())
    forward = trial.directions[0].model_copy(update={"received_encapsulation": exact})
    lossy = engine.measure(trial.model_copy(update={"directions": [forward]}))
    assert counts(lossy)["forward"].lost > FRAMES // 2


PORTS = FieldVariation(field="dst_port", offset=0, width=16, min=0, max=65535)


@pytest.mark.parametrize("kind", [None, "ip", "gre"])
def test_frames_for_another_end_than_they_say_are_lost_and_counted(
    engine: Engine, kind: str | None
) -> None:
    """All go to one end, and by half of the ports there is another one."""
    left = tunnel(kind, 6) if kind else None
    engine.open_ports(ports(left, other_end(left)))
    engine.set_neighbours(NeighboursParams(ports=[]))
    asked = Trial(6, 128, directions=["forward"])
    plain = request(left, other_end(left), asked, vary=[PORTS], **SENT)
    to = left.remote if left else plain.directions[0].streams[0].dst_ip
    end = ReceivedEnd(
        address=to,
        outer=left is not None,
        follows=[FollowingBits(offset=127, width=1, of="dst_port", of_offset=0)],
    )
    told = _of(plain.directions[0], {"received_end": end})
    result = engine.measure(plain.model_copy(update={"directions": [told]}))
    misdirected = sum(port.misdirected for port in result.ports)
    assert FRAMES // 3 < misdirected < 2 * FRAMES // 3
    expected = Counts(FRAMES, FRAMES - misdirected, misdirected)
    assert counts(result)["forward"] == expected


@pytest.mark.parametrize("outer", [4, 6])
def test_damaged_outer_headers_are_damage(engine: Engine, outer: IpVersion) -> None:
    """To a wire the datagram of VXLAN is a test frame: it damages what is outside."""
    left = tunnel("vxlan", outer)
    right = other_end(left)
    rules = [
        {"every": 7, "do": {"corrupt": "length"}},
        {"every": 11, "do": {"corrupt": "checksum"}},
    ]
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short), {"forward": {"rules": rules}}) as device,
    ):
        engine.open_ports(
            [
                port.model_copy(update={"encapsulation": each.encapsulation})
                for port, each in zip(device.ports(), ports(left, right), strict=True)
            ]
        )
        engine.set_neighbours(crossed_neighbours())
        result = engine.measure(request(left, right))
    checksums = FRAMES // 11  # of a frame that both are about the last one counts
    lengths = FRAMES // 7 - FRAMES // 77
    at_right = next(port for port in result.ports if port.name == "right")
    assert at_right.damaged
    assert at_right.damaged.length == lengths
    assert at_right.damaged.checksum_wrong == checksums
    lost = lengths + checksums
    assert counts(result)["reverse"] == Counts(FRAMES, FRAMES)
    assert counts(result)["forward"].lost == lost
    assert other_vlan(result) == [0, 0]


RULE = MapRule(ipv6_prefix="2001:db8::/40", ipv4_prefix="192.0.2.0/24", ea_bits=16)


def test_the_tester_is_all_customer_edges_of_a_map_rule(
    engine: Engine, tmp_path: Path
) -> None:
    """Each frame's outer address is that of whom inner address and port belong to."""
    left = tunnel(
        "ip", 6, local=RULE.address("192.0.2.1", 0), local_bits=RULE.common_bits
    )
    right = other_end(left)
    engine.open_ports(ports(left, right))
    engine.set_neighbours(crossed_neighbours())
    trial = request(
        left,
        right,
        Trial(size=128, directions=["forward"]),
        src_ip="192.0.2.1",
        vary=[
            *(bits.variation("src_ip") for bits in RULE.customers("192.0.2.1").fields),
            *RULE.ports("src_port"),
        ],
        copies=list(RULE.copies(translated=False)),
    )
    assert counts(engine.measure(trial))["forward"] == Counts(FRAMES, FRAMES)
    path = tmp_path / "edges.pcap"
    engine.preview(PreviewParams(trial=trial, count=300, path=str(path)))
    seen = set()
    for packet in rdpcap(str(path)):
        inner = packet[IPv6].payload
        ports_psid = inner[UDP].sport >> 2 & 0xFF
        assert inner[UDP].sport >= 1024
        assert packet[IPv6].src == RULE.address(inner.src, ports_psid)
        plain = bare(bytes(packet), 40, 4)
        assert with_good_checksums(plain) == plain
        seen.add(packet[IPv6].src)
    assert len(seen) > 290


def bare(packet: bytes, outer_bytes: int, inner: IpVersion) -> bytes:
    ether_type = b"\x08\x00" if inner == 4 else b"\x86\xdd"
    return packet[:12] + ether_type + packet[14 + outer_bytes :]


def preview(
    engine: Engine, left: Encapsulation | None, ip: IpVersion, path: Path
) -> list[bytes]:
    right = other_end(left)
    engine.open_ports(ports(left, right))
    params = PreviewParams(
        trial=request(left, right, Trial(ip, 128)), count=3, path=str(path)
    )
    assert engine.preview(params).frames == 6
    return [bytes(packet) for packet in rdpcap(str(path))]


@pytest.mark.parametrize("inner", [4, 6])
@pytest.mark.parametrize(("kind", "outer"), KINDS)
def test_inside_the_frame_is_as_without(
    engine: Engine, tmp_path: Path, kind: str, outer: IpVersion, inner: IpVersion
) -> None:
    plain = preview(engine, None, inner, tmp_path / "plain.pcap")
    left = tunnel(kind, outer)
    frames = preview(engine, left, inner, tmp_path / "inside.pcap")
    for number, frame in enumerate(frames):
        longer = left.bytes if number < 3 else left.received_bytes
        assert len(frame) == 124 + longer
        assert bare(frame, longer, inner) == plain[number]
        assert tag_of(frame).sequence == number % 3


@needs_tshark
@pytest.mark.parametrize("inner", [4, 6])
@pytest.mark.parametrize(("kind", "outer"), KINDS)
def test_tshark_reads_both_packets_and_finds_every_checksum_good(
    engine: Engine, tmp_path: Path, kind: str, outer: IpVersion, inner: IpVersion
) -> None:
    preview(engine, tunnel(kind, outer), inner, tmp_path / "frames.pcap")
    columns = [
        *("frame.protocols", "ip.checksum.status", "udp.checksum.status"),
        *("vxlan.vni", "_ws.malformed", "ip.src" if outer == 4 else "ipv6.src"),
    ]
    names = {4: "ip", 6: "ipv6"}
    between = {
        "ip": "",
        "gre": ":gre",
        "vxlan": ":udp:vxlan:eth:ethertype",
        "srv6": ":ipv6.routing",
    }[kind]
    rows = tshark(tmp_path / "frames.pcap", columns, ports="7")
    for number, row in enumerate(rows):
        # Of segments only what goes forward has a header of its own.
        there = "" if kind == "srv6" and number >= 3 else between
        stack = f"eth:ethertype:{names[outer]}{there}:{names[inner]}:udp"
        assert row["frame.protocols"].startswith(stack)
        ipv4 = [outer, inner].count(4)
        assert row["ip.checksum.status"] == ",".join(ipv4 * ["1"])
        # The outer datagram of VXLAN has none (RFC 7348 5); over IPv6 a tunnel may do
        # without, too (RFC 6935), which tshark does not know.
        none = "3,1" if outer == 4 else "4,1"
        assert row["udp.checksum.status"] == (none if kind == "vxlan" else "1")
        assert row["vxlan.vni"] == ("77" if kind == "vxlan" else "")
        assert row["_ws.malformed"] == ""
        first = row["ip.src" if outer == 4 else "ipv6.src"].split(",")[0]
        assert first in OUTER[outer]


@needs_tshark
def test_tshark_reads_the_segments_that_a_frame_is_to_visit(
    engine: Engine, tmp_path: Path
) -> None:
    preview(engine, tunnel("srv6", 6), 4, tmp_path / "frames.pcap")
    header = ("type", "segleft", "srh.last_entry", "srh.flags", "srh.tag", "srh.addr")
    columns = ["ipv6.dst", "ipv6.routing.len", *(f"ipv6.routing.{h}" for h in header)]
    rows = [*tshark(tmp_path / "frames.pcap", [*columns, "_ws.expert.message"])]
    first, second, third = SEGMENTS["srh"]["segments"]
    for row in rows[:3]:
        told = [row[column] for column in columns]
        assert told[:4] == [first, "6", "4", "2"]
        assert [int(text, 16) for text in told[4:7]] == [2, 0, 7]
        assert told[7] == f"{third},{second},{first}"
        assert row["_ws.expert.message"] == ""
    (only,) = SEGMENTS["received_srh"]["segments"]
    for row in rows[3:]:
        assert [row[column] for column in columns] == [only, *7 * [""]]


def test_each_flow_has_an_outer_flow_label_of_its_own(
    engine: Engine, tmp_path: Path
) -> None:
    """They come whatever label they have; what no flow says stays as it is."""
    left = tunnel("srv6", 6, flow_label=0x80001)
    right = other_end(tunnel("srv6", 6))
    engine.open_ports(ports(left, right))
    engine.set_neighbours(crossed_neighbours())
    fields: dict[str, Any] = {"field": "outer_flow_label", "width": 8}
    trial = request(
        left,
        right,
        Trial(size=256, directions=["forward"]),
        vary=[PORTS],
        copies=[FieldCopy(offset=8, of="dst_port", of_offset=8, **fields)],
    )
    assert counts(engine.measure(trial))["forward"] == Counts(FRAMES, FRAMES)
    path = tmp_path / "labels.pcap"
    engine.preview(PreviewParams(trial=trial, count=200, path=str(path)))
    labels = set()
    for packet in map(bytes, rdpcap(str(path))):
        udp = bare(packet, left.bytes, 4)[14 + 20 :]
        label = int.from_bytes(packet[14:18]) & 0xFFFFF
        assert label == 0x80001 & 0xFF00F | udp[3] << 4
        labels.add(label)
    assert len(labels) > 100


SRV6 = tunnel("srv6", 6)
PATH: dict[str, Any] = SEGMENTS["srh"]
OTHER_PATHS = [
    PATH | {"segments_left": 1},
    PATH | {"tag": 8},
    PATH | {"reduced": True},
    PATH | {"segments": [*PATH["segments"][:2], "2001:db8:5::4"]},
    {"segments": PATH["segments"][:1], "segments_left": 0},
    {"segments": PATH["segments"][:1], "segments_left": 0, "reduced": True},
]


@pytest.mark.parametrize("path", OTHER_PATHS)
def test_frames_on_another_way_than_expected_are_lost_and_counted(
    engine: Engine, path: dict[str, Any]
) -> None:
    right = other_end(tunnel("srv6", 6, srh=path))
    engine.open_ports(ports(SRV6, right))
    engine.set_neighbours(NeighboursParams(ports=[]))
    result = engine.measure(request(SRV6, right, **SENT))
    found = counts(result)
    assert found["forward"] == Counts(FRAMES, 0, FRAMES)
    assert found["reverse"] == Counts(FRAMES, FRAMES)
    assert other_vlan(result) == [0, FRAMES]


def test_a_device_is_an_endpoint_between_both_sides(engine: Engine) -> None:
    """Right expects what left sends with one segment less before it (RFC 8754 4.3)."""
    passed = tunnel("srv6", 6, srh=PATH | {"segments_left": 1})
    right = other_end(passed)
    behaviour = {
        "encapsulation": {
            "left": _told(other_end(SRV6)),
            "right": _told(passed),
        }
    }
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short), behaviour) as device,
    ):
        engine.open_ports(
            [
                port.model_copy(update={"encapsulation": each.encapsulation})
                for port, each in zip(device.ports(), ports(SRV6, right), strict=True)
            ]
        )
        engine.set_neighbours(crossed_neighbours())
        result = engine.measure(request(SRV6, right))
    assert counts(result) == dict.fromkeys(BOTH, Counts(FRAMES, FRAMES))
    assert other_vlan(result) == [0, 0]


def _told(end: Encapsulation | None) -> dict[str, Any]:
    assert end
    return end.model_dump(exclude_none=True)


def device_at(left: Encapsulation) -> dict[str, Any]:
    """A router at the other end of the tunnel on the left, which loses every 7th."""
    return {
        "encapsulation": {"left": _told(other_end(left))},
        "routing": {
            "left": ["198.18.0.1", "2001:2::1"],
            "right": ["198.19.0.1", "2001:2:0:8000::1"],
        },
        "forward": {"rules": [{"every": 7, "do": "drop"}]},
    }


@pytest.mark.parametrize(("kind", "outer"), KINDS)
def test_a_device_that_encapsulates_is_measured_as_one_that_does_not(
    engine: Engine, kind: str, outer: IpVersion
) -> None:
    left = tunnel(kind, outer)
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short), device_at(left)) as device,
    ):
        both = ports(left, None)
        engine.open_ports(
            [
                port.model_copy(update={"encapsulation": each.encapsulation})
                for port, each in zip(device.ports(), both, strict=True)
            ]
        )
        found = engine.set_neighbours(lab_neighbours()).neighbours
        assert all(neighbour.mac for neighbour in found)
        for number, ip in enumerate(ENDS, 1):
            asked = Trial(ip, 128, hops=GATEWAYS)
            trial = request(left, None, asked).model_copy(update={"trial_id": number})
            result = engine.measure(trial)
            lost = FRAMES // 7
            assert counts(result) == by_account(device.account(number))
            assert counts(result) == {
                "forward": Counts(FRAMES, FRAMES - lost, lost),
                "reverse": Counts(FRAMES, FRAMES),
            }
            assert odd_frames(result) == NO_ODD_FRAMES
            assert other_vlan(result) == [0, 0]


def test_a_border_relay_takes_each_frame_for_one_of_its_customer_edges(
    engine: Engine,
) -> None:
    """And sends to them what it then takes from there: all of it is from an edge."""
    rule = RULE.model_copy(update={"ipv4_prefix": "198.18.0.0/24"})
    own = "198.18.0.2"
    relay, bits = "2001:2::1", rule.common_bits
    left = tunnel("ip", 6, local=rule.address(own, 0), remote=relay, local_bits=bits)
    told = device_at(left) | {"map": {"left": rule.model_dump()}}
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short), told) as device,
    ):
        engine.open_ports(
            [
                port.model_copy(update={"encapsulation": each.encapsulation})
                for port, each in zip(device.ports(), ports(left, None), strict=True)
            ]
        )
        engine.set_neighbours(lab_neighbours())
        plain = request(left, None, Trial(4, 128, hops=GATEWAYS))
        forward, reverse = plain.directions
        from_edges = {
            "vary": [
                *(bits.variation("src_ip") for bits in rule.customers(own).fields),
                *rule.ports("src_port"),
            ],
            "copies": list(rule.copies(translated=False)),
        }
        to_edges = {
            "vary": [
                *(bits.variation("dst_ip") for bits in rule.customers(own).fields),
                *rule.ports("dst_port"),
            ]
        }
        trial = plain.model_copy(
            update={
                "directions": [
                    _of(forward, from_edges),
                    _of(reverse, to_edges),
                ]
            }
        )
        lost = FRAMES // 7
        assert counts(engine.measure(trial)) == {
            "forward": Counts(FRAMES, FRAMES - lost, lost),
            "reverse": Counts(FRAMES, FRAMES),
        }
        # Without what ties them together hardly any frame is an edge's.
        wrong = _of(forward, from_edges | {"copies": []})
        wrongs = plain.model_copy(update={"directions": [wrong], "trial_id": 2})
        assert counts(engine.measure(wrongs))["forward"].received < FRAMES // 20


def _of(way: DirectionRequest, keys: dict[str, Any]) -> DirectionRequest:
    streams = [each.model_copy(update=keys) for each in way.streams]
    return way.model_copy(update={"streams": streams})
