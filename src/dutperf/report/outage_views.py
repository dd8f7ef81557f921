"""Outages: the trial with the longest one over time, and what was done meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dutperf.report.cells import CellView
from dutperf.report.chart import Chart, Figure
from dutperf.report.recovery_views import marked, upright
from dutperf.report.timecharts import time_charts
from dutperf.results import TrialRecord
from dutperf.results.outage_results import Outage


@dataclass(frozen=True)
class OutageView:
    """The trial that was out for longest, in charts of its directions."""

    cell: CellView
    outage: Outage | None
    trial: TrialRecord | None
    charts: tuple[Chart, ...]


def outage_views(cells: Sequence[CellView]) -> list[OutageView]:
    """Of the cells of that procedure, finished or not."""
    return [_view(cell) for cell in cells if cell.procedure == "outage"]


def _view(cell: CellView) -> OutageView:
    outage = cell.result.outage if cell.result else None
    valid = [t for t in cell.trials if t.result.verdict.kind != "invalid"]
    if not valid or outage is None:
        return OutageView(cell, None, None, ())
    trial = max(valid, key=lambda trial: _longest_ns(outage, trial.repeat))
    around = 0.0, trial.request.duration_ns / 1e9
    charts = (
        marked(chart, "outage", around, list(_acts(outage, trial.repeat)))
        for chart in time_charts(trial)
    )
    return OutageView(cell, outage, trial, tuple(charts))


def _longest_ns(outage: Outage, repeat: int) -> float:
    times = [direction.repeats[repeat - 1] for direction in outage.directions]
    return max((time.value_ns for time in times if time), default=0)


def _acts(outage: Outage, repeat: int) -> Iterator[Figure]:
    """When each hook began and returned."""
    for action in outage.actions:
        if action.repeat == repeat and action.started_ns is not None:
            yield upright(action.started_ns / 1e9)
            yield upright((action.started_ns + action.duration_ns) / 1e9)
