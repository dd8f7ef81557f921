"""The arithmetic of simulated devices, against going through every frame."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from planning import TESTBED, cell

from dutperf.protocol.result_messages import Histogram, StreamResult
from dutperf.protocol.stream_messages import DirectionRequest, Mix, StreamRequest
from dutperf.protocol.trial_messages import Record, TagPlan, TrialRequest, tagged_frames
from dutperf.run.trial_request import trial_request
from dutperf.simulation.fake_engine import (
    Delays,
    FakeEngine,
    every,
    fixed,
    jitter,
    jump,
    lossy,
    perfect,
    sometimes,
    step,
)
from dutperf.simulation.simulated_devices import bucket

MS = 1_000_000
DELAYS: dict[str, Delays] = {
    "fixed": fixed(20_000),
    "jitter": jitter(1, 5 * MS),
    "every": every(10, 1000 * MS),
    "sometimes": sometimes(10, MS),
    "jump": jump(3 * MS),
}


def stream(identity: int, name: str = "foreground") -> StreamRequest:
    return StreamRequest.model_validate(
        {
            "id": identity,
            "name": name,
            "ip_version": 4,
            "frame_sizes": [64],
            "received_frame_sizes": [64],
            "src_ip": "198.18.0.2",
            "dst_ip": "198.19.0.2",
            "next_hop": "198.18.0.1",
        }
    )


def trial(rate_fps: int = 2345, **keys: object) -> TrialRequest:
    """One second; three of four frames are the foreground's."""
    record = Record(
        frame_timeouts_ns=[MS, 10 * MS],
        tags=TagPlan(first_ns=500 * MS, count=50),
        ipdv=True,
        fine_delays=True,
    )
    forward = DirectionRequest(
        name="forward",
        rate_fps=rate_fps,
        streams=[stream(0), stream(1, "background")],
        mix=Mix(foreground=3, of=4),
    )
    request = TrialRequest(
        trial_id=1, duration_ns=1000 * MS, record=record, directions=[forward]
    )
    return request.model_copy(update=keys)


def streams(engine: FakeEngine, request: TrialRequest) -> list[StreamResult]:
    return engine.measure(request).directions[0].streams


def slow_histogram(values: list[int], bits: int, origin: int = 0) -> Histogram:
    around = (bucket(value - origin, bits) for value in values)
    ends = Counter((origin + low, origin + high) for low, high in around)
    least, most = min(values), max(values)
    return Histogram(
        count=len(values),
        min=least,
        max=most,
        buckets=[
            (max(low, least), min(high, most), n) for (low, high), n in ends.items()
        ],
    )


@pytest.mark.parametrize("name", DELAYS)
@pytest.mark.parametrize("limit_fps", [2345, 2000, 900])
def test_all_that_is_recorded_agrees_with_every_frame(
    name: str, limit_fps: int
) -> None:
    request = trial(frame_timeout_ns=2 * MS)
    pattern = DELAYS[name](1)
    for result in streams(FakeEngine(step(limit_fps), delays=DELAYS[name]), request):
        delays = [pattern.delay_ns(i, result.sent) for i in range(result.received)]
        changes = [b - a for a, b in pairwise(delays)]
        expected = slow_histogram(delays, 10, min(delays))
        expected.buckets.sort()
        assert result.delay_ns == expected
        assert result.ipdv_ns is not None
        assert sorted(result.ipdv_ns.buckets) == sorted(
            slow_histogram(changes, 10).buckets
        )
        assert result.late == sum(delay > 2 * MS for delay in delays)
        assert [s.frames for s in result.slower] == [
            sum(delay > limit for delay in delays) for limit in (MS, 10 * MS)
        ]
        assert sum(result.series.sent) == result.sent
        assert sum(result.series.received) == result.received
        assert result.loss_runs.max == (result.lost or None)


