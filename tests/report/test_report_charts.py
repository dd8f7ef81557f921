"""What the charts show, as plotly.js is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_sample import (
    LOSSES_4,
    LOSSES_6,
    all_sizes,
    loss_cell,
    on_media,
    sample_results,
    throughput_cell,
    trial,
)

from dutperf.charts.cells import CellView, finished_cell
from dutperf.charts.chart import Chart
from dutperf.charts.loss_charts import frame_loss_chart, loss_around_chart
from dutperf.charts.rate_charts import _top, frame_rate_chart, search_chart
from dutperf.protocol.base import line_rate_fps
from dutperf.protocol.result_messages import VerdictKind
from dutperf.results import ResultsFile, TrialRecord
from dutperf.results.rate_results import Load

NAME = "throughput-ip4-64-both"


def views(results: ResultsFile) -> list[CellView]:
    return [
        finished_cell(cell, tuple(t for t in results.trials if t.cell == cell.id))
        for cell in results.cells
    ]


def searched(
    loads: Sequence[tuple[int, VerdictKind]], value: float | None, repeats: int = 1
) -> CellView:
    trials = [
        trial(number, NAME, load, verdict, repeat=repeat)
        for repeat in range(1, repeats + 1)
        for number, (load, verdict) in enumerate(loads, 1)
    ]
    verdict: VerdictKind = "invalid" if value is None else "pass"
    cell = throughput_cell(NAME, 4, 64, [value] * repeats, verdict)
    return finished_cell(cell, tuple(trials))


def marks(chart: Chart) -> dict[str, tuple[list[int], list[float]]]:
    """Positions and heights of the trials, by verdict."""
    found = [trace for trace in chart.data if trace["mode"] == "markers"]
    return {t["name"].partition(":")[0]: (t["x"], t["y"]) for t in found}


def labels(chart: Chart) -> list[str]:
    return [label["text"] for label in chart.layout["annotations"]]


def slow_top(loads: list[int]) -> float:
    """Try every load as the highest one shown, from the lowest."""
    for highest in sorted(loads):
        inside = [load for load in loads if load <= highest]
        above = [load for load in loads if load > highest]
        if len(above) <= len(inside) and (not above or min(above) > 3 * highest):
            return 1.15 * highest
    raise AssertionError


@pytest.mark.parametrize(
    ("loads", "highest_shown"),
    [
        ([300], 300),
        ([300, 300], 300),
        ([100, 200, 300], 300),
        ([1_000, 500, 250, 125], 1_000),
        ([14_880, 620, 310, 465], 620),
        ([14_880, 14_880, 620, 310], 620),
        ([50_000, 14_880, 620, 310], 620),
        # Two outliers close to each other: neither sets the scale.
        ([40_000, 14_880, 620, 310], 620),
        ([14_880, 600, 100], 600),
        # Three repeats.
        ([14_880, 620, 310] * 3, 620),
        # One low trial does not push the many above it off the scale.
        ([10, 500, 510, 520], 520),
    ],
)
def test_rates_far_above_the_others_do_not_set_the_scale(
    loads: list[int], highest_shown: int
) -> None:
    assert _top(loads) == pytest.approx(1.15 * highest_shown)


@given(st.lists(st.integers(1, 200), min_size=1, max_size=12))
def test_the_scale_is_that_of_the_obvious_way(loads: list[int]) -> None:
    assert _top(loads) == pytest.approx(slow_top(loads))


def test_the_result_is_never_off_the_scale() -> None:
    assert _top([10, 20, 500, 510], 500) > 500


def test_an_off_scale_trial_stands_at_the_edge_with_its_figure() -> None:
    cell = searched([(14_880_952, "fail"), (800, "fail"), (400, "pass")], 400)
    chart = search_chart(cell, 1)
    lowest, top = chart.layout["yaxis"]["range"]
    positions, heights = marks(chart)["fail"]
    assert positions == [1, 2]
    assert heights[0] == pytest.approx(0.97 * top)
    assert heights[1] == 800
    assert lowest == 0
    assert labels(chart) == ["\u2191 14,880,952"]


def test_neighbours_off_the_scale_share_one_label() -> None:
    loads: list[tuple[int, VerdictKind]] = [
        (14_880_952, "invalid"),
        (14_880_952, "invalid"),
        (7_440_476, "fail"),
        (800, "fail"),
        (400, "pass"),
        (500, "pass"),
    ]
    chart = search_chart(searched(loads, 500), 1)
    assert labels(chart) == ["\u2191 14,880,952, 7,440,476"]
    assert chart.layout["annotations"][0]["x"] == 3


def test_further_repeats_point_up_without_the_figure() -> None:
    loads: list[tuple[int, VerdictKind]] = [
        (14_880_952, "fail"),
        (800, "fail"),
        (400, "pass"),
    ]
    chart = search_chart(searched(loads, 400, repeats=3), 1)
    assert labels(chart) == ["\u2191 14,880,952", "\u2191", "\u2191"]
    # Near the right edge there is room on the left only.
    assert [a["xanchor"] for a in chart.layout["annotations"]] == [
        "left",
        "left",
        "right",
    ]
    assert [shape["x0"] for shape in chart.layout["shapes"]] == [3.5, 6.5]


def test_trials_on_the_scale_have_no_label() -> None:
    assert labels(search_chart(searched([(800, "fail"), (400, "pass")], 400), 1)) == []


def test_each_trial_is_one_mark_of_its_verdict() -> None:
    for number, cell in enumerate(views(sample_results())[:2], 1):
        drawn = marks(search_chart(cell, number))
        for kind, (positions, heights) in drawn.items():
            wanted = [
                (position, record.load_fps)
                for position, record in enumerate(cell.trials, 1)
                if record.result.verdict.kind == kind
            ]
            assert list(zip(positions, heights, strict=True)) == wanted
        assert sum(len(x) for x, _ in drawn.values()) == len(cell.trials)


def test_no_line_of_a_result_is_drawn_without_one() -> None:
    cell = searched([(800, "invalid"), (400, "pass")], None)
    names = [trace["name"] for trace in search_chart(cell, 1).data]
    assert not any(name.startswith("throughput") for name in names)


def test_the_band_ends_with_the_bounds_the_search_reached() -> None:
    cell = searched([(1_000, "fail"), (500, "pass"), (750, "invalid")], 500)
    (band,) = [t for t in search_chart(cell, 1).data if t.get("fill") == "toself"]
    last = [y for x, y in zip(band["x"], band["y"], strict=True) if x == 3.5]
    assert (min(last), max(last)) == (500, 1_000)


def loss_lines(chart: Chart | None) -> list[dict[str, Any]]:
    assert chart is not None
    return chart.data


def test_a_loss_curve_has_both_axes_from_0_to_100_percent() -> None:
    chart = frame_loss_chart(views(sample_results()))
    assert chart is not None
    assert chart.layout["xaxis"]["range"] == [0, 100]
    assert chart.layout["yaxis"]["range"] == [0, 100]


def test_a_loss_curve_goes_through_every_point() -> None:
    drawn = loss_lines(frame_loss_chart(views(sample_results())))
    for line, losses in zip(drawn, (LOSSES_4, LOSSES_6), strict=True):
        assert line["x"] == sorted(losses)
        assert line["y"] == [losses[load] for load in sorted(losses)]


def test_a_point_that_is_not_valid_is_a_gap() -> None:
    cell = finished_cell(
        loss_cell("frame-loss", 4, 64, {100: 10.0, 90: None, 80: 0.0}), ()
    )
    (line,) = loss_lines(frame_loss_chart([cell]))
    assert line["y"] == [0.0, None, 10.0]
    assert line["connectgaps"] is False


def test_there_is_no_loss_chart_without_a_valid_point() -> None:
    cell = finished_cell(loss_cell("frame-loss", 4, 64, {100: None, 90: None}), ())
    assert frame_loss_chart([cell]) is None
    assert frame_loss_chart([]) is None


def around(throughput_fps: int) -> CellView:
    """A curve whose 100 % is the throughput."""
    curve = loss_cell("frame-loss", 4, 64, {150: 20.0, 100: 0.0})
    load = Load(rate_fps=throughput_fps, asked="throughput", words="the throughput")
    return finished_cell(curve.model_copy(update={"load": load}), ())


def test_a_curve_around_the_throughput_is_in_fps_and_shows_where_that_is() -> None:
    plain = finished_cell(loss_cell("frame-loss", 4, 64, {100: 9.0}), ())
    cell = around(123_456)
    chart = loss_around_chart([plain, cell])
    assert chart is not None
    (line,) = loss_lines(chart)
    assert line["x"] == [point.load_fps for point in cell.curve]
    assert line["y"] == [0.0, 20.0]
    assert "123,456" in line["name"]
    assert [shape["x0"] for shape in chart.layout["shapes"]] == [123_456]
    assert chart.layout["yaxis"]["range"][1] > 20
    assert len(loss_lines(frame_loss_chart([plain, cell]))) == 1
    assert loss_around_chart([plain]) is None


def test_a_curve_without_any_loss_has_an_axis_too() -> None:
    cell = around(1000)
    lossless = [p.model_copy(update={"loss_percent": 0.0}) for p in cell.result.points]  # type: ignore[union-attr]
    result = cell.result.model_copy(update={"points": lossless})  # type: ignore[union-attr]
    chart = loss_around_chart([finished_cell(result, ())])
    assert chart is not None
    assert chart.layout["yaxis"]["range"][1] > 0


def test_the_frame_rate_chart_has_the_medium_and_the_measured_line() -> None:
    results = on_media(all_sizes())
    chart = frame_rate_chart(views(results))
    assert chart is not None
    medium, measured = chart.data
    sizes = [cell.parameters["frame_size"] for cell in results.cells]
    assert measured["x"] == sizes
    assert measured["y"] == [cell.median for cell in results.cells]
    assert medium["y"] == [line_rate_fps(10_000, int(size)) for size in measured["x"]]


def test_no_theoretical_line_is_drawn_for_virtual_links() -> None:
    chart = frame_rate_chart(views(all_sizes()))
    assert chart is not None
    assert len(chart.data) == 1


def test_one_frame_size_makes_no_line() -> None:
    assert frame_rate_chart(views(sample_results())) is None


def test_a_cell_without_result_is_left_out_of_the_frame_rates() -> None:
    results = all_sizes()
    spoilt = results.cells[3].model_copy(update={"verdict": "invalid"})
    cells = [*results.cells[:3], spoilt, *results.cells[4:]]
    chart = frame_rate_chart(views(results.model_copy(update={"cells": cells})))
    assert chart is not None
    assert 512 not in chart.data[0]["x"]
    assert len(chart.data[0]["x"]) == 6


def test_a_hover_tells_what_was_sent_lost_and_why() -> None:
    records: list[TrialRecord] = [trial(1, NAME, 1_000, "fail", lost=20, attempt=2)]
    cell = finished_cell(throughput_cell(NAME, 4, 64, [500.0]), tuple(records))
    (mark,) = [t for t in search_chart(cell, 1).data if t["mode"] == "markers"]
    (text,) = mark["hovertext"]
    assert "trial 1, attempt 2: fail" in text
    assert "intended 1,000 fps per direction" in text
    assert "lost: 20 frames (1\N{NO-BREAK SPACE}%)" in text
    assert "the DUT lost frames" in text
