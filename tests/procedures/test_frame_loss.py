from __future__ import annotations

import itertools

import pytest
from planning import Recording, cell, spoilt

from dutperf.procedures.frame_loss import measure_frame_loss
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.tester_limit import MAX_LOWERINGS
from dutperf.procedures.trials import ATTEMPTS, PATIENT_ATTEMPTS
from dutperf.protocol.result_messages import ReasonCode
from dutperf.results import CellResult
from dutperf.results.bounds import spread_of
from dutperf.simulation.fake_engine import Dut, FakeEngine, perfect, step
from dutperf.standards import Deviation

MAX = MaxRate(1_000_000, "media")


def measured(engine: FakeEngine, **keys: object) -> tuple[CellResult, Recording]:
    recording = Recording(engine)
    loss_cell = cell(procedure="frame-loss", trial_duration_s=60, **keys)
    return measure_frame_loss(recording.runner, loss_cell, MAX), recording


def curve(result: CellResult) -> dict[float, float | None]:
    return {point.load_percent: point.loss_percent for point in result.points}


def test_the_curve_ends_after_two_successive_lossless_loads() -> None:
    result, _ = measured(FakeEngine(step(800_000)))
    assert curve(result) == pytest.approx({100: 20, 90: 100 / 9, 80: 0, 70: 0})
    assert (result.verdict, result.unit) == ("pass", "percent")
    assert result.median == pytest.approx(20)


def test_a_single_lossless_load_does_not_end_the_curve() -> None:
    def good_at_70_only(rate_fps: float, frames: int) -> int:
        return frames if rate_fps == 700_000 else frames // 2

    result, _ = measured(FakeEngine(good_at_70_only))
    assert list(curve(result)) == [100, 90, 80, 70, 60, 50, 40, 30, 20, 10]


@pytest.mark.parametrize(
    "keys",
    [{"load_step_percent": 5}, {"load_percent": [100.0 - 5 * n for n in range(20)]}],
)
def test_finer_steps_end_after_two_lossless_loads_too(keys: dict[str, object]) -> None:
    result, recording = measured(FakeEngine(step(875_000)), **keys)
    assert list(curve(result)) == [100, 95, 90, 85, 80]
    assert recording.loads_fps[1:3] == [950_000, 900_000]
    assert "RFC 2544 26.3" not in {d.rfc for d in result.deviations}


def test_a_list_of_loads_is_measured_as_it_is() -> None:
    result, recording = measured(FakeEngine(perfect()), load_percent=[10, 50, 30])
    assert curve(result) == {50: 0, 30: 0, 10: 0}
    assert recording.loads_fps == [500_000, 300_000, 100_000]


def test_loss_is_the_median_over_the_repeats() -> None:
    shares = iter([0.5, 0.9, 0.8])

    def changing() -> Dut:
        return lambda _rate, frames: int(frames * next(shares))

    result, recording = measured(
        FakeEngine(changing()), repeats=3, load_percent=[100], direction="forward"
    )
    assert result.median == pytest.approx(20)
    assert [record.repeat for record in recording.records] == [1, 2, 3]


def test_each_direction_has_its_own_loss_beside_the_sum() -> None:
    shares = iter([0.5, 0.9, 0.75, 0.9, 0.5, 1.0])
    engine = FakeEngine(lambda _rate, frames: int(frames * next(shares)))
    result, _ = measured(engine, repeats=3, load_percent=[100])
    (point,) = result.points
    assert {d.direction: d.loss_percent for d in point.directions} == {
        "forward": pytest.approx(50),
        "reverse": pytest.approx(10),
    }
    assert point.directions[0].repeats == pytest.approx([50, 25, 50])
    assert point.directions[1].repeats == pytest.approx([10, 10, 0])
    assert [r.value for r in point.repeats] == pytest.approx([30, 17.5, 25])


