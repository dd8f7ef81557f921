"""Delays in figures and curves, beside the same figures worked out the slow way."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from delay_sample import NOTHING, histogram, tags, two_modes, variation
from hypothesis import given
from hypothesis import strategies as st
from timed_sample import BURST_RUNS, timed_trial

from dutperf.charts.chart import SignedScale
from dutperf.charts.delay_charts import delay_charts, end_with_room, variation_charts
from dutperf.charts.delay_views import (
    MAX_POINTS,
    even_edges,
    marks_of,
    shares,
    slower_shares,
    spread_of,
    spread_of_tags,
)
from dutperf.charts.text import NBSP, delay_ns
from dutperf.protocol.result_messages import Histogram, TagResult

delays = st.lists(st.integers(0, 10**9), min_size=1, max_size=300)
signed = st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=300)


def written_out(found: Histogram) -> list[int]:
    """One number for each frame: the upper end of its bucket."""
    return [high for _, high, count in found.buckets for _ in range(count)]


def smallest_reaching(ordered: list[int], numerator: int, denominator: int) -> int:
    """RFC 2330 11.3, literally: the smallest x with F(x) >= p."""
    return next(
        value
        for value in ordered
        if denominator * sum(other <= value for other in ordered)
        >= numerator * len(ordered)
    )


@given(signed)
def test_a_tables_figures_are_those_of_all_frames_written_out(
    values: list[int],
) -> None:
    found = histogram((value, 1) for value in values)
    ordered = written_out(found)
    spread = spread_of(found)
    assert spread.count == len(values)
    assert (spread.min_ns, spread.max_ns) == (min(values), max(values))
    middle = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    assert spread.median_ns == sum(middle) / 2
    assert spread.p99_ns == smallest_reaching(ordered, 99, 100)
    assert spread.p999_ns == smallest_reaching(ordered, 999, 1000)


def test_nothing_received_has_no_delay() -> None:
    spread = spread_of(NOTHING)
    assert spread.count == 0
    assert spread.median_ns is spread.p999_ns is spread.min_ns is None


def test_lost_tags_are_infinitely_late() -> None:
    found = TagResult(lost=2, delays_ns=[30, None, 10, 20, None])
    spread = spread_of_tags(found)
    assert (spread.count, spread.min_ns, spread.median_ns) == (5, 10, 30)
    assert spread.p999_ns == spread.max_ns == math.inf
    assert delay_ns(spread.p999_ns) == "\N{INFINITY}"


@given(delays)
def test_the_curve_is_never_below_the_share_of_slower_frames(values: list[int]) -> None:
    found = histogram((value, 1) for value in values)
    points = slower_shares(found)
    frames = written_out(found)
    for (start, share), (end, _) in pairwise(points):
        assert start <= end
        slower = sum(frame > start for frame in frames)
        assert share >= slower / len(frames)


def test_a_curve_of_thousands_of_buckets_has_few_points_and_its_exact_tail() -> None:
    found = two_modes(3_000_000, 1)
    assert len(found.buckets) > 2_000
    points = slower_shares(found)
    assert len(points) <= MAX_POINTS
    ends = [high for _, high, _ in found.buckets]
    total = found.count
    exact = dict(points)
    # The last frames one by one, and the percentiles of the tables.
    left = 0
    for _, high, count in reversed(found.buckets[-30:]):
        assert exact[high] == left / total
        left += count
    spread = spread_of(found)
    assert {spread.median_ns, spread.p99_ns, spread.p999_ns} <= set(exact)
    # Nowhere off by more than a reader could see: 1 in 100 of the axis.
    width = math.log10(found.max or 1) - math.log10(found.min or 1)
    for (first, _), (second, _) in pairwise(points):
        between = [end for end in ends if first < end < second]
        skipped = sum(c for _, high, c in found.buckets if high in set(between))
        assert not between or (
            math.log10(between[-1] / max(first, 1)) < 0.02 * width
            or skipped < 0.02 * total
        )


@given(delays, st.integers(2, 40))
def test_a_histogram_shares_out_every_frame(values: list[int], bins: int) -> None:
    found = histogram((value, 1) for value in values)
    edges = even_edges(0, 9.1, bins)
    binned = shares(found, edges, lambda ns: math.log10(max(ns, 1)))
    assert sum(binned) == pytest.approx(1)


def test_a_histograms_bins_hold_what_lies_in_them() -> None:
    found = histogram([(10, 3), (50, 1), (200, 4)])
    binned = shares(found, even_edges(0, 3, 3), lambda ns: math.log10(max(ns, 1)))
    assert binned == [0, 0.5, 0.5]


def test_the_axis_of_variation_keeps_order_sign_and_a_place_for_zero() -> None:
    scale = SignedScale.around(2_000, 8_000_000)
    values = [-8_000_000, -1_000, -1, 0, 1, 1_000, 8_000_000]
    places = [scale(value) for value in values]
    assert places == sorted(places)
    assert scale(0) == 0
    assert scale(-5_000) == -scale(5_000)
    low, high = scale.ends
    assert low < places[0]
    assert places[-1] < high
    # What is typical lies in the linear part: one hump stays one.
    assert scale(2_000) == pytest.approx(2 * scale(1_000), rel=0.02)
    texts = scale.ticks()["ticktext"]
    assert f"0{NBSP}ns" in texts
    assert f"\N{MINUS SIGN}1{NBSP}ms" in texts


@pytest.mark.parametrize(
    ("places", "end"),
    [
        ([1, 2, 3], 10),
        # The last label is written to the left, into the gap.
        ([1, 2, 9], 10),
        # It cannot: the mark before it is too near.
        ([1, 8, 9], 9 / 0.55),
    ],
)
def test_an_axis_leaves_room_for_the_last_label(
    places: list[float], end: float
) -> None:
    assert end_with_room(places, 0, 10) == pytest.approx(end)


def test_marks_are_those_of_the_tagged_frames_if_there_are_any() -> None:
    plain, tagged = (
        timed_trial(1, 4_000, "pass"),
        timed_trial(2, 4_000, "pass", tagged=500),
    )
    names = [mark.label for mark in marks_of(plain.result.directions[0], None)]
    assert names == ["floor", "min", "median", f"99.9{NBSP}%"]
    direction = tagged.result.directions[1]
    marks = {mark.label: mark.ns for mark in marks_of(direction, None)}
    exact = direction.streams[0].tags
    assert exact
    ordered = sorted(delay for delay in exact.delays_ns if delay is not None)
    assert marks["TL"] == (ordered[249] + ordered[250]) / 2
    assert marks["WCL"] == ordered[-1]  # 500 tags: the 99.9th percentile is the largest
    assert marks["floor"] == direction.delay_floor_ns


def test_a_worst_case_that_was_lost_has_no_mark() -> None:
    trial = timed_trial(1, 4_000, "pass", tagged=500)
    labels = [mark.label for mark in marks_of(trial.result.directions[0], None)]
    assert "WCL" not in labels
    assert "TL" in labels


def test_the_charts_say_their_marks_in_words_and_share_their_axes() -> None:
    trial = timed_trial(1, 4_000, "pass", mixed=True, timeout_ns=10_000_000)
    forward, reverse = delay_charts(trial)
    for chart in (forward, reverse):
        for text in chart.layout["annotations"][:5]:
            label, value = text["text"].removesuffix("</b>").split(" <b>")
            assert f"{label} {value}" in chart.description
    assert f"timeout 10{NBSP}ms" in forward.description
    for axis in ("xaxis", "yaxis2"):
        assert forward.layout[axis]["range"] == reverse.layout[axis]["range"]
    # A line for each mark where its value is; labels of a logarithmic axis are its
    # logarithms.
    for shape, label in zip(
        forward.layout["shapes"], forward.layout["annotations"], strict=False
    ):
        assert math.log10(shape["x0"]) == pytest.approx(label["x"], abs=1e-3)


def test_a_timeout_far_above_all_delays_does_not_squeeze_them() -> None:
    trial = timed_trial(1, 4_000, "pass", timeout_ns=2_000_000_000)
    chart, _ = delay_charts(trial)
    assert 10 ** chart.layout["xaxis"]["range"][1] < 1e9


def test_no_curve_has_more_points_than_it_may() -> None:
    trial = timed_trial(1, 40_000, "pass", tagged=50_000, ipdv=True)
    for chart in [*delay_charts(trial), *variation_charts(trial)]:
        assert all(len(trace["x"]) <= MAX_POINTS for trace in chart.data)


def test_a_direction_without_a_received_frame_has_no_curve() -> None:
    trial = timed_trial(1, 4_000, "pass")
    silent = [
        d.model_copy(
            update={
                "streams": [
                    s.model_copy(update={"delay_ns": NOTHING}) for s in d.streams
                ]
            }
        )
        for d in trial.result.directions
    ]
    result = trial.result.model_copy(update={"directions": silent})
    assert delay_charts(trial.model_copy(update={"result": result})) == []


def test_variation_is_drawn_for_both_signs() -> None:
    forward, _ = variation_charts(timed_trial(1, 4_000, "pass", ipdv=True))
    (trace,) = forward.data
    assert min(trace["x"]) < 0 < max(trace["x"])
    assert "min \N{MINUS SIGN}" in forward.description
    assert variation_charts(timed_trial(1, 4_000, "pass")) == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (34_123.4, "34.12 µs"),
        (-193_240, "\N{MINUS SIGN}193.2 µs"),
        (0, "0 ns"),
        (999_960, "1 ms"),
        (None, "\N{EN DASH}"),
    ],
)
def test_a_delay_has_four_digits_and_its_sign(value: float | None, shown: str) -> None:
    assert delay_ns(value) == shown.replace(" ", NBSP)


def test_the_sample_has_the_shapes_it_speaks_of() -> None:
    spread = spread_of(two_modes(2_000_000, 1))
    assert spread.count == 2_000_000
    assert (spread.max_ns or 0) > 7_000_000 > 1_000_000 > (spread.p999_ns or 0)
    assert (variation(100_000, 1).min or 0) < 0
    assert tags(100, 1, [3]).delays_ns[3] is None
    assert BURST_RUNS.max == 9_000
