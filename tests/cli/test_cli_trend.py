"""``dutperf trend`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hostile import hostile_results
from many_runs import CELL, nightly, stored_run
from report_sample import store, throughput_cell

from dutperf.cli import app
from dutperf.visible import visible

STEADY = [3e5 + 300 * (n * 7 % 5) for n in range(12)]


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert app.run(["trend", *arguments]) == 0
    said = capsys.readouterr().out
    assert visible(said) == said
    return said


def test_a_change_stands_in_the_table_and_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nightly(tmp_path, [*STEADY, *(0.9 * value for value in STEADY[:6])])
    said = told(capsys, str(tmp_path))
    (row,) = [line for line in said.splitlines() if line.startswith("│")]
    name, runs, bars, newest, change = (x.strip() for x in row.strip("│").split("│"))
    assert (name, runs, newest) == (CELL, "18", "270,000 fps")
    assert set(bars[:12]) == set("█")
    assert set(bars[12:]) == set("▁")
    assert change.startswith("-10")
    assert "since 2026-01-13T02:00:00+00:00" in said
    assert "300,600 fps before, 270," in said


def test_bounds_and_invalid_results_have_signs_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nightly(tmp_path, [1e5, 2e5])
    cell = throughput_cell(CELL, 4, 64, [1e5])
    invalid = cell.model_copy(update={"verdict": "invalid"})
    stored_run(tmp_path / "invalid", [invalid], 20)
    bound = cell.model_copy(update={"bound": "lower"})
    stored_run(tmp_path / "bound", [bound], 21)
    said = told(capsys, str(tmp_path))
    assert "▁█x^" in said
    assert ">= 100,000 fps" in said
    assert "fewer than 11 plain figures" in said


def test_programs_get_points_and_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nightly(tmp_path, [*STEADY, *(0.9 * value for value in STEADY[:6])])
    (series,) = json.loads(told(capsys, str(tmp_path), "--json"))["series"]
    assert [point["value"] for point in series["points"]][:12] == STEADY
    (change,) = series["changes"]
    assert change["at"] == 12
    assert change["run"] == str(tmp_path / "night13")


def test_hostile_names_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = hostile_results().model_copy(update={"trials": []})
    store(tmp_path / "r", results).close()
    told(capsys, str(tmp_path))
    told(capsys, str(tmp_path), "--json")


def test_no_results_are_an_input_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["trend", str(tmp_path)]) == 2
    assert "no results in" in capsys.readouterr().err
