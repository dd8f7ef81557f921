"""Captures as traffic: what is sent of them, what is refused, and what is told."""

from __future__ import annotations

import gzip
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from captures import MACS, Sent, datagram, datagrams, sent_in, written
from config_samples import TESTBED_YAML, make_testbed
from ruamel.yaml import YAML
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet
from scapy.utils import EDecimal, PcapNgWriter, PcapWriter

from dutperf.config import Campaign, expand, load_campaign, resolved, spec_from
from dutperf.config.captures import MOST_BYTES, with_captures
from dutperf.config.deviations import deviations
from dutperf.config.sizes import captured_words
from dutperf.errors import InputError
from dutperf.model.capture import MOST_FRAMES, Capture, Reading
from dutperf.model.cell import Cell
from dutperf.protocol.stream_messages import StreamRequest
from dutperf.run.trial_request import trial_request

BENCH = make_testbed()


def read(path: Path, **keys: object) -> Reading:
    asked = {"procedure": "throughput", "traffic": {"pcap": {"file": str(path)} | keys}}
    (spec,) = with_captures([spec_from(asked, "test")], Path("/nowhere"))
    capture = spec.traffic[0].pcap
    assert capture
    assert capture.read
    return capture.read


def cell(path: Path, pcap: dict[str, Any] | None = None, **keys: Any) -> Cell:  # noqa: ANN401
    traffic = {"pcap": {"file": str(path), **(pcap or {})}, **keys.pop("traffic", {})}
    asked = {"procedure": "throughput", "ip": 4, "direction": "forward", **keys}
    spec = spec_from(asked | {"traffic": traffic}, "test")
    campaign = Campaign(
        name="c", testbed=[BENCH], procedures=with_captures([spec], Path())
    )
    (found,) = expand(campaign, BENCH)
    return found


def stream(of: Cell) -> StreamRequest:
    return trial_request(BENCH, of, 1000, 5).directions[0].streams[0]


def refused(path: Path, what: str, **keys: object) -> InputError:
    with pytest.raises(InputError, match=what) as error:
        read(path, **keys)
    return error.value


def in_turn(of: StreamRequest) -> list[Sent]:
    assert of.tuples
    frames = zip(of.frame_sizes, of.tuples.sequence, strict=True)
    flows = of.tuples.flows
    return [
        Sent(size, *(getattr(flows[n], key) for key in type(flows[n]).model_fields))
        for size, n in frames
    ]


def alike(one: list[Sent], other: list[Sent]) -> None:
    """Same sizes and ports, and hosts that are told apart as in the other."""
    assert [(s.size, s.src_port, s.dst_port) for s in one] == [
        (s.size, s.src_port, s.dst_port) for s in other
    ]
    for key in ("source", "destination"):
        pairs = {
            (getattr(a, key), getattr(b, key)) for a, b in zip(one, other, strict=True)
        }
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


@pytest.mark.parametrize("ip", [4, 6])
def test_sizes_order_ports_and_hosts_are_those_of_the_capture(
    tmp_path: Path, ip: int
) -> None:
    path = written(tmp_path / "a.pcap", datagrams(1, 200, ip))
    found = stream(cell(path, ip=ip, traffic={"addresses": 3}))
    least = 64 if ip == 4 else 84
    there = [s._replace(size=max(s.size, least)) for s in sent_in(path)]
    alike(in_turn(found), there)
    assert found.received_frame_sizes == found.frame_sizes
    assert found.vary == []


@pytest.mark.parametrize(("frames", "every"), [(60, 61), (122, 59)])
def test_all_of_a_sequence_have_their_turn_of_inspection(
    tmp_path: Path, frames: int, every: int
) -> None:
    path = written(tmp_path / "a.pcap", [datagram()] * frames)
    assert trial_request(BENCH, cell(path), 1000, 5).inspect_every == every


def test_hosts_are_the_sides_own_and_one_if_no_more_are_asked_for(
    tmp_path: Path,
) -> None:
    path = written(tmp_path / "a.pcap", datagrams(2, 50))
    ends = {(s.source, s.destination) for s in in_turn(stream(cell(path)))}
    assert ends == {("198.18.1.2", "198.19.1.2")}
    two = stream(cell(path, traffic={"addresses": 2}))
    assert {s.source for s in in_turn(two)} == {"198.18.1.2", "198.18.1.3"}


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("nano", [False, True])
def test_all_kinds_of_pcap_say_the_same(tmp_path: Path, order: str, nano: bool) -> None:
    packets = datagrams(3, 20)
    plain = read(written(tmp_path / "plain.pcap", packets))
    path = tmp_path / "other.pcap"
    with PcapWriter(str(path), endianness=order, nano=nano) as writer:
        writer.write(packets)
    other = read(path)
    assert other.frames == plain.frames
    assert other.flows == plain.flows
    assert other.sha256 != plain.sha256 or (order == "<" and not nano)


