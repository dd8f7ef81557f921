"""The binding table of an lwAFTR as a file: which B4 has an address and its ports.

One line for each entry, one that names the columns first; lines that are empty or begin
with # are none::

    ipv4,psid_length,psid,b4
    192.0.2.1,8,4,2001:db8:0:104::1

The words are RFC 7597's, or those of the softwire model (RFC 8676 A.2):
``binding-ipv4-addr``, ``psid-len``, ``psid-offset``, ``binding-ipv6info``. The engine
has entries as rows of 24 bytes: B4, IPv4 address, PSID, its length, its offset.
"""

from __future__ import annotations

import hashlib
import os
import socket
import struct
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path

from dutperf.errors import InputError
from dutperf.protocol.base import MAX_BINDINGS

_COLUMNS = {
    "ipv4": "ipv4",
    "binding-ipv4-addr": "ipv4",
    "psid": "psid",
    "psid_length": "psid_length",
    "psid-len": "psid_length",
    "psid_offset": "psid_offset",
    "psid-offset": "psid_offset",
    "b4": "b4",
    "binding-ipv6info": "b4",
}
_NEEDED = ("ipv4", "psid", "psid_length", "b4")
_HEADER = "begin with a line like ipv4,psid_length,psid,b4"
_MOST_BYTES = 512 * MAX_BINDINGS
_LONGEST_LINE = 1000
_PORT_BITS = 16
_SYSTEM_PORTS = 1024
_ROW = struct.Struct(">16s4sHBB")
_NO_B4 = (bytes(16), bytes(15) + b"\x01")
_MULTICAST = 0xFF


@dataclass(frozen=True)
class Bindings:
    """A table that has been read, each of whose entries is right.

    Attributes:
        rows: as the engine has them.
        digest: SHA-256 of the file.
    """

    rows: bytes
    digest: str

    def __len__(self) -> int:
        return len(self.rows) // _ROW.size

    def __iter__(self) -> Iterator[tuple[bytes, bytes, int, int, int]]:
        """Of each entry B4, IPv4 address, PSID, its length and offset."""
        return _ROW.iter_unpack(self.rows)

    @property
    def encoded(self) -> str:
        """The rows in base64."""
        return b64encode(self.rows).decode()

    @cached_property
    def can_be_spoofed(self) -> bool:
        """Whether two entries that have ports to send from have different B4s."""
        return len({row[0] for row in self if _can_send(*row[2:])}) > 1

    @cached_property
    def _addresses(self) -> frozenset[bytes]:
        return frozenset(row[1] for row in self)

    def holds(self, ipv4: str) -> bool:
        """Whether a B4 has that address."""
        return socket.inet_aton(ipv4) in self._addresses


def _can_send(psid: int, length: int, offset: int) -> bool:
    """Without an offset a set may lie below 1024, where nobody sends from."""
    end = (psid + 1) << (_PORT_BITS - offset - length)
    return offset > 0 or end > _SYSTEM_PORTS


def read_bindings(path: Path) -> Bindings:
    """The table in the file at ``path``; read once, as long as it does not change.

    Raises:
        InputError: names file and line of the first thing wrong, and what to do.
    """
    try:
        status = path.stat()
        if not path.is_file():
            raise InputError(f"{path}: is no file", "give the path of a binding table")
        if status.st_size > _MOST_BYTES:
            raise InputError(
                f"{path}: has {status.st_size:,} bytes, and a table of "
                f"{MAX_BINDINGS:,} entries has not so many",
                "give a table with a line for each entry",
            )
        return _read(path, status.st_mtime_ns, status.st_size, status.st_ino)
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(
            f"{path}: cannot be read: {why}", "give the path of a binding table"
        ) from None


@lru_cache(maxsize=4)
def _read(path: Path, *_version: int) -> Bindings:
    digest = hashlib.sha256()
    rows: list[bytes] = []
    spans: list[tuple[int, int, int]] = []
    columns: list[str] = []
    offset = -1
    line = 0
    with path.open("rb") as file:
        while raw := file.readline(_LONGEST_LINE + 1):
            line += 1
            where = f"{path}:{line}"
            if len(raw) > _LONGEST_LINE:
                raise InputError(
                    f"{where}: has more than {_LONGEST_LINE} bytes",
                    "give each entry a line of its own",
                )
            digest.update(raw)
            fields = _fields(raw, where, first=line == 1)
            if fields is None:
                continue
            if not columns:
                columns = _header(fields, where)
                continue
            if len(fields) != len(columns):
                raise InputError(
                    f"{where}: has {len(fields)} columns, and the first line "
                    f"{len(columns)}",
                    f"give {', '.join(columns)}",
                )
            if len(rows) == MAX_BINDINGS:
                raise InputError(
                    f"{where}: there are more than {MAX_BINDINGS:,} entries",
                    "give fewer entries",
                )
            row = _row(dict(zip(columns, fields, strict=True)), where)
            rows.append(row)
            _, ipv4, psid, length, own_offset = _ROW.unpack(row)
            if offset not in (-1, own_offset):
                raise InputError(
                    f"{where}: psid_offset is {own_offset}, and was {offset} above",
                    "give all entries of a table one psid_offset",
                )
            offset = own_offset
            behind = _PORT_BITS - own_offset - length
            first = int.from_bytes(ipv4) << _PORT_BITS | psid << behind
            spans.append((first, line, 1 << behind))
    if not rows:
        raise InputError(f"{path}: has no entries", _HEADER)
    _check_overlap(path, spans)
    if not any(_can_send(*_ROW.unpack(row)[2:]) for row in rows):
        raise InputError(
            f"{path}: no entry has a port from {_SYSTEM_PORTS} on",
            "those below are nobody's to send from (RFC 6335 6): give others",
        )
    return Bindings(b"".join(rows), digest.hexdigest())