def test_tags_are_frames_of_the_foreground_and_lost_with_them() -> None:
    first, second = streams(FakeEngine(step(1900), delays=every(3, MS)), trial())
    plan = TagPlan(first_ns=500 * MS, count=50)
    numbers = tagged_frames(
        plan, frames=1759, duration_ns=1000 * MS, seed=1, stream=first.id
    )
    assert (first.sent, second.tags) == (1759, None)
    assert len(set(numbers)) == 50
    assert first.tags is not None
    assert first.tags.delays_ns == [
        None if n >= first.received else 20_000 + MS * (n % 3 == 2) for n in numbers
    ]
    assert first.tags.lost == sum(n >= first.received for n in numbers) > 0


def test_frames_are_lost_in_the_intervals_at_the_end() -> None:
    (result, _) = streams(FakeEngine(step(1500)), trial(2000))
    assert result.series.sent == [150] * 10
    assert result.series.lost == [0] * 7 + [75, 150, 150]


@pytest.mark.parametrize(
    ("value", "bits", "ends"),
    [
        (0, 5, (0, 0)),
        (63, 5, (63, 63)),
        (64, 5, (64, 65)),
        (250_017, 5, (249_856, 253_951)),
        (1055, 5, (1024, 1055)),
        (2047, 10, (2047, 2047)),
        (2048, 10, (2048, 2049)),
        (-64, 5, (-65, -64)),
    ],
)
def test_buckets_are_the_engines(value: int, bits: int, ends: tuple[int, int]) -> None:
    assert bucket(value, bits) == ends


@pytest.mark.parametrize(
    ("slow", "tolerance_ppb", "kind", "codes"),
    [
        (500, 0, "fail", ["frames_late"]),
        (500, 2_000_000, "pass", []),
        (499, 2_000_000, "fail", ["frames_late"]),
    ],
)
def test_late_frames_fail_a_trial_beyond_the_tolerance(
    slow: int, tolerance_ppb: int, kind: str, codes: list[str]
) -> None:
    """Of 998 frames one is late with every 500th; with every 499th two."""
    request = trial(998, frame_timeout_ns=MS, loss_tolerance_ppb=tolerance_ppb)
    alone = DirectionRequest(name="forward", rate_fps=998, streams=[stream(0)])
    request = request.model_copy(update={"directions": [alone]})
    verdict = FakeEngine(step(998), delays=every(slow, MS)).measure(request).verdict
    assert (verdict.kind, [r.code for r in verdict.reasons]) == (kind, codes)


def test_lost_and_late_frames_are_both_said() -> None:
    request = trial(frame_timeout_ns=MS)
    verdict = FakeEngine(step(2000), delays=every(10, MS)).measure(request).verdict
    assert [r.code for r in verdict.reasons] == ["frames_lost", "frames_late"]
    assert verdict.reasons[0].message == "forward: 345 of 2345 frames lost"


@pytest.mark.parametrize("frames", [1_000_000, 100_000_000])
def test_random_loss_is_about_its_share(frames: int) -> None:
    lose = lossy(100)
    mean = sum(frames - lose(1.0, frames) for _ in range(20)) / 20
    assert mean == pytest.approx(frames * 1e-4, rel=0.1)


def test_random_devices_differ_by_trial_and_not_by_run() -> None:
    first, second = (DELAYS["sometimes"](trial) for trial in (1, 2))
    assert first != second
    assert first == sometimes(10, MS)(1)


def hopeless(rate_fps: int = 1000, **keys: object) -> TrialRequest:
    """Ten seconds of one stream, both ways, that end when they are lost."""
    there = DirectionRequest(name="forward", rate_fps=rate_fps, streams=[stream(0)])
    back = DirectionRequest(name="reverse", rate_fps=rate_fps, streams=[stream(1)])
    request = TrialRequest(
        trial_id=1,
        duration_ns=10_000 * MS,
        stop_when_lost=True,
        directions=[there, back],
    )
    return request.model_copy(update=keys)


