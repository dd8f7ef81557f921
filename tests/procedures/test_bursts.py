"""Bursts (RFC 2544 21): when their frames are due, and the interval that is found."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import pytest
from captures import timed_capture
from planning import TESTBED, Recording, campaign, cell, spec

from dutperf.config import expand
from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.traffic import MOST_BURST_FRAMES
from dutperf.procedures.bursts import (
    beside_bursts,
    burst_steps,
    captured_steps,
    shaped_trials,
)
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.throughput import measure_throughput
from dutperf.procedures.trials import Ask
from dutperf.protocol.result_messages import Histogram, TrialResult
from dutperf.protocol.stream_messages import RateStep
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import CellResult
from dutperf.run.local_executor import measure_cell
from dutperf.simulation.fake_engine import FakeEngine, perfect, queueing

NS = 10**9
PEAK = MaxRate(20_000, "media")
SERVICE_FPS, QUEUE = 10_000, 100


def behind(queue: int) -> FakeEngine:
    return FakeEngine(perfect(), arrivals=queueing(queue, SERVICE_FPS))


def bursty(frames: int, **keys: object) -> Cell:
    given = {"trial_duration_s": 0.5, "resolution": "2%", "max_rate_fps": PEAK.rate_fps}
    return cell(**given | {"traffic": {"burst_frames": frames}} | keys)


def measured(
    frames: int, engine: FakeEngine | None = None, **keys: object
) -> tuple[CellResult, Recording]:
    recording = Recording(engine or behind(QUEUE))
    asked = bursty(frames, **keys)
    trials = shaped_trials(recording.runner, asked, PEAK)
    found = measure_throughput(trials, asked, PEAK)
    return beside_bursts(found, asked, PEAK), recording


# --- when frames are due


def due_in(steps: Sequence[RateStep], *, between: bool = False) -> list[Fraction]:
    """When the frames of one period are due, as the engine's schedule has it."""
    due: list[Fraction] = []
    begin_ns = 0
    for step in steps:
        interval = Fraction(NS, step.rate_fps) if step.rate_fps else Fraction(0)
        first = begin_ns + (interval / 2 if between else 0)
        due += [first + number * interval for number in range(step.frames)]
        begin_ns += step.duration_ns
    return due


@pytest.mark.parametrize("between", [False, True])
def test_frames_of_a_capture_are_due_at_its_times(between: bool) -> None:
    generator = random.Random(7)  # noqa: S311 - a fixed seed
    for _ in range(200):
        gaps_ns = [generator.choice([1, 999, 1000, 1001, 10**6, 3 * NS, 10**13])]
        gaps_ns += [generator.randint(1, 10**9) for _ in range(generator.randint(0, 9))]
        times_ns = [0, *accumulate(gaps_ns)]
        of = timed_capture(*times_ns)
        own_fps = of.own_fps(4)
        assert own_fps
        assert own_fps == Fraction(len(gaps_ns) * NS, times_ns[-1])
        for rate_fps in {max(1, round(own_fps)), generator.randint(1, 10**6)}:
            stretch = 1 if rate_fps == round(own_fps) else own_fps / rate_fps
            steps = captured_steps(of, 4, rate_fps)
            due = due_in(steps, between=between)
            assert len(due) == len(times_ns)
            for at, wanted in zip(due, times_ns, strict=True):
                assert abs(at - wanted * stretch) <= 501 + len(times_ns)
            period = Fraction(sum(step.duration_ns for step in steps))
            assert abs(period - len(times_ns) * NS / own_fps * stretch) <= len(times_ns)


def test_frames_of_one_time_are_sent_one_after_the_other() -> None:
    steps = captured_steps(timed_capture(0, 0, 0, 4000), 4, 750_000)
    assert due_in(steps) == [0, 1, 2, 4000]
    assert sum(step.duration_ns for step in steps) == 5333


