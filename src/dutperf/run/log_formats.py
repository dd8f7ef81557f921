"""Logs of mappings as devices write them, read into entries.

Whatever a device sends is read; what is of no mapping, or broken, is counted.
"""

from __future__ import annotations

import ipaddress
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from dutperf.config.testbed import NatLog
from dutperf.results.device_log import LogEntry


class Piece(NamedTuple):
    """A datagram, or what was appended to a file; late: what begins after in_time."""

    data: bytes
    in_time: int


@dataclass
class LogRead:
    """What became of it.

    unread: lines or records of no mapping, or broken.
    untold: why entries may be missing that the device wrote.
    """

    entries: list[LogEntry] = field(default_factory=list)
    unread: int = 0
    untold: list[str] = field(default_factory=list)


def read_log(how: NatLog, pieces: Sequence[Piece]) -> LogRead:
    """All pieces, in their order."""
    if how.format == "ipfix":
        return _ipfix(pieces)
    read = LogRead()
    pattern = re.compile(how.pattern) if how.pattern else _CONNTRACK
    for piece in pieces:
        at = 0
        for line in piece.data.split(b"\n"):
            if line.strip():
                _note(read, _line(line, pattern), late=at >= piece.in_time)
            at += len(line) + 1
    return read


def _note(read: LogRead, entry: LogEntry | None, *, late: bool) -> None:
    if entry:
        read.entries.append(entry._replace(late=late))
    else:
        read.unread += 1


# Lines: of conntrack -E, and of syslog by the user's pattern.


_CONNTRACK = re.compile(
    r"^(?:\[ *(?P<time>[0-9]+)\.(?P<us>[0-9]{1,6}) *\])?\s*"
    r"\[(?:NEW|(?P<deleted>DESTROY))\].*?src=(?P<inside>\S+) dst=\S+ "
    r"sport=(?P<inside_port>[0-9]+) dport=[0-9]+ .*?src=(?P<remote>\S+) "
    r"dst=(?P<public>\S+) sport=(?P<remote_port>[0-9]+) dport=(?P<public_port>[0-9]+)"
)
"""With -o timestamp or not. Its microseconds have no zeros at their begin."""
_HEADER_TIME = re.compile(r"^(?:<[0-9]{1,3}>1 )?([0-9]{4}-[0-9]{2}-[0-9]{2}T\S+)")
"""RFC 5424 6.2.3; files often begin with it."""
_LONGEST_BYTES = 4096
"""Of a line; in a longer one a pattern may look for its end for hours."""


def _line(data: bytes, pattern: re.Pattern[str]) -> LogEntry | None:
    line = data[: _LONGEST_BYTES + 1].decode(errors="replace")
    found = pattern.search(line) if len(line) <= _LONGEST_BYTES else None
    if not found:
        return None
    told = defaultdict[str, str | None](lambda: None, found.groupdict())
    header = _HEADER_TIME.match(line)
    time = told["time"] or (header[1] if header else None)
    first = told["first_port"] or told["public_port"] or ""
    try:
        return LogEntry(
            inside=_address(told["inside"]),
            inside_port=None if told["first_port"] else _port(told["inside_port"]),
            public=_address(told["public"]),
            first_port=_port(first),
            last_port=_port(told["last_port"] or first),
            remote=_address(told["remote"]) if told["remote"] else None,
            remote_port=_port(told["remote_port"]) if told["remote_port"] else None,
            time_ns=_time_ns(time) + int(told["us"] or 0) * 1000 if time else None,
            ends=bool(told["deleted"]),
        )
    except (ValueError, OverflowError):
        return None


def _address(text: str | None) -> str:
    """As learned ones are written, whatever its form."""
    return str(ipaddress.ip_address(text or ""))


def _port(text: str | None) -> int:
    port = int(text or "")
    if not 0 <= port <= 65535:
        raise ValueError(text)
    return port


def _time_ns(text: str) -> int:
    """Of RFC 3339, without a zone UTC; or of seconds since 1970."""
    if re.fullmatch(r"[0-9]{1,11}(\.[0-9]+)?", text):
        return round(float(text) * 10**6) * 1000
    told = datetime.fromisoformat(text)
    known = told if told.tzinfo else told.replace(tzinfo=UTC)
    return round(known.timestamp() * 10**6) * 1000


# IPFIX (RFC 7011) with the information elements of NAT events (RFC 8158).


_VERSION = 10
_HEADER_BYTES = 16
_TEMPLATES, _OPTIONS = 2, 3
"""Sets of these numbers have templates, from 256 on records."""
_FIRST_DATA = 256
_VARIABLE = 65535
_BEGINS = {1, 4, 6, 8, 10, 16}
_ENDS = {2, 5, 7, 9, 11, 17}
"""natEvent: translation (historic), NAT44 and NAT64 session, BIB, and block."""
_EVENT, _TIME_MS = 230, 323
_INSIDES, _INSIDE_PORT = (8, 27), 7
_PUBLICS, _PUBLIC_PORT = (225, 281), 227
_REMOTES, _REMOTE_PORTS = (226, 282, 12, 28), (228, 11)
"""The destination behind the NAT; else the one before it."""
_RANGE_FIRST, _RANGE_LAST, _RANGE_STEP, _RANGE_SIZE = 361, 362, 363, 364

_Record = dict[int, bytes]
_Template = list[tuple[int, int]]
"""Fields: element, 0 for one of an enterprise; and length."""


