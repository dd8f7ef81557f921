"""The first frames of a trial as a file: what would be sent, without sending it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dutperf.config import Campaign, Testbed, expand, notices
from dutperf.config.side import RingPort, SideConfig, alternately
from dutperf.engine.process import start_engine
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.protocol.base import Side
from dutperf.protocol.methods import PreviewParams
from dutperf.protocol.port_messages import PortSpec
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import Environment, TrialRecord
from dutperf.run.engine_session import (
    EngineOpener,
    Notify,
    TesterEngine,
    open_ports,
    resolve_neighbours,
)
from dutperf.run.trial_request import trial_request

_MAX_DURATION_S = 2**47 // 10**9
_TRIAL_ID = 1


@dataclass(frozen=True)
class Preview:
    """Frames of ``cell``'s first trial; ``frames`` of all directions together."""

    cell: Cell
    frames: int
    path: Path


def preview_frames(
    campaign: Campaign,
    testbed: Testbed,
    open_engine: EngineOpener,
    *,
    rate_fps: int,
    count: int,
    path: Path,
    notify: Notify,
) -> Preview:
    """Write the first ``count`` frames of each direction of the first cell to a pcap.

    The ports are opened and the next hops are asked for, so the MAC addresses are
    those of a trial; of ``unopened`` ports they are stand-ins.

    Args:
        campaign: its first cell counts.
        testbed: where.
        open_engine: see ``session.EngineOpener``.
        rate_fps: intended load, frames per second and direction: it sets the stamps.
        count: frames of each direction.
        path: the pcap file; overwritten.
        notify: is told what the user should know.

    Raises:
        InputError: found before the engine was started.
        SetupError, EngineError: machine, device or engine are not as needed.
    """
    cells = expand(campaign, testbed)
    cell = cells[0]
    _check_place(path)
    for text in notices(testbed, cells):
        notify(text)
    start = open_engine(testbed, notify)
    duration_s = max(cell.spec.trial_duration_s, count / rate_fps)
    trial = trial_request(
        testbed, cell, rate_fps, _TRIAL_ID, min(duration_s, _MAX_DURATION_S)
    )
    params = PreviewParams(trial=trial, count=count, path=str(path.absolute()))
    logs = Path(tempfile.mkdtemp(prefix="dutperf-frames-"))
    with start(logs / "engine.log") as engine:
        open_ports(engine, testbed, notify)
        resolve_neighbours(engine, testbed, [cell], notify)
        frames = engine.preview(params).frames
    shutil.rmtree(logs)  # an error leaves the log: its message names it
    return Preview(cell, frames, path)


def unopened(testbed: Testbed) -> tuple[Testbed, list[str]]:
    """``testbed`` on ports inside the engine, which needs nothing of the machine.

    Returns:
        It, and which MAC addresses are stand-ins, in words: those of ports and next
        hops that are not given.
    """
    made_up = ["the ports' own MAC addresses"]
    changes: dict[Side, list[dict[str, Any]]] = {}
    for each in testbed.tester_ports:
        last = alternately(each.side, each.number)
        mac = each.config.next_hop_mac or f"02:00:00:00:01:{last:02x}"
        if each.config.next_hop_mac is None:
            made_up.append(f"that of the next hop on the {each.label}, {mac}")
        port = RingPort(ring=True, mtu=each.config.port.mtu)
        changes.setdefault(each.side, []).append({"port": port, "next_hop_mac": mac})
    sides = {name: _with(side, changes[name]) for name, side in testbed.sides.items()}
    keys = {"namespace": None, "hugepages": "off"}
    return testbed.model_copy(update=sides | keys), made_up


def _with(side: SideConfig, changes: list[dict[str, Any]]) -> SideConfig:
    """``side`` with other keys of each of its ports."""
    first, *others = changes
    more = zip(side.more_ports, others, strict=True)
    ports = [port.model_copy(update=change) for port, change in more]
    return side.model_copy(update={**first, "more_ports": ports})


