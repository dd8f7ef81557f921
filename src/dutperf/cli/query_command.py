"""``dutperf query`` and ``dutperf trend``: many runs at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table

from dutperf.cli.console import PatientConsole, print_versioned, show_notice
from dutperf.cli.options import AsJson
from dutperf.errors import InputError
from dutperf.results.storage import unfinished, write_atomically
from dutperf.results.units import in_unit
from dutperf.results.words import named
from dutperf.visible import csv_lines

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from dutperf.query.database import Selected
    from dutperf.query.trend import Point, Series


# ``dutperf query``: SQL over all results under a directory.


_VERSION = 1
_DEFAULT = "results"
_MOST_ROWS = 1000
"""As many as anybody reads on a terminal."""
_FOLDED_WIDTH = 8
"""Words are folded to this, where a terminal has no room for more."""
_WHOLE = {
    f"{sign}{size}INT"
    for sign in ("", "U")
    for size in ("TINY", "SMALL", "BIG", "HUGE")
} | {"INTEGER", "UINTEGER"}
"""DuckDB's types of whole numbers."""
_SIDEWAYS_WIDTH = 20
"""Of a column with a whole row, at least."""
_MANY = 1e6
"""From here on decimals tell nothing."""

Directory = Annotated[
    str | None,
    typer.Argument(
        metavar="[DIR]",
        help="where results are stored, at any depth, or an address that fsspec "
        "knows; default: results",
        show_default=False,
    ),
]
Sql = Annotated[
    str | None,
    typer.Argument(
        metavar="[SQL]",
        help="for example: select device, frame_size, median(rate_fps) from results "
        "group by all; without it the views are listed",
        show_default=False,
    ),
]
AsCsv = Annotated[bool, typer.Option("--csv", help="print CSV on standard output")]
File = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="write the rows to FILE.csv or FILE.parquet",
        show_default=False,
    ),
]


def query(
    directory: Directory = None,
    sql: Sql = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    output: File = None,
) -> None:
    """Ask all results under a directory by SQL (DuckDB): trials, results, findings.

    The views are results, trials, environment and findings. A run is read once: an
    index beside the runs keeps what it has (docs/query.md).
    """
    place, sql = _given(directory, sql)
    if as_json + as_csv + (output is not None) > 1:
        raise InputError("--json, --csv and --output are one or the other")
    if not sql and (as_csv or output):
        raise InputError(
            "there is no SQL", 'for example: dutperf query results "from results"'
        )
    parquet = output if output and _is_parquet(output) else None
    # Nobody else needs DuckDB, which takes a while to be loaded.
    from dutperf.query.database import (  # noqa: PLC0415
        connect,
        selected,
        write_parquet,
    )

    made = unfinished(parquet) if parquet else None
    database = connect([place], show_notice, writes=made)
    if not sql:
        _list_views(database, as_json=as_json)
        return
    if parquet and made:
        write_parquet(database, sql, parquet, made)
        PatientConsole().out(parquet, highlight=False)
        return
    found = selected(database, sql)
    if as_json:
        _print_json(found)
    elif as_csv:
        PatientConsole().out(_csv(found), end="", highlight=False)
    elif output:
        write_atomically(output, _csv(found), "the results are not affected")
        PatientConsole().out(output, highlight=False)
    else:
        show_rows(PatientConsole(), found.names, found.rows(), _numeric(found))


def _given(first: str | None, second: str | None) -> tuple[str, str | None]:
    """Directory and SQL, of which one may be left out: SQL is words with spaces."""
    if first and second is None and " " in first and not Path(first).exists():
        return _DEFAULT, first
    return first or _DEFAULT, second


def _is_parquet(path: Path) -> bool:
    if path.suffix not in (".csv", ".parquet"):
        raise InputError(
            f"--output {path}: the name tells the format",
            "end it with .csv or .parquet",
        )
    if not path.parent.is_dir():
        raise InputError(
            f"cannot write {path}: there is no directory {path.parent}",
            "make it, or choose another --output",
        )
    return path.suffix == ".parquet"


