"""Capture files, read into what of them is sent: pcap and pcapng, of Ethernet.

Only headers are looked at: of payloads the lengths alone, as the headers say them. So
frames that the capture has cut short are whole again, and checksums that a NIC was to
fill in are no matter: what is sent has its own. Whatever the file holds, the only
exception that leaves this module is InputError.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dutperf.errors import InputError
from dutperf.model.capture import MOST_FRAMES, Capture, CapturedFlow, Reading
from dutperf.model.specs import ProcedureSpec
from dutperf.plain_files import read_plain
from dutperf.protocol.base import IpVersion
from dutperf.protocol.stream_messages import MAX_FRAME_SIZE, MAX_SIZES

MOST_BYTES = 64 << 20
_ETHERNET_LINK, _HEADER, _FCS = 1, 14, 4
_MOST_CAPTURED = 1 << 18
_CUT = "editcap -r FILE SHORTER 1-{most}, or tcpdump -c, makes a shorter one"


class _Found(NamedTuple):
    """A frame of the file.

    Attributes:
        data: what the capture has of it, without FCS.
        bytes: how long it was, without FCS.
    """

    data: bytes
    bytes: int


def with_captures(specs: Sequence[ProcedureSpec], folder: Path) -> list[ProcedureSpec]:
    """``specs`` with what is in the captures that they name, if they name any.

    Args:
        specs: of a campaign.
        folder: that relative paths begin at.

    Raises:
        InputError: a file is no such capture, or has what cannot be sent.
    """
    return [
        spec.model_copy(
            update={
                "traffic": [
                    each.model_copy(update={"pcap": _read(each.pcap, folder)})
                    if each.pcap and each.pcap.read is None
                    else each
                    for each in spec.traffic
                ]
            }
        )
        for spec in specs
    ]


def _read(capture: Capture, folder: Path) -> Capture:
    path = folder / capture.file
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(
                f"{path}: is larger than {MOST_BYTES >> 20} MiB; at most "
                f"{MOST_FRAMES:,} frames of it can be sent in turn",
                _CUT.format(most=MOST_FRAMES),
            )
        content = read_plain(path, MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no such file"
        raise InputError(f"{path}: cannot be read: {why}", "check the path") from None
    try:
        found = list(_frames(content))
    except _NotSoError as error:
        raise InputError(f"{path}: {error}", error.hint) from None
    if not found:
        raise InputError(f"{path}: has no frames", "capture some")
    return capture.model_copy(update={"read": _reading(path, capture, content, found)})


class _NotSoError(Exception):
    """What is wrong with a file, and what to do."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


# The two formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.


_PCAP = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<"}
"""Times in micro- and in nanoseconds, which are no matter here."""
_PCAP |= {magic[::-1]: ">" for magic in list(_PCAP)}
_SECTION, _INTERFACE, _PACKET, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6
_BYTE_ORDER = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_PACKED = {b"\x1f\x8b": "gzip -d", b"\x28\xb5": "unzstd", b"\xfd\x37": "xz -d"}


def _frames(content: bytes) -> Iterator[_Found]:
    if order := _PCAP.get(content[:4]):
        return _of_pcap(content, order)
    if content[:4] == b"\x0a\x0d\x0d\x0a":
        return _of_pcapng(content)
    if program := _PACKED.get(content[:2]):
        raise _NotSoError("is compressed", f"unpack it: {program} FILE")
    raise _NotSoError(
        "is no capture file: neither pcap nor pcapng", "tcpdump -w FILE makes one"
    )


def _unpacked(form: str, content: bytes, place: int, number: int) -> tuple[int, ...]:
    try:
        return struct.unpack_from(form, content, place)
    except struct.error:
        raise _truncated(number) from None


def _truncated(number: int) -> _NotSoError:
    return _NotSoError(
        f"ends in the middle of something, behind {number:,} whole frames",
        "it was cut off: capture again, or write the whole frames to another file "
        "with editcap",
    )


def _checked(content: bytes, place: int, captured: int, number: int) -> bytes:
    if captured > _MOST_CAPTURED:
        raise _NotSoError(
            f"is damaged: frame {number + 1:,} would have {captured:,} bytes",
            "capture again",
        )
    if place + captured > len(content):
        raise _truncated(number)
    return content[place : place + captured]