def test_an_invalid_repeat_has_no_loss_in_any_direction() -> None:
    engine = FakeEngine(step(500_000), troubles=spoilt("receiver_overflow", 1, 2, 3))
    result, _ = measured(engine, repeats=2, load_percent=[100])
    assert [d.repeats for d in result.points[0].directions] == [
        [None, pytest.approx(50)],
        [None, pytest.approx(50)],
    ]
    engine = FakeEngine(step(500_000), troubles=spoilt("receiver_overflow", 1, 2, 3))
    result, _ = measured(engine, load_percent=[100])
    assert result.points[0].directions == []


def test_one_direction_is_the_sum() -> None:
    result, _ = measured(FakeEngine(step(800_000)), direction="forward")
    assert all(point.directions == [] for point in result.points)


def test_an_invalid_trial_is_run_three_times_at_most() -> None:
    troubles = spoilt("receiver_overflow", 2, 3, 4)
    engine = FakeEngine(step(1), troubles=troubles)
    result, recording = measured(engine, load_percent=[100, 50])
    assert [record.attempt for record in recording.records] == [1, 1, 2, 3]
    assert curve(result)[50] is None
    assert result.verdict == "invalid"
    assert [reason.code for reason in result.reasons] == ["receiver_overflow"]


def test_what_no_rate_changes_ends_the_curve_after_three_attempts() -> None:
    engine = FakeEngine(step(1), troubles=spoilt("link_down", *range(2, 500)))
    result, recording = measured(engine, repeats=2)
    assert len(recording.records) == 4
    assert list(curve(result)) == [100]
    assert result.verdict == "invalid"


def test_an_invalid_first_trial_counts_as_an_attempt() -> None:
    engine = FakeEngine(perfect(), troubles={1: "link_changed"})
    result, recording = measured(engine, load_percent=[100])
    assert [record.attempt for record in recording.records] == [1, 2]
    assert (result.verdict, result.points[0].repeats[0].trials) == ("pass", 2)


def test_an_invalid_load_between_lossless_ones_does_not_end_the_curve() -> None:
    troubles = spoilt("receiver_overflow", 2, 3, 4)
    result, _ = measured(FakeEngine(perfect(), troubles=troubles))
    assert curve(result) == {100: 0, 90: None, 80: 0, 70: 0}


def test_what_the_tester_cannot_offer_becomes_100_percent_and_a_deviation() -> None:
    result, recording = measured(FakeEngine(perfect(), tester_limit_fps=400_000))
    assert recording.loads_fps == [1_000_000, 1_000_000, 380_000, 342_000]
    assert curve(result) == {100: 0, 90: 0}
    assert result.verdict == "pass"
    assert result.parameters["max_load_fps"] == 380_000
    assert result.parameters["max_load_is"] == "tester"
    assert "380,000 fps" in result.quantity
    assert result.deviations[-1] == Deviation(
        rfc="RFC 2544 26.3",
        requirement=f"100 % is {MAX.words}, 1,000,000 fps per direction",
        actual="100 % is 380,000 fps, 95% of what the tester could offer (maximum "
        "offered load, RFC 2285 3.5.3)",
        level="SHOULD",
    )


def test_what_the_tester_can_offer_stands_for_the_media_where_nothing_is_above() -> (
    None
):
    loss_cell = cell(procedure="frame-loss", trial_duration_s=60)
    limit = MaxRate(400_000, "tester")
    result = measure_frame_loss(
        Recording(FakeEngine(perfect())).runner, loss_cell, limit
    )
    told = result.deviations[-1]
    assert told.requirement == "100 % is the maximum rate of the media"
    assert told.actual.startswith("100 % is 400,000 fps")


