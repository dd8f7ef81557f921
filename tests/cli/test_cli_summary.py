"""Tables and lines at the end of a run, from results alone."""

from __future__ import annotations

import io

from rich.console import Console

from dutperf.cli.summary import show_summary
from dutperf.results import CellResult, RepeatResult, ResultsFile, spread_of
from dutperf.stats import median


def throughput(*values: float, cell_id: str = "throughput-ip4-64-both") -> CellResult:
    return CellResult(
        id=cell_id,
        procedure="throughput",
        quantity="throughput per direction (RFC 2544 26.1)",
        parameters={"frame_sizes": "64", "direction": "both"},
        median=median(values),
        unit="fps",
        repeats=[RepeatResult(value=v, verdict="pass", trials=1) for v in values],
        verdict="pass",
        spread=spread_of(values),
    )


def shown(*cells: CellResult) -> str:
    results = ResultsFile(
        procedure="campaign",
        name="demo",
        created_at="2026-03-04T05:06:07+00:00",
        complete=True,
        cells=list(cells),
    )
    console = Console(file=io.StringIO(), width=160)
    show_summary(console, results, None)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_repeats_are_told_with_the_interval_of_their_median_and_dispersion() -> None:
    out = shown(throughput(*range(100_001, 100_021)))
    assert "100,006-100,015" in out
    assert "0.019" in out


def test_one_repeat_has_neither() -> None:
    out = shown(throughput(100_000))
    assert "interval" not in out
    assert "dispersion" not in out


def test_too_few_repeats_have_no_interval() -> None:
    out = shown(throughput(100_000, 110_000))
    assert "9.5" in out
    assert "│                 - │" in out
