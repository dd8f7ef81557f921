"""Small stored runs: cells without trials, one run after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from report_sample import store, throughput_cell

from dutperf.results import CellResult, ResultsFile

CELL = "throughput-ip4-64-both"


def stored_run(
    path: Path, cells: Sequence[CellResult], day: int = 1, name: str = "nightly"
) -> Path:
    """A complete run of that day of January."""
    results = ResultsFile(
        procedure="campaign",
        name=name,
        created_at=f"2026-01-{day:02d}T02:00:00+00:00",
        complete=True,
        cells=list(cells),
    )
    store(path, results).close()
    return path


def nightly(path: Path, values: Sequence[float]) -> Path:
    """A run a night, with one throughput each."""
    for day, value in enumerate(values, 1):
        cell = throughput_cell(CELL, 4, 64, [value])
        stored_run(path / f"night{day:02d}", [cell], day)
    return path
