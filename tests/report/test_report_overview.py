"""Several runs on one page: a bar for each figure, a link to each report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from report_sample import all_sizes, sample_results, store

from dutperf.cli import app
from dutperf.errors import InputError
from dutperf.report import OVERVIEW, write_overview
from dutperf.report.page import cells_of
from dutperf.report.source import read_source


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    directories = [tmp_path / "series" / name for name in ("one", "two & more")]
    for directory, results in zip(
        directories, (sample_results(), all_sizes()), strict=True
    ):
        directory.mkdir(parents=True)
        store(directory, results)
    return directories


def test_each_run_is_told_and_linked_from_where_the_page_is(
    runs: list[Path], tmp_path: Path
) -> None:
    page = write_overview(runs, tmp_path / "page.html").read_text()
    assert 'href="series/one/report.html"' in page
    assert 'href="series/two%20%26%20more/report.html"' in page
    assert "<h1>2 runs</h1>" in page
    assert "<script" not in page


def test_bars_are_shares_of_the_largest_figure_of_their_kind(
    runs: list[Path], tmp_path: Path
) -> None:
    page = write_overview(runs[1:], tmp_path / "page.html").read_text()
    drawn = [float(width) for width in re.findall(r"width: ([\d.]+)%\"", page)]
    cells = [cell for cell in cells_of(read_source(runs[1])) if cell.measured]
    medians = [cell.median for cell in cells]
    assert len(medians) > 1
    most = max(median for median in medians if median)
    expected = [100 * (median or 0) / most for median in medians]
    assert drawn == pytest.approx(expected, abs=0.01)
    assert max(drawn) == 100


def test_bars_of_all_runs_have_one_scale(runs: list[Path], tmp_path: Path) -> None:
    page = write_overview(runs, tmp_path / "page.html").read_text()
    found = [c for run in runs for c in cells_of(read_source(run)) if c.measured]
    rates = [cell.median or 0 for cell in found if cell.family == "rate search"]
    bars = re.findall(r"width: ([\d.]+)%\"></div></div>\s*<div[^>]*>.*fps", page)
    expected = [100 * rate / max(rates) for rate in rates]
    assert [float(width) for width in bars] == pytest.approx(expected, abs=0.01)


def test_a_page_that_cannot_be_made_is_an_error(
    runs: list[Path], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="neither results"):
        write_overview([*runs, tmp_path], tmp_path / "page.html")
    with pytest.raises(InputError, match="there is no directory"):
        write_overview(runs, tmp_path / "nowhere" / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_the_command_makes_all_reports_and_the_overview(
    runs: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert app.run(["report", *map(str, runs)]) == 0
    assert capsys.readouterr().out.strip() == OVERVIEW
    assert Path(OVERVIEW).is_file()
    assert all((run / "report.html").is_file() for run in runs)
