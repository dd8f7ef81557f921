"""``dutperf bench search``: the searches compared on simulated devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from dutperf.cli.failures import PatientConsole
from dutperf.cli.json_print import print_versioned
from dutperf.cli.options import AsJson
from dutperf.simulation.search_comparison import (
    LEAST_HELD_PERCENT,
    MOST_TIME_PERCENT,
    NOT_RFC_2544,
    REMEMBER,
    REPEATS,
    Row,
    compare,
)

_COMPARISON_VERSION = 1


def bench_search(
    runs: Annotated[
        int,
        typer.Option(
            min=1,
            max=100_000,
            help="campaigns of each search on each device; 100: 2 minutes",
        ),
    ] = 100,
    as_json: AsJson = False,
) -> None:
    """How far off, how steady and how fast each search is; no device is needed.

    And whether what is promised of it holds: the interval of the median and the median
    itself, against the classic procedure's on the same device, and the time on a step.
    """
    rows = list(compare(runs))
    if as_json:
        told = [{**asdict(row), "kept": row.kept} for row in rows]
        result = {"runs": runs, "repeats": REPEATS, "rows": told}
        print_versioned(_COMPARISON_VERSION, result)
        return
    console = PatientConsole()
    console.print(_table(rows, runs))
    for line in _closing(rows):
        console.print(line, highlight=False, soft_wrap=True)


def _table(rows: list[Row], runs: int) -> Table:
    table = Table(title=f"Searches on simulated devices, {runs:,} campaigns each")
    table.add_column("device", no_wrap=True)
    table.add_column("search", no_wrap=True)
    for name in ("median fps", "spread %", "hours", "time %"):
        table.add_column(name, justify="right")
    for name in ("apart %", "of", "held %"):
        table.add_column(name, justify="right")
    table.add_column("")
    last = ""
    for row in rows:
        table.add_row(
            "" if row.device == last else row.device,
            row.method,
            f"{row.median_fps:,.0f}",
            f"{row.spread_percent:.2f}",
            f"{row.hours:.2f}",
            f"{row.time_percent:.0f}",
            f"{row.apart_percent:+.2f}",
            f"{row.allowed_percent:.2f}",
            "-" if row.held_percent is None else f"{row.held_percent:.1f}",
            {None: "", True: "kept", False: "missed"}[row.kept],
        )
        last = row.device
    return table


def _missed(row: Row) -> list[str]:
    promises = {"interval": row.holds, "median": row.agrees, "time": row.is_fast}
    return [name for name, kept in promises.items() if kept is False]


def _closing(rows: list[Row]) -> Iterator[str]:
    yield (
        "apart: from the long-run median of the classic procedure, of what is allowed: "
        "the resolution, or what classic campaigns with other seeds are apart. held: "
        "campaigns of which the 95 % interval holds that median, promised: "
        f"{LEAST_HELD_PERCENT} %. time: in percent of the classic procedure's, "
        f"promised on a step: {MOST_TIME_PERCENT} %."
    )
    yield (
        f"Nothing is promised of {' and '.join(sorted(NOT_RFC_2544))}, whose results "
        "say that they are not RFC 2544's search, nor on devices that remember: "
        f"{', '.join(sorted(REMEMBER))}."
    )
    promised = [row for row in rows if row.kept is not None]
    missed = [row for row in promised if not row.kept]
    yield f"Kept: {len(promised) - len(missed)} of {len(promised)}."
    for row in missed:
        yield f"Missed: {row.method} on {row.device}: {', '.join(_missed(row))}."
