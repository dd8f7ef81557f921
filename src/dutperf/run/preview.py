"""The first frames of a trial as a file: what would be sent, without sending it."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dutperf.config import Campaign, Cell, Testbed, expand, notices
from dutperf.config.side import alternately
from dutperf.config.testbed import RingPort, SideConfig
from dutperf.errors import InputError
from dutperf.protocol import PreviewParams, Side
from dutperf.run.engine_session import (
    EngineOpener,
    Notify,
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
