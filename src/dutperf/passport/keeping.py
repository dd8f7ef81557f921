"""Where passports are kept, and whose they are."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

from pydantic import ValidationError

from dutperf import __version__
from dutperf.config import Testbed
from dutperf.engine.process import choose_hugepages
from dutperf.errors import SetupError
from dutperf.passport.loops import Loop
from dutperf.plain_files import read_plain
from dutperf.programs import find_engine
from dutperf.results.environment import computer
from dutperf.results.passport import Passport, PassportOwner
from dutperf.results.storage import storing, write_atomically
from dutperf.run.engine_session import main_core

VARIABLE = "DUTPERF_PASSPORTS"
"""Names another directory, or ``none``: a run then neither makes nor uses any."""
NONE = "none"
_DIRECTORY = Path("/var/lib/dutperf/passports")


def directory() -> Path | None:
    """Where passports are kept; None: nowhere."""
    told = os.environ.get(VARIABLE)
    return None if told == NONE else Path(told or _DIRECTORY)


def owner_of(loop: Loop, root: Path = Path("/")) -> PassportOwner:
    """Whose passport it is that is made of ``loop`` here and now.

    Raises:
        SetupError: there is no engine, or not enough memory for it.
    """
    testbed = loop.planned.testbed
    this = computer(root)
    return PassportOwner(
        machine=_machine(root),
        cpu_model=this.cpu_model,
        cpus_total=os.cpu_count() or 0,
        kernel=platform.release(),
        dutperf_version=__version__,
        engine=_digest(find_engine().read_bytes()),
        cores=list(testbed.cores),
        main_core=main_core(testbed),
        device_cpu=loop.device_cpu,
        receive_cpu=loop.receive_cpu,
        memory_mb=testbed.memory_mb,
        hugepages=_hugepages(testbed),
        link=loop.link,
    )


def load_passport(owner: PassportOwner, where: Path) -> Passport:
    """What is known of ``owner``; nothing if no file is about exactly that.

    Raises:
        SetupError: its file cannot be read.
    """
    path = _path(owner, where)
    try:
        found = Passport.model_validate_json(read_plain(path))
    except FileNotFoundError:
        return Passport(owner=owner)
    except (OSError, ValueError, ValidationError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not complete"
        raise SetupError(
            f"{path}: the tester's passport cannot be read: {why}",
            "remove the file; the next run makes it anew",
        ) from None
    return found if found.owner == owner else Passport(owner=owner)


def save_passport(passport: Passport, where: Path) -> Path:
    """Keep it; on disk when this returns.

    Raises:
        StorageError: the file system refused.
    """
    path = _path(passport.owner, where)
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, passport.model_dump_json(indent=1) + "\n")
    return path


def _path(owner: PassportOwner, where: Path) -> Path:
    return where / f"{owner.name}.json"


def _machine(root: Path) -> str:
    """Of a machine that has no number, its name: it is stored as a digest only."""
    try:
        told = (root / "etc/machine-id").read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        told = ""
    return _digest((told or platform.node()).encode())


def _hugepages(testbed: Testbed) -> bool:
    used, _ = choose_hugepages(
        testbed.hugepages, memory_mb=testbed.memory_mb, pci=testbed.has_nics
    )
    return used


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
