"""Figures of a run as OpenMetrics, for the textfile collector of a node exporter.

The text is of the subset that Prometheus' own, older format has as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC

from dutperf.catalogue import PROCEDURES, ProcedureName
from dutperf.query import Run, StoredFigure, figures_of
from dutperf.visible import visible

_END = "# EOF\n"
_UNITS: Mapping[str, tuple[str, float]] = {
    "fps": ("frames_per_second", 1),
    "percent": ("ratio", 100),
    "frames": ("frames", 1),
    "ns": ("seconds", 1e9),
    "connections/s": ("connections_per_second", 1),
    "connections": ("connections", 1),
}
"""Base units, and how many of ours one is."""
_NAMES: Mapping[ProcedureName, str] = {
    "throughput": "throughput",
    "frame-loss": "frame_loss",
    "back-to-back": "longest_burst",
    "latency": "latency",
    "pdv": "pdv",
    "ipdv": "ipdv",
    "system-recovery": "system_recovery",
    "outage": "outage",
    "connection-rate": "connection_establishment",
    "table-capacity": "table_capacity",
    "teardown-rate": "connection_teardown",
}


@dataclass(frozen=True)
class _Metric:
    """A family of metrics: all its samples stand together."""

    name: str
    unit: str
    meaning: str


def openmetrics(run: Run) -> str:
    """Each figure of the run as a gauge; cells without one are not there.

    The label ``bound`` says of a figure that is no exact one that it is that much or
    more (lower), or less (upper, below).
    """
    families: dict[_Metric, dict[str, float]] = {}
    for metric, labels, value in [*_figures(run), *_when(run)]:
        families.setdefault(metric, {}).setdefault(_labels(labels), value)
    lines = []
    for metric, samples in families.items():
        lines += [
            f"# TYPE {metric.name} gauge",
            f"# UNIT {metric.name} {metric.unit}",
            f"# HELP {metric.name} {_escaped(metric.meaning)}",
            *(f"{metric.name}{labels} {_number(v)}" for labels, v in samples.items()),
        ]
    return "".join(f"{line}\n" for line in lines) + _END


Sample = tuple[_Metric, dict[str, str], float]


def _figures(run: Run) -> Iterator[Sample]:
    for cell in run.cells:
        for figure in figures_of(cell):
            if figure.value is not None:
                unit, size = _UNITS[figure.unit]
                yield _metric(figure, unit), _told(figure), figure.value / size


def _metric(figure: StoredFigure, unit: str) -> _Metric:
    """What is judged otherwise than the RFC does has another name."""
    procedure = figure.cell.procedure or "throughput"
    known = PROCEDURES[procedure]
    name, meaning = _NAMES[procedure], known.finds
    if figure.cell.judged:
        name = f"{name}_judged"
        meaning = f"{known.title}, but judged as the label says."
    return _Metric(f"dutperf_{name}_{unit}", unit, meaning)


def _told(figure: StoredFigure) -> dict[str, str]:
    load = figure.load_percent
    return {
        "cell": figure.cell.id,
        "device": figure.cell.testbed,
        "direction": figure.direction,
        "measure": figure.name if figure.stream else "",
        "stream": figure.stream,
        "load_percent": "" if load is None else f"{load:.12g}",
        "judged": figure.cell.judged,
        "bound": figure.limit or "",
    }


def _when(run: Run) -> Iterator[Sample]:
    if run.created_at:
        metric = _Metric(
            "dutperf_run_created_timestamp_seconds", "seconds", "When the run began."
        )
        began = run.created_at.replace(tzinfo=UTC).timestamp()
        yield metric, {"campaign": run.source.name}, began


def _labels(labels: Mapping[str, str]) -> str:
    """An empty label is one that is not there."""
    told = (f'{name}="{_escaped(text)}"' for name, text in labels.items() if text)
    return "{" + ",".join(told) + "}"


def _escaped(text: str) -> str:
    plain = visible(text).replace("\\", "\\\\").replace('"', '\\"')
    return plain.replace("\n", "\\n")


def _number(value: float) -> str:
    return repr(value).replace("inf", "+Inf")
