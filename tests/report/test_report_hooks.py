"""What the hooks printed stands in the report, and nothing of it becomes markup."""

from __future__ import annotations

from pathlib import Path

from report_page import Page
from report_sample import sample_environment, sample_results, store

from dutperf.report import write_report
from dutperf.report.page import MOST_CHARACTERS, MOST_RUNS, hook_views
from dutperf.results import HookRun

NASTY = "</pre><b>1</b>"
COUNTERS = HookRun(
    moment="after_trial",
    command=["cat", "two words"],
    host="dut1",
    attempts=1,
    exit_code=0,
    ended="ended with exit code 0",
    output=f"dropped {NASTY}\n",
    duration_s=0.1,
)
SILENT = COUNTERS.model_copy(update={"output": "", "moment": "before_trial"})
FAILED = SILENT.model_copy(update={"exit_code": 2, "ended": "ended with exit code 2"})


def page_with(path: Path, *runs: HookRun) -> str:
    results = sample_results()
    trials = [
        results.trials[0].model_copy(update={"hooks": list(runs)}),
        *results.trials[1:],
    ]
    store(path, results.model_copy(update={"trials": trials}), sample_environment())
    return write_report(path).read_text()


def test_what_a_hook_printed_stands_beside_its_command(tmp_path: Path) -> None:
    page = Page(page_with(tmp_path / "r", SILENT, COUNTERS))
    assert "Show 1 command run around trials" in page.text
    assert "cat 'two words'" in page.text
    assert "on dut1" in page.text
    assert f"dropped {NASTY}" in page.text
    assert "b" not in page.tags


def test_without_hooks_there_is_no_such_section(tmp_path: Path) -> None:
    assert 'id="hooks"' not in page_with(tmp_path / "r")


def test_a_hook_that_failed_is_shown_though_it_said_nothing(tmp_path: Path) -> None:
    assert "ended with exit code 2" in Page(page_with(tmp_path / "r", FAILED)).text


def test_of_too_many_those_that_failed_are_shown() -> None:
    first = sample_results().trials[0]
    runs = [*[COUNTERS] * MOST_RUNS, FAILED]
    views = hook_views([first.model_copy(update={"hooks": runs})])
    assert [view.run for view in views.shown] == [FAILED]
    assert views.left_out == MOST_RUNS


def test_a_long_output_is_cut() -> None:
    long = COUNTERS.model_copy(update={"output": "x" * (MOST_CHARACTERS + 1)})
    first = sample_results().trials[0].model_copy(update={"hooks": [long]})
    (view,) = hook_views([first]).shown
    assert view.output == "x" * MOST_CHARACTERS + "\n..."