def test_no_load_is_less_than_a_frame_a_second() -> None:
    loss_cell = cell(
        procedure="frame-loss", trial_duration_s=60, load_percent=[100, 50, 10]
    )
    recording = Recording(FakeEngine(step(0)))
    measure_frame_loss(recording.runner, loss_cell, MaxRate(5, "media"))
    assert recording.loads_fps == [5, 2, 1]
    slow = Recording(FakeEngine(step(0), tester_limit_fps=1))
    measure_frame_loss(slow.runner, loss_cell, MaxRate(5, "media"))
    assert slow.loads_fps == [5, 5, 1]


def test_what_another_trial_would_only_say_again_is_not_repeated() -> None:
    troubles = spoilt("unexpected_address", *range(1, 100))
    result, recording = measured(FakeEngine(perfect(), troubles=troubles))
    assert result.verdict == "invalid"
    assert len(recording.records) == 1
    assert "100 % (1,000,000 fps), 1 trial: none" in result.deviations[-1].actual


def test_each_trial_is_of_its_repeat() -> None:
    troubles = spoilt("receiver_overflow", 2)
    keys = {"load_percent": [100], "repeats": 3}
    _, recording = measured(FakeEngine(perfect(), troubles=troubles), **keys)
    assert [record.repeat for record in recording.records] == [1, 2, 2, 3]


def test_repeats_that_have_no_common_loss_are_told() -> None:
    shares = itertools.cycle([0.5, 0.9])

    def changing() -> Dut:
        return lambda _rate, frames: int(frames * next(shares))

    keys = {"load_percent": [100], "repeats": 8, "direction": "forward"}
    result, _ = measured(FakeEngine(changing()), **keys)
    assert [finding.kind for finding in result.findings] == ["modes"]
    assert result.spread is not None
    assert result.spread == result.points[0].spread == spread_of([50.0, 10.0] * 4)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({}, False),  # down to 10 %, as the RFC has it
        ({"load_percent": [100]}, False),  # that it is a single load is told
        ({"load_percent": [100, 90]}, True),
    ],
)
def test_that_a_curve_ends_in_loss_is_told_of_a_list_of_loads(
    keys: dict[str, object], told: bool
) -> None:
    result, _ = measured(FakeEngine(step(0)), **keys)
    asked = [deviation.requirement for deviation in result.deviations]
    assert ("down to two successive loads without loss" in asked) == told


def test_a_list_of_loads_that_ends_in_loss_is_told_with_its_lowest_two() -> None:
    keys = {"load_percent": [100, 90, 80], "direction": "forward"}
    result, _ = measured(FakeEngine(step(850_000)), **keys)
    assert curve(result)[80] == 0
    one_way, in_loss = result.deviations
    assert one_way.requirement == "bidirectional traffic"
    assert in_loss == Deviation(
        rfc="RFC 2544 26.3",
        requirement="down to two successive loads without loss",
        actual="the lowest loads, 90 %, 80 %, are not both without loss",
        level="SHOULD",
    )
    lossless, _ = measured(FakeEngine(step(950_000)), load_percent=[100, 90, 80])
    assert "without loss" not in str(lossless.deviations)


def test_one_stall_at_the_highest_load_is_not_the_testers_limit() -> None:
    engine = FakeEngine(perfect(), troubles=spoilt("sender_behind", 1))
    result, recording = measured(engine)
    assert recording.loads_fps == [1_000_000, 1_000_000, 900_000]
    assert curve(result) == {100: 0, 90: 0}
    assert result.parameters["max_load_is"] == "media"
    assert [r.trials for point in result.points for r in point.repeats] == [2, 1]


def test_a_tester_whose_limit_falls_for_ever_is_invalid_in_the_end() -> None:
    class Sinking(FakeEngine):
        def _too_fast(self, _rate_fps: int) -> bool:
            return True

    result, recording = measured(
        Sinking(perfect(), tester_limit_fps=400_000), load_percent=[100]
    )
    assert result.verdict == "invalid"
    # Two trials at each maximum; at the last one both count as attempts.
    assert len(recording.records) == 2 * MAX_LOWERINGS + ATTEMPTS
    assert result.points[0].repeats[0].trials == ATTEMPTS


