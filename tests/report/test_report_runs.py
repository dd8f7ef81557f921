"""When frames were lost, and how many in a row."""

from __future__ import annotations

from typing import Any

import pytest
from delay_sample import NOTHING, histogram, series
from hypothesis import given
from hypothesis import strategies as st
from timed_sample import BURST, INTERVALS, timed_trial

from dutperf.charts.chart import Chart
from dutperf.charts.loss_charts import (
    MAX_INTERVALS,
    intervals_of,
    loss_sentence,
    run_classes,
)
from dutperf.charts.text import NBSP
from dutperf.charts.time_charts import runs_chart, tag_times_s, time_charts
from dutperf.protocol.result_messages import Series
from dutperf.protocol.trial_messages import tagged_frames
from dutperf.report.timing import trial_timeout_chart

MS = 1_000_000


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=2_000
    )
)
def test_thinning_loses_no_frame_and_no_loss(pairs: list[tuple[int, int]]) -> None:
    sent = [good + bad for good, bad in pairs]
    found = Series(interval_ns=MS, sent=sent, received=[good for good, _ in pairs])
    intervals = intervals_of(found, len(sent) * MS)
    assert len(intervals) <= MAX_INTERVALS
    assert sum(i.sent for i in intervals) == sum(sent)
    assert sum(i.lost for i in intervals) == sum(bad for _, bad in pairs)
    # Every lost frame is in the interval in which it was sent.
    for index, (_, bad) in enumerate(pairs):
        at_s = (index + 0.5) / 1_000
        (home,) = [i for i in intervals if i.start_s <= at_s < i.end_s]
        assert home.lost >= bad


def test_a_last_interval_that_the_trial_cuts_short_has_its_real_length() -> None:
    found = Series(interval_ns=100 * MS, sent=[10, 10, 5], received=[10, 10, 5])
    lengths = [round(i.seconds, 6) for i in intervals_of(found, 250 * MS)]
    assert lengths == [0.1, 0.1, 0.05]


def bars(chart: Chart) -> list[dict[str, Any]]:
    return [trace for trace in chart.data if trace["type"] == "bar"]


def test_the_burst_stands_where_its_frames_were_sent() -> None:
    trial = timed_trial(1, 48_000, "fail", BURST)
    forward, reverse = time_charts(trial)
    (lost,) = bars(forward)
    # 600 intervals of 100 ms, two of them a bar; frames 28.4 to 28.8 s.
    assert dict(zip(lost["x"], lost["y"], strict=True)) == {
        28.5: BURST[284] + BURST[285],
        28.7: BURST[286] + BURST[287],
    }
    assert [data[:2] for data in lost["customdata"]] == [[28.4, 28.6], [28.6, 28.8]]
    (none,) = bars(reverse)
    assert none["y"] == [0]
    assert f"frames lost in 200{NBSP}ms" in [
        a["text"] for a in forward.layout["annotations"]
    ]
    assert forward.layout["yaxis2"]["range"] == reverse.layout["yaxis2"]["range"]


