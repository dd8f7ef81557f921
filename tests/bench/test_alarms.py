"""``python -m tools compare-alarms``, ``trend-alarms`` and ``soak-alarms``."""

from __future__ import annotations

import json
import math

import pytest
from typer.testing import CliRunner

from tools.__main__ import PROGRAM
from tools.alarms import of_compare


@pytest.mark.parametrize("command", ["compare-alarms", "trend-alarms", "soak-alarms"])
def test_each_case_has_a_row_with_its_share(command: str) -> None:
    asked = [command, "--draws", "3"]
    result = CliRunner().invoke(PROGRAM, [*asked, "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["schema_version"], told["draws"]) == (1, 3)
    assert {row["changed"] for row in told["rows"]} == {True, False}
    assert all(0 <= row["told_percent"] <= 100 for row in told["rows"])
    table = CliRunner().invoke(PROGRAM, asked)
    assert "false alarms %" in table.stdout


def test_what_docs_compare_promises_holds() -> None:
    """At most 5 % false alarms, and two standard errors of as many draws."""
    draws = 200
    rows = list(of_compare(draws, lower=(0,)))
    told = {row.case.removesuffix(", 0 %"): row.told_percent for row in rows}
    for effect, least in (("0.25", 6), ("0.5", 20), ("1", 45)):
        assert told.pop(f"1 run a side, effect {effect} of the spread") > least
    assert told.pop("5 runs a side, effect 1, correlated 0.3") > 5
    most = 5 + 2 * math.sqrt(5 * 95 / draws)
    assert {case: share for case, share in told.items() if share > most} == {}
    assert len(told) == 22


def test_a_difference_of_two_spreads_is_found() -> None:
    found = {row.case: row.told_percent for row in of_compare(25, lower=(2,))}
    assert found["1 run a side, effect 0 of the spread, -2 %"] >= 90
    assert found["5 runs a side, effect 0.5 of the spread, -2 %"] >= 90
    assert found["39 runs and 1, effect 0.25 of the spread, -2 %"] >= 90
