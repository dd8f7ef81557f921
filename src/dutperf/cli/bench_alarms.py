"""``dutperf bench compare`` and ``bench trend``: false alarms and power, simulated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.table import Table

from dutperf.bench.alarms import Row, compare_alarms, trend_alarms
from dutperf.cli.failures import PatientConsole
from dutperf.cli.json_print import print_versioned
from dutperf.cli.options import AsJson

_VERSION = 1

Draws = Annotated[
    int, typer.Option(min=1, max=100_000, help="simulated comparisons or series a case")
]


def bench_compare(draws: Draws = 400, as_json: AsJson = False) -> None:
    """How often compare tells a difference of simulated runs with and without one."""
    _print("compare", compare_alarms(draws), draws, as_json=as_json)


def bench_trend(draws: Draws = 200, as_json: AsJson = False) -> None:
    """How often trend tells a change in simulated series with and without one."""
    _print("trend", trend_alarms(draws), draws, as_json=as_json)


def _print(of: str, rows: Iterable[Row], draws: int, *, as_json: bool) -> None:
    if as_json:
        told = [row._asdict() for row in rows]
        print_versioned(_VERSION, {"draws": draws, "rows": told})
        return
    table = Table(title=f"What {of} tells of {draws:,} simulated draws a case")
    table.add_column("case")
    table.add_column("false alarms %", justify="right")
    table.add_column("found %", justify="right")
    for row in rows:
        figure = f"{row.told_percent:.1f}"
        alarms, found = ("-", figure) if row.changed else (figure, "-")
        table.add_row(row.case, alarms, found)
    PatientConsole().print(table)
