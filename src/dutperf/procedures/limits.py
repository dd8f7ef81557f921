"""The highest rate that a cell may offer, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dutperf.config import Cell, media_rate_fps
from dutperf.config.sizes import mean_frame_size
from dutperf.engine.protocol import PortsResult
from dutperf.errors import InputError

LimitKind = Literal["media", "set", "tester"]


@dataclass(frozen=True)
class MaxRate:
    """Frames per second, per direction.

    ``kind``: by the media (RFC 2544 20), set by the user, or all that the tester can
    offer (maximum offered load, RFC 2285 3.5.3).
    """

    rate_fps: int
    kind: LimitKind

    @property
    def words(self) -> str:
        """For messages: what the rate is."""
        return {
            "media": "the maximum rate of the media",
            "set": "the maximum rate that was set",
            "tester": "the maximum rate that the tester can offer",
        }[self.kind]


def max_rate(cell: Cell, ports: PortsResult) -> MaxRate:
    """What was set for the cell (or its testbed); else what both ports' media carry.

    By the mean size of the frames on each side of the device, which differ where it
    translates (RFC 8219 appendix A).

    Raises:
        InputError: nothing was set and a port does not tell its speed.
    """
    if cell.max_rate_fps is not None:
        return MaxRate(cell.max_rate_fps, "set")
    for port in ports.ports:
        if not port.link_speed_mbps:
            raise InputError(
                f"the {port.name} port ({port.device or port.driver}) does not tell "
                "its link speed, so the maximum rate is not known",
                "give --max-rate, or the key max_rate_fps, in frames per second",
            )
    rates_fps = [
        media_rate_fps(port.link_speed_mbps or 0, mean_frame_size(cell, port.name))
        for port in ports.ports
    ]
    return MaxRate(min(rates_fps), "media")
