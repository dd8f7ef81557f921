"""Overload scalability in the report: tables as RFC 8219 10.2.1 wants them, charts."""

from __future__ import annotations

from pathlib import Path

from report_page import Page
from report_sample import all_sizes, sample_environment, store, throughput_cell

from dutperf.report import write_report
from dutperf.report.cells import finished_cell
from dutperf.report.growthcharts import growth_charts
from dutperf.report.text import MISSING, shown
from dutperf.results import CellResult, ResultsFile, scalability
from dutperf.tables import Entry, Verdict
from dutperf.tables.scalability_tables import Growth, growths

RATES = {64: {1: 200_000, 4: 190_000, 64: 210_000}, 1518: {1: 80_000, 4: 80_000}}


def cell(flows: int, size: int, rate_fps: float | None) -> CellResult:
    found = throughput_cell(
        f"throughput-ip4-{size}-both-flows{flows}", 4, size, [rate_fps]
    )
    told = {"flows": flows, "flows_by": "ports", "frame_sizes": str(size)}
    label = {"traffic": f"flows{flows}"}
    update = {
        "parameters": found.parameters | told | label,
        "series": "throughput-ip4-both-flows",
    }
    return found.model_copy(update=update)


def results() -> ResultsFile:
    cells = [cell(n, size, fps) for size, of in RATES.items() for n, fps in of.items()]
    return all_sizes().model_copy(
        update={"cells": cells, "trials": [], "scalability": scalability(cells)}
    )


def as_text(entry: Entry) -> str:
    assert not isinstance(entry, Verdict)
    return shown(entry)


def only_growth() -> Growth:
    found = results()
    views = [finished_cell(each, ()) for each in found.cells]
    [growth] = growths(found.scalability, views)
    return growth


def test_frame_sizes_are_columns_and_numbers_of_flows_are_rows() -> None:
    growth = only_growth()
    assert growth.title == "Throughput, IPv4, both directions"
    assert (growth.name, growth.columns) == ("throughput", ("64 bytes", "1518 bytes"))
    nbsp, minus = "\N{NO-BREAK SPACE}", "\N{MINUS SIGN}"
    table = [[as_text(entry) for entry in row.entries] for row in growth.table.rows]
    assert table == [
        ["1", "200,000", "", "80,000", ""],
        ["4", "190,000", f"+5{nbsp}%", "80,000", f"0{nbsp}%"],
        ["64", "210,000", f"{minus}5{nbsp}%", MISSING, MISSING],
    ]


def test_values_of_one_frame_size_stand_side_by_side() -> None:
    found = results()
    small = [each for each in found.scalability if each.frame_size == "64"]
    other = small[0].model_copy(update={"name": "something else"})
    [growth] = growths([*small, other], [])
    assert growth.name == "64 bytes"
    assert growth.columns == ("throughput", "something else")
    assert all(len(row.entries) == 5 for row in growth.table.rows)


def test_the_chart_begins_with_one_flow() -> None:
    [(_, chart)] = growth_charts([only_growth()])
    assert chart is not None
    small, large = chart.data
    assert (small["x"], small["y"]) == ([1, 4, 64], [0, 5, -5])
    assert (large["x"], large["y"]) == ([1, 4], [0, 0])


def test_different_rates_are_said() -> None:
    assert only_growth().several_rates
    found = results().scalability[1]
    assert not growths([found], [])[0].several_rates


def test_cells_are_told_apart_by_their_flows() -> None:
    assert finished_cell(cell(4, 64, 1.0), ()).stream.endswith(", 4 flows")
    assert finished_cell(cell(1, 64, 1.0), ()).stream.endswith(", 1 flow")


def test_the_page_has_formula_and_figures(tmp_path: Path) -> None:
    store(tmp_path / "r", results(), sample_environment())
    page = Page(write_report(tmp_path / "r").read_text())
    text = page.section("scalability")
    assert "+5 %" in text
    assert "(X1 \N{MINUS SIGN} Xn) / X1" in text
    assert "scalability-1" in page.figures
