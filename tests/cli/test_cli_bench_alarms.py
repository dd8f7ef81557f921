"""``dutperf bench compare`` and ``dutperf bench trend``."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dutperf.bench.alarms import compare_alarms
from dutperf.cli.app import app


@pytest.mark.parametrize("command", ["compare", "trend"])
def test_each_case_has_a_row_with_its_share(command: str) -> None:
    asked = ["bench", command, "--draws", "3"]
    result = CliRunner().invoke(app, [*asked, "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["schema_version"], told["draws"]) == (1, 3)
    assert {row["changed"] for row in told["rows"]} == {True, False}
    assert all(0 <= row["told_percent"] <= 100 for row in told["rows"])
    table = CliRunner().invoke(app, asked)
    assert "false alarms %" in table.stdout


def test_runs_that_share_nothing_differ_in_at_most_5_percent() -> None:
    none, *_ = compare_alarms(200)
    assert not none.changed
    assert none.told_percent <= 5