def test_pcapng_says_the_same(tmp_path: Path) -> None:
    packets = datagrams(4, 20)
    path = tmp_path / "a.pcapng"
    with PcapNgWriter(str(path)) as writer:
        writer.write(packets)
    plain = read(written(tmp_path / "plain.pcap", packets))
    assert read(path).frames == plain.frames


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + length + body + length


# --- their own times


def timed(times_ns: list[int]) -> list[Packet]:
    packets = datagrams(5, len(times_ns))
    for packet, at_ns in zip(packets, times_ns, strict=True):
        packet.time = EDecimal(at_ns) / 10**9
    return packets


TIMES_NS = [
    1_700_000_000 * 10**9 + n for n in (0, 1_000, 1_000, 250_000, 7_000_000_000)
]
OWN_NS = "0 1000 1000 250000 7000000000"


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("nano", [False, True])
def test_times_of_pcap_are_kept_if_asked_for(
    tmp_path: Path, order: str, nano: bool
) -> None:
    path = tmp_path / "a.pcap"
    with PcapWriter(str(path), endianness=order, nano=nano) as writer:
        writer.write(timed(TIMES_NS))
    assert read(path, times="original").times_ns == OWN_NS
    assert read(path).times_ns == ""


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(
    ("options", "units_per_s"),
    [
        ([], 10**6),
        ([(9, b"\x09")], 10**9),
        ([(2, b"eth0"), (9, b"\x03")], 10**3),
        ([(9, b"\x8a")], 2**10),
    ],
)
def test_times_of_pcapng_are_in_the_units_of_its_interface(
    tmp_path: Path, order: str, options: list[tuple[int, bytes]], units_per_s: int
) -> None:
    """The second frame is of another interface, whose clock counts from 100 s on."""
    frame = bytes(datagram(100))

    def interface(options: list[tuple[int, bytes]]) -> bytes:
        told = [
            struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)
            for code, value in options
        ]
        return block(order, 1, struct.pack(f"{order}HHI", 1, 0, 0) + b"".join(told))

    def packet(number: int, units: int) -> bytes:
        ends = (units >> 32, units & 0xFFFFFFFF, len(frame), len(frame))
        return block(order, 6, struct.pack(f"{order}I4I", number, *ends) + frame)

    path = tmp_path / "a.pcapng"
    path.write_bytes(
        block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))
        + interface(options)
        + interface([(14, struct.pack(f"{order}q", 100))])
        + packet(0, 101 * units_per_s)
        + packet(1, 3 * 10**6)
        + packet(0, 105 * units_per_s + units_per_s // 2)
    )
    found = read(path, times="original").times_ns
    assert found == "0 2000000000 4500000000"


