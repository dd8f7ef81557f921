"""Which connections a device may still know, kept from run to run (RFC 9693 4.4).

Of a device whose table no hook empties. The file belongs to the ports of the tester
that the device is behind, wherever the runs store their results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from dutperf.errors import SetupError
from dutperf.plain_files import read_plain
from dutperf.protocol.base import IpVersion
from dutperf.results.storage import storing, write_atomically
from dutperf.results.stored import Stored

DIRECTORY = Path("/var/lib/dutperf/connections")


class Opening(Stored):
    """Four-tuples of one test, in an enumeration: ``count`` from ``first`` on."""

    enumeration: str = Field(description="what tells one enumeration from another")
    ip_version: IpVersion = Field(description="the initiator's")
    first: int
    count: int
    until: float = Field(description="when the last frame of them was due, Unix time")

    @property
    def end(self) -> int:
        """The number after the last one."""
        return self.first + self.count


class OpeningsFile(Stored):
    """What is kept; ``following`` says of each enumeration where it goes on."""

    schema_version: Literal[1] = 1
    ports: list[str]
    openings: list[Opening] = Field(default=[])
    following: dict[str, int] = Field(default={})


def path_of(ports: Iterable[str], directory: Path = DIRECTORY) -> Path:
    """The file of these ports, which is called by what tells them from all others."""
    told = "\n".join(sorted(ports))
    return directory / f"{hashlib.sha256(told.encode()).hexdigest()[:16]}.json"


def load_openings(path: Path, ports: Iterable[str]) -> OpeningsFile:
    """What is kept there; nothing if there is no file.

    Raises:
        SetupError: it cannot be read.
    """
    try:
        return OpeningsFile.model_validate_json(read_plain(path))
    except FileNotFoundError:
        return OpeningsFile(ports=sorted(ports))
    except (OSError, ValidationError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not complete"
        raise SetupError(
            f"{path}: which connections the device may still know cannot be read: "
            f"{why}",
            "remove the file when the device's table is empty",
        ) from None


def save_openings(path: Path, kept: OpeningsFile) -> None:
    """Keep them; on disk when this returns.

    Raises:
        StorageError: the file system refused.
    """
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, kept.stored_text(indent=1) + "\n")