def _whole(data: bytes, original: int, fcs: int, number: int) -> _Found:
    if original < len(data):
        raise _NotSoError(
            f"is damaged: frame {number + 1:,} has more bytes than it had on the wire",
            "capture again",
        )
    return _Found(data[: max(0, original - fcs)], max(0, original - fcs))


def _of_ethernet(link: int) -> None:
    if link != _ETHERNET_LINK:
        raise _NotSoError(
            f"has frames of link type {link}, not of Ethernet (1)",
            "capture on an Ethernet interface, not on any or a tunnel",
        )


def _of_pcap(content: bytes, order: str) -> Iterator[_Found]:
    (network,) = _unpacked(f"{order}I", content, 20, 0)
    _of_ethernet(network & 0xFFFF)
    fcs = (network >> 28) * 2 if network & 1 << 26 else 0
    place, number = 24, 0
    while place < len(content):
        captured, original = _unpacked(f"{order}8xII", content, place, number)
        data = _checked(content, place + 16, captured, number)
        yield _whole(data, original, fcs, number)
        place, number = place + 16 + captured, number + 1


def _of_pcapng(content: bytes) -> Iterator[_Found]:
    order, place, number = "<", 0, 0
    links: list[tuple[int, int]] = []
    while place < len(content):
        if content[place : place + 4] == b"\x0a\x0d\x0d\x0a":
            order = _BYTE_ORDER.get(content[place + 8 : place + 12], "")
            links = []
            if not order:
                raise _NotSoError("is damaged: a section without byte order", "")
        kind, length = _unpacked(f"{order}II", content, place, number)
        if length < 12 or length % 4:
            raise _NotSoError(
                f"is damaged behind frame {number:,}: a block of {length:,} bytes",
                "capture again",
            )
        if place + length > len(content):
            raise _truncated(number)
        body = content[place + 8 : place + length - 4]
        place += length
        if kind == _INTERFACE:
            link, most = _unpacked(f"{order}H2xI", body, 0, number)
            links.append((link, most or _MOST_CAPTURED))
        if kind not in (_ENHANCED, _SIMPLE, _PACKET):
            continue
        interface, begin = 0, 20
        if kind == _SIMPLE:
            (original,) = _unpacked(f"{order}I", body, 0, number)
            captured, begin = min(original, *(most for _, most in links[:1])), 4
        elif kind == _ENHANCED:
            form = f"{order}I8xII"
            interface, captured, original = _unpacked(form, body, 0, number)
        else:
            form = f"{order}H10xII"
            interface, captured, original = _unpacked(form, body, 0, number)
        if interface >= len(links):
            raise _NotSoError(
                f"is damaged: frame {number + 1:,} is of no interface", "capture again"
            )
        _of_ethernet(links[interface][0])
        data = _checked(body, begin, captured, number)
        yield _whole(data, original, 0, number)
        number += 1


# What a frame is: one that can be sent, or of which kind.


_TAGS = (0x8100, 0x88A8, 0x9100, 0x9200)
_VERSIONS: dict[int, IpVersion] = {0x0800: 4, 0x86DD: 6}
_UDP = 17
_NAMES = {1: "ICMP", 2: "IGMP", 6: "TCP", 58: "ICMPv6", 132: "SCTP"}
_EXTENSIONS = (0, 43, 44, 51, 60, 135)


class _Datagram(NamedTuple):
    version: IpVersion
    source: bytes
    destination: bytes
    ports: tuple[int, int]
    size: int
    tags: int


def _classified(frame: _Found) -> _Datagram | str:
    """What is sent of it, or what kind it is of that cannot be."""
    data = frame.data
    tags = 0
    while data[12:14] and int.from_bytes(data[12:14]) in _TAGS:
        data, tags = data[:12] + data[16:], tags + 1
    wire = frame.bytes - 4 * tags
    try:
        return _datagram(data, wire, tags)
    except struct.error:
        return "too short for their headers"