def test_without_times_or_out_of_order_they_cannot_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    frame = bytes(datagram(100))
    path.write_bytes(
        block("<", 0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
        + block("<", 1, struct.pack("<HHI", 1, 0, 0))
        + block("<", 3, struct.pack("<I", len(frame)) + frame) * 2
    )
    refused(path, "does not say when its frames were captured", times="original")
    older = written(tmp_path / "b.pcap", timed([10**9, 0]))
    assert "reordercap" in refused(older, "is older than", times="original").hint


def test_its_name_and_its_words_say_the_times(tmp_path: Path) -> None:
    path = written(tmp_path / "a.pcap", timed([0, 10**6, 10**7]))
    keys: dict[str, Any] = {"procedure": "frame-loss", "trial_duration_s": 1}
    found = cell(path, {"times": "original"}, **keys)
    assert "-pcap-a-original-times" in found.id
    assert "at its own times, 200 fps on average" in captured_words(found)
    assert "the times of a capture" in str(deviations(found))
    assert "own times" not in captured_words(cell(path, **keys))


@pytest.mark.parametrize(
    ("times_ns", "keys", "what"),
    [
        ([0, 10**6], {"procedure": "throughput"}, "must be left out of throughput"),
        ([5, 5], {"procedure": "frame-loss"}, "frames of different times"),
        (
            [0, 10**6, 10**7],
            {"procedure": "pdv", "rate_fps": 2, "trial_duration_s": 1},
            "at 2 fps the 3 frames of a.pcap take 1.5 s, and a trial takes 1 s",
        ),
        (
            [0, 10**6],
            {"procedure": "frame-loss", "traffic": {"burst_frames": 16}},
            "burst_frames, load_shape or times of pcap, one only",
        ),
        (
            [0, 10**6],
            {"procedure": "outage", "rate_fps": 1000},
            "whose load over time is its own",
        ),
    ],
)
def test_where_times_have_no_meaning_they_are_refused(
    tmp_path: Path, times_ns: list[int], keys: dict[str, Any], what: str
) -> None:
    path = written(tmp_path / "a.pcap", timed(times_ns))
    with pytest.raises(InputError, match=what):
        cell(path, {"times": "original"}, max_rate_fps=1000, **keys)


def test_a_simple_block_before_any_interface_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    path.write_bytes(
        block("<", 0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
        + block("<", 3, struct.pack("<I", 4) + bytes(4))
    )
    refused(path, "is damaged: frame 1 is of no interface")


@pytest.mark.parametrize("order", "<>")
def test_simple_and_old_blocks_of_pcapng_are_read(tmp_path: Path, order: str) -> None:
    frame = bytes(datagram(100))
    section = struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)
    interface = struct.pack(f"{order}HHI", 1, 0, 60)
    old = struct.pack(f"{order}HHIIII", 0, 0, 0, 0, len(frame), len(frame))
    path = tmp_path / "a.pcapng"
    path.write_bytes(
        block(order, 0x0A0D0D0A, section)
        + block(order, 1, interface)
        + block(order, 99, b"anything")
        + block(order, 3, struct.pack(f"{order}I", len(frame)) + frame[:60])
        + block(order, 2, old + frame)
    )
    found = read(path)
    assert (found.frames, found.cut_short) == ("0:146 0:146", 1)


def test_what_a_snap_length_cut_off_is_sent_and_told(tmp_path: Path) -> None:
    path, frame = tmp_path / "a.pcap", bytes(datagram(1000))
    path.write_bytes(PCAP + struct.pack("<IIII", 0, 0, 42, len(frame)) + frame[:42])
    found = read(path)
    assert (found.frames, found.cut_short) == ("0:1046", 1)
    path.write_bytes(PCAP + struct.pack("<IIII", 0, 0, 39, len(frame)) + frame[:39])
    refused(path, "1 too short for their headers")


def test_a_captured_fcs_is_none_of_the_frame(tmp_path: Path) -> None:
    frame = bytes(datagram(100)) + b"FCS!"
    head = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1 | 0x24000000)
    record = struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame
    path = tmp_path / "a.pcap"
    path.write_bytes(head + record)
    found = read(path)
    assert (found.frames, found.seen_bytes) == ("0:146", 146)


def others() -> dict[str, Packet]:
    ether = Ether(**MACS)
    ends: dict[str, Any] = {"src": "10.0.0.1", "dst": "10.0.0.2"}
    broadcast = Ether(src=MACS["src"], dst="ff:ff:ff:ff:ff:ff")
    wrong = datagram(100)
    wrong[IP].len = 2000
    return {
        "TCP": ether / IP(**ends) / TCP(),
        "ICMP": ether / IP(**ends) / ICMP(),
        "ARP": ether / ARP(),
        "Ethernet type 0x88cc": Ether(**MACS, type=0x88CC) / bytes(60),
        "IEEE 802.3": Ether(**MACS, type=60) / bytes(60),
        "IPv4 with options": ether / IP(**ends, options=[b"\1" * 4]) / UDP(),
        "IPv4 fragments": ether / IP(**ends, flags="MF") / UDP() / bytes(16),
        "IPv6 with extension headers": ether / IPv6() / IPv6ExtHdrFragment() / UDP(),
        "IP protocol 47": ether / IP(**ends, proto=47) / bytes(60),
        "multicast or broadcast": broadcast / IP(**ends) / UDP(),
        "malformed": wrong,
        "longer than 9720 bytes": datagram(10000),
        "too short for their headers": Ether(**MACS, type=0x800) / b"E",
    }