def _check_place(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise InputError(
            f"--pcap {path}: there is no directory {path.parent}", "make it first"
        )
    if path.is_dir():
        raise InputError(f"--pcap {path} is a directory", "name a file in it")


# The first frames of each cell's trials as pcap files, made from what is stored.
#
# The journal has every request and the MAC addresses that were resolved for it, so the
# engine that writes the frames needs neither the device nor the ports: ports that go
# nowhere do.


FRAMES = 10
"""Of each direction."""
_MEMORY_MB = 256
_SENDER: Mapping[str, Side] = {"forward": "left", "reverse": "right"}

StartEngine = Callable[[Path], AbstractContextManager[TesterEngine]]


def idle_engine(log: Path) -> AbstractContextManager[TesterEngine]:
    """An engine for ports that go nowhere.

    Raises:
        InputError, SetupError: it cannot be started here.
    """
    return start_engine(
        worker_cpus=[0],
        main_cpu=0,
        memory_mb=_MEMORY_MB,
        hugepages=False,
        namespace=None,
        log_path=log,
    )


def recorded_frames(
    records: Sequence[TrialRecord],
    environments: Sequence[Environment],
    start: StartEngine = idle_engine,
) -> dict[str, bytes]:
    """``frames/CELL.pcap`` of each cell, with ten frames of each direction.

    Of trials on connections those of phase 1, as answers depend on what was learned.

    Raises:
        InputError, SetupError, EngineError: no engine can be started here.
    """
    first: dict[str, TrialRecord] = {}
    for record in records:
        if record.role in ("trial", "phase1") and not _answers(record.request):
            first.setdefault(record.cell, record)
    macs = {environment.place: _macs(environment) for environment in environments}
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory(prefix="dutperf-frames-") as name:
        folder = Path(name)
        with start(folder / "engine.log") as engine:
            engine.open_ports(_idle_ports(environments))
            for number, (cell, record) in enumerate(first.items()):
                path = folder / f"{number}.pcap"
                own = macs.get(record.place) or macs.get(None, {})
                trial = _addressed(record, own)
                params = PreviewParams(trial=trial, count=FRAMES, path=str(path))
                engine.preview(params)
                found[f"frames/{cell}.pcap"] = path.read_bytes()
    return found


def _idle_ports(environments: Sequence[Environment]) -> list[PortSpec]:
    """As many as any of the testbeds has."""
    most = max((p.number for each in environments for p in each.ports), default=0)
    return [
        PortSpec(name=side, number=number, driver="null")
        for side in _SIDES
        for number in range(most + 1)
    ]


_SIDES: tuple[Side, Side] = ("left", "right")


def _answers(request: TrialRequest) -> bool:
    """Whether its frames are of the table, which is gone."""
    streams = [s for direction in request.directions for s in direction.streams]
    return any(stream.is_learned for stream in streams)


_Port = tuple[Side, int]


def _macs(environment: Environment) -> dict[_Port, str]:
    return {(port.name, port.number): port.mac for port in environment.ports}


def _addressed(record: TrialRecord, own: Mapping[_Port, str]) -> TrialRequest:
    """The request with the MAC addresses that its trial had."""
    data = record.request.model_dump()
    hops = {(n.port, n.number, n.ip): n.mac for n in record.result.neighbours}
    for direction in data["directions"]:
        side = _SENDER[direction["name"]]
        for stream in direction["streams"]:
            for path in (stream, *stream.get("more_paths", [])):
                number = path.get("sent_by", 0)
                hop = hops.get((side, number, path["next_hop"]))
                path["src_mac"] = path["src_mac"] or own.get((side, number))
                path["dst_mac"] = path["dst_mac"] or hop
    # A preview has no table to learn into.
    return TrialRequest.model_validate(data | {"learn": None, "not_before_ns": 0})
