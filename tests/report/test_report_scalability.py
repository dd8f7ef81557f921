"""Overload scalability in the report: tables as RFC 8219 10.2 wants them, charts."""

from __future__ import annotations

from pathlib import Path

from report_page import Page
from report_sample import all_sizes, sample_environment, store, throughput_cell
from told_cells import retyped

from dutperf.charts.cells import finished_cell
from dutperf.charts.repeat_charts import growth_charts
from dutperf.charts.text import MISSING, shown
from dutperf.procedures.scalability import scalability
from dutperf.report import write_report
from dutperf.results import CellResult, ResultsFile
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
    return retyped(found.model_copy(update=update))


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


def test_the_chart_has_values_above_and_degradations_from_one_flow_on() -> None:
    [(_, chart)] = growth_charts([only_growth()])
    assert chart is not None
    *values, small, large = chart.data
    assert [trace["y"] for trace in values] == [
        [200_000, 190_000, 210_000],
        [80_000, 80_000],
    ]
    assert (small["x"], small["y"]) == ([1, 4, 64], [0, 5, -5])
    assert (large["x"], large["y"]) == ([1, 4], [0, 0])
    assert [trace.get("yaxis", "y") for trace in chart.data] == ["y", "y", "y2", "y2"]
    assert [trace["name"] for trace in values] == [small["name"], large["name"]]
    assert not any("error_y" in trace for trace in chart.data)
    below, above = (chart.layout[axis]["domain"] for axis in ("yaxis2", "yaxis"))
    assert below[1] < above[0]


def test_nothing_is_drawn_where_nothing_can_be_compared() -> None:
    [small, _] = results().scalability
    alone = small.model_copy(update={"points": small.points[:1]})
    assert [chart for _, chart in growth_charts(growths([alone], []))] == [None]


def with_intervals() -> list[Growth]:
    """Of 4 flows; with 64 only one end is known."""
    [small, _] = results().scalability
    one, four, many = small.points
    points = [
        one,
        four.model_copy(update={"lower_percent": 3.5, "upper_percent": 6.25}),
        many.model_copy(update={"lower_percent": -7.0}),
    ]
    return growths([small.model_copy(update={"points": points})], [])


def test_the_interval_stands_beside_and_is_drawn() -> None:
    [growth] = with_intervals()
    nbsp, minus = "\N{NO-BREAK SPACE}", "\N{MINUS SIGN}"
    assert [as_text(row.entries[3]) for row in growth.table.rows] == [
        "",
        f"+3.5{nbsp}% to +6.25{nbsp}%",
        f"\N{GREATER-THAN OR EQUAL TO}{nbsp}{minus}7{nbsp}%",
    ]
    assert growth.has_intervals
    assert any("holds 0 shows no difference" in note for note in growth.table.notes)
    [(_, chart)] = growth_charts([growth])
    assert chart is not None
    bars = chart.data[-1]["error_y"]
    assert bars["array"] == [0, 1.25, 0]
    assert bars["arrayminus"] == [0, 1.5, 2]
    assert "between +3.5 and +6.25 %" in chart.data[-1]["hovertext"][1]


def test_without_an_interval_chance_is_not_excluded() -> None:
    growth = only_growth()
    assert not growth.has_intervals
    assert len(growth.table.columns) == 5
    assert any("may be chance" in note for note in growth.table.notes)


def test_a_lower_bound_has_a_sign_of_its_own() -> None:
    [small, _] = results().scalability
    one, four, many = small.points
    capped = many.model_copy(update={"at_least": True, "degradation_percent": None})
    of = small.model_copy(update={"points": [one, four, capped]})
    [(_, chart)] = growth_charts(growths([of], []))
    assert chart is not None
    *plain, open_ended = chart.data[0]["marker"]["symbol"]
    assert len(set(plain)) == 1
    assert open_ended not in plain
    assert chart.data[0]["hovertext"][2].endswith("at least")
    assert chart.data[1]["x"] == [1, 4]


def test_a_load_that_grows_says_that_it_does_and_how(tmp_path: Path) -> None:
    found = results()
    grown = [
        each.model_copy(update={"rate_per_flow_fps": 1000})
        for each in found.scalability
    ]
    [growth] = growths(grown, [])
    assert "(RFC 8219 10.2.2)" in growth.table.title
    [told] = [note for note in growth.table.notes if "for each flow" in note]
    assert told.startswith("1,000 fps for each flow, each number of flows in trials of")
    store(
        tmp_path / "r",
        found.model_copy(update={"scalability": grown}),
        sample_environment(),
    )
    page = Page(write_report(tmp_path / "r").read_text())
    text = page.section("scalability")
    assert "have 1,000 frames a second each" in text
    assert "flow after flow in one trial" in text


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
