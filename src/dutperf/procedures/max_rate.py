"""The highest rate that a cell may offer, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

from dutperf.config import Testbed
from dutperf.config.flows import senders
from dutperf.config.side import SideConfig
from dutperf.config.sizes import (
    check_sizes,
    in_pieces,
    mean_frame_size,
)
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.protocol.base import (
    Headed,
    Side,
    bytes_before_ip,
    bytes_of_mtu,
    line_rate_fps,
)
from dutperf.protocol.port_messages import PortsResult
from dutperf.results import BoundCause
from dutperf.results.environment import WITHOUT_MEDIUM

LimitKind = Literal["media", "set", "tester", "load", "found"]

BEYOND_ALL_MBPS = 100_000
"""No tester fills such a link with its smallest frames; where a port names no speed."""


class Link(Headed, Protocol):
    """What a port, open or stored, says of its link."""

    @property
    def name(self) -> Side:
        """The tester's side."""
        ...

    @property
    def label(self) -> str: ...  # noqa: D102

    @property
    def driver(self) -> str: ...  # noqa: D102
    @property
    def device(self) -> str: ...  # noqa: D102
    @property
    def link_speed_mbps(self) -> int | None: ...  # noqa: D102
    @property
    def mtu(self) -> int | None: ...  # noqa: D102


@dataclass(frozen=True)
class MaxRate:
    """Frames per second, per direction.

    ``kind``: by the media (RFC 2544 20), set by the user, all that the tester can
    offer (maximum offered load, RFC 2285 3.5.3), or the only load that is wanted:
    given, or found before; ``detail`` says how, ``shortfall`` why what was found is
    not the throughput of RFC 2544. ``line_rate``: whether physical media carry no more;
    None: those of kind media do not.

    ``above``: of what the tester cannot offer, what 100 % should be. ``most``: of a
    curve around what was found, the highest load there may be.

    ``begin_fps``: what the tester alone is known to do; None: nobody knows.
    """

    rate_fps: int
    kind: LimitKind
    detail: str = ""
    shortfall: str = ""
    line_rate: bool | None = None
    above: MaxRate | None = None
    most: MaxRate | None = None
    begin_fps: int | None = None

    def lowered(self, rate_fps: int) -> MaxRate:
        """What the tester can offer of it."""
        above = self.above or (None if self.kind == "tester" else self)
        return MaxRate(
            rate_fps,
            "tester",
            shortfall=self.shortfall,
            above=above,
            begin_fps=self.begin_fps,
        )

    @property
    def bound_cause(self) -> BoundCause:
        """Why a device that passes at it may do more; None: nothing does more."""
        at_line = self.kind == "media" if self.line_rate is None else self.line_rate
        causes: dict[LimitKind, BoundCause] = {
            "media": "nominal",
            "set": "set",
            "tester": "tester",
        }
        return None if at_line else causes.get(self.kind)

    @property
    def words(self) -> str:
        """For messages: what the rate is."""
        return {
            "media": "the maximum rate of the media",
            "set": "the maximum rate that was set",
            "tester": self.detail or "the maximum rate that the tester can offer",
            "load": "the load that was given",
            "found": self.detail,
        }[self.kind]


def check_links(testbed: Testbed, ports: PortsResult, cells: Sequence[Cell]) -> None:
    """Check that the links carry all frames as they are, and not as ``testbed`` says.

    Raises:
        InputError: an interface's MTU is lower; names the cell and what would fit.
    """
    real = testbed.model_copy(
        update={
            name: _with_mtu(side, [p.mtu for p in ports.ports if p.name == name])
            for name, side in testbed.sides.items()
        }
    )
    for cell in cells:
        try:
            check_sizes(real, cell)
        except InputError as error:
            raise InputError(
                f"{cell.id}: {error.message}",
                "raise the MTU of the tester's interface and of the device (ip link "
                "set ... mtu ...), or use smaller frames",
            ) from None


