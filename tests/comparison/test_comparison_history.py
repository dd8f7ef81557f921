"""Stored runs of the baseline's device as more runs of the baseline."""

from __future__ import annotations

import re
import shutil
from fractions import Fraction
from pathlib import Path

import pytest
from comparison_sample import latency, rate, stored
from report_sample import BEHIND
from told_cells import retyped

from dutperf import stats
from dutperf.comparison import compare, read_runs, with_history
from dutperf.comparison.judging import Comparison
from dutperf.errors import InputError
from dutperf.results import CellResult


def night(place: Path, number: int, *cells: CellResult) -> Path:
    """A run of that day, with a figure near 100,000 where none is given."""
    day = f"2026-{4 + number // 28:02}-{1 + number % 28:02}T02:00:00+00:00"
    measured = cells or (rate(*[100_000 + 10 * number] * 3),)
    return stored(place / f"night-{number:02}", *measured, created_at=day)


def compared(old: Path, new: Path, history: Path) -> tuple[Comparison, list[str]]:
    told: list[str] = []
    return compare(with_history(read_runs([old, new]), history, told.append)), told


def numbers(found: Comparison) -> list[str]:
    return [run.directory.name for run in found.sides[0].runs]


def test_a_new_run_below_39_earlier_ones_is_worse(tmp_path: Path) -> None:
    nights = [night(tmp_path / "results", n) for n in range(39)]
    new = night(tmp_path / "results", 40, rate(*[99_000] * 3))
    found, told = compared(nights[0], new, tmp_path)
    (figure,) = found.figures
    assert (figure.outcome, figure.samples, told) == ("worse", (39, 1), [])
    assert figure.judged(0.1) == "worse"
    assert found.by_runs
    fewer, _ = compared(nights[0], new, nights[1])
    (figure,) = fewer.figures
    assert (figure.outcome, figure.why) == (
        "too_few",
        "2 and 1 runs, at least 4 each, or 39 and 1",
    )


def test_two_cells_take_a_longer_history(tmp_path: Path) -> None:
    names = [f"throughput-ip4-{size}-both" for size in (64, 128)]
    for n in range(3):
        night(tmp_path, n, *(rate(100_000 + n, name=name) for name in names))
    paths = sorted(tmp_path.iterdir())
    found, _ = compared(paths[0], paths[2], tmp_path)
    assert {each.why for each in found.figures} == {
        "2 and 1 runs, at least 5 each, or 79 and 1"
    }


def test_only_earlier_runs_of_the_device_count_and_each_once(tmp_path: Path) -> None:
    old, new = night(tmp_path, 3), night(tmp_path, 9)
    night(tmp_path, 1)
    night(tmp_path, 10)
    night(tmp_path / "at-once", 9, rate(1))
    shutil.copytree(old, tmp_path / "copy-of-3")
    shutil.copytree(tmp_path / "night-01", tmp_path / "deeper" / "copy-of-1")
    other = night(tmp_path, 5)
    (other / "campaign.yaml").write_text("lab: another\n")
    broken = night(tmp_path, 6)
    (broken / "results.json").write_text("{")
    found, told = compared(old, new, tmp_path)
    assert numbers(found) == ["night-03", "copy-of-1"]
    (notice,) = told
    assert notice.startswith("left out: ")
    assert "night-06" in notice


def test_another_measure_and_what_is_no_figure_are_left_out(tmp_path: Path) -> None:
    plain = rate(*[100_000] * 3)
    other = retyped(
        plain.model_copy(update={"parameters": plain.parameters | {"ip": 6}})
    )
    nothing = rate(None).model_copy(update={"verdict": "fail"})
    invalid = plain.model_copy(update={"verdict": "invalid", "reasons": [BEHIND]})
    signed = latency({"TL": [20_000], "IPDV min": [-5]})
    for n, cell in enumerate((plain, plain, other, nothing, invalid, plain)):
        night(tmp_path, n, cell, signed)
    paths = sorted(tmp_path.iterdir())
    new = night(tmp_path, 9, plain, signed)
    found, _ = compared(paths[0], new, tmp_path)
    told = {each.key.words: each for each in found.figures}
    rates = told["throughput-ip4-64-both"]
    assert rates.samples == (3, 1)
    assert rates.why.endswith("not in A3; not in A4; not in A5")
    assert {each.samples for each in found.figures if each.name[:2] == "TL"} == {(6, 1)}


def test_a_run_beside_itself_is_refused(tmp_path: Path) -> None:
    night(tmp_path, 1)
    with pytest.raises(InputError, match="are one run"):
        compared(night(tmp_path, 3), tmp_path / "night-03", tmp_path)


def test_a_history_of_nothing_is_told(tmp_path: Path) -> None:
    old, new = night(tmp_path, 3), night(tmp_path, 9)
    found, told = compared(old, new, tmp_path)
    assert told == [f"{tmp_path} holds no earlier run of the device of A"]
    assert not found.by_runs
    with pytest.raises(InputError, match="is no directory"):
        compared(old, new, tmp_path / "nowhere")


def test_what_the_baseline_does_not_have_no_history_has(tmp_path: Path) -> None:
    for n in range(4):
        cells = [rate(100_000, name="throughput-ip4-128-both")] if n else []
        night(tmp_path, n, rate(100_000 + n), *cells)
    paths = sorted(tmp_path.iterdir())
    found, _ = compared(paths[0], paths[3], tmp_path)
    told = {each.key.cell: each for each in found.figures}
    assert told["throughput-ip4-64-both"].samples == (3, 1)
    assert told["throughput-ip4-128-both"].outcome == "not_compared"


def test_the_document_says_how_long_a_history_it_takes() -> None:
    text = (Path(__file__).parents[2] / "docs/compare.md").read_text()
    table = text.partition("| runs of the baseline that it takes |")[2]
    rows = [line.split("|")[1:-1] for line in table.splitlines()[2:7]]
    told = [[int(re.sub(r"\D", "", cell)) for cell in row] for row in rows]
    assert told == [
        [new, *(stats.least_beside(new, Fraction(5, 100) / m) for m in (1, 6, 20, 80))]
        for new in range(1, 6)
    ]
