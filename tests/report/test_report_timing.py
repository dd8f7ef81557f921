"""Delay and loss in time, as they stand in the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_page import Page
from report_sample import sample_environment, store, trial
from timed_sample import BURST, timed_results

from dutperf.charts.cells import finished_cell, open_cell
from dutperf.charts.delay_views import spread_of
from dutperf.charts.text import delay_ns
from dutperf.report import write_report
from dutperf.report.timing import timings_of
from dutperf.results import ResultsFile


def page_of(path: Path, results: ResultsFile) -> Page:
    store(path, results, sample_environment())
    return Page(write_report(path).read_text())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(tmp_path_factory.mktemp("timing") / "r", timed_results())


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_the_delays_of_every_stream_of_every_trial_are_in_the_page(page: Page) -> None:
    text = page.section("timing")
    for record in timed_results().trials:
        for direction in record.result.directions:
            for stream in direction.streams:
                found = spread_of(stream.delay_ns)
                values = [
                    found.min_ns,
                    found.median_ns,
                    found.p99_ns,
                    found.p999_ns,
                    found.max_ns,
                ]
                row = " ".join(plain(delay_ns(value)) for value in values)
                assert f"{found.count:,} {row}" in plain(text)


def test_floor_bound_and_definition_are_said(page: Page) -> None:
    text = plain(page.section("timing"))
    assert "from right before the tester's send call to right after the receive" in text
    assert "Forward : the tester's least share (floor) is 1.25 µs" in text
    assert "overstated by more than 38.5 µs" in text
    # The 99.9th percentiles, ends of buckets: 2,000 and 7,003 ns.
    assert "those of 998 in 1,000 frames by no more than 9.003 µs" in text
    assert "arrived before they left" not in text


def test_a_defect_of_the_clock_and_unplaced_frames_are_said(tmp_path: Path) -> None:
    results = timed_results()
    first = results.trials[0]
    forward, reverse = first.result.directions
    early = forward.streams[0].model_copy(update={"negative_delays": 3, "unplaced": 7})
    direction = forward.model_copy(update={"streams": [early, *forward.streams[1:]]})
    result = first.result.model_copy(update={"directions": [direction, reverse]})
    trials = [first.model_copy(update={"result": result})]
    spoilt = results.model_copy(update={"trials": trials})
    text = page_of(tmp_path / "r", spoilt).section("timing")
    assert "3 frames arrived before they left, a defect of the tester's clock" in text
    assert (
        "7 frames came so late that they could not be told apart from duplicates"
        in text
    )


def test_when_frames_were_lost_is_said_and_drawn(page: Page) -> None:
    text = plain(page.section("timing"))
    assert "Forward, foreground : 10,180 frames of 2,592,000 lost (0.393 %)" in text
    assert "all sent between 28.4 and 28.8 s" in text
    drawn = page.figures["time-1-forward"]["data"]
    lost = [trace for trace in drawn if trace["type"] == "bar"]
    assert sum(lost[0]["y"]) == sum(BURST.values())


def test_foreground_and_background_are_counted_apart(page: Page) -> None:
    text = plain(page.section("timing"))
    assert "forward foreground 2,592,000 2,581,820 10,180 0.393 %" in text
    assert "forward background 288,000 286,982 1,018 0.353 %" in text
    trials = plain(page.section("trials"))
    assert "11,198 foreground 10,180 background 1,018" in trials


def test_the_result_of_a_throughput_is_on_show_at_first(page: Page) -> None:
    cell = timed_results().cells[0]
    trials = tuple(t for t in timed_results().trials if t.cell == cell.id)
    (timing,) = timings_of([finished_cell(cell, trials)])
    assert timing.shown.record.number == 2
    assert [t.record.number for t in timing.trials] == [1, 2]
    assert {"trial-1", "trial-2", "trial-3"} <= page.ids
    assert {address.removeprefix("#") for address in page.loads} <= page.ids


def test_a_cell_that_only_failed_shows_its_last_trial() -> None:
    trials = tuple(trial(n, "throughput-x", 5_000, "fail") for n in (1, 2))
    cell = open_cell(trials[0], trials)
    (timing,) = timings_of([cell])
    assert timing.shown.record.number == 2


@pytest.mark.parametrize(("cells", "unfolded"), [(3, 3), (6, 1)])
def test_few_delay_cells_are_unfolded_at_once(cells: int, unfolded: int) -> None:
    views = [
        open_cell(first, (first,))
        for n in range(1, cells + 1)
        for first in [trial(n, f"pdv-{n}", 5_000, "pass", procedure="pdv")]
    ]
    assert sum(timing.open for timing in timings_of(views)) == unfolded


def test_many_trials_make_a_page_of_reasonable_size(tmp_path: Path) -> None:
    few, many = timed_results(), timed_results()
    again = [
        record.model_copy(update={"number": number})
        for number, record in enumerate([*many.trials[:2]] * 10, 1)
    ]
    sizes = []
    for name, trials in (("few", few.trials[:2]), ("many", again)):
        store(tmp_path / name, few.model_copy(update={"trials": trials}))
        sizes.append(write_report(tmp_path / name).stat().st_size)
    # Two directions with two streams each.
    assert (sizes[1] - sizes[0]) / 18 < 50_000
