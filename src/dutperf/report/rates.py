"""What media carry of each frame size (RFC 2544 20)."""

from __future__ import annotations

from dutperf.report.text import NBSP, whole
from dutperf.results import Media
from dutperf.tables.media_tables import Rates


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
    return f"{media.of_ports}{whole(media.link_speed_mbps)}{NBSP}Mbit/s{nominal}"
