"""``dutperf trend``: figures of the same cells over many runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from dutperf.cli.failures import PatientConsole, show_notice
from dutperf.cli.json_print import print_versioned
from dutperf.cli.options import AsJson
from dutperf.results.units import in_unit
from dutperf.results.words import named

if TYPE_CHECKING:
    from dutperf.query.trend import Point, Series

_VERSION = 1
_BARS = "▁▂▃▄▅▆▇█"
_AT_LEAST, _AT_MOST, _NONE = "^", "v", "x"
_SIGNS = {"lower": _AT_LEAST, "upper": _AT_MOST, "below": _AT_MOST}
_BOUNDS = {None: "", "lower": ">= ", "upper": "<= ", "below": "< "}
_LONGEST = 40
"""Points of a line of bars; the last ones."""

Directories = Annotated[
    list[str],
    typer.Argument(
        metavar="DIR...",
        help="results directories, directories that have some at any depth, or "
        "addresses that fsspec knows",
        show_default=False,
    ),
]


def trend(directories: Directories, as_json: AsJson = False) -> None:
    """Show the figures of the same cells over many runs, and where they changed.

    A change is a new level of at least two runs that noise alone would hardly be
    (docs/query.md). Bounds and invalid results are shown, and are never a level.
    """
    # Nobody else needs what finds changes, which takes a while to be loaded.
    from dutperf.query.trend import trends  # noqa: PLC0415

    found = trends(directories, show_notice)
    if as_json:
        print_versioned(_VERSION, {"series": [_as_data(series) for series in found]})
        return
    console = PatientConsole()
    console.print(_table(found))
    for line in _lines(found):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _table(found: Sequence[Series]) -> Table:
    table = Table(
        caption=f"{_AT_LEAST} at least, {_AT_MOST} at most, {_NONE} no valid result: "
        "no figures for a change",
        caption_style="",
    )
    several = len({series.device for series in found}) > 1
    table.add_column("figure", overflow="fold")
    table.add_column("runs", justify="right")
    table.add_column("oldest to newest", no_wrap=True)
    table.add_column("newest", justify="right", no_wrap=True)
    table.add_column("last change", justify="right", no_wrap=True)
    for series in found:
        newest, changes = series.points[-1], series.changes
        table.add_row(
            _name(series, with_device=several),
            str(len(series.points)),
            sparkline(series.points),
            _value(newest, series),
            f"{changes[-1].percent:+.3g} %" if changes else "-",
        )
    return table


def _name(series: Series, *, with_device: bool) -> str:
    """The id of a cell says all but which delay it is, and how it was judged."""
    which = f"{series.name} {series.direction}" if series.unit == "ns" else ""
    at = f"at {series.device}" if with_device and series.device else ""
    return ", ".join(part for part in (series.cell, which, series.judged, at) if part)


def _value(point: Point, series: Series) -> str:
    if point.value is None:
        return "invalid"
    if math.isinf(point.value):
        return "> lost"
    return f"{_BOUNDS[point.limit]}{in_unit(point.value, series.unit)}"


def sparkline(points: Sequence[Point]) -> str:
    """A character for each of the last points; bars of the plain ones between them."""
    shown = points[-_LONGEST:]
    plain = [p.value for p in shown if p.plain and p.value and math.isfinite(p.value)]
    low, high = min(plain, default=0.0), max(plain, default=0.0)

    def sign(point: Point) -> str:
        if point.value is None or math.isinf(point.value):
            return _NONE
        if point.limit:
            return _SIGNS[point.limit]
        share = (point.value - low) / (high - low) if high > low else 0.5
        return _BARS[min(int(max(share, 0) * len(_BARS)), len(_BARS) - 1)]

    return "".join(map(sign, shown))


def _lines(found: Sequence[Series]) -> Iterator[str]:
    """Each change in a sentence; why others were not looked for; what else differs."""
    unlooked: dict[str, list[str]] = {}
    for series in found:
        name = _name(series, with_device=True)
        for change in series.changes:
            point = series.points[change.at]
            yield (
                f"{name}: {change.percent:+.3g} % since {point.begun} "
                f"({point.run}): {in_unit(change.before, series.unit)} before, "
                f"{in_unit(change.after, series.unit)} after"
            )
        if series.settings:
            yield f"{name}: not asked for alike: {', '.join(series.settings)}"
        if series.unlooked:
            unlooked.setdefault(series.unlooked, []).append(name)
    for why, names in unlooked.items():
        yield f"no changes looked for, {why}: {named(names)}"


def _as_data(series: Series) -> dict[str, object]:
    return {
        "device": series.device,
        "cell": series.cell,
        "figure": series.name,
        "direction": series.direction,
        "unit": series.unit,
        "judged": series.judged,
        "points": [_point(point) for point in series.points],
        "changes": [
            {
                "at": change.at,
                "run": series.points[change.at].run,
                "before": change.before,
                "after": change.after,
                "percent": change.percent,
            }
            for change in series.changes
        ],
        "unlooked": series.unlooked,
        "settings": list(series.settings),
    }


def _point(point: Point) -> dict[str, object]:
    """JSON has no infinite number: of a delay that is, ``lost`` is true."""
    lost = point.value is not None and math.isinf(point.value)
    return {
        "run": point.run,
        "created_at": point.begun,
        "value": None if lost else point.value,
        "bound": point.limit,
        "lost": lost,
    }