@pytest.mark.parametrize("kind", others())
def test_what_cannot_be_sent_is_refused_by_name_or_left_out_openly(
    tmp_path: Path, kind: str
) -> None:
    path = written(tmp_path / "a.pcap", [datagram(), others()[kind], datagram(50)])
    error = refused(path, f"cannot be sent, of 3: 1 {kind}$")
    assert "others: skip" in error.hint
    found = read(path, others="skip")
    assert found.left_out == {kind: 1}
    assert (found.seen_frames, found.frames) == (3, "0:146 0:96")


def test_nothing_to_send_is_refused_whatever_is_skipped(tmp_path: Path) -> None:
    path = written(tmp_path / "a.pcap", list(others().values()))
    refused(path, "no frame that can be sent, of 13: .*1 TCP", others="skip")


def test_vlan_tags_are_taken_off_and_told(tmp_path: Path) -> None:
    packets = [datagram(100, vlan=True), datagram(100)]
    path = written(tmp_path / "a.pcap", packets)
    found = cell(path)
    assert found.frame_sizes == [146, 146]
    words = found.traffic.pcap.words(4, (1, 1)) if found.traffic.pcap else ""
    assert "2 of 2 frames; 292 of 296 bytes" in words
    assert "1 without their VLAN tags" in words


def test_wrong_checksums_are_no_matter(tmp_path: Path) -> None:
    packet = datagram(100)
    packet[IP].chksum = packet[UDP].chksum = 0xBAD
    assert read(written(tmp_path / "a.pcap", [packet])).frames == "0:146"


def test_short_ipv6_frames_are_made_longer_and_told(tmp_path: Path) -> None:
    path = written(tmp_path / "a.pcap", [datagram(17, ip=6), datagram(18, ip=6)])
    found = cell(path, ip=6)
    assert found.frame_sizes == [84, 84]
    assert found.traffic.pcap
    assert "1 made longer for the tag" in found.traffic.pcap.words(6, (1, 1))


def test_frames_of_the_other_ip_version_are_refused_or_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "a.pcap", [datagram(1), datagram(2, ip=6)])
    with pytest.raises(InputError, match=r"traffic.pcap: a.pcap has 1 frames of IPv6"):
        cell(path)
    found = cell(path, {"others": "skip"})
    assert found.frame_sizes == [64]
    assert found.traffic.pcap
    assert "left out: 1 IPv6" in found.traffic.pcap.words(4, (1, 1))


def test_flows_that_become_one_are_told(tmp_path: Path) -> None:
    path = written(tmp_path / "a.pcap", [datagram(source=n) for n in (1, 2, 3, 1)])
    assert len(stream(cell(path)).tuples.flows) == 1  # type: ignore[union-attr]
    capture = cell(path).traffic.pcap
    assert capture
    assert "1 of 3 flows kept apart" in capture.words(4, (1, 1))
    assert "3 of 3 flows kept apart" in capture.words(4, (3, 1))


PCAP = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "no capture file"),
        (b"a text, and no capture\n", "no capture file"),
        (gzip.compress(PCAP, mtime=0), "is compressed"),
        (PCAP[:-4], "ends in the middle"),
        (PCAP, "has no frames"),
        (PCAP + bytes(10), "ends in the middle of something, behind 0 whole"),
        (PCAP + struct.pack("<IIII", 0, 0, 60, 60) + bytes(59), "ends in the middle"),
        (PCAP + struct.pack("<IIII", 0, 0, 2**31, 60), "is damaged: frame 1 would"),
        (PCAP + struct.pack("<IIII", 0, 0, 60, 59) + bytes(60), "more bytes than"),
        (PCAP[:20] + struct.pack("<I", 113), "link type 113"),
        (block("<", 0x0A0D0D0A, bytes(16)), "without byte order"),
        (block("<", 0x0A0D0D0A, b"\x4d\x3c\x2b\x1a" + bytes(12)), "has no frames"),
    ],
)
def test_files_that_are_no_whole_captures_are_refused(
    tmp_path: Path, content: bytes, what: str
) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(content)
    refused(path, what)


