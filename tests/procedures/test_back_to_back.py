from __future__ import annotations

import itertools
import random
from collections import deque

import pytest
from planning import Recording, Tiring, cell, doubling, spoilt

from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.model.cell import Cell
from dutperf.procedures.back_to_back import LONGEST_WAIT_S, measure_back_to_back
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.trials import PATIENT_ATTEMPTS
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import CellResult
from dutperf.simulation.fake_engine import Dut, FakeEngine, buffered, fixed, perfect

RATE = 1_000_000
LINE = MaxRate(RATE, "media")


def frame_by_frame(queue: int, service_fps: int, rate_fps: int, frames: int) -> int:
    """``buffered``, slowly: how many of a burst's frames leave in the end."""
    leaving: deque[int] = deque()  # when, in units of 1 / (rate * service)
    passed = 0
    for frame in range(frames):
        now = frame * service_fps
        while leaving and leaving[0] <= now:
            leaving.popleft()
        if len(leaving) <= queue:
            begin = leaving[-1] if leaving else now
            leaving.append(begin + rate_fps)
            passed += 1
    return passed


def b2b_cell(**keys: object) -> Cell:
    given: dict[str, object] = {"throughput_fps": 200_000, "repeats": 1}
    return cell(procedure="back-to-back", **given | keys)


def measured(
    engine: FakeEngine, load: MaxRate = LINE, **keys: object
) -> tuple[CellResult, Recording]:
    recording = Recording(engine)
    return measure_back_to_back(recording.runner, b2b_cell(**keys), load), recording


def derived(result: CellResult) -> dict[str, float | None]:
    return {each.name: each.value for each in result.derived}


def bursts(recording: Recording) -> list[int]:
    return [
        record.request.frames(record.request.directions[0])
        for record in recording.records
    ]


def test_the_simulated_buffer_is_a_queue() -> None:
    draw = random.Random(9004)  # noqa: S311 - inputs of a test
    for _ in range(50):
        queue, service = draw.randrange(60), draw.randrange(1, 900_000)
        forward = buffered(queue, service)
        longest = max(n for n in range(1, 700) if forward(RATE, n) == n)
        slow = max(
            n for n in range(1, 700) if frame_by_frame(queue, service, RATE, n) == n
        )
        assert longest == slow


@pytest.mark.parametrize("queue", [0, 1, 63, 1000, 100_000])
def test_with_service_nearly_stopped_the_burst_is_the_buffer(queue: int) -> None:
    result, recording = measured(FakeEngine(buffered(queue, 1)), throughput_fps=1)
    assert (result.median, result.unit, result.verdict) == (queue + 1, "frames", "pass")
    assert result.bound is None
    assert {record.load_fps for record in recording.records} == {RATE}
    time_s = (queue + 1) / RATE
    assert derived(result)["implied buffer time"] == pytest.approx(time_s)
    assert derived(result)["corrected buffer time"] == pytest.approx(time_s, rel=1e-5)


def test_the_buffer_time_is_corrected_by_what_left_meanwhile() -> None:
    result, _ = measured(FakeEngine(buffered(1000, 200_000)))
    assert result.median == pytest.approx(1001 / 0.8, rel=0.002)
    found = derived(result)
    assert found["implied buffer time"] == pytest.approx(1251e-6, rel=0.002)
    assert found["corrected buffer time"] == pytest.approx(1001e-6, rel=0.002)
    assert found["throughput"] == 200_000


def first_frames(most: int) -> FakeEngine:
    """A device that forwards so many of each direction's frames, whatever they are."""
    return FakeEngine(
        perfect(),
        arrivals=lambda due: bytearray(n < most for n in range(len(due))),
    )


@pytest.mark.parametrize("percent", [0, 1, 10, 50])
def test_a_burst_has_the_frames_beside_the_stream_in_it(percent: int) -> None:
    """A router drops them, and none of them is lost."""
    traffic = {"broadcast_percent": percent} if percent else {}
    result, recording = measured(
        first_frames(1000), traffic=traffic, longest_burst_s=0.002
    )
    assert (result.median, result.verdict, result.bound) == (1000, "pass", None)
    assert derived(result)["implied buffer time"] == pytest.approx(1000 / RATE)
    assert 1000 in bursts(recording)


def test_frames_beside_the_stream_are_no_end_of_a_burst() -> None:
    """Of two frames one is beside it: number 1001 was not forwarded, 1002 was lost."""
    result, _ = measured(
        first_frames(1001), traffic={"broadcast_percent": 50}, longest_burst_s=0.002
    )
    assert result.median == 1002


