"""What stands beside every result: what the media carry, and the sum of directions."""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.config import Cell, media_rate_fps
from dutperf.config.flows import directions
from dutperf.config.sizes import mean_frame_size
from dutperf.results import CellResult, Media, PortRecord


def beside_media(
    result: CellResult, cell: Cell, ports: Sequence[PortRecord]
) -> CellResult:
    """``result`` with the theoretical maximum of the media (RFC 2544 26.1).

    A throughput is counted both ways: of each direction, and of all together.
    """
    media = media_of(cell, ports)
    if result.procedure != "throughput" or result.median is None:
        return result.model_copy(update={"media": media})
    if media and result.verdict == "pass":
        share = result.median * 100 / media.rate_fps
        media = media.model_copy(update={"share_percent": share})
    total_fps = result.median * len(directions(cell))
    return result.model_copy(update={"media": media, "sum_fps": total_fps})


def media_of(cell: Cell, ports: Sequence[PortRecord]) -> Media | None:
    """Of the link that carries fewer of the cell's frames; null: not all tell a speed.

    By the mean size of the frames on each side of the device, which differ where it
    translates (RFC 8219 appendix A).
    """
    found = [
        Media(
            rate_fps=media_rate_fps(port.link_speed_mbps, mean_frame_size(cell, side)),
            link_speed_mbps=port.link_speed_mbps,
            nominal=port.nominal,
        )
        for side in ("left", "right")
        for port in ports
        if port.name == side and port.link_speed_mbps
    ]
    if len(found) < len(ports):
        return None
    return min(found, key=lambda media: media.rate_fps, default=None)
