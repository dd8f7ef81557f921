"""Throughput over frame sizes beside what the media carry (RFC 2544 26.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from dutperf.line_rate import line_rate_fps
from dutperf.report.cells import CellView
from dutperf.report.text import NBSP, whole
from dutperf.results import Media


@dataclass(frozen=True)
class RateRow:
    """One throughput at one frame size; ``media`` is null where no speed is known."""

    cell: CellView
    media: Media | None

    @property
    def share_percent(self) -> float | None:
        """What of the theoretical maximum was reached."""
        if self.media is None or self.cell.rate_fps is None:
            return None
        return self.cell.rate_fps * 100 / self.media.rate_fps

    @property
    def bound(self) -> str:
        """Before figures of what may be more."""
        return self.cell.at_least

    @property
    def stream(self) -> str:
        """What is the same for all sizes of a series."""
        parts = (self.cell.versions, self.cell.ways, self.cell.profile)
        told = ", ".join(part for part in (*parts, self.cell.judged) if part)
        return f"{told}{self.cell.at}"


Rates = Sequence[tuple[str, list[RateRow]]]
"""Name of a stream, and its throughputs by frame size."""


def rate_rows(cells: Sequence[CellView], link_speed_mbps: int | None) -> Rates:
    """The throughputs of each stream, by frame size; IMIX has none, flows a table.

    ``link_speed_mbps`` is for results of older files, which do not say it themselves.
    """
    rows = [
        RateRow(cell, cell.media or _media(cell.frame_size, link_speed_mbps))
        for cell in cells
        if cell.procedure == "throughput" and cell.frame_size and not cell.flows
    ]
    rows.sort(key=lambda row: (row.stream, row.cell.frame_size))
    return [(name, list(each)) for name, each in groupby(rows, lambda row: row.stream)]


def maxima(rows: Rates) -> dict[str, dict[int, int]]:
    """What each kind of medium carries: its name -> frame size -> rate.

    Where frames of one size are not all as long on the wire, of the shortest.
    """
    found: dict[str, dict[int, int]] = {}
    for row in (row for _, series in rows for row in series):
        if row.media and row.cell.frame_size:
            rates = found.setdefault(medium(row.media), {})
            size = row.cell.frame_size
            rates[size] = max(row.media.rate_fps, rates.get(size, 0))
    return {name: dict(sorted(rates.items())) for name, rates in found.items()}


def medium(media: Media) -> str:
    """``10,000 Mbit/s``, and that a virtual link only names it."""
    nominal = " (nominal)" if media.nominal else ""
    return f"{whole(media.link_speed_mbps)}{NBSP}Mbit/s{nominal}"


def _media(frame_size: int, link_speed_mbps: int | None) -> Media | None:
    if link_speed_mbps is None:
        return None
    return Media(
        rate_fps=line_rate_fps(link_speed_mbps, frame_size),
        link_speed_mbps=link_speed_mbps,
        nominal=False,
    )