def test_the_throughput_found_before_corrects() -> None:
    recording = Recording(FakeEngine(buffered(1000, 200_000)))
    asked = b2b_cell().with_keys(throughput_fps="throughput")
    load = MaxRate(500_000, "found", "the throughput", most=LINE)
    result = measure_back_to_back(recording.runner, asked, load)
    assert {record.load_fps for record in recording.records} == {RATE}
    found = derived(result)
    assert found["throughput"] == 500_000
    assert found["corrected buffer time"] == pytest.approx(626e-6, rel=0.002)


def test_without_a_throughput_nothing_is_corrected() -> None:
    recording = Recording(FakeEngine(buffered(1000, 200_000)))
    asked = b2b_cell().with_keys(throughput_fps="throughput")
    load = MaxRate(RATE, "media", shortfall="the throughput of x is not known")
    result = measure_back_to_back(recording.runner, asked, load)
    assert result.median == pytest.approx(1251, abs=1)
    assert derived(result)["corrected buffer time"] is None
    assert ("RFC 9004 5", "MUST") in {(d.rfc, d.level) for d in result.deviations}


def test_a_device_as_fast_as_the_bursts_takes_the_longest() -> None:
    result, recording = measured(
        FakeEngine(perfect()), throughput_fps=RATE, longest_burst_s=3
    )
    assert (result.median, result.bound, result.bound_cause) == (
        3_000_000,
        "lower",
        "set",
    )
    longest, no_overload = result.reasons
    assert (longest.code, no_overload.code) == ("max_rate", "max_rate")
    assert "3,000,000 frames" in longest.message
    assert "no more than the device's throughput" in no_overload.message
    assert derived(result)["corrected buffer time"] is None
    assert bursts(recording) == [3_000_000]


def test_the_average_of_all_searches_counts() -> None:
    sizes = iter([99, 299, 349])
    queue = 0

    def changing(rate_fps: float, frames: int) -> int:
        nonlocal queue
        if frames == 2 * RATE:  # a search begins with the longest burst
            queue = next(sizes)
        return buffered(queue, 1)(rate_fps, frames)

    result, _ = measured(
        FakeEngine(changing), throughput_fps=1, repeats=3, direction="forward"
    )
    assert [repeat.value for repeat in result.repeats] == [100, 300, 350]
    assert result.median == 250
    assert result.spread
    assert (result.spread.minimum, result.spread.maximum) == (100, 350)
    assert derived(result)["standard deviation"] == pytest.approx(132.29, abs=0.01)
    assert derived(result)["implied buffer time"] == pytest.approx(250e-6)


def test_each_search_begins_anew_and_has_no_trial_of_another() -> None:
    result, recording = measured(
        FakeEngine(buffered(99, 1)), throughput_fps=1, repeats=3
    )
    assert [repeat.value for repeat in result.repeats] == [100, 100, 100]
    assert derived(result)["standard deviation"] == 0
    counted = sum(repeat.trials for repeat in result.repeats)
    assert counted == len(recording.records)
    assert bursts(recording).count(2_000_000) == 3


def test_a_search_ends_within_its_step() -> None:
    fine, many = measured(FakeEngine(buffered(999, 1)), throughput_fps=1)
    coarse, few = measured(FakeEngine(buffered(999, 1)), throughput_fps=1, step="500")
    assert fine.median == 1000
    assert coarse.median is not None
    assert 500 <= coarse.median <= 1000
    assert len(few.records) < len(many.records)


def test_one_loss_of_a_burst_that_fits_decides_nothing() -> None:
    steady = buffered(999, 1)

    def losing_one_in(hiccup: int) -> Dut:
        calls = itertools.count(1)

        def forward(rate_fps: float, frames: int) -> int:
            passed = steady(rate_fps, frames)
            return passed - (next(calls) == hiccup and passed == frames)

        return forward

    for hiccup in range(1, 60):
        engine = FakeEngine(losing_one_in(hiccup))
        found, _ = measured(engine, throughput_fps=1, direction="forward")
        assert found.median == 1000, hiccup


def test_a_trial_that_the_tester_spoilt_is_run_again() -> None:
    spoils = spoilt("sender_lag", *range(2, 2 + PATIENT_ATTEMPTS - 1))
    result, _ = measured(
        FakeEngine(buffered(999, 1), troubles=spoils), throughput_fps=1
    )
    assert (result.median, result.verdict) == (1000, "pass")