def _with_mtu(side: SideConfig, mtus: Sequence[int]) -> SideConfig:
    """All ports of a side are alike, so the least of their MTUs is the side's."""
    least = min([*mtus, side.port.mtu])
    return side.model_copy(update={"port": side.port.model_copy(update={"mtu": least})})


def mean_wire_size(cell: Cell, port: Link) -> Fraction:
    """Mean size in bytes with FCS of the frames at a port, all before IP included.

    Of a frame in pieces what all of them take of the medium, less one gap.
    """
    sides = senders(cell)
    before = bytes_before_ip(
        port, sends=port.name in sides, receives=bool(sides - {port.name})
    )
    mtu = None if port.mtu is None else port.mtu - bytes_of_mtu(port)
    pieces, further_bytes = in_pieces(cell, port.name, mtu)
    return mean_frame_size(cell, port.name) + further_bytes + before * pieces


def is_probed(cell: Cell) -> bool:
    """Whether what virtual ports can offer is found before it is measured.

    On connections for bursts alone, whose frames leave at that rate at every load.
    """
    if cell.traffic.burst_frames is not None:
        return True
    return cell.spec.up_to_maximum and cell.stateful is None


def max_rate(cell: Cell, ports: Sequence[Link]) -> MaxRate:
    """What was set for the cell (or its testbed); else what the ports' media carry.

    By the mean size of the frames on each side of the device, which differ where it
    translates (RFC 8219 appendix A).

    Raises:
        InputError: nothing was set and a port does not tell its speed; or the cell's
            fixed load is more than the media carry.
    """
    if cell.spec.rate_reference and cell.spec.reference_use == "load":
        return MaxRate(0, "found", "the load that is yet to be found")
    if cell.spec.given_rate_fps is not None:
        return _fixed_load(cell, cell.spec.given_rate_fps, ports)
    return highest_rate(cell, ports)


def highest_rate(cell: Cell, ports: Sequence[Link]) -> MaxRate:
    """The same whatever the cell's load is.

    Raises:
        InputError: nothing was set and a port does not tell its speed.
    """
    if cell.spec.max_rate_fps is not None:
        return MaxRate(cell.spec.max_rate_fps, "set")
    for port in ports:
        without_medium = port.driver in WITHOUT_MEDIUM
        if not port.link_speed_mbps and not (without_medium and is_probed(cell)):
            raise InputError(
                f"the {port.label} port ({port.device or port.driver}) does not tell "
                "its link speed, so the maximum rate is not known",
                "give --max-rate, or the key max_rate_fps, in frames per second",
            )
    known = _media_fps(cell, ports)
    return MaxRate(min(known), "media") if known else _beyond_all(cell)


def _beyond_all(cell: Cell) -> MaxRate:
    """Where the search for what the tester can offer begins."""
    size = min(mean_frame_size(cell, "left"), mean_frame_size(cell, "right"))
    return MaxRate(line_rate_fps(BEYOND_ALL_MBPS, size), "tester")


def _fixed_load(cell: Cell, rate_fps: int, ports: Sequence[Link]) -> MaxRate:
    """A maximum that was set has been checked; one that nobody knows cannot be."""
    limit_fps = min(_media_fps(cell, ports), default=rate_fps)
    if cell.spec.max_rate_fps is None and rate_fps > limit_fps:
        raise InputError(
            f"{cell.id}: rate_fps: {rate_fps} is more than the ports' media carry, "
            f"{limit_fps}",
            "lower it (--rate); of a link whose speed is only nominal set --max-rate",
        )
    return MaxRate(rate_fps, "load")


def _media_fps(cell: Cell, ports: Sequence[Link]) -> list[int]:
    """What each medium carries whose speed is known, and those of its side with it.

    The frames of a direction are spread evenly over all ports of each side.
    """
    return [
        cell.pairs * line_rate_fps(port.link_speed_mbps, mean_wire_size(cell, port))
        for port in ports
        if port.link_speed_mbps
    ]