class _Message(NamedTuple):
    """How many records its domain had sent before; sets by number."""

    domain: int
    sent_before: int
    sets: list[tuple[int, bytes]]
    late: bool


def _ipfix(pieces: Sequence[Piece]) -> LogRead:
    """In two passes: a template may come behind the records that need it."""
    read = LogRead()
    messages = [m for piece in pieces for m in _messages(piece, read)]
    templates: dict[tuple[int, int], _Template] = {}
    for message in messages:
        for number, data in message.sets:
            if number in (_TEMPLATES, _OPTIONS):
                for key, template in _templates(data, number == _OPTIONS, read):
                    templates[message.domain, key] = template
    unknown = 0
    sent: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for message in messages:
        records = 0
        for number, data in message.sets:
            template = templates.get((message.domain, number), [])
            unknown += number >= _FIRST_DATA and not template
            for record in _records(data, template, read):
                records += 1
                _note(read, _nat_event(record), late=message.late)
        sent[message.domain].append((message.sent_before, records))
    if unknown:
        read.untold.append(
            f"the template of {unknown:,} sets did not come: let the device send it "
            "more often"
        )
    elif gone := sum(map(_gone, sent.values())):
        read.untold.append(
            f"by the sequence numbers {gone:,} records were sent that did not come"
        )
    return read


def _gone(messages: Sequence[tuple[int, int]]) -> int:
    """Records that a domain sent and nobody received (RFC 7011 3.1)."""
    *before, last = sorted(messages)
    came = sum(records for _, records in before)
    return max(0, last[0] - (before or [last])[0][0] - came)


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _parts(data: bytes, header_bytes: int, read: LogRead) -> Iterator[tuple[int, int]]:
    """Begin and end of each, whose second two bytes are its length with its header."""
    at = 0
    while at < len(data):
        size = _number(data[at + 2 : at + 4])
        if size < header_bytes or at + size > len(data):
            read.unread += 1
            return
        yield at, at + size
        at += size


def _messages(piece: Piece, read: LogRead) -> Iterator[_Message]:
    for begin, end in _parts(piece.data, _HEADER_BYTES, read):
        message = piece.data[begin:end]
        if _number(message[:2]) != _VERSION:
            read.unread += 1
            continue
        body = message[_HEADER_BYTES:]
        sets = [
            (_number(body[at : at + 2]), body[at + 4 : last])
            for at, last in _parts(body, 4, read)
        ]
        sent_before, domain = _number(message[8:12]), _number(message[12:16])
        yield _Message(domain, sent_before, sets, late=begin >= piece.in_time)


def _templates(
    data: bytes, of_options: bool, read: LogRead
) -> Iterator[tuple[int, _Template]]:
    """By number."""
    at = 0
    while at + 4 <= len(data):
        number, count = _number(data[at : at + 2]), _number(data[at + 2 : at + 4])
        if number < _FIRST_DATA:  # padding
            return
        at += 6 if of_options else 4
        fields: _Template = []
        for _ in range(count):
            if at + 4 > len(data):
                read.unread += 1
                return
            element, size = _number(data[at : at + 2]), _number(data[at + 2 : at + 4])
            of_enterprise = element >> 15
            fields.append((0 if of_enterprise else element, size))
            at += 8 if of_enterprise else 4
        yield number, fields


def _records(data: bytes, fields: _Template, read: LogRead) -> Iterator[_Record]:
    least = sum(1 if size == _VARIABLE else size for _, size in fields)
    at = 0
    while least and at + least <= len(data):
        record: _Record = {}
        for element, told in fields:
            size = told
            if size == _VARIABLE:
                size, at = _number(data[at : at + 1]), at + 1
                if size == 255:
                    size, at = _number(data[at : at + 2]), at + 2
            record[element] = data[at : at + size]
            at += size
        if at > len(data):
            read.unread += 1
            return
        yield record


def _nat_event(record: _Record) -> LogEntry | None:
    event = _number(record.get(_EVENT, b""))
    inside, public = _host(record, *_INSIDES), _host(record, *_PUBLICS)
    first, last = _ports(record)
    if event not in _BEGINS | _ENDS or not inside or not public or not 0 < last < 65536:
        return None
    is_block = _RANGE_FIRST in record
    remote = None if is_block else _host(record, *_REMOTES)
    remote_port = next((record[e] for e in _REMOTE_PORTS if e in record), b"")
    time = record.get(_TIME_MS)
    return LogEntry(
        inside=inside,
        inside_port=None if is_block else _number(record.get(_INSIDE_PORT, b"")),
        public=public,
        first_port=first,
        last_port=last,
        remote=remote,
        remote_port=_number(remote_port) if remote else None,
        time_ns=_number(time) * 10**6 if time else None,
        ends=event in _ENDS,
    )


def _ports(record: _Record) -> tuple[int, int]:
    """First and last public one; the last is 0 if they are not told, or in no row."""
    first = _number(record.get(_RANGE_FIRST, record.get(_PUBLIC_PORT, b"")))
    if _RANGE_FIRST not in record:
        return first, first
    if _number(record.get(_RANGE_STEP, b"")) > 1:
        return first, 0
    size = _number(record.get(_RANGE_SIZE, b""))
    return first, _number(record.get(_RANGE_LAST, b"")) or first + size - 1


def _host(record: _Record, *elements: int) -> str | None:
    """The first of these that is there, and an address."""
    for element in elements:
        data = record.get(element, b"")
        if any(data) and len(data) in (4, 16):
            return str(ipaddress.ip_address(data))
    return None