def _datagram(data: bytes, wire: int, tags: int) -> _Datagram | str:
    (ether_type,) = struct.unpack_from("!H", data, 12)
    version = _VERSIONS.get(ether_type)
    if version is None:
        named = {0x0806: "ARP"}.get(ether_type, f"Ethernet type 0x{ether_type:04x}")
        return named if ether_type >= 0x600 else "IEEE 802.3"
    if version == 4:
        first, length, piece, protocol = struct.unpack_from("!BxH2xHxB", data, _HEADER)
        header, ends = 20, struct.unpack_from("!4s4s", data, _HEADER + 12)
        if first >> 4 != 4 or first & 0xF < 5:
            return "malformed"
        if first != 0x45:
            return "IPv4 with options"
        if piece & 0x3FFF:
            return "IPv4 fragments"
    else:
        first, payload, protocol = struct.unpack_from("!B3xHB", data, _HEADER)
        header, ends = 40, struct.unpack_from("!16s16s", data, _HEADER + 8)
        length = 40 + payload
        if first >> 4 != 6:
            return "malformed"
        if protocol in _EXTENSIONS:
            return "IPv6 with extension headers"
    if protocol != _UDP:
        return _NAMES.get(protocol, f"IP protocol {protocol}")
    source, destination, of_udp = struct.unpack_from("!HHH", data, _HEADER + header)
    if of_udp < 8 or header + of_udp != length or _HEADER + length > wire:
        return "malformed"
    if data[0] & 1:
        return "multicast or broadcast"
    size = max(64, _HEADER + length + _FCS)
    if size > MAX_FRAME_SIZE:
        return f"longer than {MAX_FRAME_SIZE} bytes"
    return _Datagram(version, ends[0], ends[1], (source, destination), size, tags)


def _reading(
    path: Path, capture: Capture, content: bytes, found: list[_Found]
) -> Reading:
    kinds = [_classified(frame) for frame in found]
    sent = [each for each in kinds if isinstance(each, _Datagram)]
    left_out = Counter(each for each in kinds if isinstance(each, str))
    listed = ", ".join(f"{n:,} {kind}" for kind, n in left_out.items())
    if not sent:
        raise InputError(
            f"{path}: has no frame that can be sent, of {len(found):,}: {listed}",
            "the tester sends unicast UDP over IPv4 or IPv6",
        )
    if left_out and capture.others == "refuse":
        raise InputError(
            f"{path}: has frames that cannot be sent, of {len(found):,}: {listed}",
            "others: skip (--pcap-others skip) leaves them out; or filter the capture",
        )
    if len(sent) > MOST_FRAMES:
        raise InputError(
            f"{path}: has {len(sent):,} frames that could be sent; at most "
            f"{MOST_FRAMES:,} are sent in turn",
            _CUT.format(most=MOST_FRAMES),
        )
    for version in (4, 6):
        sizes = {each.size for each in sent if each.version == version}
        if len(sizes) > MAX_SIZES:
            raise InputError(
                f"{path}: IPv{version} frames have {len(sizes)} different sizes; the "
                f"tester holds frames of at most {MAX_SIZES} ready",
                "use a shorter part of it: " + _CUT.format(most=100),
            )
    numbers: dict[tuple[IpVersion, str], dict[bytes, int]] = {}
    flows: dict[CapturedFlow, int] = {}
    frames: list[str] = []
    for each in sent:
        sources = numbers.setdefault((each.version, "source"), {})
        destinations = numbers.setdefault((each.version, "destination"), {})
        flow = CapturedFlow(
            each.version,
            sources.setdefault(each.source, len(sources)),
            destinations.setdefault(each.destination, len(destinations)),
            *each.ports,
        )
        frames.append(f"{flows.setdefault(flow, len(flows))}:{each.size}")
    pairs = zip(found, kinds, strict=True)
    sent_of = [(f, k) for f, k in pairs if isinstance(k, _Datagram)]
    return Reading(
        sha256=hashlib.sha256(content).hexdigest(),
        seen_frames=len(found),
        seen_bytes=sum(max(64, frame.bytes + _FCS) for frame in found),
        left_out=dict(left_out),
        cut_short=sum(len(f.data) < f.bytes for f, _ in sent_of),
        tagged=sum(k.tags > 0 for _, k in sent_of),
        flows=[" ".join(map(str, flow)) for flow in flows],
        frames=" ".join(frames),
    )
