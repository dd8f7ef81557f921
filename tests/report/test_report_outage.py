"""Outages in tables, cards, charts and sentences."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gateways import NAT44, ClearedEngine, Interrupted
from planning import Run, campaign, spec
from recovery_sample import outage_results
from report_page import Page
from report_sample import sample_environment, store

from dutperf.charts.cells import CellView, finished_cell
from dutperf.charts.text import NBSP, shown
from dutperf.procedures.measurements import result_tables, tables
from dutperf.procedures.outage import panel
from dutperf.procedures.outage import tables as outage_tables
from dutperf.report.page import write_report
from dutperf.report.summary import headline
from dutperf.results import ResultsFile, closing
from dutperf.results.details import Action
from dutperf.results.figures import figures_of
from dutperf.tables import Verdict, subjects


@cache
def run() -> ResultsFile:
    return outage_results()


def acted() -> ResultsFile:
    """The same with a hook that ran from 1.1 to 1.3 s."""
    cell = run().cells[-1]
    assert cell.outage
    action = Action(
        command=["reset"], repeat=1, started_ns=1_100_000_000, duration_ns=200_000_000
    )
    outage = cell.outage.model_copy(update={"actions": [action]})
    changed = cell.model_copy(update={"outage": outage})
    return run().model_copy(update={"cells": [changed]})


def view(results: ResultsFile) -> CellView:
    result = results.cells[-1]
    own = tuple(t for t in results.trials if t.cell == result.id and t.role == "trial")
    return finished_cell(result, own)


def test_a_single_repeat_was_no_search() -> None:
    """Its trial fails, as frames are lost; the load is what it was told."""
    cell = view(outage_results(repeats=1))
    assert cell.counting_trials[-1].result.verdict.kind == "fail"
    assert headline(cell).interval == "One repeat"


def test_a_row_has_both_methods() -> None:
    *_, (table, _) = result_tables(list(subjects(run())))
    heads = [column.name for column in table.columns]
    told = {
        head: "verdict" if isinstance(entry, Verdict) else shown(entry)
        for head, entry in zip(heads, table.rows[0].entries, strict=True)
    }
    assert told["outage, average"] == f"300{NBSP}ms"
    assert told["by time stamps"] == f"301{NBSP}ms"
    assert told["lost"] == "300"
    assert told["forward"] == told["reverse"] == f"300{NBSP}ms"


def test_what_was_done_is_a_table_where_something_was() -> None:
    keys = [t.key.partition("-")[0] for t in tables(list(subjects(run())), [])]
    assert keys == ["outage", "outage"]
    found = {t.key.partition("-")[0]: t for t in tables(list(subjects(acted())), [])}
    entries = [shown(e) for e in found["actions"].rows[0].entries]  # type: ignore[arg-type]
    assert entries == ["1", "reset", "this machine", f"1.1{NBSP}s", f"200{NBSP}ms"]


def test_no_outage_is_less_than_an_interval() -> None:
    found = view(outage_results((9_000_000_000, 9_000_000_001)))
    assert found.result
    (figure,) = figures_of(found.result)
    assert figure.limit == "below"
    assert headline(found).value.startswith("<")
    told = " ".join(closing([found.result] if found.result else []))
    assert "no outage seen in 2 of 2 repeats" in told


def test_the_chart_shows_when_the_hook_ran() -> None:
    found = panel(view(acted()))
    for chart in found.charts:
        marks = [s["x0"] for s in chart.layout["shapes"] if s["type"] == "line"]
        assert marks == [1.1, 1.3]
        assert chart.layout["xaxis"]["range"] == [0, 3]


def test_the_page_has_it_all(tmp_path: Path) -> None:
    store(tmp_path, acted(), sample_environment())
    page = Page(write_report(tmp_path).read_text("utf-8"))
    section = page.section("outage")
    assert "The testbed's hooks were run" in section
    assert "The device forwarded nothing for so long" in page.text


def by_connection(directory: Path) -> ResultsFile:
    """Of 100 connections all are out for 300 ms, and number 37 dies."""
    keys = {"trial_duration_s": 3, "trigger_after_s": 1, "repeats": 1}
    asked = spec(
        procedure="outage",
        rate_fps=1000,
        max_rate_fps=20_000,
        by_connection=True,
        stateful={"connections": 100, "phase1_rate": 5001, "timeout_ms": 50},
        **keys,
    )
    nat = Interrupted(lambda n, ms: ms >= 1200 and (n == 37 or ms < 1500))
    run = Run(directory / "by-connection", ClearedEngine(nat), testbed=NAT44)
    return run(campaign(asked))


def test_what_became_of_each_connection_is_a_table_and_a_chart(tmp_path: Path) -> None:
    results = by_connection(tmp_path)
    (cell,) = subjects(results)
    by_key = {table.key: table for table in outage_tables(cell)}
    table = by_key[f"connections-{cell.id}"]
    heads = [column.name for column in table.columns]
    for row in table.rows:
        told = {
            head: shown(entry)
            for head, entry in zip(heads, row.entries, strict=True)
            if not isinstance(entry, Verdict)
        }
        assert (told["connections"], told["back"], told["died"]) == ("100", "99", "1")
        assert told["turn"] == f"100{NBSP}ms"
        assert told["median"] == f"300{NBSP}ms"
        assert told["died by age"] == "0 0 0 1 0 0 0 0 0 0"
    charts = [c for c in panel(view(results)).charts if c.id.startswith("passing-")]
    assert [c.id.rpartition("-")[2] for c in charts] == ["forward", "reverse"]
    shares = charts[0].data[0]["y"]
    assert (max(shares), min(shares), shares[-1]) == (100, 0, 99)