@pytest.mark.parametrize(
    ("limit_fps", "tolerance_ppb", "end_s"),
    [
        (999, 0, 1.0),  # 10 of 10,000 frames, the first after half a second
        (500, 0, 0.6),
        (500, 10**8, 2.6),  # 1000 frames are half of what two seconds send
        (500, 499_999_999, 10),  # it would end anyway
        (500, 5 * 10**8, 10),  # tolerated
        (1000, 0, 10),
    ],
)
def test_a_lost_trial_ends_when_half_a_second_told_so(
    limit_fps: int, tolerance_ppb: int, end_s: float
) -> None:
    request = hopeless(loss_tolerance_ppb=tolerance_ppb)
    result = FakeEngine(step(limit_fps)).measure(request)
    whole = FakeEngine(step(limit_fps)).measure(hopeless(stop_when_lost=False))
    assert result.ended_early == (end_s < 10)
    assert result.total_ns == whole.total_ns - 10_000 * MS + end_s * 1e9
    lost_share = 1 - limit_fps / 1000
    assert (result.verdict.kind == "fail") == (lost_share > tolerance_ppb / 1e9)
    for direction in result.directions:
        (only,) = direction.streams
        assert (only.intended, only.sent) == (10_000, 1000 * end_s)
        assert only.lost == pytest.approx(only.sent * lost_share, abs=1)
        assert direction.sending_ns == end_s * 1e9
        assert len(only.series.sent) == 100
        assert sum(only.series.sent) == only.sent


def test_late_frames_end_a_trial_as_lost_ones_do() -> None:
    request = hopeless(frame_timeout_ns=MS, loss_tolerance_ppb=10**7)
    result = FakeEngine(step(1000), delays=every(10, 5 * MS)).measure(request)
    assert (result.ended_early, result.verdict.kind) == (True, "fail")
    # 101 late frames are the most that 1010 frames have.
    assert [d.streams[0].sent for d in result.directions] == [1600, 1600]


def test_frames_that_only_seemed_lost_fail_nobody() -> None:
    slow = every(10, 1000 * MS)
    stopped = FakeEngine(step(1000), delays=slow).measure(hopeless())
    assert stopped.ended_early
    assert stopped.verdict.kind == "invalid"
    assert [r.code for r in stopped.verdict.reasons] == ["stopped_in_error"]
    whole = FakeEngine(step(1000), delays=slow).measure(hopeless(stop_when_lost=False))
    assert (whole.ended_early, whole.verdict.kind) == (False, "pass")


def test_tags_of_frames_that_were_not_sent_are_not_lost() -> None:
    plan = TagPlan(first_ns=500 * MS, count=95)
    record = Record(tags=plan)
    tagged = tagged_frames(
        plan, frames=10_000, duration_ns=10_000 * MS, seed=1, stream=0
    )
    result = FakeEngine(step(500)).measure(hopeless(record=record))
    (first, _) = (d.streams[0] for d in result.directions)
    assert first.tags is not None
    assert (first.sent, first.received) == (600, 300)
    assert first.tags.delays_ns == [None] * sum(frame < 600 for frame in tagged)
    assert first.tags.lost == 1


def test_verdicts_are_the_same_whether_trials_are_stopped_or_not() -> None:
    """Of 20 trials, each losing two frames on average; the device draws as often."""
    kinds = []
    for request in (hopeless(), hopeless(stop_when_lost=False)):
        engine = FakeEngine(lossy(100, seed=3))
        kinds.append([engine.measure(request).verdict.kind for _ in range(20)])
    assert kinds[0] == kinds[1]
    assert kinds[0].count("fail") == 16


def test_a_tester_that_falls_behind_is_not_stopped() -> None:
    result = FakeEngine(step(500), tester_limit_fps=900).measure(hopeless())
    assert not result.ended_early
    assert [r.code for r in result.verdict.reasons] == ["sender_behind"]


def test_a_trial_that_is_stopped_tells_what_it_sent_and_passes() -> None:
    engine = FakeEngine(perfect())
    trial = trial_request(TESTBED, cell(), 10_000, 1, 2)
    engine.stop()  # nothing runs
    assert not engine.measure(trial).ended_early
    stopped = engine.measure(trial, lambda _progress: engine.stop())
    assert (stopped.ended_early, stopped.verdict.kind) == (True, "pass")
    for way in stopped.directions:
        (stream,) = way.streams
        assert (stream.sent, stream.received, stream.lost) == (10_000, 10_000, 0)
        assert stream.intended == 20_000
    assert not engine.measure(trial).ended_early