def _fields(raw: bytes, where: str, *, first: bool) -> list[str] | None:
    """Those of a line; None: it has none."""
    try:
        text = raw.decode("utf-8-sig" if first else "utf-8").strip()
    except UnicodeDecodeError:
        raise InputError(
            f"{where}: is no text in UTF-8", "save the table as CSV in UTF-8"
        ) from None
    if not text or text.startswith("#"):
        return None
    return [field.strip() for field in text.split(",")]


def _header(fields: list[str], where: str) -> list[str]:
    columns = [_COLUMNS.get(field.lower(), "") for field in fields]
    for field, column in zip(fields, columns, strict=True):
        if not column:
            known = ", ".join(dict.fromkeys(_COLUMNS.values()))
            raise InputError(
                f"{where}: {field[:40]!r} is no column, those are {known}",
                f"{_HEADER}, separated by commas",
            )
        if columns.count(column) > 1:
            raise InputError(f"{where}: column {column} stands twice", _HEADER)
    for column in _NEEDED:
        if column not in columns:
            raise InputError(f"{where}: column {column} is missing", _HEADER)
    return columns


def _row(entry: Mapping[str, str], where: str) -> bytes:
    offset = _number(entry, "psid_offset", _PORT_BITS - 1, where)
    length = _number(entry, "psid_length", _PORT_BITS, where)
    if offset + length > _PORT_BITS:
        raise InputError(
            f"{where}: psid_offset {offset} and psid_length {length} are more bits "
            "than a port has, 16",
            "give a shorter psid_length or psid_offset (RFC 7597 5.1)",
        )
    psid = _number(entry, "psid", (1 << length) - 1, where)
    return _ROW.pack(
        _address(entry, "b4", socket.AF_INET6, where),
        _address(entry, "ipv4", socket.AF_INET, where),
        psid,
        length,
        offset,
    )


def _number(entry: Mapping[str, str], column: str, most: int, where: str) -> int:
    text = entry.get(column, "0")
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else -1
    if not 0 <= number <= most:
        of = "" if column != "psid" else f", with psid_length {entry['psid_length']}"
        raise InputError(
            f"{where}: {column} must be a number from 0 to {most}{of}, not "
            f"{text[:40]!r}",
            "see RFC 7597 5.1: a PSID has psid_length bits, behind psid_offset of a "
            "port",
        )
    return number


def _address(
    entry: Mapping[str, str], column: str, family: socket.AddressFamily, where: str
) -> bytes:
    version = 4 if family == socket.AF_INET else 6
    text = entry[column]
    try:
        address = socket.inet_pton(family, text)
    except (OSError, ValueError):
        address = b""
    bad = not address or (
        address[0] in (0, 127) or address[0] >= 224
        if version == 4
        else address in _NO_B4 or address[0] == _MULTICAST
    )
    if bad:
        hint = (
            "give the B4's IPv6 address, without a length"
            if version == 6
            else "give the IPv4 address that the B4 shares"
        )
        raise InputError(
            f"{where}: {column} must be the IPv{version} address of a host, not "
            f"{text[:60]!r}",
            hint,
        )
    return address


def _check_overlap(path: Path, spans: list[tuple[int, int, int]]) -> None:
    """No port of an address may be of two entries (RFC 7596 6.1)."""
    spans.sort()
    for (first, line, size), (after, other, _) in pairwise(spans):
        if after < first + size:
            address = socket.inet_ntoa((after >> _PORT_BITS).to_bytes(4))
            earlier, later = sorted((line, other))
            raise InputError(
                f"{path}:{later}: has ports of {address} that line {earlier} has, too",
                "give each port of an address to one B4",
            )


def absolute(file: str, folder: Path) -> str:
    """The path of a table, where it is named in a file in ``folder``."""
    return os.path.normpath(folder.absolute() / file)
