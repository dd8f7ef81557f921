"""Delays and frame timeouts at the end of a run, on standard output."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from dutperf.cli import figures
from dutperf.results import CellResult, DelayRecord, Figure, Measure, result_word
from dutperf.results.units import duration

_NO_FIGURE = {"lost": "> lost", "undefined": "-", "invalid": "invalid"}


def delay_table(cell: CellResult) -> Table:
    """One row for each quantity and stream; with several repeats also their spread."""
    table = Table(
        title=f"{cell.id}: {result_word(cell.verdict)}", caption=cell.quantity
    )
    table.add_column("quantity")
    table.add_column("direction")
    if _has_background(cell):
        table.add_column("stream")
    for name in (_summaries(cell.measures), "1st %ile", "99th %ile", "N"):
        table.add_column(name, justify="right")
    table.add_column(f"{_samples_are(cell)} a repeat", justify="right")
    tags_lost = any(sum(measure.lost) for measure in cell.measures)
    if tags_lost:
        table.add_column("lost of all", justify="right")
    for measure in cell.measures:
        table.add_row(
            measure.name,
            measure.direction,
            *([measure.stream] if _has_background(cell) else []),
            figure(measure.result),
            figure(measure.percentile_1),
            figure(measure.percentile_99),
            str(measure.count),
            _range(measure.samples),
            *([f"{sum(measure.lost):,}"] if tags_lost else []),
        )
    return table


def timeout_table(cell: CellResult) -> Table:
    """What would be lost by each frame timeout, in the trials at the rate found."""
    rate = "no rate"
    if cell.median is not None:
        rate = f"{figures.rate(cell.median, cell.bound)} fps per direction"
    table = Table(title=f"{cell.id}: loss by frame timeout", caption=f"at {rate}")
    for name in ("frame timeout", "loss %", "N"):
        table.add_column(name, justify="right")
    for timeout in cell.timeouts:
        valid = [value for value in timeout.repeats if value is not None]
        table.add_row(
            duration(timeout.timeout_ns), loss(timeout.loss_percent), str(len(valid))
        )
    return table


def delay_notes(cells: Iterable[CellResult]) -> list[str]:
    """What the cells' delays are, and how far they may be wrong; each text once."""
    found: dict[str, None] = {}
    for cell in cells:
        if cell.delays:
            found[f"delay: {cell.delays.definition}"] = None
            found[f"{cell.id}: {_tester_share(cell.delays)}"] = None
    return list(found)


def _tester_share(delays: DelayRecord) -> str:
    usual_ns = delays.usual_bound_ns
    usual = "" if usual_ns is None else f" ({duration(usual_ns)} in 998 of 1000 frames)"
    return (
        f"the tester's own share of a delay is at least {duration(delays.floor_ns)} "
        f"and at most {duration(delays.bound_ns)}{usual}; "
        f"values: {delays.resolution}"
    )


def figure(of: Figure) -> str:
    """A duration, or in a word why there is none."""
    if of.value is None:
        return _NO_FIGURE.get(of.absent or "", "-")
    return f"{'<= ' if of.at_most else ''}{duration(of.value)}"


def loss(percent: float | None) -> str:
    """Percent lost, or that no trial was valid."""
    return "invalid" if percent is None else f"{percent:.6g}"


def _summaries(measures: list[Measure]) -> str:
    return " or ".join(dict.fromkeys(measure.summary for measure in measures))


def _samples_are(cell: CellResult) -> str:
    return {"latency": "tags", "ipdv": "pairs"}.get(cell.procedure, "frames")


def _has_background(cell: CellResult) -> bool:
    return any(measure.stream == "background" for measure in cell.measures)


def _range(samples: list[int]) -> str:
    """Invalid repeats have none."""
    valid = [count for count in samples if count]
    if not valid:
        return "0"
    least, most = min(valid), max(valid)
    return f"{least:,}" if least == most else f"{least:,}-{most:,}"
