"""System recovery in tables, cards, charts and sentences."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

import pytest
from recovery_sample import LATE_NS, SECOND, recovery_results
from report_page import Page
from report_sample import sample_environment, store

from dutperf.charts.cells import CellView, finished_cell
from dutperf.charts.text import NBSP, shown
from dutperf.cli.console import PatientConsole
from dutperf.cli.summary import show_summary
from dutperf.procedures.measurements import result_tables, tables
from dutperf.procedures.system_recovery import panel
from dutperf.report.page import write_report
from dutperf.report.summary import headline
from dutperf.results import ResultsFile, closing
from dutperf.results.figures import figures_of
from dutperf.tables import Verdict, subjects


@cache
def late() -> ResultsFile:
    return recovery_results()


@cache
def at_once() -> ResultsFile:
    return recovery_results(SECOND)


@cache
def never() -> ResultsFile:
    return recovery_results(2 * SECOND)


def view(results: ResultsFile) -> CellView:
    result = results.cells[-1]
    own = tuple(t for t in results.trials if t.cell == result.id and t.role == "trial")
    return finished_cell(result, own)


def row(results: ResultsFile) -> dict[str, str]:
    *_, (table, _) = result_tables(list(subjects(results)))
    heads = [column.name for column in table.columns]
    entries = table.rows[0].entries
    return {
        head: "verdict" if isinstance(entry, Verdict) else shown(entry)
        for head, entry in zip(heads, entries, strict=True)
    }


def test_a_row_is_that_of_rfc_2544() -> None:
    told = row(late())
    assert told["throughput"] == "10,000"
    assert told["overload"] == "11,000"
    assert told["recovery, average"].startswith(("29.", "30"))
    assert told["recovery, average"].endswith(f"{NBSP}ms")
    assert told["known to"] == f"181.9{NBSP}µs"
    assert told["forward"] == told["reverse"] == told["recovery, average"]
    assert told["N"] == "2"


def test_no_loss_after_the_fall_is_told_as_less_than_an_interval() -> None:
    assert row(at_once())["recovery, average"].endswith(f"181.9{NBSP}µs")
    assert row(at_once())["recovery, average"].startswith("<")
    (figure,) = figures_of(*at_once().cells)
    assert figure.value == pytest.approx(181_947)
    assert figure.limit == "below"
    assert figure.load_fps == 11_000
    assert "less than 181.9 us after 11,000 fps" in " ".join(closing(at_once().cells))


def test_losses_to_the_end_are_a_lower_bound() -> None:
    assert row(never())["recovery, average"].startswith("≥")
    assert any("lower bound" in said for said in closing(never().cells))


def test_each_repeat_and_direction_is_a_row() -> None:
    (table,) = [
        t for t in tables(list(subjects(late())), []) if t.key.startswith("recovery-")
    ]
    ways = [shown(row.entries[1]) for row in table.rows]  # type: ignore[arg-type]
    assert ways == ["forward", "reverse"] * 2


def test_the_card_has_a_time() -> None:
    card = headline(view(late()))
    assert card.unit == "ms"
    assert float(card.value) == pytest.approx(LATE_NS / 1e6, abs=0.2)
    assert "the longer one of both directions" in card.caption
    assert headline(view(at_once())).value.startswith("<")


def test_the_charts_are_around_the_fall() -> None:
    found = panel(view(late()))
    assert [chart.id.rpartition("-")[2] for chart in found.charts] == [
        "forward",
        "reverse",
    ]
    for chart in found.charts:
        begin, end = chart.layout["xaxis"]["range"]
        assert 0 < begin < 1 < end < 2
        marks = [s for s in chart.layout["shapes"] if s["type"] == "line"]
        assert [mark["x0"] for mark in marks] == [1.0]
        names = [trace["meta"]["name"] for trace in chart.data]
        assert names == ["received", "sent", "lost"]


def test_the_terminal_and_the_page_have_it_all(tmp_path: Path) -> None:
    text = io.StringIO()
    show_summary(PatientConsole(file=text, width=200), late(), None)
    assert "System recovery, from an overload's end" in text.getvalue()
    store(tmp_path, late(), sample_environment())
    page = Page(write_report(tmp_path).read_text("utf-8"))
    section = page.section("recovery")
    assert "Overload: 11,000 fps for 1" in section
    assert "the load fell" in page.text or "time stamp A" in section


def test_a_device_that_was_not_overloaded_has_a_panel_without_a_figure(
    tmp_path: Path,
) -> None:
    results = recovery_results(0)
    assert results.cells[-1].recovery is None
    store(tmp_path, results, sample_environment())
    page = Page(write_report(tmp_path).read_text("utf-8"))
    section = page.section("recovery")
    assert "not overloaded: nothing was lost at 11,000 fps in 1 s" in section
    assert "1 trial stored, no recovery" in section
    assert headline(view(results)).value == "No result"
