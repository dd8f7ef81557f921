"""``dutperf export`` as a user types it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hostile import hostile_environment, hostile_results
from many_runs import CELL, stored_run
from report_sample import sample_environment, sample_results, store, throughput_cell

from dutperf.cli import app
from dutperf.visible import visible

FORMATS = ("csv", "md", "tex", "openmetrics")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return stored_run(tmp_path / "r", [throughput_cell(CELL, 4, 64, [300_000.5])])


def told(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    capsys.readouterr()
    assert app.run(["export", *map(str, arguments)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_has_what_is_printed(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    printed = told(capsys, run, "--format", form)
    file = tmp_path / "out"
    assert told(capsys, run, "--format", form, "--output", file) == f"{file}\n"
    assert file.read_text() == printed
    assert "300" in printed


def test_one_table_alone_is_csv_without_a_title(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = told(capsys, run, "--format", "csv", "--table", "throughput")
    heads, row = csv.reader(printed.splitlines())
    line = dict(zip(heads, row, strict=True))
    assert line["cell"] == CELL
    assert line["throughput [fps per direction]"] == "300000.5"


def test_a_table_that_the_run_has_not_is_named_with_those_it_has(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for extra in (["--format", "csv", "--table", "x"], ["--format", "xml"], []):
        assert app.run(["export", str(run), *extra]) == 2
    asked = ["--format", "csv", "--table", "x"]
    assert app.run(["export", str(run), *asked]) == 2
    said = capsys.readouterr().err
    assert "--table x: the run has no such table" in said
    assert "throughput" in said


def test_metrics_are_no_tables_and_a_directory_is_not_made(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = ["--format", "openmetrics"]
    assert app.run(["export", str(run), *metrics, "--table", "throughput"]) == 2
    assert app.run(["export", str(run), *metrics, "--output", "no/where"]) == 2
    assert app.run(["export", "nowhere", *metrics]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_an_interrupted_run_has_tables_and_no_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store(tmp_path / "r", sample_results(), sample_environment()).close()
    (tmp_path / "r" / "results.json").unlink()
    assert "not finished" in told(capsys, tmp_path / "r", "--format", "csv")
    metrics = told(capsys, tmp_path / "r", "--format", "openmetrics")
    assert "frames_per_second" not in metrics
    assert metrics.endswith("# EOF\n")


def test_hostile_names_are_shown_in_each_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = hostile_results().model_copy(update={"trials": []})
    store(tmp_path / "r", results, hostile_environment()).close()
    for form in FORMATS:
        printed = told(capsys, tmp_path / "r", "--format", form)
        assert visible(printed) == printed
        assert r"x1b" in printed


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["--format", "csv", "--table", "throughput", "--label", "a"], "of LaTeX"),
        (["--format", "tex", "--columns", "traffic"], "choose it: --table KEY"),
        (["--format", "openmetrics", "--columns", "traffic"], "has no tables"),
        (
            ["--format", "tex", "--table", "throughput", "--label", "a}"],
            "tab:throughput",
        ),
    ],
)
def test_what_is_of_one_table_of_latex_is_refused_elsewhere(
    run: Path, capsys: pytest.CaptureFixture[str], extra: list[str], said: str
) -> None:
    assert app.run(["export", str(run), *extra]) == 2
    assert said in capsys.readouterr().err


def test_columns_stand_between_commas_or_one_by_one(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "--format tex --table throughput --caption Mine"
    asked: list[str | Path] = [run, *words.split()]
    printed = told(capsys, *asked, "--columns", "traffic,throughput")
    assert "\\caption{Mine}" in printed
    assert CELL not in printed
    one_by_one = ["--columns", "traffic", "--columns", "throughput"]
    assert told(capsys, *asked, *one_by_one) == printed
