"""The terminal and the report show the same figures: those of one table."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from burst_sample import burst_results, bursts_of_flows
from connection_sample import rate_results, stateful_results
from recovery_sample import outage_results, power_results, recovery_results
from report_sample import all_sizes, sample_environment, sample_results, store
from stored_samples import STORED
from timed_sample import delay_results
from told_cells import retyped

from dutperf.cli.console import PatientConsole
from dutperf.cli.summary import show_table
from dutperf.procedures.measurements import tables
from dutperf.procedures.scalability import scalability
from dutperf.report import write_report
from dutperf.results import (
    CellResult,
    GoalResult,
    Media,
    ResultsFile,
    TimeoutLoss,
    load_results,
    overall,
)
from dutperf.results.rate_results import DamageFigure
from dutperf.tables import Table, subjects

WIDE = 2000
_FIGURE = re.compile(r"\d[\d,.]*")


def stored_run() -> ResultsFile:
    return load_results(STORED)


def of_flows() -> ResultsFile:
    """Throughputs of two sizes by number of flows."""
    found = all_sizes()
    cells: list[CellResult] = []
    for cell, flows in zip(found.cells[:4], (1, 4, 1, 4), strict=True):
        size = 64 if len(cells) < 2 else 128
        told = {"flows": flows, "flows_by": "ports", "profile": ""}
        sizes = {"frame_size": size, "frame_sizes": str(size)}
        update = {
            "id": f"throughput-ip4-{size}-both-flows{flows}",
            "series": "throughput-ip4-both-flows",
            "parameters": cell.parameters | told | sizes,
        }
        cells.append(cell.model_copy(update=update))
    cells = [_often(cell) for cell in cells]
    return found.model_copy(
        update={"cells": cells, "trials": [], "scalability": scalability(cells)}
    )


def _often(cell: CellResult) -> CellResult:
    """With repeats enough for intervals."""
    middle = cell.median or 0
    repeats = [
        cell.repeats[0].model_copy(update={"value": middle + n}) for n in range(-3, 4)
    ]
    told = cell.parameters | {"resolution": "0.1%"}
    return retyped(
        cell.model_copy(update={"repeats": repeats, "parameters": told, "findings": []})
    )


def with_everything() -> ResultsFile:
    """Lower bounds, a medium, damage, goals, timeouts, and what is not measured."""
    found = all_sizes()
    first, second, third, *others = found.cells
    repeats = [r.model_copy(update={"bound": "lower"}) for r in first.repeats]
    goal = GoalResult(
        name="no loss",
        loss_ratio=0,
        exceed_ratio=0,
        final_duration_s=60,
        duration_sum_s=60,
        initial_duration_s=1,
        width=0.005,
        lower_fps=299_991,
        upper_fps=None,
        conditional_fps=299_990,
        regular=True,
        bound="lower",
        verdict="pass",
    )
    media = Media(rate_fps=1_488_095, link_speed_mbps=1000, nominal=True)
    bound = first.model_copy(
        update={
            "repeats": repeats,
            **overall(repeats)._asdict(),
            "media": media,
            "goals": [goal],
            "timeouts": [
                TimeoutLoss(timeout_ns=ns, loss_percent=lost, repeats=[lost])
                for ns, lost in ((500_000, 12.345678), (10_000_000, None))
            ],
        }
    )
    damage = DamageFigure(value=310_000, verdict="pass", trials=4, reused=3, frames=[])
    cells = [
        bound,
        second.model_copy(update={"damage": damage}),
        third.model_copy(update={"verdict": "invalid", "bound": "lower"}),
        *others,
    ]
    return found.model_copy(update={"cells": cells})


class _Figures(HTMLParser):
    """Figures in the body of each table that has a key."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: dict[str, Counter[str]] = {}
        self._key = ""
        self._in_body = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._key = dict(attrs).get("data-key") or ""
        self._in_body |= tag == "tbody"

    def handle_endtag(self, tag: str) -> None:
        self._in_body &= tag != "tbody"

    def handle_data(self, data: str) -> None:
        if self._key and self._in_body:
            counted = self.found.setdefault(self._key, Counter())
            counted.update(_FIGURE.findall(data))


def printed_figures(table: Table) -> Counter[str]:
    """Of the terminal, without the names of the cells."""
    console = PatientConsole(file=io.StringIO(), width=WIDE)
    show_table(console, table)
    assert isinstance(console.file, io.StringIO)
    lines = [s for s in console.file.getvalue().splitlines() if s.startswith("│")]
    upright = any(row.name for row in table.rows) or table.sideways
    bodies = [line.split("│", 2)[2] if upright else line for line in lines]
    return Counter(_FIGURE.findall(" ".join(bodies)))


@pytest.mark.parametrize(
    "made",
    [
        sample_results,
        all_sizes,
        delay_results,
        stateful_results,
        rate_results,
        of_flows,
        with_everything,
        burst_results,
        bursts_of_flows,
        recovery_results,
        outage_results,
        power_results,
        stored_run,
    ],
)
def test_terminal_and_report_have_the_same_tables_with_the_same_figures(
    tmp_path: Path, made: Callable[[], ResultsFile]
) -> None:
    results = made()
    store(tmp_path / "run", results, sample_environment())
    html = write_report(tmp_path / "run").read_text("utf-8")
    of_terminal = {
        table.key: printed_figures(table)
        for table in tables(list(subjects(results)), results.scalability)
    }
    assert of_terminal
    assert _Figures(html).found == of_terminal


def test_each_column_says_what_it_means() -> None:
    for results in (sample_results(), delay_results(), stateful_results(), of_flows()):
        for table in tables(list(subjects(results)), results.scalability):
            assert all(column.meaning.endswith(".") for column in table.columns)
            assert all(len(row.entries) == len(table.columns) for row in table.rows)
