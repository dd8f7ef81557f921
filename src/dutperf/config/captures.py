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
from fractions import Fraction
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
        at_ns: when it was captured; None: the file does not say.
    """

    data: bytes
    bytes: int
    at_ns: int | None


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


_PCAP = {b"\xd4\xc3\xb2\xa1": ("<", 1000), b"\x4d\x3c\xb2\xa1": ("<", 1)}
"""Byte order, and nanoseconds of a time's smaller part."""
_PCAP |= {magic[::-1]: (">", ns) for magic, (_, ns) in list(_PCAP.items())}
_RESOLUTION, _OFFSET = 9, 14
"""Options of an interface: if_tsresol and if_tsoffset."""
_SECTION, _INTERFACE, _PACKET, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6
_BYTE_ORDER = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_PACKED = {b"\x1f\x8b": "gzip -d", b"\x28\xb5": "unzstd", b"\xfd\x37": "xz -d"}


def _frames(content: bytes) -> Iterator[_Found]:
    if content[:4] in _PCAP:
        return _of_pcap(content, *_PCAP[content[:4]])
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


def _whole(
    data: bytes, original: int, fcs: int, number: int, at_ns: int | None
) -> _Found:
    if original < len(data):
        raise _NotSoError(
            f"is damaged: frame {number + 1:,} has more bytes than it had on the wire",
            "capture again",
        )
    return _Found(data[: max(0, original - fcs)], max(0, original - fcs), at_ns)


def _of_ethernet(link: int) -> None:
    if link != _ETHERNET_LINK:
        raise _NotSoError(
            f"has frames of link type {link}, not of Ethernet (1)",
            "capture on an Ethernet interface, not on any or a tunnel",
        )


def _of_pcap(content: bytes, order: str, part_ns: int) -> Iterator[_Found]:
    (network,) = _unpacked(f"{order}I", content, 20, 0)
    _of_ethernet(network & 0xFFFF)
    fcs = (network >> 28) * 2 if network & 1 << 26 else 0
    place, number = 24, 0
    while place < len(content):
        form = f"{order}4I"
        seconds, parts, captured, original = _unpacked(form, content, place, number)
        data = _checked(content, place + 16, captured, number)
        at_ns = seconds * 10**9 + parts * part_ns
        yield _whole(data, original, fcs, number, at_ns)
        place, number = place + 16 + captured, number + 1


class _Interface(NamedTuple):
    """Of a pcapng: its link type, how much of a frame it captures, and its clock."""

    link: int
    most: int
    units_per_s: Fraction
    offset_s: int

    def time_ns(self, units: int) -> int:
        return self.offset_s * 10**9 + round(units * 10**9 / self.units_per_s)


def _interface(body: bytes, order: str, number: int) -> _Interface:
    link, most = _unpacked(f"{order}H2xI", body, 0, number)
    options: dict[int, bytes] = {}
    place = 8
    while place + 4 <= len(body):
        code, size = _unpacked(f"{order}HH", body, place, number)
        options.setdefault(code, body[place + 4 : place + 4 + size])
        place += 4 + size + -size % 4
    unit = int.from_bytes(options.get(_RESOLUTION, b"\x06")[:1])
    per_s = Fraction(2 if unit & 0x80 else 10) ** (unit & 0x7F)
    offset = options.get(_OFFSET, b"")
    (offset_s,) = _unpacked(f"{order}q", offset.ljust(8, b"\0"), 0, number)
    return _Interface(link, most or _MOST_CAPTURED, per_s, offset_s)


def _of_pcapng(content: bytes) -> Iterator[_Found]:
    order, place, number = "<", 0, 0
    links: list[_Interface] = []
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
            links.append(_interface(body, order, number))
        if kind not in (_ENHANCED, _SIMPLE, _PACKET):
            continue
        interface, begin, at = 0, 20, None
        if kind == _SIMPLE:
            (original,) = _unpacked(f"{order}I", body, 0, number)
            captured, begin = min([original, *(link.most for link in links[:1])]), 4
        else:
            form = f"{order}{'I' if kind == _ENHANCED else 'H2x'}4I"
            interface, *at, captured, original = _unpacked(form, body, 0, number)
        if interface >= len(links):
            raise _NotSoError(
                f"is damaged: frame {number + 1:,} is of no interface", "capture again"
            )
        of = links[interface]
        _of_ethernet(of.link)
        data = _checked(body, begin, captured, number)
        at_ns = of.time_ns(at[0] << 32 | at[1]) if at else None
        yield _whole(data, original, 0, number, at_ns)
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
        times_ns=_times(path, sent_of) if capture.times == "original" else "",
    )


def _times(path: Path, sent: Sequence[tuple[_Found, _Datagram]]) -> str:
    """When each was captured, in nanoseconds after the first one."""
    times_ns = [found.at_ns for found, _ in sent]
    known_ns = [at_ns for at_ns in times_ns if at_ns is not None]
    if len(known_ns) < len(times_ns):
        raise InputError(
            f"{path}: does not say when its frames were captured, for times: original",
            "capture again, or leave times (--pcap-times) out",
        )
    if known_ns != sorted(known_ns):
        raise InputError(
            f"{path}: has a frame that is older than the one before, for times: "
            "original",
            "reordercap FILE SORTED puts them in order",
        )
    return " ".join(str(at_ns - known_ns[0]) for at_ns in known_ns)
