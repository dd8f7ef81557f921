"""Throughput beside the theoretical maximum of the media (RFC 2544 26.1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.table import Table

from dutperf.cli import figures
from dutperf.results import CellResult, Media
from dutperf.results.units import about


def media_table(throughput: Sequence[CellResult]) -> list[Table]:
    """A row for each frame size; none if no stream has several, or no speed is told."""
    rows = _with_media(throughput)
    if not _several_sizes(rows):
        return []
    speeds = list(dict.fromkeys(_speed(media) for _, media in rows))
    table = Table(
        title="Throughput and theoretical maximum (RFC 2544 26.1)",
        caption=f"per direction; the maximum is that of {' or '.join(speeds)}",
    )
    table.add_column("traffic", overflow="fold")
    for name in ("frame size", "theoretical maximum", "throughput", "reached"):
        table.add_column(name, justify="right")
    for stream, series in groupby(rows, lambda row: _stream(row[0])):
        for place, (cell, media) in enumerate(series):
            table.add_row(
                "" if place else stream,
                str(cell.parameters.get("frame_sizes")),
                f"{media.rate_fps:,}",
                figures.rate(cell.median, cell.bound),
                _share(cell, media),
            )
    return [table]


def media_lines(cells: Sequence[CellResult]) -> list[str]:
    """The same of throughputs that are not in the table."""
    throughput = [cell for cell in cells if cell.procedure == "throughput"]
    throughput = [cell for cell in throughput if not _of_flows(cell)]
    rows = _with_media(throughput)
    shown = [cell.id for cell, _ in rows] if _several_sizes(rows) else []
    unknown = any(c.sum_fps is not None and c.media is None for c in throughput)
    told = ["theoretical maximum: not known, a link does not tell its speed"]
    return (told if unknown else []) + [
        f"{cell.id}: {_share(cell, cell.media)} of the theoretical maximum, "
        f"{cell.media.rate_fps:,} fps per direction ({_speed(cell.media)})"
        for cell in throughput
        if cell.media and cell.median is not None and cell.id not in shown
    ]


def _with_media(cells: Sequence[CellResult]) -> list[tuple[CellResult, Media]]:
    """By stream and frame size; an IMIX has no size, flows have a table."""
    found = [
        (cell, cell.media)
        for cell in cells
        if cell.media
        and cell.parameters.get("frame_size") is not None
        and not _of_flows(cell)
    ]
    return sorted(found, key=lambda row: (_stream(row[0]), _size(row[0])))


def _of_flows(cell: CellResult) -> bool:
    return cell.parameters.get("flows") is not None


def _several_sizes(rows: Sequence[tuple[CellResult, Media]]) -> bool:
    sizes = {(_stream(cell), _size(cell)) for cell, _ in rows}
    return len(sizes) > len({stream for stream, _ in sizes})


def _size(cell: CellResult) -> float:
    size = cell.parameters.get("frame_size")
    return size if isinstance(size, int) else 0


def _stream(cell: CellResult) -> str:
    """What is the same for all sizes of a series."""
    told = cell.parameters
    left, right = told.get("ip_left"), told.get("ip_right")
    versions = f"IPv{left}" if left == right else f"IPv{left}-IPv{right}"
    ways = {"both": "both directions"}.get(str(told.get("direction")))
    several = cell.id.endswith(f"@{cell.place}")
    place = f"at {cell.place}" if several else ""
    parts = (
        place,
        versions,
        ways or f"{told.get('direction')} only",
        told.get("traffic"),
    )
    judged = cell.quantity.partition(",")[2].strip()
    return ", ".join(str(part) for part in (*parts, judged) if part)


def _speed(media: Media) -> str:
    nominal = ", nominal: a virtual link, which may be faster" if media.nominal else ""
    return f"{media.link_speed_mbps:,} Mbit/s{nominal}"


def _share(cell: CellResult, media: Media) -> str:
    if cell.median is None:
        return "-"
    share = about(cell.median * 100 / media.rate_fps, 3)
    return f"{figures.at_least(cell.bound)}{share} %"
