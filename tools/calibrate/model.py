"""What a calibration is made of: points of the grid, and rows of what was found.

A row and all below it are stored (``FILE``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from dutperf import __version__
from dutperf.errors import InputError
from dutperf.plain_files import read_plain
from dutperf.results.environment import MachineCheck
from dutperf.results.units import Stored

FILE = "calibration.json"
Quantity = Literal[
    "throughput", "delay", "loss", "connections", "capacity", "buffer", "flow-control"
]
"""What ``--only`` names: a part of the grid."""
Figure = Literal[
    "throughput", "TL", "PDV", "lost", "connection rate", "capacity", "burst"
]
"""What is compared: found by the tester, and by the device's account."""
Way = Literal["memory", "af_packet", "af_xdp"]
"""How frames get to the device: shared memory (memif), or a kernel interface."""

UNITS: Mapping[Figure, str] = {
    "throughput": "fps",
    "TL": "ns",
    "PDV": "ns",
    "lost": "frames",
    "connection rate": "per s",
    "capacity": "connections",
    "burst": "frames",
}


@dataclass(frozen=True)
class Point:
    """One behaviour of the device, and what is measured of it.

    Attributes:
        name: of the run, and of its directory.
        quantity: the part of the grid.
        lab: the lab whose device it is.
        words: the setting, for people.
        behaviour: what the device is told.
        specs: keys of the procedures that measure it.
        expected: figure -> what arithmetic makes of the setting; empty: not known.
        queue_frames: that wait in the device without being lost.
        connections: that a test of a gateway opens.
        path: how its frames get to the device.
        waits: where there is no room the tester waits, and nothing is dropped.
        held_back_fps: what a kernel interface's wire takes, if it holds the rest back.
    """

    name: str
    quantity: Quantity
    lab: str
    words: str
    behaviour: Mapping[str, Any]
    specs: tuple[Mapping[str, Any], ...]
    figures: tuple[Figure, ...]
    expected: Mapping[Figure, float] = field(default_factory=dict)
    queue_frames: int = 0
    connections: int = 0
    path: Way = "memory"
    waits: bool = False
    held_back_fps: int | None = None


class Pair(Stored):
    """One repeat: what the tester found, and what the device says of the same trials.

    ``found - account`` must lie in ``allowed``, whose unit is theirs.
    """

    found: float | None = Field(description="null: not measured")
    account: float | None = Field(description="null: the device has no account of it")
    allowed: tuple[float, float] = Field(description="least and largest error")

    @property
    def error(self) -> float | None:
        """What the tester found too much."""
        if self.found is None or self.account is None:
            return None
        return self.found - self.account

    @property
    def within(self) -> bool:
        """Whether it is known, and as right as it has to be."""
        least, most = self.allowed
        return self.error is not None and least <= self.error <= most

    @property
    def is_coarse(self) -> bool:
        """Whether as much may be wrong as there is: nothing would be within, too."""
        most = max(abs(end) for end in self.allowed)
        return self.account is not None and most > 0 and most >= abs(self.account)


class Row(Stored):
    """One figure of one point, by all repeats."""

    point: str
    quantity: Quantity
    path: Way
    figure: Figure
    unit: str
    setting: str = Field(description="what the device was told, in words")
    expected: float | None = Field(description="what arithmetic makes of the setting")
    target: str = Field(description="the error that is allowed, in words")
    pairs: list[Pair] = Field(default=[], description="of each repeat")
    found: float | None = Field(default=None, description="median over the repeats")
    bound: str | None = Field(
        default=None,
        description="lower: that much or more; it is off by no more than a figure may",
    )
    account: float | None = Field(default=None, description="median over the repeats")
    error: float | None = Field(
        default=None, description="median of the repeats' errors"
    )
    worst: float | None = Field(
        default=None, description="the error that is farthest from 0"
    )
    error_percent: float | None = Field(default=None, description="of the account")
    worst_percent: float | None = None
    spread_percent: float | None = Field(
        default=None,
        description="largest less smallest of what was found, by the median",
    )
    trials: int = Field(
        default=0, description="of which the device's account was compared"
    )
    contradictions: list[str] = Field(
        default=[], description="trials whose counts are not those of the device"
    )
    verdict: Literal["within", "coarse", "MISSED"] = Field(
        description="coarse: not missed, but the error that is allowed is as large as "
        "the account"
    )
    reasons: list[str] = Field(description="of MISSED, in words")
    run: str = Field(description="directory of the run, as seen from this file")


class FlowControl(Stored):
    """One device with and without flow control; rates in frames per second."""

    path: Way
    service_fps: int = Field(description="what the device was told")
    dropping: Row = Field(description="it drops what is too much: a row as any other")
    most_fps: float = Field(
        description="what a device of the served rate takes in a trial where nobody "
        "drops: its queue and the ring before it are filled once"
    )
    found_fps: float | None = Field(description="with flow control; null: not measured")
    bound: str | None = Field(description="lower: that much or more")
    held_back: int = Field(description="trials that were found to be held back")
    trials: int
    classic_fps: int | None = Field(
        description="the highest rate that was asked for in a trial without loss: what "
        "a tester reports that counts lost frames alone"
    )
    classic_offered_fps: float | None = Field(
        description="how fast that trial really was"
    )
    verdict: Literal["within", "MISSED"]
    reasons: list[str]


class Calibration(Stored):
    """``calibration.json``: one run of the grid on one machine."""

    schema_version: Literal[1] = 1
    dutperf_version: str = __version__
    created_at: str = Field(description="ISO 8601, UTC")
    duration_s: float
    complete: bool = Field(description="false: it was ended before its last point")
    machine: dict[str, str] = Field(description="what measured, in words")
    checks: list[MachineCheck] = Field(description="what the doctor saw")
    handover_ns: int = Field(
        default=0,
        description="until the device's CPU sees what the tester's wrote, at most; "
        "no stamp has it in it; 0: unknown",
    )
    limits_fps: dict[str, int] = Field(
        description="what tester and device can do together, the device unlimited"
    )
    safe_rates_fps: dict[str, int] = Field(
        default={}, description="what the tester can do by its passport"
    )
    rows: list[Row]
    flow_control: list[FlowControl] = Field(
        default=[], description="the same devices with and without it"
    )

    @property
    def missed(self) -> int:
        """How many of all rows are."""
        verdicts = [row.verdict for row in self.rows]
        verdicts += [row.verdict for row in self.flow_control]
        return verdicts.count("MISSED")

    @property
    def coarse(self) -> int:
        """How many rows say next to nothing, as much may be wrong in them."""
        return [row.verdict for row in self.rows].count("coarse")


def load_calibration(path: Path) -> Calibration:
    """What is stored in the directory, or in the file itself.

    Raises:
        InputError: there is none, or it is none of this version's.
    """
    file = path / FILE if path.is_dir() else path
    try:
        return Calibration.model_validate_json(read_plain(file))
    except OSError as error:
        raise InputError(
            f"cannot read {file}: {error.strerror}",
            "give a directory that '--output' named",
        ) from error
    except ValueError as error:
        raise InputError(
            f"{file} is no calibration of this version: {str(error).splitlines()[0]}",
            "give a directory that '--output' named",
        ) from error
