"""The same campaign measured twice: what agrees, what differs, what nobody can tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning import Run, campaign, spec

from dutperf.evidence import TwoRuns, two_runs
from dutperf.results import ResultsFile
from dutperf.simulation.fake_engine import FakeEngine, noisy, step


def run(path: Path, limit_fps: float, repeats: int = 3) -> ResultsFile:
    what = campaign(spec(resolution="1%", repeats=repeats))
    return Run(path, FakeEngine(step(limit_fps)))(what)


def row(tmp_path: Path, one: float, other: float, repeats: int = 3) -> TwoRuns:
    runs = (
        run(tmp_path / str(n), limit, repeats) for n, limit in enumerate((one, other))
    )
    (only,) = two_runs(*runs)
    return only


def test_a_device_that_stayed_as_it_was_agrees(tmp_path: Path) -> None:
    found = row(tmp_path, 300_000, 300_000)
    assert (found.agrees, found.difference_percent) == (True, 0)
    assert "fps then" in found.words


def test_what_is_within_the_resolution_agrees(tmp_path: Path) -> None:
    assert row(tmp_path, 300_000, 301_500).agrees is True


def test_a_slower_device_differs(tmp_path: Path) -> None:
    found = row(tmp_path, 300_000, 200_000)
    assert found.agrees is False
    assert found.difference_percent == pytest.approx(-33.3, abs=1)


def test_of_single_values_nobody_can_tell(tmp_path: Path) -> None:
    assert row(tmp_path, 300_000, 200_000, repeats=1).agrees is None


def test_repeats_that_scatter_reach_further(tmp_path: Path) -> None:
    engine = FakeEngine(noisy(300_000, one_in=4, seed=3))
    one = Run(tmp_path / "a", engine)(campaign(spec(resolution="1%", repeats=8)))
    two = run(tmp_path / "b", 300_000)
    (found,) = two_runs(one, two)
    low = min(r.value or 0 for r in one.cells[0].repeats)
    assert low < 290_000
    assert found.agrees is True


def test_a_cell_that_only_one_run_has_is_told(tmp_path: Path) -> None:
    one = run(tmp_path / "a", 300_000)
    (found,) = two_runs(one, one.model_copy(update={"cells": []}))
    assert (found.agrees, found.now) == (None, None)
    assert "not measured now" in found.words


def test_a_lower_bound_agrees_with_all_above_it(tmp_path: Path) -> None:
    one = run(tmp_path / "a", 2_000_000)
    assert one.cells[0].bound
    assert two_runs(one, one)[0].agrees is True
