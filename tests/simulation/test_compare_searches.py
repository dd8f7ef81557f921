"""``python -m tools compare-searches``."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tools import searches
from tools.__main__ import PROGRAM
from tools.searches import DEVICES, METHODS, Row


def test_json_has_a_row_for_each_search_on_each_device() -> None:
    result = CliRunner().invoke(PROGRAM, ["compare-searches", "--runs", "1", "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["schema_version"] == 1
    assert (told["runs"], told["repeats"]) == (1, 20)
    rows = [(row["device"], row["method"]) for row in told["rows"]]
    assert rows == [(d, m) for d in DEVICES for m in METHODS]
    assert all(row["hours"] > 0 for row in told["rows"])
    assert {row["kept"] for row in told["rows"]} >= {True, None}


def test_the_table_names_each_device_once() -> None:
    result = CliRunner().invoke(PROGRAM, ["compare-searches", "--runs", "1"])
    assert result.exit_code == 0, result.output
    assert "1 campaigns each" in result.stdout
    table = result.stdout.split("apart: from")[0]
    for device in DEVICES:
        assert table.count(device) == 1


def test_each_promise_is_kept_or_named(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = (400_000.0, 0.0, 0.0, 200.0, 1.0, 100.0, 0.5, 0.1, 80.0)
    rows = [
        Row("step", "classic", *figures, True, True, None),
        Row("step", "narrowed", *figures, False, True, False),
        Row("slope", "auto", *figures, True, False, None),
        Row("slope", "verified", *figures, None, None, None),
    ]
    monkeypatch.setattr(searches, "compare", lambda _runs: rows)
    result = CliRunner().invoke(PROGRAM, ["compare-searches"])
    assert "Kept: 1 of 3." in result.stdout
    assert "Missed: narrowed on step: interval, time." in result.stdout
    assert "Missed: auto on slope: median." in result.stdout
    assert "verified on slope" not in result.stdout


def test_no_campaign_at_all_is_refused() -> None:
    assert (
        CliRunner().invoke(PROGRAM, ["compare-searches", "--runs", "0"]).exit_code == 2
    )
