"""``dutperf bench search``: the searches compared on simulated devices."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from dutperf.cli.failures import PatientConsole
from dutperf.search.comparison import REPEATS, Row, compare


def bench_search(
    runs: Annotated[
        int,
        typer.Option(
            min=1, max=100_000, help="campaigns of each search on each device"
        ),
    ] = 100,
    as_json: Annotated[
        bool, typer.Option("--json", help="print one JSON object")
    ] = False,
) -> None:
    """How far off, how steady and how fast each search is; no device is needed."""
    rows = list(compare(runs))
    console = PatientConsole()
    if as_json:
        result = {"runs": runs, "repeats": REPEATS, "rows": [asdict(r) for r in rows]}
        console.print_json(json.dumps(result))
    else:
        console.print(_table(rows, runs))


def _table(rows: list[Row], runs: int) -> Table:
    table = Table(title=f"Searches on simulated devices, {runs:,} campaigns each")
    table.add_column("device")
    table.add_column("search")
    for name in ("median fps", "bias %", "spread %", "trials", "hours", "time %"):
        table.add_column(name, justify="right")
    for name in ("coverage %", "strictly"):
        table.add_column(name, justify="right")
    last = ""
    for row in rows:
        table.add_row(
            "" if row.device == last else row.device,
            row.method,
            f"{row.median_fps:,.0f}",
            f"{row.bias_percent:+.2f}",
            f"{row.spread_percent:.2f}",
            f"{row.trials:,.0f}",
            f"{row.hours:.2f}",
            f"{row.time_percent:.0f}",
            _share(row.coverage_percent),
            _share(row.strict_coverage_percent),
        )
        last = row.device
    return table


def _share(percent: float | None) -> str:
    return "-" if percent is None else f"{percent:.0f}"
