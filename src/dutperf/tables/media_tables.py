"""Throughput beside the theoretical maximum of the media (RFC 2544 26.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dutperf.results import Media
from dutperf.tables.figures import Value, Verdict, count, percent
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import Column, Columns, Row, Table, heads, rows


@dataclass(frozen=True)
class RateRow:
    """One throughput at one frame size; ``media`` is null where no speed is known."""

    cell: Subject
    media: Media | None

    @property
    def share_percent(self) -> float | None:
        """What of the theoretical maximum was reached."""
        if self.media is None or self.cell.rate_fps is None:
            return None
        return self.cell.rate_fps * 100 / self.media.rate_fps


Rates = Sequence[tuple[str, list[RateRow]]]
"""Name of a stream, and its throughputs by frame size."""
_COLUMNS: Columns[RateRow] = (
    (
        Column("traffic", "What is the same for all frame sizes.", words=True),
        lambda row: row.cell.series,
    ),
    (
        Column("frame size", "With the frame check sequence; or a mix.", "bytes"),
        lambda row: Value(row.cell.sizes.removesuffix(" bytes")),
    ),
    (
        Column(
            "theoretical maximum",
            "What the slower medium carries (RFC 2544 20, RFC 5180 A.1).",
            "fps per direction",
        ),
        lambda row: count(row.media.rate_fps if row.media else None),
    ),
    (
        Column("throughput", "The result.", "fps per direction", tone="strong"),
        lambda row: row.cell.figure,
    ),
    (
        Column("sum", "Of all directions together.", "fps", spared=2),
        lambda row: count(row.cell.sum_fps, "lower" if row.cell.is_bound else None),
    ),
    (
        Column("reached", "Throughput / theoretical maximum.", "of the maximum"),
        lambda row: percent(
            row.share_percent, "lower" if row.cell.is_bound else None, 3
        ),
    ),
    (
        Column("verdict", "Whether there is a result to quote.", "", 1, words=True),
        lambda row: Verdict(row.cell.state),
    ),
)


def media_table(cells: Sequence[Subject]) -> Table | None:
    """By stream and frame size; None if there is no throughput."""
    series = rate_rows(cells)
    if not series:
        return None
    known = [[row for row in of if row.media] for _, of in series]
    return Table(
        key="media",
        title="Throughput and theoretical maximum (RFC 2544 26.1)",
        columns=heads(_COLUMNS),
        rows=tuple(
            Row(row.name, ("", *row.entries[1:])) if place else row
            for _, of in series
            for place, row in enumerate(rows(_COLUMNS, of, lambda row: row.cell.id))
        ),
        notes=tuple(_media_notes([row for _, of in series for row in of])),
        detail=all(len(of) < 2 for of in known),
    )


def rate_rows(cells: Sequence[Subject]) -> Rates:
    """The throughputs of each stream, in the campaign's order; flows have a table.

    Of a stream they are by frame size, mixes last.
    """
    found: dict[str, list[RateRow]] = {}
    for cell in cells:
        if cell.procedure == "throughput" and not cell.flows:
            found.setdefault(cell.series, []).append(RateRow(cell, cell.media))
    for of_series in found.values():
        of_series.sort(key=lambda row: row.cell.frame_size or float("inf"))
    return list(found.items())


def _media_notes(shown: Sequence[RateRow]) -> Iterator[str]:
    speeds = dict.fromkeys(_speed(row.media) for row in shown if row.media)
    if speeds:
        yield f"per direction; the maximum is that of {' or '.join(speeds)}"
    results = [row.cell.result for row in shown if row.cell.result]
    if any(cell.sum_fps is not None and cell.media is None for cell in results):
        yield "theoretical maximum: not known, a link does not tell its speed"


def _speed(media: Media) -> str:
    nominal = ", nominal: a virtual link, which may be faster" if media.nominal else ""
    return f"{media.of_ports}{media.link_speed_mbps:,} Mbit/s{nominal}"
