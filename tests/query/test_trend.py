"""Figures over many runs: marked where they are none, and changes at their place."""

from __future__ import annotations

import random
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from many_runs import CELL, nightly, stored_run
from report_sample import loss_cell, store, throughput_cell
from timed_sample import delay_results
from told_cells import retyped

from dutperf.query.rows import moment, stored_cells
from dutperf.query.trend import Point, Series, trends
from dutperf.report.source import Source, read_source
from dutperf.results.figures import Figure, figures_of

Run = tuple[Path, Source]
FIRST = datetime(1, 1, 1)  # noqa: DTZ001 - all are UTC
STEADY = [3e5 + 300 * (n * 7 % 5) for n in range(12)]


def trend_of(path: Path) -> list[Series]:
    return trends([path], lambda _: None)


def name_of(point: Point) -> str:
    return Path(point.run).name


def test_a_fall_is_told_with_place_sign_and_size(tmp_path: Path) -> None:
    nightly(tmp_path, [*STEADY, *(0.9 * value for value in STEADY[:6])])
    (series,) = trend_of(tmp_path)
    (change,) = series.changes
    assert name_of(series.points[change.at]) == "night13"
    assert change.percent == pytest.approx(-10, abs=0.2)


def test_runs_stand_by_their_time_and_not_by_their_names(tmp_path: Path) -> None:
    for day, name in ((1, "z"), (2, "a"), (3, "m")):
        stored_run(tmp_path / name, [throughput_cell(CELL, 4, 64, [1e5 + day])], day)
    (series,) = trend_of(tmp_path)
    assert [point.value for point in series.points] == [1e5 + 1, 1e5 + 2, 1e5 + 3]


def test_bounds_and_invalid_results_are_shown_and_are_no_figures(
    tmp_path: Path,
) -> None:
    nightly(tmp_path, [*STEADY, *(0.9 * value for value in STEADY[:6])])
    for day, verdict in ((19, "pass"), (20, "invalid"), (21, "pass")):
        cell = throughput_cell(CELL, 4, 64, [1.0]).model_copy(
            update={"bound": "lower", "verdict": verdict}
        )
        stored_run(tmp_path / f"night{day}", [cell], day)
    (series,) = trend_of(tmp_path)
    assert [point.plain for point in series.points[-4:]] == [True, False, False, False]
    assert [point.value for point in series.points[-3:]] == [1.0, None, 1.0]
    (change,) = series.changes
    assert name_of(series.points[change.at]) == "night13"


def test_the_place_of_a_change_counts_bounds_before_it(tmp_path: Path) -> None:
    bound = throughput_cell(CELL, 4, 64, [9e9]).model_copy(update={"bound": "lower"})
    stored_run(tmp_path / "first", [bound], 1, name="other")
    nightly(tmp_path, [*STEADY, *(0.9 * value for value in STEADY[:6])])
    (series,) = trend_of(tmp_path)
    (change,) = series.changes
    assert name_of(series.points[change.at]) == "night13"


def test_a_copy_of_a_run_counts_once(tmp_path: Path) -> None:
    nightly(tmp_path, STEADY)
    shutil.copytree(tmp_path / "night03", tmp_path / "copy")
    (series,) = trend_of(tmp_path)
    assert len(series.points) == len(STEADY)


def test_a_few_runs_and_a_loss_of_nothing_say_why_nothing_is_looked_for(
    tmp_path: Path,
) -> None:
    for day in range(1, 13):
        cells = [loss_cell("frame-loss-ip4-64-both", 4, 64, {100: 0.0, 50: 0.0})]
        if day < 5:
            cells.append(throughput_cell(CELL, 4, 64, [1e5]))
        stored_run(tmp_path / str(day), cells, day)
    told = {series.name: series.unlooked for series in trend_of(tmp_path)}
    assert told == {
        "frame loss": "a figure of 0 or less has no logarithm",
        "throughput": "fewer than 11 plain figures",
    }


def test_other_settings_are_named_but_not_what_was_drawn_or_found(
    tmp_path: Path,
) -> None:
    for day in (1, 2):
        cell = throughput_cell(CELL, 4, 64, [1e5])
        told = {"seed": day, "max_load_fps": day, "trial_duration_s": day}
        cell = retyped(cell.model_copy(update={"parameters": cell.parameters | told}))
        stored_run(tmp_path / str(day), [cell], day)
    (series,) = trend_of(tmp_path)
    assert series.settings == ("trial_duration_s",)


