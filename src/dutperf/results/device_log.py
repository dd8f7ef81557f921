"""What a device's log says of its mappings in one trial, as its record has it.

A log has as many lines as connections were opened, so the record has it packed. Lines
that are of no mapping are counted and not kept: they may be of other people.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterable
from typing import NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from dutperf.errors import InputError
from dutperf.results.units import Stored

_MOST_UNPACKED_BYTES = 1 << 28


class LogEntry(NamedTuple):
    """A mapping that begins or ends, or a block of ports that a host gets or loses.

    inside_port: None: a block, whatever port the host has.
    first_port, last_port: public ones; of a mapping both are the same.
    remote, remote_port: None: whatever it is.
    time_ns: since 1970 by the log's clock; None: the log has none.
    late: it came later after the trial than it may.
    """

    inside: str
    inside_port: int | None
    public: str
    first_port: int
    last_port: int
    remote: str | None = None
    remote_port: int | None = None
    time_ns: int | None = None
    ends: bool = False
    late: bool = False


_ENTRIES = TypeAdapter(list[LogEntry])


class DeviceLog(Stored):
    """The log of one trial."""

    packed: str = Field(description="its entries: JSON, zlib, base64")
    unread: int = Field(
        ge=0, description="lines or records that are of no mapping, or broken"
    )
    untold: list[str] = Field(
        default=[], description="why what is missing may be the tester's doing"
    )

    @property
    def entries(self) -> list[LogEntry]:
        """In the order in which they came.

        Raises:
            InputError: they are no such thing, or far too much of it.
        """
        try:
            data = base64.b64decode(self.packed, validate=True)
            unpacking = zlib.decompressobj()
            # What is cut is no JSON.
            text = unpacking.decompress(data, _MOST_UNPACKED_BYTES)
            return _ENTRIES.validate_json(text)
        except (binascii.Error, zlib.error, ValidationError):
            raise InputError("the log of a trial cannot be unpacked") from None


def packed(entries: Iterable[LogEntry]) -> str:
    """For ``DeviceLog``."""
    return base64.b64encode(zlib.compress(_ENTRIES.dump_json(list(entries)))).decode()
