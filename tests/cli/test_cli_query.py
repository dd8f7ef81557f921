"""``dutperf query`` as a user types it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import duckdb
import pytest
from hostile import CLEAR, FORMULA
from many_runs import CELL, stored_run
from report_sample import throughput_cell

from dutperf.cli import app
from dutperf.query.views import VIEWS
from dutperf.visible import csv_lines, visible

RATES = "select device, frame_size, median(rate_fps) from results group by all"


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs in ``results`` of the current directory."""
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    for day, rate in ((1, 300_000.0), (2, 300_100.5)):
        cell = throughput_cell(CELL, 4, 64, [rate])
        stored_run(Path("results") / str(day), [cell], day)


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert app.run(["query", *arguments]) == code
    said = capsys.readouterr()
    assert visible(said.out) == said.out
    assert "Traceback" not in said.err
    return said.err if code else said.out


@pytest.mark.parametrize("where", [["results"], []])
def test_a_table_is_printed(
    capsys: pytest.CaptureFixture[str], where: list[str]
) -> None:
    lines = told(capsys, *where, RATES).splitlines()
    assert [cell.strip() for cell in lines[1].strip("┃").split("┃")] == [
        "device",
        "frame_size",
        "median(rate_fps)",
    ]
    assert [cell.strip() for cell in lines[3].strip("│").split("│")] == [
        "bench",
        "64",
        "300050.2",
    ]


def test_without_sql_the_views_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys)
    assert "results, 2 rows" in said
    for view in VIEWS:
        assert all(f" {column.name} " in said for column in view.columns)
    listed = json.loads(told(capsys, "--json"))
    assert listed["views"]["results"]["rows"] == 2
    assert set(listed["views"]) == {view.name for view in VIEWS}


def test_programs_get_rows_with_names_and_types(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sql = (
        "select rate_fps, created_at, repeats, delay_ns, 'inf'::double as never "
        "from results order by run limit 1"
    )
    found = json.loads(told(capsys, "results", sql, "--json"))
    assert found["schema_version"] == 1
    assert found["columns"][0] == {"name": "rate_fps", "type": "DOUBLE"}
    assert found["rows"] == [
        {
            "rate_fps": 300000.0,
            "created_at": "2026-01-01T02:00:00",
            "repeats": [300000.0],
            "delay_ns": None,
            "never": "Infinity",
        }
    ]


def test_csv_on_standard_output_and_in_a_file_has_all_digits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sql = "select run, rate_fps / 7 as r, traffic from results order by run"
    printed = told(capsys, "results", sql, "--csv")
    assert told(capsys, "results", sql, "--output", "out.csv") == "out.csv\n"
    assert Path("out.csv").read_text() == printed
    rows = list(csv.reader(printed.splitlines()))
    assert rows[0] == ["run", "r", "traffic"]
    assert rows[2] == ["results/2", repr(300_100.5 / 7), ""]


def test_parquet_holds_the_same_rows(capsys: pytest.CaptureFixture[str]) -> None:
    sql = "from results order by run"
    assert told(capsys, "results", sql, "--output", "out.parquet") == "out.parquet\n"
    names = [column.name for column in VIEWS[0].columns]
    stored = duckdb.read_parquet("out.parquet")
    assert stored.columns == names
    place = names.index("rate_fps")
    assert [row[place] for row in stored.fetchall()] == [300_000.0, 300_100.5]
    assert {path.name for path in Path().iterdir()} == {"results", "out.parquet"}


def test_a_file_that_cannot_be_written_leaves_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("taken.parquet").mkdir()
    for name, code in (("no/x.csv", 2), ("x.txt", 2), ("taken.parquet", 3)):
        told(capsys, "results", RATES, "--output", name, code=code)
    told(capsys, "results", "selec 1", "--output", "x.parquet", code=2)
    assert {path.name for path in Path().iterdir()} == {"results", "taken.parquet"}


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("selec 1 from x", 'syntax error at or near "selec"'),
        ("select rate from results", 'Referenced column "rate" not found'),
        ("select 'x'::int from results", "Could not convert string 'x'"),
        ("from results where", "syntax error"),
        ("/* nothing */ ", "asks for nothing"),
        ("select 1 as a, 2 as a", "two columns are called a"),
        ("select ? from results", "Values were not provided"),
    ],
)
def test_wrong_sql_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], sql: str, said: str
) -> None:
    error, hint = told(capsys, "results", sql, code=2).splitlines()
    assert error.startswith("error: ")
    assert said in error
    assert hint.startswith("hint: ")


def test_what_excludes_each_other_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told(capsys, "results", RATES, "--json", "--csv", code=2)
    told(capsys, "results", "--csv", code=2)
    told(capsys, "nowhere", RATES, code=2)
    Path("empty").mkdir()
    told(capsys, "empty", RATES, code=2)


def test_a_row_that_is_wider_than_the_terminal_stands_upright(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = told(capsys, "results", "from results").splitlines()
    assert max(map(len, lines)) <= 120
    (rate,) = [line for line in lines if line.startswith("│ rate_fps")]
    assert [cell.strip() for cell in rate.strip("│").split("│")] == [
        "rate_fps",
        "300000",
        "300100.5",
    ]


def test_a_long_answer_is_cut_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, "results", "select 7 as n from range(1001)")
    assert said.count("7") == 1000
    assert "the first 1,000 rows; all: --csv or --output" in said
    assert "first" not in told(capsys, "results", "select 7 as n from range(1000)")


def test_sql_that_makes_what_a_terminal_obeys_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sql = "select chr(27) || '[2J' as x from results limit 1"
    for how in ([], ["--csv"], ["--json"]):
        told(capsys, "results", sql, *how)


def test_no_text_is_a_formula_to_a_spreadsheet() -> None:
    texts = [FORMULA, "+1", "-1", "@x", "\t=1", "plain, text", f"{CLEAR}x"]
    (row,) = csv.reader(csv_lines([texts]).splitlines())
    assert not any(text.startswith(("=", "+", "-", "@", "\t")) for text in row)
    assert row[0] == f"'{FORMULA}"
    assert row[5] == "plain, text"
    assert csv_lines([[-1.5, None, True, [1, 2]]]) == '-1.5,,true,"[1, 2]"\n'