def test_losses_at_other_loads_are_not_taken_for_the_same(tmp_path: Path) -> None:
    for day in (1, 2):
        cell = loss_cell("frame-loss-ip4-64-both", 4, 64, {100: 5.0})
        point = cell.points[0].model_copy(update={"load_fps": 1000 * day})
        cell = cell.model_copy(update={"points": [point]})
        stored_run(tmp_path / str(day), [cell], day)
    (series,) = trend_of(tmp_path)
    assert series.settings == ("load_fps",)


def test_one_of_several_testbeds_goes_on_where_it_was_alone(tmp_path: Path) -> None:
    stored_run(tmp_path / "alone", [throughput_cell(CELL, 4, 64, [1e5])], 1)
    cells = [
        throughput_cell(f"{CELL}@{place}", 4, 64, [1e5]).model_copy(
            update={"place": place}
        )
        for place in ("bench", "other")
    ]
    both = stored_run(tmp_path / "both", cells, 2)
    (both / "campaign.yaml").write_text("testbed: [{name: bench}, {name: other}]\n")
    told = {series.device: len(series.points) for series in trend_of(tmp_path)}
    assert told == {"bench": 2, "other": 1}


def test_series_are_those_of_all_runs_read_at_once(tmp_path: Path) -> None:
    """The slow twin: whole runs in memory, sorted and gone through cell by cell."""
    draw = random.Random(3)  # noqa: S311 - figures, no secrets
    for number in range(25):
        day, cells = draw.randrange(1, 28), []
        for size in draw.sample((64, 128, 256), 2):
            name = f"throughput-ip4-{size}-both"
            cell = throughput_cell(name, 4, size, [draw.uniform(1e5, 2e5)])
            told = {"trial_duration_s": draw.choice([1, 60]), "seed": number}
            update = {
                "parameters": cell.parameters | told,
                "bound": draw.choice([None, "lower"]),
                "verdict": draw.choice(["pass", "pass", "invalid"]),
            }
            cells.append(cell.model_copy(update=update))
        stored_run(tmp_path / f"r{draw.random()}", cells, day)
    store(tmp_path / "delays", delay_results()).close()
    shutil.copytree(tmp_path / "delays", tmp_path / "again")
    assert [_as_read(series) for series in trend_of(tmp_path)] == _slowly(tmp_path)


def _as_read(series: Series) -> tuple[Any, ...]:
    key = (series.device, series.cell, series.name, series.direction, series.judged)
    points = [(point.run, point.begun, point.value) for point in series.points]
    return key, series.unit, points, set(series.settings)


def _slowly(place: Path) -> list[tuple[Any, ...]]:
    directories = [path.parent for path in place.rglob("results.json")]
    runs = [(path, read_source(path)) for path in directories]
    runs.sort(key=lambda run: (moment(run[1].created_at) or FIRST, str(run[0])))
    found: dict[tuple[str, ...], list[tuple[Run, Figure]]] = {}
    for run in runs:
        for cell in stored_cells(run[1]):
            assert cell.result
            for figure in figures_of(cell.result):
                if not figure.leads:
                    continue
                own = cell.id.partition("@")[0]
                key = (cell.testbed, own, figure.name, figure.direction, cell.judged)
                found.setdefault(key, []).append((run, figure))
    return [_slow_series(key, of_key) for key, of_key in found.items()]


def _slow_series(
    key: tuple[str, ...], figures: list[tuple[Run, Figure]]
) -> tuple[Any, ...]:
    seen, points, loads = [], [], set()
    asked: dict[str, set[object]] = {}
    for (path, source), figure in figures:
        own = (source.name, source.created_at, figure.value, figure.repeats)
        if own in seen:
            continue
        seen.append(own)
        points.append((str(path), source.created_at, figure.value))
        loads.add(figure.load_fps)
        for name, value in figure.result.parameters.items():
            if value is not None and name != "seed":
                asked.setdefault(name, set()).add(value)
    differing = {name for name, values in asked.items() if len(values) > 1}
    return (
        key,
        figures[0][1].unit,
        points,
        differing | ({"load_fps"} if len(loads) > 1 else set()),
    )
