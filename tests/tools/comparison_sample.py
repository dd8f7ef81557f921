"""Runs to compare: stored cells with repeats as a test wants them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from report_sample import CREATED, sample_environment, store, throughput_cell
from told_cells import retyped

from dutperf.comparison.judging import Compared, Comparison, compare
from dutperf.comparison.sides import sides_of
from dutperf.report.source import Source, StoredCampaign, TestbedRecord
from dutperf.results import (
    CellResult,
    DelayRecord,
    Environment,
    LoadPoint,
    Measure,
    MeasuredValue,
    RepeatResult,
    ResultsFile,
    spread_of,
)
from dutperf.results.rate_results import Load


def rate(*values: float | None, name: str = "throughput-ip4-64-both") -> CellResult:
    """A throughput with a resolution of 0.5 %."""
    return throughput_cell(name, 4, 64, values)


def bounded(cell: CellResult, *numbers: int) -> CellResult:
    """Its repeats of those numbers, from 0, or all, are lower bounds."""
    repeats = [
        r.model_copy(update={"bound": "lower", "bound_cause": "tester"})
        if n in numbers or not numbers
        else r
        for n, r in enumerate(cell.repeats)
    ]
    update = {"repeats": repeats, "bound": None if numbers else "lower"}
    return cell.model_copy(update=update)


def loss(*values: float, load_fps: int = 500_000) -> CellResult:
    """The loss at the highest load."""
    repeats = [RepeatResult(value=v, verdict="pass", trials=1) for v in values]
    median = sorted(values)[len(values) // 2]
    points = [
        LoadPoint(
            load_percent=100, load_fps=load_fps, loss_percent=median, repeats=repeats
        )
    ]
    made = rate(1).model_copy(
        update={
            "id": "frame-loss-ip4-64-both",
            "procedure": "frame-loss",
            "unit": "percent",
            "median": median,
            "repeats": repeats,
            "points": points,
        }
    )
    return retyped(made)


def latency(
    measures: dict[str, Sequence[float | MeasuredValue]],
    *,
    share_ns: int = 100,
    rate_fps: int = 10_000,
    asked: str = "90% of throughput",
) -> CellResult:
    """Delays of one direction, by the names of their measures; null: infinite."""
    return rate(1).model_copy(
        update={
            "id": "latency-ip4-64-forward",
            "procedure": "latency",
            "unit": "ns",
            "measures": [_measure(name, of) for name, of in measures.items()],
            "load": Load(rate_fps=rate_fps, asked=asked, words="a load"),
            "delays": DelayRecord(
                definition="a delay",
                resolution="exact",
                floor_ns=10,
                bound_ns=10 * share_ns,
                usual_bound_ns=share_ns,
            ),
        }
    )


def _measure(name: str, values: Sequence[float | MeasuredValue]) -> Measure:
    figures = [
        v if isinstance(v, MeasuredValue) else MeasuredValue(value=v) for v in values
    ]
    known = sorted(f.value for f in figures if f.value is not None)
    middle = figures[len(figures) // 2]
    median = middle.model_copy(
        update={"value": known[len(known) // 2]} if known else {}
    )
    return Measure(
        name=name,
        quantity=name,
        direction="forward",
        repeats=figures,
        samples=[500] * len(figures),
        lost=[0] * len(figures),
        rounding_ns=0,
        count=len(figures),
        result=median,
        percentile_1=median,
        percentile_99=median,
        spread=spread_of(known),
    )


def stored(
    path: Path,
    *cells: CellResult,
    complete: bool = True,
    environment: Environment | None = None,
    created_at: str = CREATED,
) -> Path:
    """A run's directory."""
    results = ResultsFile(
        procedure="campaign",
        name=path.name,
        created_at=created_at,
        complete=complete,
        cells=list(cells),
    )
    store(path, results, environment or sample_environment()).close()
    return path


def compared(*runs: Sequence[CellResult]) -> Comparison:
    """Runs of those cells, the first is the baseline; nothing is stored."""
    return compared_sides(*([cells] for cells in runs))


def compared_sides(*sides: Sequence[Sequence[CellResult]]) -> Comparison:
    """The same of sides of several runs each."""
    second = itertools.count(10)
    return compare(
        sides_of(
            [
                [(Path("run"), _source(cells, next(second))) for cells in side]
                for side in sides
            ]
        )
    )


def one(before: CellResult, after: CellResult) -> Compared:
    """Of one cell with one figure."""
    (found,) = compared([before], [after]).figures
    return found


def _source(cells: Sequence[CellResult], second: int) -> Source:
    return Source(
        name="demo",
        created_at=CREATED.replace(":00+", f":{second}+"),
        written_by="0.1.0",
        testbeds=(TestbedRecord("bench", "", None),),
        interruption="",
        failures=(),
        cells=tuple(cells),
        scalability=(),
        sweeps=(),
        trials=(),
        campaign=StoredCampaign({}, ""),
    )