def test_foreground_and_background_loss_are_drawn_apart() -> None:
    trial = timed_trial(1, 48_000, "fail", BURST, mixed=True)
    foreground, background = bars(time_charts(trial)[0])
    assert sum(foreground["y"]) == sum(BURST.values())
    assert sum(background["y"]) == sum(count // 10 for count in BURST.values())
    assert foreground["marker"]["color"] != background["marker"]["color"]


def test_without_loss_no_room_is_spent_on_it() -> None:
    chart, _ = time_charts(timed_trial(1, 4_000, "pass"))
    assert bars(chart) == []
    assert "yaxis2" not in chart.layout


def test_a_loss_is_told_in_words() -> None:
    trial = timed_trial(1, 48_000, "fail", BURST)
    stream = trial.result.directions[0].streams[0]
    assert loss_sentence(stream, 48_000).replace(NBSP, " ") == (
        "10,180 frames of 2,880,000 lost (0.353 %) in 4 of 600 intervals of 100 ms, "
        "all sent between 28.4 and 28.8 s; in 114 runs, the longest 9,000 in a row "
        "(188 ms)."
    )
    kept = trial.result.directions[1].streams[0]
    assert loss_sentence(kept, 48_000) == "no frame was lost."


def test_single_losses_are_called_that() -> None:
    trial = timed_trial(1, 48_000, "fail", {3: 2})
    stream = trial.result.directions[0].streams[0]
    single = stream.model_copy(update={"loss_runs": histogram([(1, 2)])})
    assert "; never two in a row." in loss_sentence(single, 48_000)


@given(st.lists(st.integers(1, 100_000), max_size=60))
def test_runs_are_counted_by_powers_of_two(lengths: list[int]) -> None:
    classes = run_classes(histogram((length, 1) for length in lengths))
    assert sum(one.runs for one in classes) == len(lengths)
    for one in classes:
        assert one.runs == sum(one.lowest <= n <= one.highest for n in lengths)
    assert [one.lowest for one in classes] == [2**k for k in range(len(classes))]


def test_every_class_of_runs_has_its_bar() -> None:
    chart = runs_chart(timed_trial(1, 48_000, "fail", BURST))
    assert chart
    (trace,) = chart.data
    counted = dict(zip(trace["x"], trace["text"], strict=True))
    assert counted["1"] == "97"
    assert counted["2"] == "15"
    assert counted["8,192"] == "1"
    assert counted["16"] == ""
    assert runs_chart(timed_trial(1, 4_000, "pass")) is None


@pytest.mark.parametrize(("rate_fps", "count"), [(16, 7), (17, 499), (10, 1)])
def test_tags_stand_at_the_time_their_frames_were_due(
    rate_fps: int, count: int
) -> None:
    """The slow way, as the protocol says it."""
    trial = timed_trial(1, rate_fps, "pass", tagged=count)
    plan = trial.request.record.tags
    assert plan
    direction = trial.request.directions[0]
    total = trial.request.frames(direction)
    tagged = tagged_frames(
        plan,
        frames=total,
        duration_ns=trial.request.duration_ns,
        seed=trial.request.seed,
        stream=direction.streams[0].id,
    )
    due = [frame * trial.request.duration_ns / total / 1e9 for frame in tagged]
    found = tag_times_s(trial.request, direction, plan)
    assert found == pytest.approx(due)
    assert min(found) >= plan.first_ns / 1e9 - 1 / direction.rate_fps
    assert max(found) < 60


def test_the_longest_delay_of_tags_and_every_lost_one_are_shown() -> None:
    trial = timed_trial(1, 40_000, "pass", tagged=50_000)
    tags = trial.result.directions[0].streams[0].tags
    assert tags
    chart, _ = time_charts(trial)
    dots = [trace for trace in chart.data if trace.get("mode") == "markers"]
    (lost,) = [t for t in dots if t["marker"].get("symbol") == "x"]
    _, longest = [t for t in dots if t is not lost]
    assert max(longest["y"]) == max(d for d in tags.delays_ns if d)
    assert len(lost["x"]) == 1  # the three lost ones are neighbours
    assert 44 < lost["x"][0] < 46


def test_loss_over_timeout_counts_lost_and_slower_frames() -> None:
    trial = timed_trial(1, 48_000, "fail", BURST)
    chart = trial_timeout_chart(trial)
    assert chart
    for trace, direction in zip(chart.data, trial.result.directions, strict=True):
        (stream,) = direction.streams
        wanted = [100 * (stream.lost + s.frames) / stream.sent for s in stream.slower]
        assert trace["customdata"] == wanted
        assert trace["x"] == [100_000, MS, 10 * MS]
    # None were lost or later than 10 ms in reverse; a logarithm has no zero.
    assert chart.data[1]["customdata"][-1] == 0
    assert chart.layout["yaxis"]["ticktext"][0] == f"0{NBSP}%"
    assert chart.data[1]["y"][-1] == pytest.approx(chart.layout["yaxis"]["tickvals"][0])


def test_one_timeout_makes_no_line() -> None:
    trial = timed_trial(1, 4_000, "pass")
    few = [
        d.model_copy(
            update={
                "streams": [
                    s.model_copy(update={"slower": s.slower[:1]}) for s in d.streams
                ]
            }
        )
        for d in trial.result.directions
    ]
    result = trial.result.model_copy(update={"directions": few})
    assert trial_timeout_chart(trial.model_copy(update={"result": result})) is None


def test_the_samples_series_hold_every_frame() -> None:
    found = series(2_400_000, BURST, INTERVALS, 100 * MS)
    assert sum(found.sent) == 2_400_000
    assert sum(found.lost) == sum(BURST.values())
    assert run_classes(NOTHING) == []
