"""Cells of latency, PDV and IPDV, and results that are not the RFC's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from report_page import Page
from report_sample import (
    all_sizes,
    loss_cell,
    sample_environment,
    sample_results,
    store,
    throughput_cell,
)
from timed_sample import (
    delay_cell,
    delay_results,
    measure,
    timed_results,
    timed_trial,
)
from told_cells import cell_of, retyped

from dutperf.charts.cells import INVALID, MEASURED, finished_cell, open_cell
from dutperf.charts.loss_charts import frame_loss_chart
from dutperf.charts.rate_charts import frame_rate_chart, search_chart
from dutperf.charts.repeat_charts import repeats_chart
from dutperf.charts.text import NBSP, delay_ns
from dutperf.protocol.result_messages import Reason, VerdictKind
from dutperf.report import write_report
from dutperf.report.summary import headline
from dutperf.report.timing import cell_timeout_chart
from dutperf.results import CellResult, DirectionLoss, ResultsFile, TimeoutLoss
from dutperf.results.rate_results import Load

JUDGED = "frames within 10 ms, losing up to 0.01 %"


def page_of(path: Path, results: ResultsFile) -> Page:
    store(path, results, sample_environment())
    return Page(write_report(path).read_text())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(tmp_path_factory.mktemp("measures") / "r", delay_results())


def plain(text: str) -> str:
    return text.replace(NBSP, " ")


def test_every_measure_stands_in_the_results_with_percentiles_and_repeats(
    page: Page,
) -> None:
    summary, single = plain(page.section("summary")), plain(page.section("delays"))
    for cell in delay_results().cells[:3]:
        for found in cell.measures:
            values = sorted(f.value for f in found.repeats if f.value is not None)
            middle = plain(delay_ns((values[9] + values[10]) / 2))
            # Twenty repeats: p1 is the least, p99 the largest.
            ends = f"{plain(delay_ns(values[0]))} to {plain(delay_ns(values[-1]))}"
            assert f"{middle} {ends}" in summary
            assert f"{found.samples[0]:,}" in single
            for value in values:
                assert plain(delay_ns(value)) in single
    assert "20 repeats" in single
    assert "50,000 3 lost" in single
    assert "at least 1.25 µs (floor) and at most 41 µs (error bound)" in single


def test_a_latency_is_told_where_it_is_larger_and_for_each_direction() -> None:
    cell = delay_cell(
        "latency",
        [
            measure("TL", "forward", [30_000.0, 34_000.0]),
            measure("WCL", "forward", [190_000.0, 200_000.0]),
            measure("TL", "reverse", [40_000.0, 44_000.0]),
            measure("WCL", "reverse", [90_000.0, 92_000.0]),
        ],
    )
    shown = headline(finished_cell(cell, (timed_trial(1, 40_000, "pass"),)))
    assert (shown.value, shown.unit) == ("42", "µs")
    told = "Typical latency (TL), the larger of both directions, at 40,000 fps."
    assert plain(shown.caption) == told
    assert plain(shown.interval) == "Median of 2 repeats"
    assert [plain(line) for line in shown.lines] == [
        "forward: TL 32 µs, WCL 195 µs",
        "reverse: TL 42 µs, WCL 91 µs",
    ]


def test_an_infinite_latency_is_a_result_and_says_why() -> None:
    cell = delay_cell(
        "latency",
        [
            measure("TL", "forward", [30_000.0, 34_000.0]),
            measure("TL", "reverse", [None, None], lost=30_000),
        ],
    )
    assert cell.median is None
    view = finished_cell(cell, ())
    assert view.badge is MEASURED
    assert headline(view).value == "\N{INFINITY} (lost)"


@pytest.mark.parametrize("verdict", ["invalid", "fail"])
def test_a_delay_that_is_not_measured_has_no_figure(verdict: VerdictKind) -> None:
    cell = delay_cell("pdv", [measure("PDV", "forward", [123_457.0])])
    view = finished_cell(cell.model_copy(update={"verdict": verdict}), ())
    assert headline(view).value == "No result"
    assert view.measures == []
    nothing = cell.model_copy(update={"measures": [], "median": None})
    assert finished_cell(nothing, ()).badge is INVALID


@pytest.mark.parametrize("verdict", ["invalid", "fail"])
@pytest.mark.parametrize("results", [delay_results, timed_results, sample_results])
def test_the_page_stands_whatever_a_cells_verdict_is(
    tmp_path: Path, results: Callable[[], ResultsFile], verdict: VerdictKind
) -> None:
    """Some repeats of an invalid cell were measured all the same."""
    found = results()
    cells = [c.model_copy(update={"verdict": verdict}) for c in found.cells]
    page = page_of(tmp_path / "r", found.model_copy(update={"cells": cells}))
    assert "No result" in plain(page.section("glance"))


def test_an_average_is_not_called_a_median(tmp_path: Path) -> None:
    legacy = delay_cell(
        "latency",
        [measure("latency", "forward", [270_000.0, 200e6], samples=1, summary="mean")],
        rfc2544_latency=True,
    )
    results = delay_results().model_copy(update={"cells": [legacy], "trials": []})
    page = page_of(tmp_path / "r", results)
    assert "Latency (one tagged frame) IPv4, 64" in plain(page.section("glance"))
    assert "Latency mean" in page.section("summary")
    assert "100.1 ms" in plain(page.section("summary"))


def test_lost_tags_are_said_beside_each_repeat(tmp_path: Path) -> None:
    cell = delay_cell("latency", [measure("TL", "forward", [1.0, None], lost=3)])
    results = delay_results().model_copy(update={"cells": [cell], "trials": []})
    told = plain(page_of(tmp_path / "r", results).section("delays"))
    for figure in ("1 ns", "\N{INFINITY} (lost)"):
        assert f"{figure} 50,000 3 lost" in told


def test_each_repeat_is_a_dot_and_the_result_a_bar() -> None:
    cell = finished_cell(delay_results().cells[0], ())
    chart = repeats_chart(cell, 1)
    assert chart
    dots, bars = chart.data[::2], chart.data[1::2]
    assert [trace["y"][0] for trace in dots] == [
        "TL, forward",
        "TL, reverse",
        "WCL, forward",
        "WCL, reverse",
    ]
    drawn = {trace["y"][0]: trace["x"] for trace in dots}
    for found in cell.result.measures if cell.result else []:
        wanted = [figure.value for figure in found.repeats]
        assert drawn[f"{found.name}, {found.direction}"] == wanted
        assert [found.result.value] in [trace["x"] for trace in bars]
    few = delay_cell("pdv", [measure("PDV", "forward", [1_000.0, 2_000.0])])
    assert repeats_chart(finished_cell(few, ()), 1) is None
    assert (
        repeats_chart(finished_cell(throughput_cell("t", 4, 64, [1.0]), ()), 1) is None
    )


def test_signed_repeats_keep_their_side_of_zero() -> None:
    chart = repeats_chart(finished_cell(delay_results().cells[2], ()), 3)
    assert chart
    for trace in chart.data[::2]:
        name = trace["y"][0]
        assert all((x < 0) == ("max" not in name) for x in trace["x"])


def test_what_is_not_the_rfcs_measure_is_named_everywhere(page: Page) -> None:
    for section in ("glance", "summary", "searches", "tester", "timing"):
        assert JUDGED in plain(page.section(section)), section
    text = plain(page.section("summary"))
    assert "zero loss" not in text
    assert "must not be quoted without these words" in text
    names = [trace.get("name", "") for trace in page.figures["search-4"]["data"]]
    assert any(plain(name).startswith(f"throughput ({JUDGED})") for name in names)


def test_the_charts_of_several_cells_name_it_too() -> None:
    conditions = {"frame_timeout_ms": 10.0, "loss_tolerance_percent": 0.01}
    results = all_sizes()
    cells = [
        retyped(
            cell.model_copy(update={"parameters": {**cell.parameters, **conditions}})
        )
        for cell in results.cells
    ]
    rates = frame_rate_chart([finished_cell(cell, ()) for cell in cells])
    assert rates
    assert plain(rates.data[0]["name"]).endswith(JUDGED)
    curve = loss_cell("frame-loss", 4, 64, {100: 9.0, 90: 0.0})
    curve = retyped(
        curve.model_copy(update={"parameters": {**curve.parameters, **conditions}})
    )
    losses = frame_loss_chart([finished_cell(curve, ())])
    assert losses
    assert plain(losses.data[0]["name"]).endswith("frames within 10 ms")


def test_an_unfinished_cell_is_named_by_its_trials() -> None:
    first = timed_trial(1, 40_000, "pass", timeout_ns=10_000_000)
    cell = open_cell(first, (first,))
    assert plain(cell.title) == "Throughput (frames within 10 ms), IPv4, 64 bytes"
    assert search_chart(cell, 1).description.endswith(cell.title)


def test_a_result_by_the_book_has_no_such_words() -> None:
    cell = finished_cell(throughput_cell("t", 4, 64, [1.0]), ())
    assert cell.judged == ""
    assert plain(cell.title) == "Throughput, IPv4, 64 bytes"


def test_a_sweep_of_timeouts_is_drawn_and_told(page: Page) -> None:
    text = plain(page.section("searches"))
    assert "41,000 fps per direction 11.4 % 0.02 % 0 % 1" in text
    assert "Within 100 µs" in text
    (line,) = page.figures["timeouts-4"]["data"]
    assert line["customdata"] == [11.4, 0.02, 0.0]


def test_a_loss_curves_sweep_has_a_line_for_each_load(tmp_path: Path) -> None:
    cell = loss_cell("frame-loss-1", 4, 64, {100: 9.0, 90: 1.0})
    swept = [
        point.model_copy(
            update={
                "timeouts": [
                    TimeoutLoss(timeout_ns=t, loss_percent=loss, repeats=[loss])
                    for t, loss in ((1_000_000, 12.0), (10_000_000, point.loss_percent))
                ]
            }
        )
        for point in cell.points
    ]
    cell = cell.model_copy(update={"points": swept})
    chart = cell_timeout_chart(finished_cell(cell, ()), 1)
    assert chart
    assert {plain(t["name"]): t["y"] for t in chart.data} == {
        "100 % load": [12.0, 9.0],
        "90 % load": [12.0, 1.0],
    }
    results = delay_results().model_copy(update={"cells": [cell], "trials": []})
    text = plain(page_of(tmp_path / "r", results).section("losses"))
    assert "100 % 12 % 9 % 1 90 % 12 % 1 % 1" in text


def test_a_curve_tells_each_directions_loss_beside_that_of_both(tmp_path: Path) -> None:
    cell = loss_cell("frame-loss", 4, 64, {100: 9.0, 90: 1.0})
    directions = [
        DirectionLoss(direction="forward", loss_percent=12.5, repeats=[12.5]),
        DirectionLoss(direction="reverse", loss_percent=5.5, repeats=[5.5]),
    ]
    first = cell.points[0].model_copy(update={"directions": directions})
    cell = cell.model_copy(update={"points": [first, *cell.points[1:]]})
    results = delay_results().model_copy(update={"cells": [cell], "trials": []})
    text = plain(page_of(tmp_path / "r", results).section("losses"))
    assert "Forward of its frames Reverse of its frames" in text
    assert "9 % 12.5 % 5.5 % 1 of 1 1" in text


def test_a_load_that_was_found_says_where_it_is_from(tmp_path: Path) -> None:
    results = delay_results()
    load = Load(
        rate_fps=20_000,
        asked="throughput",
        cell="throughput-ip4-64-both",
        words="the throughput found: median of 20 repeats",
    )
    cells = [cell.model_copy(update={"load": load}) for cell in results.cells[:1]]
    page = page_of(tmp_path / "r", results.model_copy(update={"cells": cells}))
    told = "the throughput found: median of 20 repeats"
    assert told in page.section("glance")
    assert f"20,000 fps per direction , {told}" in plain(page.section("delays"))
    assert "#throughput-ip4-64-both" in page.loads


def test_a_cell_for_which_nothing_was_sent_says_why(tmp_path: Path) -> None:
    results = delay_results()
    reason = Reason(
        code="no_throughput",
        message="nothing was sent: the throughput of x is 0",
        hint="see why in x",
    )
    empty = CellResult(
        id="latency-ip4-64-both-at-throughput",
        procedure="latency",
        quantity="latency at throughput: not measured",
        cell=cell_of("latency", {"rate_fps": "throughput"}),
        parameters={"rate_fps": "throughput"},
        median=None,
        unit="ns",
        repeats=[],
        verdict="invalid",
        reasons=[reason],
    )
    spoilt = results.model_copy(update={"cells": [empty], "trials": []})
    page = page_of(tmp_path / "r", spoilt)
    for section in ("glance", "delays"):
        assert "nothing was sent: the throughput of x is 0" in page.section(section)
