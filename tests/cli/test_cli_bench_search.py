"""``dutperf bench search``."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from dutperf.cli.app import app
from dutperf.search.comparison import DEVICES, METHODS


def test_json_has_a_row_for_each_search_on_each_device() -> None:
    result = CliRunner().invoke(app, ["bench", "search", "--runs", "1", "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["runs"], told["repeats"]) == (1, 20)
    rows = [(row["device"], row["method"]) for row in told["rows"]]
    assert rows == [(d, m) for d in DEVICES for m in METHODS]
    assert all(row["hours"] > 0 for row in told["rows"])


def test_the_table_names_each_device_once() -> None:
    result = CliRunner().invoke(app, ["bench", "search", "--runs", "1"])
    assert result.exit_code == 0, result.output
    assert "1 campaigns each" in result.stdout
    for device in DEVICES:
        assert result.stdout.count(device) == 1


def test_no_campaign_at_all_is_refused() -> None:
    assert CliRunner().invoke(app, ["bench", "search", "--runs", "0"]).exit_code == 2
