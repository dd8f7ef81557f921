"""Back-to-back frames in tables, cards and charts: frames and times, no rates."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

import pytest
from burst_sample import burst_results
from report_page import Page
from report_sample import sample_environment, store

from dutperf.charts.cells import CellView, finished_cell
from dutperf.charts.rate_charts import search_chart
from dutperf.charts.repeat_charts import rate_repeats_chart
from dutperf.charts.text import NBSP, shown
from dutperf.cli.console import PatientConsole
from dutperf.cli.summary import show_summary
from dutperf.procedures.measurements import result_tables
from dutperf.report.page import write_report
from dutperf.report.summary import headline
from dutperf.results import ResultsFile
from dutperf.tables import Verdict, subjects

# One in service, 999 that wait, and a fifth of the burst leaves meanwhile.
LONGEST = 1250


@cache
def run() -> ResultsFile:
    return burst_results()


def view() -> CellView:
    result = run().cells[-1]
    own = tuple(t for t in run().trials if t.cell == result.id and t.role == "trial")
    return finished_cell(result, own)


def ms(text: str) -> float:
    """A time in milliseconds as a number."""
    digits, unit = text.split(NBSP)
    assert unit == "ms"
    return float(digits)


def test_the_burst_is_what_the_buffer_and_the_service_give() -> None:
    result = run().cells[-1]
    assert result.procedure == "back-to-back"
    assert result.median == pytest.approx(LONGEST, abs=1)
    assert result.load is None


def test_a_row_is_that_of_rfc_9004() -> None:
    *_, (table, _) = result_tables(list(subjects(run())))
    heads = [column.name for column in table.columns]
    *entries, verdict = table.rows[0].entries
    assert verdict == Verdict("pass")
    told = [shown(e) for e in entries if not isinstance(e, Verdict)]
    row = dict(zip(heads, told, strict=False))
    assert row["burst rate"] == "1,000,000"
    assert row["back-to-back frames, average"] in ("1,249", "1,250", "1,251")
    assert row["min"] == row["max"]
    assert ms(row["corrected buffer time"]) == pytest.approx(1, rel=0.01)
    assert ms(row["implied buffer time"]) == pytest.approx(1.25, rel=0.01)
    assert row["N"] == "2"
    assert "interval from" not in heads
    assert "trial time" not in heads
    assert not table.detail


def test_the_terminal_shows_the_table() -> None:
    text = io.StringIO()
    show_summary(PatientConsole(file=text, width=200), run(), None)
    assert (
        "Back-to-back frames, longest burst without loss (RFC 9004 6)"
        in text.getvalue()
    )


def test_the_card_tells_frames_and_times() -> None:
    card = headline(view())
    assert card.unit == "frames"
    assert card.caption.startswith("Frames in a row in each direction")
    assert card.interval.startswith("Average of 2 repeats")
    assert any(line.startswith("Corrected buffer time: ") for line in card.lines)
    assert any(line.endswith(f"{NBSP}fps") for line in card.lines)


def test_the_path_of_the_search_is_of_frames() -> None:
    chart = search_chart(view(), 1)
    axis = chart.figure["layout"]["yaxis"]
    assert axis["title"]["text"] == "burst, frames per direction"
    # It begins at two million frames: what decides can be seen nevertheless.
    assert axis["range"][1] < 10 * LONGEST
    marks = [y for trace in chart.figure["data"][2:] for y in trace["y"]]
    assert max(marks) <= axis["range"][1]


def test_too_few_repeats_have_no_chart_of_their_own() -> None:
    assert rate_repeats_chart(view(), 1) is None


def test_the_page_has_it_all(tmp_path: Path) -> None:
    store(tmp_path, run(), sample_environment())
    page = Page(write_report(tmp_path).read_text("utf-8"))
    assert "How each result was found" in page.text
    assert "Corrected buffer time" in page.text
