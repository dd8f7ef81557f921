"""IPv4 options and IPv6 extension headers on real ports, and as others read them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
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
)
from readers import needs_tshark, tag_of, tshark
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import (
    MIP6MH_BRR,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    in6_chksum,
)
from scapy.layers.ipsec import AH
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap

from dutperf.engine.client import Engine
from dutperf.protocol.base import IpVersion, header_bytes
from dutperf.protocol.methods import PreviewParams
from dutperf.protocol.stream_messages import FieldVariation, minimum_frame_size
from dutperf.protocol.trial_messages import TrialRequest
from tools.calibrate.truth import Counts, by_account
from tools.calibrate.truth import by_result as counts

pytestmark = counting(DEVICE)

FRAMES = 500
CHAIN = ["routing", "destination-options", "fragment"]
ALL = ["hop-by-hop", *CHAIN, "authentication", "destination-options"]
MOBILITY = [*CHAIN, "mobility"]
CASES: list[tuple[IpVersion, list[str]]] = [
    (6, CHAIN),
    (6, ALL),
    (6, ["hop-by-hop"]),
    (6, MOBILITY),
    (4, ["router-alert"]),
    (4, ["nop"] * 10),
]
LAYERS = {
    "hop-by-hop": (IPv6ExtHdrHopByHop, 0),
    "destination-options": (IPv6ExtHdrDestOpt, 60),
    "routing": (IPv6ExtHdrRouting, 43),
    "fragment": (IPv6ExtHdrFragment, 44),
    "authentication": (AH, 51),
    "mobility": (MIP6MH_BRR, 135),
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("headers")) as it:
        yield it


def request(
    ip: IpVersion,
    names: list[str],
    more: int = 0,
    trial_id: int = 1,
    **keys: Any,  # noqa: ANN401 - Trial's
) -> TrialRequest:
    """Of the smallest size that they fit, or ``more``."""
    size = minimum_frame_size(ip) + header_bytes(names) + more  # type: ignore[arg-type]
    data = Trial(ip, size, **keys).request(trial_id).model_dump()
    key = "ipv6_headers" if ip == 6 else "ipv4_options"
    for way in data["directions"]:
        way["streams"][0] |= {key: names}
    return TrialRequest.model_validate(data)


@pytest.mark.parametrize(("ip", "names"), CASES)
def test_every_frame_behind_headers_arrives_and_is_whole(
    engine: Engine, ip: IpVersion, names: list[str]
) -> None:
    open_rings(engine)
    for more in (0, 1, 500):
        result = engine.measure(request(ip, names, more))
        assert codes(result) <= STALLS
        assert counts(result) == dict.fromkeys(BOTH, Counts(FRAMES, FRAMES))
        assert odd_frames(result) == NO_ODD_FRAMES


def preview(engine: Engine, trial: TrialRequest, path: Path) -> list[bytes]:
    open_rings(engine)
    engine.preview(PreviewParams(trial=trial, count=3, path=str(path)))
    return [bytes(packet) for packet in rdpcap(str(path))]


# scapy reads no more behind AH and mobility
@pytest.mark.parametrize("names", [CHAIN, ALL[:-1], MOBILITY])
def test_scapy_reads_the_chain_down_to_the_tag(
    engine: Engine, tmp_path: Path, names: list[str]
) -> None:
    for frame in preview(engine, request(6, names, 7), tmp_path / "frames.pcap"):
        packet = Ether(frame)[IPv6]
        assert packet.plen == len(frame) - 54
        for name in names:
            layer, number = LAYERS[name]
            assert packet.nh == number
            packet = packet.payload
            assert isinstance(packet, layer)
        assert packet.nh == 17
        assert len(frame) == 84 + header_bytes(names) + 7 - 4  # type: ignore[arg-type]
        assert tag_of(frame).trial == 1


@needs_tshark
def test_scapy_and_tshark_take_a_mobility_header_for_a_good_one(
    engine: Engine, tmp_path: Path
) -> None:
    """Its checksum is of the addresses, which vary (RFC 6275 6.1.1)."""
    trial = request(6, ["mobility"]).model_dump()
    for way in trial["directions"]:
        hosts = FieldVariation(field="dst_ip", offset=112, width=16, min=1, max=0xFFFF)
        way["streams"][0] |= {"vary": [hosts]}
    path = tmp_path / "frames.pcap"
    frames = preview(engine, TrialRequest.model_validate(trial), path)
    for frame in frames:
        packet = Ether(frame)[IPv6]
        header = bytes(packet.payload)[:8]
        assert in6_chksum(135, packet, header) == 0  # type: ignore[no-untyped-call]
    assert len({Ether(frame)[MIP6MH_BRR].cksum for frame in frames}) == len(frames)
    for row in tshark(path, ["mip6.mhtype", "mip6.proto", "_ws.malformed"]):
        assert list(row.values()) == ["0", "17", ""]


def test_scapy_reads_the_options(engine: Engine, tmp_path: Path) -> None:
    names = ["router-alert", "nop"]
    for frame in preview(engine, request(4, names), tmp_path / "frames.pcap"):
        header = Ether(frame)[IP]
        assert header.ihl == 7
        assert bytes(header)[20:28] == b"\x94\x04\x00\x00\x01\x01\x01\x01"
        good = header.copy()
        del good.chksum, good[UDP].chksum
        rebuilt = IP(bytes(good))
        assert (rebuilt.chksum, rebuilt[UDP].chksum) == (
            header.chksum,
            header[UDP].chksum,
        )


# tshark reads no more behind mobility
READ_TO_THE_END = [(ip, names) for ip, names in CASES if "mobility" not in names]


@needs_tshark
@pytest.mark.parametrize(("ip", "names"), READ_TO_THE_END)
def test_tshark_finds_every_checksum_good_and_nothing_malformed(
    engine: Engine, tmp_path: Path, ip: IpVersion, names: list[str]
) -> None:
    path = tmp_path / "frames.pcap"
    preview(engine, request(ip, names, 3), path)
    columns = [
        "udp.checksum.status",
        "ip.checksum.status",
        "_ws.malformed",
        "udp.length",
    ]
    for row in tshark(path, columns):
        assert row["udp.checksum.status"] == "1"
        assert row["ip.checksum.status"] in (("1",) if ip == 4 else ("",))
        assert row["_ws.malformed"] == ""
        assert row["udp.length"] == str(8 + 18 + 3)


ROUTER = {
    "routing": {
        "left": ["198.18.0.1", "2001:2::1"],
        "right": ["198.19.0.1", "2001:2:0:8000::1"],
    },
    "forward": {
        "rules": [
            {"every": 7, "do": "drop"},
            {"every": 11, "do": {"corrupt": "checksum"}},
        ]
    },
}


def test_a_router_that_forwards_them_is_measured_as_without(engine: Engine) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short), ROUTER) as device,
    ):
        engine.open_ports(device.ports())
        engine.set_neighbours(lab_neighbours())
        for number, (ip, names) in enumerate(CASES, 1):
            trial = request(ip, names, 0, number, hops=GATEWAYS)
            result = engine.measure(trial)
            assert counts(result) == by_account(device.account(number))
            lost = FRAMES // 7 + (FRAMES - FRAMES // 7) // 11
            assert counts(result)["forward"] == Counts(FRAMES, FRAMES - lost, lost)
            assert [port.foreign + port.fragments for port in result.ports] == [0, 0]
            damaged = result.ports[1].damaged
            assert damaged is not None
            assert damaged.checksum_wrong == (FRAMES - FRAMES // 7) // 11
