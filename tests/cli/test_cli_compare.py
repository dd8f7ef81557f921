"""``dutperf compare``: what it prints and writes, and how it ends."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from comparison_sample import compared, rate, stored

from dutperf.cli import app
from dutperf.cli.console import PatientConsole
from dutperf.cli.summary import show_table
from dutperf.comparison import comparison_tables

TEN = [100_000 + 10 * n for n in range(10)]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Directories: base, same, slow (10 % less), few (one repeat)."""
    monkeypatch.chdir(tmp_path)
    stored(tmp_path / "base", rate(*TEN))
    stored(tmp_path / "same", rate(*TEN))
    stored(tmp_path / "slow", rate(*(0.9 * value for value in TEN)))
    stored(tmp_path / "few", rate(100_000))
    return tmp_path


@pytest.mark.parametrize(
    ("other", "limit", "code"),
    [
        ("slow", None, 0),
        ("slow", "3%", 4),
        ("slow", "15%", 0),
        ("same", "3%", 0),
        ("few", "3%", 1),
        ("few", None, 0),
    ],
)
@pytest.mark.usefixtures("runs")
def test_the_exit_code_is_that_of_the_gate(
    other: str, limit: str | None, code: int
) -> None:
    gate = ["--fail-if-worse", limit] if limit else []
    assert app.run(["compare", "base", other, *gate]) == code


def test_all_that_is_asked_for_is_written(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--html", "c.html", "--markdown", "c.md", "--junit", "c.xml"]
    assert app.run(["compare", "base", "slow", *files, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema_version"] == 1
    assert told["figures"][0]["outcome"] == "worse"
    assert (runs / "c.html").read_text().startswith("<!doctype html>")
    assert "| worse run |" in (runs / "c.md").read_text()
    assert "<failure " in (runs / "c.xml").read_text()


@pytest.mark.usefixtures("runs")
def test_markdown_is_printed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["compare", "base", "slow", "--markdown", "-"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("## ")
    assert "┃" not in out


@pytest.mark.parametrize("width", [60, 80, 160])
def test_both_figures_and_the_finding_are_seen_on_any_terminal(width: int) -> None:
    found = compared([rate(*TEN)], [rate(*(0.9 * value for value in TEN))])
    console = PatientConsole(file=io.StringIO(), width=width)
    for table in comparison_tables(found, 3):
        show_table(console, table)
    assert isinstance(console.file, io.StringIO)
    out = console.file.getvalue()
    for part in ("100,050", "90,045", "-10", "worse", "FAILED"):
        assert part in out
    assert max(map(len, out.splitlines())) <= width


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["base"], "1 run cannot be compared"),
        (["base", "nowhere"], "holds neither results.json nor"),
        (["base", "same", "--fail-if-worse", "much"], "'much' is no percentage"),
        (["base", "same", "--fail-if-worse", "-3%"], "'-3%' is no percentage"),
        (["base", "same", "--html", "no/c.html"], "there is no directory no"),
        (["base", "same", "--json", "--markdown", "-"], "both print"),
    ],
)
def test_bad_input_is_told(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["compare", *arguments]) == 2
    assert told in " ".join(capsys.readouterr().err.split())


@pytest.fixture
def nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Directories of eight runs: 0-3, and 4-7 with 10 % less."""
    monkeypatch.chdir(tmp_path)
    for n in range(8):
        factor = 1 if n < 4 else 0.9
        stored(tmp_path / str(n), rate(*(factor * (value + n) for value in TEN)))
    return [str(n) for n in range(8)]


@pytest.mark.parametrize("options_at", [0, 2, 9])
def test_runs_on_both_sides_of_two_hyphens(
    nights: list[str], options_at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*nights[:4], "--", *nights[4:]]
    words[options_at:options_at] = ["--fail-if-worse", "3%", "--json"]
    assert app.run(["compare", *words]) == 4
    told = json.loads(capsys.readouterr().out)
    assert told["claims_about"] == "devices"
    assert told["figures"][0]["runs"] == [4, 4]


def test_one_run_on_each_side_of_two_hyphens_is_as_without_them(
    nights: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    for between in ([], ["--"]):
        assert app.run(["compare", nights[0], *between, nights[4]]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "worse run" in printed[0]
    assert "BASE... -- NEW..." in " ".join(printed[0].split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--", "0", "1"], "no run on one side of --"),
        (["0", "1", "--"], "no run on one side of --"),
        (["--"], "no run on one side of --"),
        (["0", "1", "--", "1", "2"], "1 and 1 are one run"),
    ],
)
@pytest.mark.usefixtures("nights")
def test_sides_need_runs_of_their_own(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["compare", *words]) == 2
    assert told in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("runs")
def test_the_history_is_compared_as_more_runs_of_the_baseline(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stored(Path("old/1"), rate(*TEN), created_at="2026-01-01T00:00:00+00:00")
    assert app.run(["compare", "base", "slow", "--history", "old", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [run["directory"] for run in told["runs"]] == ["base", "old/1", "slow"]
    assert told["figures"][0]["outcome"] == "too_few"
    assert app.run(["compare", "base", "slow", "--history", "base"]) == 0
    assert "base holds no earlier run" in " ".join(capsys.readouterr().err.split())
