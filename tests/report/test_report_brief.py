"""One sheet of paper: question, answer, conditions, and how far to trust it."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_sample import all_sizes, sample_environment, sample_results, store

from dutperf.cli import app
from dutperf.report import BRIEF, write_brief
from dutperf.report.page import cells_of
from dutperf.report.source import read_source


@pytest.fixture
def run(tmp_path: Path) -> Path:
    store(tmp_path / "run", sample_results(), sample_environment())
    return tmp_path / "run"


def test_it_has_the_question_the_answer_the_conditions_and_the_verdict(
    run: Path,
) -> None:
    page = write_brief(run).read_text()
    assert "Fastest rate at which no frame is lost (RFC 2544 26.1)." in page
    first = next(c for c in cells_of(read_source(run)) if c.measured)
    assert f"<strong>{first.figure_text}</strong>" in page
    for name in ("Testbed", "Frames", "Trials", "Standards"):
        assert f'<th scope="row">{name}</th>' in page
    assert '<p class="trust ' in page


def test_a_procedure_is_told_once_whatever_a_cell_lacks(tmp_path: Path) -> None:
    first, *others = all_sizes().cells
    spoilt = first.model_copy(update={"verdict": "invalid", "repeats": []})
    results = all_sizes().model_copy(update={"cells": [spoilt, *others]})
    store(tmp_path / "run", results, sample_environment())
    assert (
        "<td>Throughput: 1 s, 3 repeats</td>"
        in write_brief(tmp_path / "run").read_text()
    )


def test_what_does_not_fit_is_counted(tmp_path: Path) -> None:
    results = all_sizes()
    store(tmp_path / "run", results, sample_environment())
    page = write_brief(tmp_path / "run").read_text()
    assert page.count('class="track"') == 6
    assert f"and {len(results.cells) - 6} more in the report" in page


def test_without_a_browser_a_pdf_is_refused_with_what_to_install(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(run))
    assert app.run(["report", str(run), "--brief", "--pdf"]) == 3
    assert "apt install chromium" in capsys.readouterr().err
    assert (run / BRIEF).is_file()
    assert not (run / "report.html").exists()
