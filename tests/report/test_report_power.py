"""Watts and energy in tables, cards, charts and sentences."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from meters import SimulatedMeter, failing
from recovery_sample import power_results
from report_page import Page
from report_sample import sample_environment, store

from dutperf.charts.cells import finished_cell
from dutperf.charts.text import MISSING, shown
from dutperf.procedures.measurements import result_tables, tables
from dutperf.procedures.power import panel
from dutperf.report.page import write_report
from dutperf.report.summary import headline
from dutperf.results import ResultsFile, closing
from dutperf.results.power_results import PowerReading
from dutperf.tables import Table, subjects


@cache
def run() -> ResultsFile:
    return power_results()


def silent_below_full_load() -> ResultsFile:
    def dies(fps: float, readings: list[PowerReading]) -> list[PowerReading]:
        return failing(readings) if 0 < fps < 150_000 else readings

    return power_results(SimulatedMeter(spoils=dies, idle_s=20))


def points(results: ResultsFile) -> Table:
    found = {t.key.partition("-")[0]: t for t in tables(list(subjects(results)), [])}
    return found["power"]


def column(table: Table, name: str) -> list[str]:
    (place,) = [n for n, each in enumerate(table.columns) if each.name == name]
    return [shown(row.entries[place]) for row in table.rows]  # type: ignore[arg-type]


def test_each_load_has_a_row_and_idle_is_the_first() -> None:
    table = points(run())
    assert column(table, "load") == ["0", "10", "50", "100"]
    assert column(table, "rate") == ["0", "10,000", "50,000", "100,000"]
    idle, *_, full = (float(text) for text in column(table, "power"))
    assert idle == pytest.approx(40, abs=1)
    assert full == pytest.approx(41.8, abs=1)
    assert column(table, "per packet")[0] == MISSING
    assert "accurate to 1 %" in table.notes[0]


def test_what_cannot_be_told_says_so_and_is_no_zero() -> None:
    table = points(silent_below_full_load())
    assert column(table, "power")[1:3] == ["cannot tell"] * 2
    assert column(table, "per packet")[1:3] == ["cannot tell"] * 2
    assert any("10 %" in note and "exit code 1" in note for note in table.notes)
    cell = silent_below_full_load().cells[-1]
    drawn = panel(finished_cell(cell, ())).charts
    assert [chart.data[0]["x"] for chart in drawn] == [[0, 100], [100]]


def test_the_figure_is_energy_and_its_unit_stands_once() -> None:
    cell = finished_cell(run().cells[-1], ())
    told = headline(cell)
    assert told.unit == "nJ/bit"
    assert float(told.value) == pytest.approx(41.8 / 180_000 / 512 * 1e9, rel=0.02)
    assert "give or take" in told.lines[0]
    (table, _), *_ = result_tables(list(subjects(run())))
    assert column(table, "energy")[0] == told.value


def test_the_last_line_tells_the_watts() -> None:
    text = " ".join(closing(run().cells))
    assert "nJ/bit at full load" in text
    assert "give or take" in text
    assert "; idle " in text


def test_the_page_has_both_charts_and_what_was_lost(tmp_path: Path) -> None:
    store(tmp_path / "run", run(), sample_environment())
    page = Page(write_report(tmp_path / "run").read_text("utf-8"))
    section = page.section("power")
    assert "energy is that of those forwarded" in section
    assert "accurate to 1 %" in section
    assert len([each for each in page.figures if each.startswith("power-")]) == 2
