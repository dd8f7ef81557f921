"""Figures of the same cell over many runs, and where they changed."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

from dutperf import stats
from dutperf.catalogue import Unit
from dutperf.query.reader import Notify, bounded
from dutperf.query.run_index import indexed, rows_in
from dutperf.query.views import RESULTS
from dutperf.results.figures import Limit

_FREE = ("seed", "max_load_fps", "max_load_is", "rate_fps", "phase1_rate")
"""Settings that may be others in each run: drawn, or found."""
_KEYS = 5
"""Columns that are the same in a series."""
_AT_ONCE = 10_000
"""Rows that are fetched."""


@dataclass(frozen=True, slots=True)
class Point:
    """The figure of one run; ``value`` is None if it has none.

    ``run`` is its directory, ``begun`` when it began as that is stored.
    """

    run: str
    begun: str
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


class _Figure(NamedTuple):
    """A figure that a cell is known by, as it is selected."""

    device: str
    cell: str
    figure: str
    direction: str
    judged: str
    unit: Unit
    campaign: str
    run: str
    begun: str
    value: float | None
    bound: Limit
    repeats: list[float]
    load_fps: float | None
    settings: str


def trends(paths: Sequence[Path | str], notify: Notify) -> list[Series]:
    """A series for each figure that a cell is known by, in the order of the cells.

    Of the runs in or below ``paths``. A run that is stored twice counts once.

    Raises:
        InputError: there is no such directory, or no run in it that can be read.
    """
    with tempfile.TemporaryDirectory(prefix="dutperf-trend-") as into:
        files = indexed([str(path) for path in paths], notify, Path(into))
        by_key = groupby(_figures(files), key=lambda figure: figure[:_KEYS])
        return [_series(list(_once(of_key))) for _, of_key in by_key]


def _figures(files: Mapping[str, Path]) -> Iterator[_Figure]:
    """Series after series, each in the order of time."""
    keys = ", ".join(_Figure._fields[:_KEYS])
    # Who began at an unknown time was first.
    at = "coalesce(created_at, timestamp '0001-01-01')"
    sql = (
        "with figures as (select * replace (coalesce(device, '') as device, "
        "split_part(cell, '@', 1) as cell, coalesce(direction, '') as direction, "
        "coalesce(judged, '') as judged), _unit as unit, _value as value, "
        f"_begun as begun from ({rows_in(files, RESULTS, hidden=True)}) where _leads), "
        f"firsts as (select {keys}, min(({at}, run, place)) as first "
        "from figures group by all) "
        f"select {', '.join(_Figure._fields)} from figures join firsts using ({keys}) "
        f"order by first, {at}, run, place"
    )
    with bounded() as database:
        rows = database.execute(sql)
        while some := rows.fetchmany(_AT_ONCE):
            yield from (_Figure(*row) for row in some)


def _once(figures: Iterable[_Figure]) -> Iterator[_Figure]:
    """Without copies of a run: same name, begun at the same time, the same repeats."""
    seen = set()
    for figure in figures:
        own = (figure.campaign, figure.begun, figure.value, tuple(figure.repeats))
        if own not in seen:
            seen.add(own)
            yield figure


def _series(figures: Sequence[_Figure]) -> Series:
    points = tuple(Point(f.run, f.begun, f.value, f.bound) for f in figures)
    plain = [(at, p.value) for at, p in enumerate(points) if p.plain and p.value]
    unlooked = _unlooked(points)
    first = figures[0]
    return Series(
        device=first.device,
        cell=first.cell,
        name=first.figure,
        direction=first.direction,
        unit=first.unit,
        judged=first.judged,
        points=points,
        changes=() if unlooked else tuple(_changes(plain)),
        unlooked=unlooked,
        settings=tuple(_settings(figures)),
    )


def _unlooked(points: Sequence[Point]) -> str:
    plain = [point.value for point in points if point.plain]
    if any(value is None or value <= 0 for value in plain):
        return "a figure of 0 or less has no logarithm"
    if len(plain) < stats.LEAST_VALUES:
        return f"fewer than {stats.LEAST_VALUES} plain figures"
    return ""


def _changes(plain: Sequence[tuple[int, float]]) -> Iterator[Change]:
    """``plain``: places among all points, and figures."""
    values = [value for _, value in plain]
    starts = stats.change_points(values)
    ends = [0, *starts, len(values)]
    levels = [stats.median(values[a:b]) for a, b in pairwise(ends)]
    for start, (before, after) in zip(starts, pairwise(levels), strict=True):
        yield Change(plain[start][0], before, after)


def _settings(figures: Sequence[_Figure]) -> Iterator[str]:
    """Keys of settings that differ; one that an older version did not tell does not.

    A loss or a delay is of its load, wherever that is from.
    """
    told = [json.loads(text) for text in dict.fromkeys(f.settings for f in figures)]
    keys = dict.fromkeys(key for settings in told for key in settings)
    for key in (key for key in keys if key not in _FREE):
        values = {each[key] for each in told if each.get(key) is not None}
        if len(values) > 1:
            yield key
    if len({figure.load_fps for figure in figures}) > 1:
        yield "load_fps"