def _list_views(database: DuckDBPyConnection, *, as_json: bool) -> None:
    from dutperf.query.views import VIEWS  # noqa: PLC0415 - as above

    rows = {
        view.name: database.table(view.name).count("*").fetchall()[0][0]
        for view in VIEWS
    }
    if as_json:
        told = {
            view.name: {
                "rows": rows[view.name],
                "meaning": view.meaning,
                "columns": [
                    {"name": c.name, "type": c.type, "meaning": c.meaning}
                    for c in view.columns
                ],
            }
            for view in VIEWS
        }
        print_versioned(_VERSION, {"views": told})
        return
    console = PatientConsole()
    for view in VIEWS:
        table = Table(
            title=f"{view.name}, {rows[view.name]:,} rows",
            caption=view.meaning,
            title_style="bold",
            caption_style="",
        )
        for head in ("column", "type", "meaning"):
            table.add_column(head, overflow="fold")
        for column in view.columns:
            table.add_row(column.name, column.type.lower(), column.meaning)
        console.print(table)
    console.out(
        'next: dutperf query DIR "select device, frame_size, median(rate_fps) from '
        'results group by all"',
        highlight=False,
    )


def _print_json(found: Selected) -> None:
    columns = [
        {"name": name, "type": kind}
        for name, kind in zip(found.names, found.types, strict=True)
    ]
    rows = [
        dict(zip(found.names, map(_json, row), strict=True)) for row in found.rows()
    ]
    print_versioned(_VERSION, {"columns": columns, "rows": rows})


def _json(value: object) -> object:
    """JSON has no infinite number: it is a text, never null, which is no value."""
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if isinstance(value, dict):
        return {str(key): _json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    return value.isoformat() if isinstance(value, date) else value


def _csv(found: Selected) -> str:
    return csv_lines([found.names, *found.rows()])


def _numeric(found: Selected) -> set[str]:
    """Columns that stand on the right."""
    return {
        name
        for name, kind in zip(found.names, found.types, strict=True)
        if kind in _WHOLE or kind == "DOUBLE" or kind.startswith(("FLOAT", "DECIMAL"))
    }


def show_rows(
    console: PatientConsole,
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    numeric: set[str],
) -> None:
    """A table of as many rows as anybody reads; a wide one with a column for each."""
    more = iter(rows)
    told = [[_shown(value) for value in row] for row in islice(more, _MOST_ROWS)]
    least = [_least_width(name, told, at, numeric) for at, name in enumerate(names)]
    if sum(least) + 3 * len(least) + 1 <= console.width or not told:
        console.print(_upright(names, told, numeric, least))
    else:
        for table in _sideways(names, told, console.width):
            console.print(table)
    if next(more, None) is not None:
        console.out(
            f"the first {_MOST_ROWS:,} rows; all: --csv or --output", highlight=False
        )


def _least_width(
    name: str, rows: Sequence[Sequence[str]], at: int, numeric: set[str]
) -> int:
    """Figures stay in one piece; words and heads may be folded."""
    longest = max((len(row[at]) for row in rows), default=0)
    if name in numeric:
        return max(longest, min(len(name), _FOLDED_WIDTH))
    return min(max(longest, len(name)), _FOLDED_WIDTH)


def _upright(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: set[str],
    least: Sequence[int],
) -> Table:
    table = Table()
    for name, width in zip(names, least, strict=True):
        side: Literal["left", "right"] = "right" if name in numeric else "left"
        table.add_column(name, justify=side, overflow="fold", min_width=width)
    for row in rows:
        table.add_row(*row)
    return table


def _sideways(
    names: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> Iterator[Table]:
    """As many rows side by side as there is room for."""
    at_once = max(1, (width - max(map(len, names)) - 4) // (_SIDEWAYS_WIDTH + 3))
    for first in range(0, len(rows), at_once):
        some = rows[first : first + at_once]
        table = Table(show_header=False)
        table.add_column("", no_wrap=True)
        for _ in some:
            table.add_column("", overflow="fold")
        for place, name in enumerate(names):
            table.add_row(name, *(row[place] for row in some))
        yield table


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        if math.isinf(value):
            return "infinite" if value > 0 else "-infinite"
        whole = value.is_integer() or abs(value) >= _MANY
        return f"{value:.0f}" if whole else f"{value:.7g}"
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return value.isoformat(" ") if isinstance(value, datetime) else str(value)


# ``dutperf trend``: figures of the same cells over many runs.


_TREND_VERSION = 1
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
        print_versioned(
            _TREND_VERSION, {"series": [_as_data(series) for series in found]}
        )
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
