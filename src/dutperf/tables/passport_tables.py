"""Each result beside what the tester can do itself, by its passport."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from dutperf.results.passport import NEAR_PERCENT, PassportUse
from dutperf.tables.figures import Value, count, duration, percent
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import Column, Columns, Table, heads, rows


class _Row(NamedTuple):
    cell: Subject
    use: PassportUse


_COLUMNS: Columns[_Row] = (
    (
        Column("of", "What was measured, and of which frames.", words=True),
        lambda row: f"{row.cell.name}, {row.cell.stream}",
    ),
    (
        Column("frames", "What the frames have that costs the tester.", words=True),
        lambda row: row.use.features,
    ),
    (
        Column(
            "safe rate",
            "At which the tester without a device passed every one of so many trials.",
            "fps per direction",
        ),
        lambda row: count(row.use.safe_rate_fps),
    ),
    (
        Column("proof", "How many trials in a row passed there.", "trials", spared=3),
        lambda row: count(row.use.trials),
    ),
    (
        Column("result", "The rate that it is about.", "fps per direction"),
        lambda row: count(row.use.rate_fps),
    ),
    (
        Column(
            "share",
            f"Result / safe rate; above {NEAR_PERCENT:.0f} % the tester hardly does "
            "more.",
            "of the safe rate",
            tone="strong",
        ),
        lambda row: percent(row.use.share_percent, digits=3),
    ),
    (
        Column(
            "delay floor",
            "Typical delay, and that of 999 in 1,000 frames, without a device.",
            spared=1,
        ),
        lambda row: _floor(row.use),
    ),
    (
        Column(
            "device's CPU for links",
            "Of a lab: what part of the device's CPU carried frames to and from the "
            "tester and did not forward them.",
            "of its time",
            spared=2,
        ),
        lambda row: percent(row.use.device_share_percent, digits=2),
    ),
)


def passport_table(cells: Sequence[Subject]) -> Table | None:
    """A row for each result that has a passport beside it; None without any."""
    known = [
        _Row(cell, cell.result.passport)
        for cell in cells
        if cell.result and cell.result.passport
    ]
    if not known:
        return None
    names = dict.fromkeys(row.use.passport for row in known)
    return Table(
        key="passport",
        title=f"The tester's own limits (passport {', '.join(names)})",
        columns=heads(_COLUMNS),
        rows=rows(_COLUMNS, known, lambda row: row.cell.id),
        detail=True,
    )


def _floor(use: PassportUse) -> Value:
    floor = use.floor
    if floor is None:
        return Value()
    typical, worst = duration(floor.typical_ns, 3), duration(floor.worst_ns, 3)
    return replace(
        typical,
        digits=f"{typical.digits} {typical.unit}, {worst.digits}",
        unit=worst.unit,
    )
