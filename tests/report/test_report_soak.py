"""A load that lasts for hours in tables, cards, charts and sentences."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from recovery_sample import soak_results
from report_page import Page
from report_sample import sample_environment, store

from dutperf.charts.cells import CellView, finished_cell
from dutperf.procedures.measurements import tables
from dutperf.procedures.soak import panel
from dutperf.report.page import write_report
from dutperf.report.summary import headline
from dutperf.results import ResultsFile, closing
from dutperf.results.details import Soak
from dutperf.tables import subjects


@cache
def run() -> ResultsFile:
    return soak_results()


def view(results: ResultsFile) -> CellView:
    result = results.cells[-1]
    own = tuple(t for t in results.trials if t.cell == result.id and t.role == "trial")
    return finished_cell(result, own)


def test_the_card_says_what_was_lost_and_what_drifts() -> None:
    cell = view(run())
    assert cell.result
    assert cell.result.soak
    told = headline(cell)
    assert told.unit == "%"
    lossy = cell.result.soak.lossy
    assert told.interval == f"{lossy} trials of 29 lost frames"
    assert "p50, forward grows by" in told.lines[0]
    assert told.lines[1] == "1 trial more told nothing"
    (said, *_) = closing(run().cells)
    assert "lost at 1,000 fps per direction; p50, forward grows" in said


def test_the_chart_has_each_trial_in_parts_below_each_other() -> None:
    (chart,) = panel(view(run())).charts
    names = [trace["meta"]["name"] for trace in chart.data]
    ways = ("forward", "reverse")
    assert names == [
        *(f"{name}, {way}" for way in ways for name in ("p50", "p99")),
        "lost",
        "invalid",
        "memory_bytes",
    ]
    assert [len(trace["x"]) for trace in chart.data[:4]] == [29] * 4
    lossy = [each.number for each in _soak().losses]
    assert len(chart.data[4]["x"]) == len(lossy)
    assert len(chart.data[5]["x"]) == 1
    domains = [v["domain"] for k, v in chart.layout.items() if k.startswith("yaxis")]
    below = [low for low, _ in domains]
    assert below == sorted(below, reverse=True)
    assert below[-1] >= 0


def _soak() -> Soak:
    result = run().cells[-1]
    assert result.soak
    return result.soak


def test_tables_have_each_series_and_each_loss() -> None:
    own = {t.key.partition("-")[0]: t for t in tables(list(subjects(run())), [])}
    assert len(own["series"].rows) == len(_soak().series) == 10
    assert len(own["losses"].rows) == len(_soak().losses)


def test_a_page_shows_it(tmp_path: Path) -> None:
    store(tmp_path, run(), sample_environment())
    page = Page(write_report(tmp_path).read_text("utf-8"))
    section = page.section("soak")
    assert "30 trials" in section
    assert "1 trial is invalid" in section


def test_a_page_of_a_day_has_a_size_that_opens(tmp_path: Path) -> None:
    """Of 1,440 trials, and less than 4 MB more than one of 30."""
    first = run().trials[1]
    trials = [
        first.model_copy(update={"number": n, "repeat": n}) for n in range(1, 1441)
    ]
    day = run().model_copy(update={"trials": trials})
    sizes = []
    for name, results in (("few", run()), ("day", day)):
        store(tmp_path / name, results, sample_environment())
        sizes.append(write_report(tmp_path / name).stat().st_size)
    assert sizes[1] - sizes[0] < 4e6