def test_what_stays_spoilt_bounds_and_is_told() -> None:
    spoils = spoilt("clock_unstable", *range(14, 80))
    result, _ = measured(
        FakeEngine(buffered(100_000, 1), troubles=spoils), throughput_fps=1
    )
    assert result.verdict == "invalid"
    assert "clock_unstable" in {reason.code for reason in result.reasons}


def test_a_device_that_loses_all_takes_no_burst() -> None:
    result, _ = measured(FakeEngine(lambda _rate, _frames: 0), throughput_fps=1)
    assert (result.median, result.verdict) == (0, "fail")
    assert result.reasons[0].code == "nothing_passed"


def test_frames_that_arrive_twice_are_not_said_to_be_lost() -> None:
    result, _ = measured(doubling(FakeEngine(perfect())), throughput_fps=1)
    assert (result.median, result.verdict) == (0, "fail")
    nothing, twice = result.reasons
    assert (nothing.code, twice.code) == ("nothing_passed", "duplicates")
    assert "not even a single frame" not in nothing.message


def test_the_wait_after_a_burst_grows_with_what_its_frames_took() -> None:
    slow = FakeEngine(buffered(999, 1), delays=fixed(1_700_000_000))
    result, recording = measured(slow, throughput_fps=1, residual_wait_s=2)
    assert result.median == 1000
    waits = [record.request.residual_wait_ns / 1e9 for record in recording.records]
    assert waits[0] == 2
    # Frames came in the second half of the wait: the loss was not certain.
    assert bursts(recording)[:2] == [2_000_000, 2_000_000]
    assert all(wait_s == pytest.approx(2 + 3.4) for wait_s in waits[1:])


class Endless(FakeEngine):
    """Of a lost burst some frames come just before the trial ends."""

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        data = super().measure(trial, on_progress).model_dump()
        for direction in data["directions"]:
            for stream in direction["streams"]:
                stream["delay_ns"]["max"] = trial.residual_wait_ns - 1
        return TrialResult.model_validate(data)


def test_a_device_that_never_ends_is_no_result() -> None:
    result, recording = measured(Endless(buffered(999, 1)), throughput_fps=1)
    assert (result.median, result.verdict) == (None, "invalid")
    assert any("still arrived" in reason.message for reason in result.reasons)
    longest_s = max(r.request.residual_wait_ns for r in recording.records) / 1e9
    assert LONGEST_WAIT_S <= longest_s < 4 * LONGEST_WAIT_S


def test_what_the_tester_cannot_offer_lowers_the_rate_of_all_bursts() -> None:
    result, recording = measured(
        FakeEngine(buffered(999, 1), tester_limit_fps=600_000), throughput_fps=1
    )
    assert result.median == 1000
    rates = {record.load_fps for record in recording.records}
    assert rates == {RATE, 570_000}
    (told,) = [d for d in result.deviations if d.rfc == "RFC 9004 6.2"]
    assert told.level == "definition"
    assert "570,000 fps" in told.actual


def test_all_bursts_of_a_result_are_at_one_rate() -> None:
    result, recording = measured(
        Tiring(buffered(999, 1), {RATE - 1: 800_000}), throughput_fps=1, repeats=2
    )
    assert [repeat.value for repeat in result.repeats] == [1000, 1000]
    assert (result.verdict, result.median) == ("pass", 1000)
    first = recording.records[0].load_fps
    last = {record.load_fps for record in recording.records if record.repeat == 2}
    assert first == RATE
    assert last == {760_000}
    assert derived(result)["implied buffer time"] == pytest.approx(1000 / 760_000)
    assert result.parameters["max_load_fps"] == 760_000


def test_once_it_is_lowered_a_short_burst_can_be_offered_too() -> None:
    """All are made anew once, and not for each that is shorter and offered slower."""
    limits = {RATE // 100: 800_000, RATE // 200: 600_000, 1000: 400_000}
    engine = Tiring(buffered(999, 1), limits)
    result, recording = measured(engine, throughput_fps=1)
    assert (result.verdict, result.median) == ("pass", 1000)
    assert result.parameters["max_load_fps"] == 380_000
    longest = [f for f in bursts(recording) if f in (2 * RATE, 2 * 380_000)]
    assert longest == [2 * RATE, 2 * 380_000]


def test_at_line_rate_it_is_the_measure_of_the_rfc() -> None:
    result, _ = measured(FakeEngine(buffered(999, 1)), throughput_fps=1)
    assert "definition" not in {d.level for d in result.deviations}
    set_rate, _ = measured(
        FakeEngine(buffered(999, 1)), MaxRate(RATE, "set"), throughput_fps=1
    )
    assert "definition" in {d.level for d in set_rate.deviations}
