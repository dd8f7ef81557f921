"""The table that ``dutperf trend`` reads: the figures that cells are known by.

It is stored like those of the views, and is none: SQL has ``results``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from dutperf.query.columns import Column, View, of_run
from dutperf.query.figures import StoredFigure, leading_figures
from dutperf.query.runs import Run
from dutperf.visible import visible_json

FREE_SETTINGS = ("seed", "max_load_fps", "max_load_is", "rate_fps", "phase1_rate")
"""What may be another in each run: drawn, or found."""


@dataclass(frozen=True)
class Row:
    """One figure, and the run it is of."""

    run: Run
    figure: StoredFigure

    @property
    def settings(self) -> str:
        """What should be the same in all runs."""
        told = {
            key: value
            for key, value in self.figure.cell.settings.items()
            if key not in FREE_SETTINGS
        }
        return visible_json(json.dumps(told))


def _rows(run: Run) -> Iterator[Row]:
    for cell in run.cells:
        yield from (Row(run, figure) for figure in leading_figures(cell))


SERIES = View(
    "series",
    "A row for each figure that a cell is known by.",
    (
        *of_run(lambda row: row.run),
        Column("begun", "VARCHAR", "As stored.", lambda row: row.run.source.created_at),
        Column("device", "VARCHAR", "As told.", lambda row: row.figure.cell.testbed),
        Column(
            "cell",
            "VARCHAR",
            "Its id, without the testbed.",
            lambda row: row.figure.cell.id.partition("@")[0],
        ),
        Column("figure", "VARCHAR", "What it is.", lambda row: row.figure.name),
        Column(
            "direction", "VARCHAR", "Of its frames.", lambda row: row.figure.direction
        ),
        Column(
            "judged",
            "VARCHAR",
            "What makes it another one than the RFC's.",
            lambda row: row.figure.cell.judged,
        ),
        Column("unit", "VARCHAR", "Of the value.", lambda row: row.figure.unit),
        Column("value", "DOUBLE", "Null: there is none.", lambda row: row.figure.value),
        Column("bound", "VARCHAR", "As in results.", lambda row: row.figure.limit),
        Column(
            "repeats",
            "DOUBLE[]",
            "Each with a value.",
            lambda row: list(row.figure.repeats),
        ),
        Column(
            "load_fps",
            "DOUBLE",
            "At which it was measured.",
            lambda row: row.figure.load_fps,
        ),
        Column(
            "settings",
            "VARCHAR",
            "JSON of those that should be the same.",
            lambda row: row.settings,
        ),
    ),
    _rows,
)
