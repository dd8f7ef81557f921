"""How the ways to search a throughput read in the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from report_page import Page
from report_sample import sample_environment, store, throughput_cell, trial
from told_cells import retyped

from dutperf.charts.cells import CellView, finished_cell
from dutperf.charts.rate_charts import search_chart
from dutperf.charts.trial_views import search_paths
from dutperf.protocol.result_messages import Reason, VerdictKind
from dutperf.report import write_report
from dutperf.report.summary import headline
from dutperf.report.timing import TrialTiming, _result_trial
from dutperf.results import (
    CellResult,
    GoalResult,
    ResultsFile,
    Settlement,
    TrialRecord,
    spread_of,
)
from dutperf.tables import Value

NAME = "throughput-ip4-64-both"
CAPPED = Reason(code="max_rate", message="limited by what was set")
Load = tuple[int, VerdictKind, float]
EXPLORED: list[Load] = [
    (500_000, "fail", 0.25),
    (250_000, "pass", 0.25),
    (375_000, "fail", 0.25),
    (300_000, "pass", 1),
    (304_000, "fail", 1),
    (302_000, "pass", 1),
]


def trials_of(loads: Sequence[Load], repeat: int = 1) -> tuple[TrialRecord, ...]:
    found = []
    for number, (load, verdict, duration_s) in enumerate(loads, 1):
        record = trial(number, NAME, load, verdict, repeat=repeat)
        asked = {"duration_ns": round(duration_s * 1e9)}
        request = record.request.model_copy(update=asked)
        found.append(record.model_copy(update={"request": request}))
    return tuple(found)


def goal(
    name: str, lower_fps: int | None, *, loss: float = 0, regular: bool = True
) -> GoalResult:
    return GoalResult(
        name=name,
        loss_ratio=loss,
        exceed_ratio=0.5 if loss else 0,
        final_duration_s=1,
        duration_sum_s=2 if loss else 1,
        initial_duration_s=0.25,
        width=0.005,
        lower_fps=lower_fps,
        upper_fps=lower_fps and lower_fps + 1000,
        conditional_fps=lower_fps and lower_fps - 500,
        regular=regular,
        verdict="pass",
        reasons=[] if regular else [CAPPED],
    )


def cell(
    search: str,
    *values: float,
    parameters: dict[str, int] | None = None,
    **keys: object,
) -> CellResult:
    plain = throughput_cell(NAME, 4, 64, values or [302_000])
    found = {**plain.parameters, "search": search, **(parameters or {})}
    return retyped(plain.model_copy(update={"parameters": found, **keys}))


def view(result: CellResult, loads: Sequence[Load] = EXPLORED) -> CellView:
    return finished_cell(result, trials_of(loads))


def page(path: Path, *cells: CellResult, loads: Sequence[Load] = EXPLORED) -> Page:
    results = ResultsFile(
        procedure="campaign",
        name="searches",
        created_at="2026-03-04T09:30:00+00:00",
        complete=True,
        cells=list(cells),
        trials=list(trials_of(loads)),
    )
    store(path / "r", results, sample_environment())
    return Page(write_report(path / "r").read_text())


# --- paths and charts


def test_short_trials_are_apart_from_those_that_count() -> None:
    explored, counted = search_paths(trials_of(EXPLORED))
    assert (explored.bounded, counted.bounded) == (False, True)
    assert (counted.lower, counted.upper) == (302_000, 304_000)
    assert [step.position for step in counted.steps] == [4, 5, 6]


def test_trials_of_connections_are_as_long_as_their_number_takes() -> None:
    """All of them count, and the axis holds all of them."""
    loads: list[Load] = [
        (50_000, "fail", 0.8),
        (25_000, "fail", 1.6),
        (12_500, "pass", 3.2),
        (19_960, "pass", 2.0),
        (20_040, "fail", 1.99),
    ]
    of = {"id": "connection-rate-ip4", "procedure": "connection-rate", "median": 19_960}
    found = view(cell("classic").model_copy(update=of), loads)
    assert len(found.counting_trials) == len(loads)
    assert all(step.counts for path in found.paths for step in path.steps)
    chart = search_chart(found, 1)
    lowest, highest = chart.layout["yaxis"]["range"]
    drawn = [y for trace in chart.data if "marker" in trace for y in trace["y"]]
    assert sorted(drawn) == sorted(load for load, _, _ in loads)
    assert lowest <= min(drawn) < max(drawn) <= highest


def test_no_result_rests_on_a_short_trial() -> None:
    """A short one passed at a higher load than those that count."""
    loads: list[Load] = [
        (400_000, "pass", 1),
        (302_000, "pass", 60),
        (304_000, "fail", 60),
    ]
    found = view(cell("mlrsearch"), loads)
    assert [trial.load_fps for trial in found.counting_trials] == [302_000, 304_000]
    assert found.tester.trials == 2
    timings = [TrialTiming(trial) for trial in found.trials]
    assert _result_trial(found, timings).record.load_fps == 302_000


def test_a_loss_that_is_verified_counts_at_its_last_trial() -> None:
    loads: list[Load] = [
        (300_000, "fail", 1),
        (300_000, "pass", 1),
        (310_000, "fail", 1),
        (310_000, "invalid", 1),
        (310_000, "fail", 1),
    ]
    (path,) = search_paths(trials_of(loads))
    assert [(s.lower, s.upper) for s in path.steps] == [
        (0, 310_000),
        (0, 310_000),
        (300_000, 310_000),
        (300_000, 310_000),
        (300_000, 310_000),
    ]
    assert (path.lower, path.upper) == (300_000, 310_000)


def test_trials_for_several_goals_have_no_bounds_in_common() -> None:
    shown = view(cell("mlrsearch", goals=[goal("no loss", 302_000)]))
    assert not any(path.bounded for path in shown.paths)
    assert shown.bounds is None
    names = [trace["name"] for trace in search_chart(shown, 1).data]
    assert not any(name.startswith("still to search") for name in names)


def test_the_scale_is_that_of_the_trials_that_count() -> None:
    chart = search_chart(view(cell("narrowed")), 1)
    low, high = chart.layout["yaxis"]["range"]
    assert 295_000 < low < 300_000
    assert 304_000 < high < 310_000
    marks = [t for t in chart.data if t["mode"] == "markers"]
    assert all(low <= y <= high for trace in marks for y in trace["y"])
    small = {s for trace in marks for s in trace["marker"]["size"]}
    assert len(small) == 2


def test_trials_of_one_length_are_on_a_scale_from_zero() -> None:
    loads: list[Load] = [(load, verdict, 1) for load, verdict, _ in EXPLORED]
    chart = search_chart(view(cell("classic"), loads), 1)
    assert chart.layout["yaxis"]["range"][0] == 0


# --- words


@pytest.mark.parametrize(
    ("search", "setting", "words"),
    [
        ("narrowed", "both directions", "exactly the same two rates"),
        ("classic", "both directions, classic search", "A binary search"),
        ("verified", "both directions", "is run again before it counts. When"),
        ("mlrsearch", "both directions, MLRsearch", "counts for every goal"),
    ],
)
def test_each_search_is_explained(
    tmp_path: Path, search: str, setting: str, words: str
) -> None:
    goals = [goal("no loss", 302_000)] if search == "mlrsearch" else []
    found = page(tmp_path, cell(search, goals=goals))
    assert setting in found.section("searches")
    assert words in found.section("searches")


def test_a_verified_loss_is_named_and_stands_apart(tmp_path: Path) -> None:
    verified = cell("verified", parameters={"verify_trials": 2})
    found = page(tmp_path, verified)
    assert "Rate per direction, losses verified by 2 trials" in found.section("summary")
    assert "RFC 2544 26.1)" not in found.section("summary")
    assert "must not be quoted without these words" in found.text


def test_the_time_of_a_trial_is_that_of_those_that_count() -> None:
    assert view(cell("narrowed")).duration_s == Value("1")


def test_each_goal_has_a_row_with_its_bounds(tmp_path: Path) -> None:
    lossy = "losing up to 0.5 % in all but 50 % of the time"
    goals = [
        goal("no loss", 302_000),
        goal(lossy, 305_000, loss=0.005),
        goal("losing up to 20 %", None, loss=0.2, regular=False),
    ]
    found = page(tmp_path, cell("mlrsearch", goals=goals, reasons=[CAPPED]))
    text = found.section("searches")
    for words in (lossy, "305,000", "306,000", "304,500", "irregular", "RFC 9971"):
        assert words in text
    lines = headline(view(cell("mlrsearch", goals=goals))).lines
    assert any(line.startswith("Losing up to 0.5 %") for line in lines)
    assert any(line.endswith("irregular") for line in lines)


def test_only_the_first_goal_says_whether_the_device_may_do_more() -> None:
    more = goal("x", 500_000, loss=0.1, regular=False)
    more = more.model_copy(update={"bound": "lower", "bound_cause": "set"})
    shown = view(cell("mlrsearch", goals=[goal("no loss", 302_000), more]))
    assert not shown.at_least
    assert "X: ≥\u00a0500,000\u00a0fps, irregular" in headline(shown).lines


def test_a_first_goal_that_tolerates_a_loss_names_the_result() -> None:
    goals = [goal("losing up to 0.5 %", 302_000, loss=0.005)]
    shown = view(cell("mlrsearch", goals=goals))
    assert shown.name == "Throughput (losing up to 0.5 %)"


@pytest.mark.parametrize(
    ("width", "reached", "words"),
    [
        ("1%", True, "Settled after 8 repeats (1 look): the interval of the median"),
        ("1%", False, "Not settled after 8 repeats (1 look)"),
        ("1000", True, "is no wider than 1,000 fps"),
    ],
)
def test_it_is_told_whether_the_median_is_settled(
    tmp_path: Path, width: str, reached: bool, words: str
) -> None:
    values = [300_000.0 + n for n in range(8)]
    settled = Settlement(width=width, max_repeats=64, looks=1, reached=reached)
    auto = cell("narrowed", *values, settled=settled, spread=spread_of(values))
    found = page(tmp_path, auto)
    assert words in found.section("searches")
    assert words in found.section("glance")