def test_each_burst_is_whole_and_begins_on_time() -> None:
    generator = random.Random(21)  # noqa: S311 - a fixed seed
    for _ in range(300):
        frames = generator.choice([2, 16, 64, 256, 1024])
        peak_fps = generator.randint(1000, 150_000_000)
        rate_fps = generator.randint(1, peak_fps)
        steps = burst_steps(frames, rate_fps, peak_fps)
        if not steps:
            assert frames * NS // peak_fps + 1 >= frames * NS // rate_fps
            continue
        at_ns = 0
        for number, step in enumerate(steps):
            if number % 2 == 0:
                due = Fraction(number // 2 * frames * NS, rate_fps)
                assert abs(at_ns - due) <= 1
                assert (step.rate_fps, step.frames) == (peak_fps, frames)
            else:
                assert step.rate_fps == 0
            at_ns += step.duration_ns
        periods = Fraction(len(steps) // 2 * frames * NS, rate_fps)
        assert abs(at_ns - periods) < Fraction(1, 64) * len(steps)
        assert abs(at_ns / periods - 1) < Fraction(1, 10**3 * frames)


def test_the_longest_burst_may_come_at_the_lowest_load() -> None:
    """The pause is then longer than a trial, and still one that the engine takes."""
    for peak_fps in (1_000, 148_809_523):
        burst, pause = burst_steps(MOST_BURST_FRAMES, 1, peak_fps)
        assert burst.frames == MOST_BURST_FRAMES
        assert pause.duration_ns > 86_400 * NS


def test_a_load_that_leaves_no_pause_is_one_stream() -> None:
    assert burst_steps(64, 20_000, 20_000) == []
    assert burst_steps(64, 30_000, 20_000) == []


def test_a_trial_has_whole_bursts_as_often_as_its_load_has_them() -> None:
    recording = Recording(FakeEngine(perfect()))
    trials = shaped_trials(recording.runner, bursty(64), PEAK)
    record = trials.run(Ask(bursty(64), 8_000))
    (stream,) = record.result.directions[0].streams
    assert record.load_fps == 8_000
    assert stream.sent == 63 * 64  # the last one begins before half a second is over
    assert {d.rate_fps for d in record.request.directions} == {PEAK.rate_fps}


# --- what is found


def test_a_buffer_that_takes_the_burst_lets_the_service_rate_through() -> None:
    result, _ = measured(64)
    assert result.median is not None
    assert result.median == pytest.approx(SERVICE_FPS, rel=0.04)
    interval, pause = result.derived
    assert interval.value == pytest.approx(64 / result.median)
    assert pause.value == pytest.approx(64 / result.median - 64 / PEAK.rate_fps)
    assert interval.bound is None
    assert "in bursts of 64 (RFC 2544 21)" in result.quantity
    assert result.parameters["burst_rate_fps"] == PEAK.rate_fps


def test_a_burst_that_no_buffer_takes_passes_at_no_interval() -> None:
    longest = QUEUE * 2  # half of a burst leaves while it comes
    assert measured(longest)[0].median
    result, _ = measured(longest * 2)
    assert result.median in (None, 0)
    assert result.derived[0].value is None


def test_an_interval_that_no_trial_can_tell_is_none() -> None:
    """Two bursts of 4,000 frames take half a second above what is forwarded."""
    result, recording = measured(4_000, behind(2_100))
    codes = {r.code for each in recording.records for r in each.result.verdict.reasons}
    assert "too_short" in codes
    assert result.verdict == "invalid" or result.bound == "lower"


def late_by_a_ms(engine: FakeEngine) -> FakeEngine:
    """Its tester does not keep up within bursts."""
    measure = engine.measure

    def late(
        trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        result = measure(trial, on_progress)
        lag = Histogram(count=10, min=0, max=2**21, buckets=[(2**20, 2**21, 10)])
        directions = [d.model_copy(update={"lag_ns": lag}) for d in result.directions]
        return result.model_copy(update={"directions": directions})

    engine.measure = late  # type: ignore[method-assign]
    return engine


def test_times_of_a_capture_that_were_not_kept_are_none() -> None:
    times_ns = [n * 10**6 for n in range(8)]
    asked = cell(procedure="frame-loss", trial_duration_s=0.5, max_rate_fps=1000)
    captured = asked.traffic.model_copy(update={"pcap": timed_capture(*times_ns)})
    told = asked.spec.model_copy(update={"traffic": [captured]})
    asked = asked.model_copy(update={"spec": told})
    for engine, kind in (
        (FakeEngine(perfect()), "pass"),
        (late_by_a_ms(FakeEngine(perfect())), "invalid"),
    ):
        trials = shaped_trials(Recording(engine).runner, asked, PEAK)
        record = trials.run(Ask(asked, 1000))
        assert record.result.verdict.kind == kind
        (sent,) = {d.streams[0].sent for d in record.result.directions}
        assert sent == 500


def test_bursts_that_took_too_long_are_no_bursts() -> None:
    engine = late_by_a_ms(FakeEngine(perfect(), arrivals=queueing(QUEUE, 4_000)))
    result, recording = measured(16, engine)
    told = {
        (r.result.verdict.kind, r.load_fps < PEAK.rate_fps) for r in recording.records
    }
    assert told == {("fail", False), ("fail", True), ("invalid", True)}
    spoilt = [r for r in recording.records if r.result.verdict.kind == "invalid"]
    said = str(spoilt[0].result.verdict)
    assert "most bursts took longer than 800 us" in said
    assert result.verdict == "invalid"


def test_a_given_load_is_sent_in_bursts_at_the_highest_rate() -> None:
    asked = cell(
        procedure="latency",
        max_rate_fps=PEAK.rate_fps,
        traffic={"burst_frames": 16},
        trial_duration_s=0.5,
        rate_fps=1_000,
        first_tag_s=0,
        tags=10,
        repeats=1,
    )
    recording = Recording(FakeEngine(perfect()))
    result = measure_cell(recording.runner, asked, MaxRate(1_000, "load"))
    (record,) = (r for r in recording.records if r.role == "trial")
    assert record.request.directions[0].rate_fps == PEAK.rate_fps
    assert result.parameters["burst_rate_fps"] == PEAK.rate_fps
    assert result.derived == []


# --- what is refused


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"procedure": "back-to-back"}, "must be left out of back-to-back"),
        ({"procedure": "system-recovery"}, "must be left out of system-recovery"),
        ({"procedure": "outage", "rate_fps": 1000}, "must be left out of outage"),
        (
            {"procedure": "connection-rate", "stateful": {"connections": 1000}},
            "connection-rate.*measure throughput, frame-loss or delays on open",
        ),
        (
            {"procedure": "pdv", "rate_fps": 100, "trial_duration_s": 70},
            "16384 is too many: a trial of 70 s at 100 fps",
        ),
        ({"traffic": {"burst_frames": 1}}, "2"),
    ],
)
def test_bursts_without_meaning_are_refused(keys: dict[str, object], said: str) -> None:
    given = {"traffic": {"burst_frames": 16384}} | keys
    with pytest.raises(InputError) as refused:
        cell(**given)
    assert re.search(said, f"{refused.value.message} {refused.value.hint}")


def test_profiles_that_differ_in_bursts_are_cells_of_their_own() -> None:
    profiles = [{"burst_frames": frames} for frames in (16, 64)]
    ids = [c.id for c in expand(campaign(spec(traffic=profiles)), TESTBED)]
    assert ids == [f"throughput-ip4-64-both-bursts{n}" for n in (16, 64)]
