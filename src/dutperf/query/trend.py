"""Figures of the same cell over many runs, and where they changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from dutperf import stats
from dutperf.catalogue import Unit
from dutperf.query.change_points import LEAST_RUNS, change_points
from dutperf.query.figures import Limit, StoredFigure, leading_figures
from dutperf.query.runs import Run

_NO_SETTINGS = ("seed", "max_load_fps", "max_load_is", "rate_fps", "phase1_rate")
"""What may be another in each run: drawn, or found."""


@dataclass(frozen=True)
class Point:
    """The figure of one run; ``value`` is None if it has none."""

    run: Run
    value: float | None
    limit: Limit

    @property
    def plain(self) -> bool:
        """Whether it is a figure: no bound, not infinite, not invalid."""
        known = self.value is not None and math.isfinite(self.value)
        return known and self.limit is None


@dataclass(frozen=True)
class Change:
    """A new level: medians of the plain figures since the last change, and after."""

    at: int
    before: float
    after: float

    @property
    def percent(self) -> float:
        """Of the level before; below 0: it fell."""
        return (self.after / self.before - 1) * 100


@dataclass(frozen=True)
class Series:
    """One figure of one cell over time.

    Attributes:
        points: by the beginning of their runs.
        changes: ``at`` is the place of the point with which the new level begins.
        unlooked: why no changes were looked for; empty: they were.
        settings: what was not asked for in the same way in all runs.
    """

    device: str
    cell: str
    name: str
    direction: str
    unit: Unit
    judged: str
    points: tuple[Point, ...]
    changes: tuple[Change, ...]
    unlooked: str
    settings: tuple[str, ...]


def trends(runs: Iterable[Run]) -> list[Series]:
    """A series for each figure that a cell is known by, in the order of the cells.

    A run that is stored twice counts once.
    """
    found: dict[tuple[str, ...], list[tuple[Run, StoredFigure]]] = {}
    for run in sorted(runs, key=_when):
        for cell in run.cells:
            for figure in leading_figures(cell):
                own = cell.id.partition("@")[0]
                key = (cell.testbed, own, figure.name, figure.direction, cell.judged)
                found.setdefault(key, []).append((run, figure))
    return [_series(key, list(_once(of_key))) for key, of_key in found.items()]


def _when(run: Run) -> tuple[datetime, str]:
    return run.created_at or datetime.min, str(run.path)  # noqa: DTZ901 - all are UTC


def _once(
    figures: Sequence[tuple[Run, StoredFigure]],
) -> Iterator[tuple[Run, StoredFigure]]:
    """Without copies of a run: same name, begun at the same time, the same repeats."""
    seen = set()
    for run, figure in figures:
        own = (run.source.name, run.source.created_at, figure.value, figure.repeats)
        if own not in seen:
            seen.add(own)
            yield run, figure


def _series(
    key: tuple[str, ...], figures: Sequence[tuple[Run, StoredFigure]]
) -> Series:
    points = tuple(Point(run, f.value, f.limit) for run, f in figures)
    plain = [(at, p.value) for at, p in enumerate(points) if p.plain and p.value]
    unlooked = _unlooked(points)
    device, cell, name, direction, judged = key
    return Series(
        device=device,
        cell=cell,
        name=name,
        direction=direction,
        unit=figures[0][1].unit,
        judged=judged,
        points=points,
        changes=() if unlooked else tuple(_changes(plain)),
        unlooked=unlooked,
        settings=tuple(_settings([figure for _, figure in figures])),
    )


def _unlooked(points: Sequence[Point]) -> str:
    plain = [point.value for point in points if point.plain]
    if any(value is None or value <= 0 for value in plain):
        return "a figure of 0 or less has no logarithm"
    if len(plain) < LEAST_RUNS:
        return f"fewer than {LEAST_RUNS} plain figures"
    return ""


def _changes(plain: Sequence[tuple[int, float]]) -> Iterator[Change]:
    """``plain``: places among all points, and figures."""
    values = [value for _, value in plain]
    starts = change_points(values)
    ends = [0, *starts, len(values)]
    levels = [stats.median(values[a:b]) for a, b in pairwise(ends)]
    for start, (before, after) in zip(starts, pairwise(levels), strict=True):
        yield Change(plain[start][0], before, after)


def _settings(figures: Sequence[StoredFigure]) -> Iterator[str]:
    """Keys of settings that differ; one that an older version did not tell does not.

    A loss or a delay is of its load, wherever that is from.
    """
    keys = dict.fromkeys(key for f in figures for key in f.cell.settings)
    for key in keys:
        told = {
            f.cell.settings[key]
            for f in figures
            if f.cell.settings.get(key) is not None
        }
        if len(told) > 1 and key not in _NO_SETTINGS:
            yield key
    if len({figure.load_fps for figure in figures}) > 1:
        yield "load_fps"
