"""Readers of frames that share no code with the engine: scapy, tshark, the tag itself.

``from readers import ...``; pytest puts this directory on the path.
"""

from __future__ import annotations

import ipaddress
import shutil
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import rdpcap

from dutperf.protocol.base import IpVersion
from dutperf.protocol.stream_messages import FieldName

needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="needs Debian's tshark"
)

TAG = struct.Struct(">HHBBHIHI")
MAGIC = 0xD07F
_HEADERS: dict[IpVersion, int] = {4: 14 + 20 + 8, 6: 14 + 40 + 8}


@dataclass(frozen=True)
class Tag:
    magic: int
    trial: int
    stream: int
    flags: int
    sequence: int
    stamp_ns: int


def tag_of(frame: bytes) -> Tag:
    """The last 18 bytes of the IP packet: two 48-bit numbers stand at its end."""
    fields = TAG.unpack(frame[-TAG.size :])
    magic, trial, stream, flags, sequence_high, sequence, stamp_high, stamp = fields
    return Tag(
        magic,
        trial,
        stream,
        flags,
        sequence_high << 32 | sequence,
        stamp_high << 32 | stamp,
    )


@dataclass(frozen=True)
class Seen:
    """What a reader finds in a frame; lengths in bytes, fields as numbers."""

    ip_version: IpVersion
    frame_bytes: int
    ip_payload_bytes: int
    udp_bytes: int
    fields: dict[FieldName, int]
    ttl: int
    dscp: int
    df: bool
    udp_checksum: int
    all_good: bool
    """No checksum is wrong, and nothing else is."""
    tag: Tag


def headers_of(frame: bytes) -> Packet:
    """Ethernet to UDP: what stands behind belongs to no application."""
    version: IpVersion = 4 if frame[12:14] == b"\x08\x00" else 6
    return Ether(frame[: _HEADERS[version]])


def with_good_checksums(frame: bytes) -> bytes:
    """``frame`` with the checksums that scapy computes."""
    packet = headers_of(frame)
    for layer in (IP, UDP):
        if layer in packet:
            del packet[layer].chksum
    return bytes(packet / Raw(frame[len(bytes(headers_of(frame))) :]))


def without_stamp(frame: bytes) -> bytes:
    """``frame`` without what differs between two trials: stamp and UDP checksum."""
    packet = headers_of(frame)
    packet[UDP].chksum = 0
    return bytes(packet / Raw(frame[len(bytes(packet)) : -6]))


def scapy_reads(path: Path) -> list[Seen]:
    return [_by_scapy(bytes(packet)) for packet in rdpcap(str(path))]


def _by_scapy(frame: bytes) -> Seen:
    packet = headers_of(frame)
    udp = packet[UDP]
    fields: dict[FieldName, int] = {
        **_macs(packet.src, packet.dst),
        "src_port": udp.sport,
        "dst_port": udp.dport,
    }
    if IP in packet:
        ip = packet[IP]
        length, ttl, traffic_class = ip.len - 20, ip.ttl, ip.tos
        version: IpVersion = 4
    else:
        ip = packet[IPv6]
        length, ttl, traffic_class = ip.plen, ip.hlim, ip.tc
        version, fields["flow_label"] = 6, ip.fl
    return Seen(
        ip_version=version,
        frame_bytes=len(frame),
        ip_payload_bytes=length,
        udp_bytes=udp.len,
        fields=fields | _ips(ip.src, ip.dst),
        ttl=ttl,
        dscp=traffic_class >> 2,
        df=version == 4 and "DF" in ip.flags,
        udp_checksum=udp.chksum,
        all_good=with_good_checksums(frame) == frame,
        tag=tag_of(frame),
    )


def _macs(src: str, dst: str) -> dict[FieldName, int]:
    src_mac, dst_mac = (int(mac.replace(":", ""), 16) for mac in (src, dst))
    return {"src_mac": src_mac, "dst_mac": dst_mac}


def _ips(src: str, dst: str) -> dict[FieldName, int]:
    src_ip, dst_ip = (int(ipaddress.ip_address(ip)) for ip in (src, dst))
    return {"src_ip": src_ip, "dst_ip": dst_ip}


_COLUMNS = [
    *("frame.len", "eth.src", "eth.dst", "_ws.malformed", "udp.srcport"),
    *("udp.dstport", "udp.length", "udp.checksum", "udp.checksum.status"),
    *("udp.payload", "ip.src", "ip.dst", "ip.len", "ip.ttl", "ip.dsfield.dscp"),
    *("ip.flags.df", "ip.checksum.status", "ipv6.src", "ipv6.dst", "ipv6.plen"),
    *("ipv6.hlim", "ipv6.tclass.dscp", "ipv6.flow"),
]


def tshark_reads(path: Path) -> list[Seen]:
    return [_by_tshark(row) for row in tshark(path, _COLUMNS)]


def tshark(
    path: Path, columns: list[str], ports: str = "0-65535"
) -> list[dict[str, str]]:
    """Each frame's columns; empty text where a frame has no such column.

    Checksums are checked. The payload of ``ports`` is data, not some application's.
    """
    command = ["tshark", "-n", "-r", str(path), "-T", "fields"]
    for layer in ("udp", "tcp"):
        command += ["-d", f"{layer}.port=={ports},data"]
    for option in ("ip.check_checksum", "udp.check_checksum", "tcp.check_checksum"):
        command += ["-o", f"{option}:TRUE"]
    command += [part for column in columns for part in ("-e", column)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    return [dict(zip(columns, line.split("\t"), strict=True)) for line in lines]


def _by_tshark(row: dict[str, str]) -> Seen:
    v4 = row["ip.src"] != ""
    good = row["udp.checksum.status"] == "1" and row["_ws.malformed"] == ""
    fields: dict[FieldName, int] = {
        **_macs(row["eth.src"], row["eth.dst"]),
        "src_port": int(row["udp.srcport"]),
        "dst_port": int(row["udp.dstport"]),
    }
    if v4:
        length = int(row["ip.len"]) - 20
        good = good and row["ip.checksum.status"] == "1"
        fields |= _ips(row["ip.src"], row["ip.dst"])
    else:
        length = int(row["ipv6.plen"])
        fields |= _ips(row["ipv6.src"], row["ipv6.dst"])
        fields["flow_label"] = int(row["ipv6.flow"], 16)
    return Seen(
        ip_version=4 if v4 else 6,
        frame_bytes=int(row["frame.len"]),
        ip_payload_bytes=length,
        udp_bytes=int(row["udp.length"]),
        fields=fields,
        ttl=int(row["ip.ttl"] or row["ipv6.hlim"]),
        dscp=int(row["ip.dsfield.dscp"] or row["ipv6.tclass.dscp"]),
        df=row["ip.flags.df"] in {"1", "True"},
        udp_checksum=int(row["udp.checksum"], 16),
        all_good=good,
        tag=tag_of(bytes.fromhex(row["udp.payload"])),
    )


READERS: list[Callable[[Path], list[Seen]]] = [scapy_reads, tshark_reads]