@pytest.mark.parametrize(
    ("code", "attempts"),
    [
        ("sender_behind", ATTEMPTS),  # these agree on what the tester can offer
        ("sender_burst", PATIENT_ATTEMPTS),
    ],
)
def test_a_load_that_only_stalls_of_the_tester_spoil_is_a_gap(
    code: ReasonCode, attempts: int
) -> None:
    troubles = spoilt(code, *range(3, 3 + attempts))
    loads = [100, 90, 80, 70]
    engine = FakeEngine(step(850_000), troubles=troubles)
    result, recording = measured(engine, load_percent=loads)
    assert len(recording.records) == len(loads) + attempts - 1
    assert curve(result) == pytest.approx({100: 15, 90: 5 / 0.9, 80: None, 70: 0})
    assert result.verdict == "pass"
    assert result.median == pytest.approx(15)
    assert [reason.code for reason in result.reasons] == [code]
    assert result.deviations[-1] == Deviation(
        rfc="RFC 2544 26.3",
        requirement="the loss at every load",
        actual=f"not reported at 80 % (800,000 fps), {attempts} trials: none of them "
        "was valid",
        level="SHOULD",
    )


def test_one_trial_more_than_the_stalls_fills_the_gap() -> None:
    troubles = spoilt("sender_burst", *range(2, 1 + PATIENT_ATTEMPTS))
    engine = FakeEngine(step(850_000), troubles=troubles)
    result, _ = measured(engine, load_percent=[100, 90, 80])
    assert curve(result) == pytest.approx({100: 15, 90: 5 / 0.9, 80: 0})
    assert result.points[1].repeats[0].trials == PATIENT_ATTEMPTS
    assert "every load" not in str(result.deviations)


def test_a_gap_at_the_highest_load_leaves_the_headline_to_the_next() -> None:
    troubles = spoilt("sender_burst", *range(1, 1 + PATIENT_ATTEMPTS))
    engine = FakeEngine(step(800_000), troubles=troubles)
    result, _ = measured(engine)
    assert curve(result) == pytest.approx({100: None, 90: 100 / 9, 80: 0, 70: 0})
    assert result.verdict == "pass"
    assert result.median == pytest.approx(100 / 9)
    assert result.quantity.startswith("frame loss at 90 % of")
    assert len(result.repeats) == 1
    assert result.repeats[0].value == pytest.approx(100 / 9)


def test_a_curve_of_gaps_is_no_curve() -> None:
    troubles = spoilt("receiver_lag", *range(2, 2 + PATIENT_ATTEMPTS))
    engine = FakeEngine(step(800_000), troubles=troubles)
    result, _ = measured(engine, load_percent=[100, 90])
    assert curve(result)[90] is None
    assert result.verdict == "invalid"


@pytest.mark.parametrize("repeats", [2, 3])
def test_a_repeat_that_stalls_spoilt_is_told_beside_the_others(repeats: int) -> None:
    troubles = spoilt("sender_lag", *range(2, 2 + PATIENT_ATTEMPTS))
    engine = FakeEngine(step(800_000), troubles=troubles)
    result, _ = measured(engine, load_percent=[100], repeats=repeats)
    assert result.verdict == "pass"
    assert result.median == pytest.approx(20)
    assert result.deviations[-1].actual == (
        f"not reported at 100 % (1,000,000 fps) in 1 of {repeats} repeats, 6 trials: "
        "none of them was valid"
    )


def test_what_else_spoils_a_load_beside_stalls_spoils_the_curve() -> None:
    troubles = spoilt("sender_lag", 4, 5) | spoilt("receiver_overflow", 6)
    engine = FakeEngine(step(800_000), troubles=troubles)
    result, _ = measured(engine, load_percent=[100, 90, 80, 70])
    assert result.points[3].repeats[0].trials == 3
    assert result.verdict == "invalid"
