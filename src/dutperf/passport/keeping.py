"""Where passports are kept, and whose they are."""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dutperf import __version__, lab
from dutperf.config import PlannedTestbed, Testbed
from dutperf.config.campaign import LabKeys
from dutperf.config.side import InterfacePort, MemifPort, Port, RingPort
from dutperf.config.testbed import crossed
from dutperf.engine.process import choose_hugepages
from dutperf.errors import InputError, SetupError
from dutperf.plain_files import read_plain
from dutperf.programs import find_engine
from dutperf.protocol.base import Side
from dutperf.results.environment import computer
from dutperf.results.passport import Passport, PassportOwner
from dutperf.results.storage import storing, write_atomically
from dutperf.run.engine_session import main_core

# The tester's ports connected to each other, by a link of the kind that is measured.
#
# lab on veth pairs   the lab ``wire``: the same links, sockets and CPUs and no device
# memif               one pair of ends, both of the tester
# ring                is its own loop
# NICs, interfaces    a cable that the user plugs in; nothing here can


SOCKETS = Path("/run/dutperf")
"""Where both ends of a memif loop meet; two testers have sockets of their own."""


@dataclass(frozen=True)
class Loop:
    """A testbed without a device.

    link: what connects the ports, and how they are driven, in words.
    planned: what is opened for it.
    device_cpu: where a lab's device would work; None: there is no lab.
    receive_cpu: what takes in the device's frames there; None: the device's CPU.
    """

    link: str
    planned: PlannedTestbed
    device_cpu: int | None = None
    receive_cpu: int | None = None


def loop_of(planned: PlannedTestbed, *, cabled: bool = False) -> Loop | None:
    """The loop of such a testbed; None: only a cable makes it, and there is none.

    ``cabled``: the user says that the ports are connected to each other.

    Raises:
        InputError: it has several ports on a side, which no passport is about.
    """
    testbed = planned.testbed
    if testbed.pairs > 1:
        raise InputError(
            f"passports are of one port on each side, and {testbed.name} has "
            f"{testbed.pairs}",
            "a testbed without more_ports tells what one of them does",
        )
    ports = [side.port for side in testbed.sides.values()]
    if planned.lab and all(isinstance(port, InterfacePort) for port in ports):
        name = planned.lab.own_name
        called = lab.WIRE.name if name is None else f"{lab.WIRE.name}@{name}"
        keys = LabKeys(name=called)
        wire = PlannedTestbed(lab=keys, testbed=lab.plan(keys))
        cpus = lab.planned_cpus(name)
        return Loop("veth pairs of a lab", wire, cpus.dut, cpus.receive)
    if all(isinstance(port, MemifPort) for port in ports):
        own = connected(testbed, _memif_ends(), namespace=None)
        return Loop("memif, the tester at both ends", PlannedTestbed(testbed=own))
    if cabled or all(isinstance(port, RingPort) for port in ports):
        same = {name: side.port for name, side in testbed.sides.items()}
        own = connected(testbed, same, max_rate_fps=testbed.max_rate_fps)
        return Loop(_as_told(ports), PlannedTestbed(testbed=own))
    return None


def connected(testbed: Testbed, ports: dict[Side, Port], **keys: Any) -> Testbed:  # noqa: ANN401
    """``testbed`` without its device, on ``ports``."""
    same = {
        "name": testbed.name,
        "namespace": testbed.namespace,
        "cores": testbed.cores,
        "shares": testbed.shares,
        "main_core": testbed.main_core,
        "hugepages": testbed.hugepages,
        "memory_mb": testbed.memory_mb,
    }
    return crossed(ports, **same | keys)


def check_loop(loop: Loop | None) -> Loop:
    """What can be measured.

    Raises:
        InputError: the ports would need a cable.
    """
    if loop is None:
        raise InputError(
            "these ports cannot be connected to each other by dutperf",
            "connect them by a cable and say so: --cabled; or give --lab NAME",
        )
    return loop


def _memif_ends() -> dict[Side, Port]:
    socket = str(SOCKETS / f"passport-{os.getpid()}.memif")
    return {
        "left": MemifPort(memif=socket, role="server"),
        "right": MemifPort(memif=socket, role="client"),
    }


def _as_told(ports: list[Port]) -> str:
    told = []
    for port in ports:
        keys = port.model_dump(exclude_defaults=True)
        told.append(", ".join(f"{key} {value}" for key, value in sorted(keys.items())))
    return "; ".join(dict.fromkeys(told))


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
        shares=testbed.own_shares,
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
