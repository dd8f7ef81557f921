"""The first frames of each cell's trials as pcap files, made from what is stored.

The journal has every request and the MAC addresses that were resolved for it, so the
engine that writes the frames needs neither the device nor the ports: ports that go
nowhere do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from dutperf.engine.process import start_engine
from dutperf.protocol import PortSpec, PreviewParams, Side, TrialRequest
from dutperf.results import Environment, TrialRecord
from dutperf.run.engine_session import TesterEngine

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
