"""docs/query.md names every column as the views have it, and its SQL works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from many_runs import CELL, stored_run
from report_sample import throughput_cell

from dutperf.cli import app
from dutperf.query.views import VIEWS

PAGE = (Path(__file__).parents[2] / "docs" / "query.md").read_text("utf-8")
QUERIES = re.findall(r"^    (dutperf query .*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_the_page_has_the_columns_of_each_view(view: object) -> None:
    known = next(each for each in VIEWS if each is view)
    section = PAGE.partition(f"\n### {known.name}\n")[2].partition("\n### ")[0]
    told = re.findall(r"^\| `(\w+)` \| (\S+) \| (.*) \|$", section, re.MULTILINE)
    assert told == [(c.name, c.type.lower(), c.meaning) for c in known.columns]
    assert known.meaning in section


@pytest.mark.parametrize("command", QUERIES)
def test_its_queries_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    stored_run(tmp_path / "results" / "r", [throughput_cell(CELL, 4, 64, [1e5])])
    assert app.run(shlex.split(command)[1:]) == 0