def test_whatever_is_damaged_is_an_input_error_or_read(tmp_path: Path) -> None:
    whole = {
        "a.pcap": written(tmp_path / "a.pcap", datagrams(5, 4)).read_bytes(),
    }
    with PcapNgWriter(str(tmp_path / "a.pcapng")) as writer:
        writer.write(datagrams(5, 4))
    whole["a.pcapng"] = (tmp_path / "a.pcapng").read_bytes()
    draw = random.Random(6)  # noqa: S311
    for name, content in whole.items():
        for _ in range(60):
            damaged = bytearray(content[: draw.randint(1, len(content))])
            for _ in range(draw.randint(0, 3)):
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
            (tmp_path / name).write_bytes(damaged)
            try:
                read(tmp_path / name, others="skip")
            except InputError as error:
                assert name in error.message  # noqa: PT017


def test_too_much_is_refused_with_the_limit(tmp_path: Path) -> None:
    path = written(tmp_path / "a.pcap", [datagram()] * (MOST_FRAMES + 1))
    refused(path, "has 1,025 frames that could be sent; at most 1,024")
    written(path, [datagram(n) for n in range(100, 165)])
    refused(path, "65 different sizes")
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    refused(path, "larger than 64 MiB")
    refused(tmp_path, "cannot be read: Is a directory")
    refused(tmp_path / "none", "cannot be read: No such file")


def test_frames_above_the_mtu_are_refused_at_the_key(tmp_path: Path) -> None:
    path = written(tmp_path / "a.pcap", [datagram(1473)])
    with pytest.raises(InputError, match=r"traffic.pcap: 1519 does not fit the left"):
        cell(path)


@pytest.mark.parametrize(
    "keys",
    [
        {"frame_size": 64},
        {"flows": [1, 2]},
        {"traffic": {"imix": "ab"}},
        {"traffic": {"ports": "fixed"}},
        {"traffic": {"ports": {"source": "fixed"}}},
        {"traffic": {"networks": 2}},
        {"traffic": {"mix": "50/50"}},
        {"traffic": {"broadcast_percent": 1}},
        {"traffic": {"ipv4_options": "nop"}},
        {"traffic": {"fragmented": True}},
        {"traffic": {"group": "default"}},
        {"ip": "6-4"},
        {"procedure": "back-to-back"},
        {"procedure": "tcp-connection-rate"},
        {"sweep": {"key": "flows", "values": [1, 2]}},
    ],
)
def test_what_does_not_go_with_a_capture_is_refused(
    tmp_path: Path, keys: dict[str, Any]
) -> None:
    path = written(tmp_path / "a.pcap", [datagram()])
    with pytest.raises(InputError):
        cell(path, **keys)


def campaign_at(folder: Path) -> Path:
    (folder / "bench.yaml").write_text(TESTBED_YAML)
    path = folder / "campaign.yaml"
    path.write_text(
        "name: c\ntestbed: bench.yaml\nprocedures:\n"
        "  - {procedure: frame-loss, ip: 4, traffic: {pcap: a.pcap}}\n"
    )
    return path


def test_a_stored_campaign_needs_no_file_and_another_file_is_another_one(
    tmp_path: Path,
) -> None:
    path = written(tmp_path / "a.pcap", datagrams(7, 30))
    campaign = load_campaign(campaign_at(tmp_path))
    stored = resolved(campaign, *campaign.testbeds)
    path.unlink()
    kept = tmp_path / "kept.yaml"
    with kept.open("w") as file:
        YAML(typ="safe", pure=True).dump(stored, file)
    again = load_campaign(kept, stored=True)
    assert resolved(again, *again.testbeds) == stored
    assert expand(again, *again.testbeds) == expand(campaign, *campaign.testbeds)
    written(path, datagrams(8, 30))
    other = load_campaign(tmp_path / "campaign.yaml")
    assert resolved(other, *other.testbeds) != stored


def test_a_stored_campaign_reads_no_file(tmp_path: Path) -> None:
    written(tmp_path / "a.pcap", datagrams(7, 30))
    stored = load_campaign(campaign_at(tmp_path), stored=False)
    named = stored.procedures[0].model_copy(
        update={
            "traffic": [
                each.model_copy(update={"pcap": Capture(file="/etc/passwd")})
                for each in stored.procedures[0].traffic
            ]
        }
    )
    asked = stored.model_copy(update={"procedures": [named]})
    with pytest.raises(InputError, match="what was found in it is missing"):
        expand(asked, *asked.testbeds)


def test_neither_payload_nor_addresses_are_stored(tmp_path: Path) -> None:
    packet = datagram(0) / b"secret"
    path = written(tmp_path / "a.pcap", [packet])
    text = cell(path).model_dump_json()
    assert "secret" not in text
    assert "10.0.0" not in text
