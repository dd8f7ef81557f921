"""System recovery: one trial around the moment at which its load fell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dutperf.report.cells import CellView
from dutperf.report.chart import Chart, Figure
from dutperf.report.time_charts import time_charts
from dutperf.results import TrialRecord
from dutperf.results.details import Outage, Recovery

_INTERVALS = 10
"""To either side of the fall at least; a longer recovery has as much room again."""


@dataclass(frozen=True)
class RecoveryView:
    """The trial whose recovery took longest, in charts of its directions."""

    cell: CellView
    recovery: Recovery | None
    trial: TrialRecord | None
    charts: tuple[Chart, ...]


def recovery_views(cells: Sequence[CellView]) -> list[RecoveryView]:
    """Of the cells of that procedure, finished or not."""
    return [_view(cell) for cell in cells if cell.procedure == "system-recovery"]


def _view(cell: CellView) -> RecoveryView:
    recovery = cell.result.recovery if cell.result else None
    valid = [t for t in cell.trials if t.result.verdict.kind != "invalid"]
    if not valid or recovery is None:
        return RecoveryView(cell, None, None, ())
    longest_ns = [
        max((t.value_ns for d in recovery.directions if (t := d.repeats[n])), default=0)
        for n in range(len(recovery.directions[0].repeats))
    ]
    trial = max(valid, key=lambda trial: longest_ns[trial.repeat - 1])
    around = _around(trial, recovery, longest_ns[trial.repeat - 1])
    fell = upright(recovery.overload_ns / 1e9)
    charts = (marked(chart, "recovery", around, [fell]) for chart in time_charts(trial))
    return RecoveryView(cell, recovery, trial, tuple(charts))


def _around(
    trial: TrialRecord, recovery: Recovery, longest_ns: float
) -> tuple[float, float]:
    """What of the trial is shown, in seconds."""
    room_ns = _INTERVALS * trial.request.record.series_interval_ns
    begin_ns = max(0, recovery.overload_ns - room_ns)
    end_ns = recovery.overload_ns + max(room_ns, 2 * longest_ns)
    return begin_ns / 1e9, min(end_ns, trial.request.duration_ns) / 1e9


def marked(
    chart: Chart, name: str, around: tuple[float, float], marks: list[Figure]
) -> Chart:
    """A chart over time in another place: a part of it, with marks."""
    figure = dict(chart.layout)
    figure["xaxis"] = {**figure["xaxis"], "range": list(around)}
    figure["shapes"] = [*figure["shapes"], *marks]
    return replace(chart, id=chart.id.replace("time", name, 1), layout=figure)


def upright(at_s: float) -> Figure:
    """A dotted line over the whole height."""
    return {
        "type": "line",
        "x0": at_s,
        "x1": at_s,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"width": 1.5, "dash": "dot", "color": "var(--ink)"},
    }


# Outages: the trial with the longest one over time, and what was done meanwhile.


@dataclass(frozen=True)
class OutageView:
    """The trial that was out for longest, in charts of its directions."""

    cell: CellView
    outage: Outage | None
    trial: TrialRecord | None
    charts: tuple[Chart, ...]


def outage_views(cells: Sequence[CellView]) -> list[OutageView]:
    """Of the cells of that procedure, finished or not."""
    return [_outage_view(cell) for cell in cells if cell.procedure == "outage"]


def _outage_view(cell: CellView) -> OutageView:
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
