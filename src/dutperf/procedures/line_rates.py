"""What stands beside every result: what the media carry, and the sum of directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from dutperf.config import Cell
from dutperf.config.flows import directions
from dutperf.config.sizes import mean_frame_size
from dutperf.line_rate import line_rate_fps, wire_mbps
from dutperf.procedures.max_rate import MaxRate, mean_wire_size
from dutperf.protocol import DirectionName, Side, bytes_before_ip
from dutperf.results import CellResult, Media, PortRecord
from dutperf.results.rate_results import WireRate
from dutperf.standards import Deviation


def beside_media(
    result: CellResult, cell: Cell, ports: Sequence[PortRecord]
) -> CellResult:
    """``result`` with the theoretical maximum of the media (RFC 2544 26.1).

    A throughput is counted both ways: of each direction, and of all together. Of a
    frame loss 100 % should be that maximum.
    """
    media = media_of(cell, ports)
    if media and result.procedure == "frame-loss":
        result = _with_lower_maximum(result, media)
    if result.procedure != "throughput" or result.median is None:
        return result.model_copy(update={"media": media})
    if media and result.verdict == "pass":
        share = result.median * 100 / media.rate_fps
        media = media.model_copy(update={"share_percent": share})
    ways = directions(cell)
    wire = [
        WireRate(
            direction=way, mbps=wire_mbps(result.median, _mean_sent(cell, ports, way))
        )
        for way in ways
    ]
    total_fps = result.median * len(ways)
    return result.model_copy(
        update={"media": media, "sum_fps": total_fps, "wire": wire}
    )


def at_line_rate(limit: MaxRate, cell: Cell, ports: Sequence[PortRecord]) -> MaxRate:
    """``limit`` with whether it is all that the media carry, which are no virtual ones.

    A device that passes at it then is as fast as its media; else it may do more.
    """
    physical = [m.rate_fps for m in _media(cell, ports) if not m.nominal]
    line_rate = bool(physical) and limit.rate_fps >= min(physical)
    return replace(limit, line_rate=line_rate)


def _mean_sent(
    cell: Cell, ports: Sequence[PortRecord], direction: DirectionName
) -> Fraction:
    """Mean size of the frames that one side sends; they may come out in another."""
    side: Side = "left" if direction == "forward" else "right"
    own = [port for port in ports if port.name == side and not port.number]
    before = sum(map(bytes_before_ip, own))
    return mean_frame_size(cell, side) + before


def _with_lower_maximum(result: CellResult, media: Media) -> CellResult:
    """What was set is told here; what the tester cannot offer is told already."""
    told = result.parameters
    most_fps = told.get("max_load_fps")
    if told.get("max_load_is") != "set" or not isinstance(most_fps, int):
        return result
    if most_fps >= media.rate_fps:
        return result
    nominal = ", nominal" if media.nominal else ""
    short = Deviation(
        rfc="RFC 2544 26.3",
        requirement="100 % is the maximum rate of the media, "
        f"{media.rate_fps:,} fps per direction ({media.of_ports}"
        f"{media.link_speed_mbps:,} Mbit/s"
        f"{nominal})",
        actual=f"100 % is {most_fps:,} fps, the maximum rate that was set",
        level="SHOULD",
    )
    return result.model_copy(update={"deviations": [*result.deviations, short]})


def media_of(cell: Cell, ports: Sequence[PortRecord]) -> Media | None:
    """Of the link that carries fewer of the cell's frames; null: not all tell a speed.

    By the mean size of the frames on each side of the device, which differ where it
    translates (RFC 8219 appendix A).
    """
    found = _media(cell, ports)
    if len(found) < len(ports):
        return None
    return min(found, key=lambda media: media.rate_fps, default=None)


def _media(cell: Cell, ports: Sequence[PortRecord]) -> list[Media]:
    """Of the links that tell their speed."""
    return [
        Media(
            rate_fps=cell.pairs
            * line_rate_fps(port.link_speed_mbps, mean_wire_size(cell, port)),
            link_speed_mbps=port.link_speed_mbps,
            ports=cell.pairs,
            nominal=port.nominal,
        )
        for side in ("left", "right")
        for port in ports
        if port.name == side and port.link_speed_mbps
    ]
