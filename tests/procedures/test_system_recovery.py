"""System recovery (RFC 2544 26.5): the time that losses outlast an overload."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from planning import Recording, Run, campaign, cell, spec

from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.model.cell import Cell
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.system_recovery import measure_system_recovery
from dutperf.protocol.result_messages import (
    Damage,
    DirectionResult,
    Shadow,
    Stall,
    TrialResult,
)
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import CellResult
from dutperf.results.details import RecoveryTime
from dutperf.simulation.fake_engine import FakeEngine, absent, queueing, step
from dutperf.standards import Deviation

MOST = MaxRate(100_000, "media")
SECOND = 10**9
SHORT = {
    "procedure": "system-recovery",
    "throughput_fps": 10_000,
    "overload_duration_s": 1,
    "reduced_duration_s": 1,
    "repeats": 3,
}
INTERVAL_NS = 181_819
"""At half of 11,000 fps, and as much as the simulated sender's lag more."""
LAG_NS = 128


def recovery(**keys: object) -> Cell:
    return cell(**SHORT | keys)


def measured(
    engine: FakeEngine, limit: MaxRate = MOST, **keys: object
) -> tuple[CellResult, Recording]:
    recording = Recording(engine)
    return measure_system_recovery(recording.runner, recovery(**keys), limit), recording


def times(result: CellResult) -> list[RecoveryTime]:
    assert result.recovery
    found = [t for d in result.recovery.directions for t in d.repeats]
    return [time for time in found if time]


def changing(
    engine: FakeEngine, change: Callable[[int, TrialResult], TrialResult]
) -> FakeEngine:
    """``engine``, of whose results each is changed; numbered from 1."""
    measure = engine.measure

    def measure_changed(
        trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        result = measure(trial, on_progress)
        return change(len(engine.trials), result)

    engine.measure = measure_changed  # type: ignore[method-assign]
    return engine


# --- loads


def test_110_percent_for_a_time_and_then_half_of_that() -> None:
    _, recording = measured(FakeEngine(step(10_000)))
    for record in recording.records:
        assert record.load_fps == 11_000
        assert record.request.duration_ns == 2 * SECOND
        for direction in record.request.directions:
            steps = [(s.rate_fps, s.duration_ns) for s in direction.steps]
            assert steps == [(11_000, SECOND), (5_500, SECOND)]


def test_it_is_never_more_than_the_media_carry() -> None:
    result, recording = measured(FakeEngine(step(10_000)), MaxRate(10_400, "media"))
    assert recording.loads_fps == [10_400] * 3
    assert not any("maximum rate of the media" in d.requirement for d in _own(result))


def test_what_the_tester_cannot_offer_is_lowered_and_told() -> None:
    engine = FakeEngine(step(10_000), tester_limit_fps=10_900)
    result, recording = measured(engine)
    assert recording.loads_fps[-1] < 10_900
    assert result.verdict == "pass"
    (short,) = [d for d in _own(result) if "media" in d.requirement]
    assert short.actual.startswith("103.5 %: the maximum rate that the tester can")


def _own(result: CellResult) -> list[Deviation]:
    return [d for d in result.deviations if d.rfc == "RFC 2544 26.5"]


@pytest.mark.parametrize("most_fps", [9000, 10_000])
def test_where_nothing_overloads_it_nothing_is_sent(most_fps: int) -> None:
    result, recording = measured(FakeEngine(step(10_000)), MaxRate(most_fps, "media"))
    assert recording.records == []
    assert result.verdict == "invalid"
    assert result.median is None
    (reason,) = result.reasons
    assert reason.code == "not_overloaded"
    assert "its throughput is 10,000 fps" in reason.message


# --- times


@pytest.mark.parametrize("late_ms", [1, 30, 400])
def test_it_lasts_until_the_last_lost_frame_was_due(late_ms: int) -> None:
    late_ns = late_ms * 1_000_000
    engine = FakeEngine(step(1), arrivals=absent((SECOND // 2, SECOND + late_ns)))
    result, _ = measured(engine)
    assert result.verdict == "pass"
    assert result.median is not None
    for time in times(result):
        assert 0 <= late_ns - time.value_ns <= time.within_ns
        assert time.within_ns <= INTERVAL_NS + LAG_NS
        assert time.overload_lost == 5500
    assert result.median == times(result)[0].value_ns
    assert result.bound is None


@pytest.mark.parametrize("late_ms", [0, 1, 30])
@pytest.mark.parametrize(
    ("ip", "traffic"),
    [
        (4, {"broadcast_percent": 1}),
        (6, {"hop_by_hop_percent": 12.34}),
        (6, {"hop_by_hop_percent": 50}),
    ],
)
def test_frames_beside_the_stream_are_not_waited_for(
    ip: int, traffic: dict[str, float], late_ms: int
) -> None:
    """Broadcast frames never come, the others do: what is timed is the stream."""
    late_ns = late_ms * 1_000_000
    engine = FakeEngine(step(1), arrivals=absent((SECOND // 2, SECOND + late_ns)))
    result, _ = measured(engine, repeats=1, ip=[ip], frame_size=128, traffic=traffic)
    assert result.verdict == "pass"
    assert result.bound is None
    for time in times(result):
        assert 0 <= late_ns - time.value_ns <= time.within_ns
        # From a frame of the stream to its next one.
        assert time.within_ns <= 2 * INTERVAL_NS + LAG_NS
    assert result.median == times(result)[0].value_ns


def test_random_losses_by_a_slow_twin() -> None:
    draw = random.Random(26)  # noqa: S311 - test data
    for _ in range(8):
        begins = [draw.randrange(2 * SECOND) for _ in range(5)]
        spans = [(at, at + draw.randrange(50_000_000)) for at in begins]
        spans.append((0, 10**6))
        result, recording = measured(
            FakeEngine(step(1), arrivals=absent(*spans)), repeats=1
        )
        due = [k * SECOND // 11_000 for k in range(11_000)]
        due += [SECOND + k * SECOND // 5500 for k in range(5500)]
        lost = [at for at in due if any(b <= at < e for b, e in spans)]
        after = [at - SECOND for at in lost if at >= SECOND]
        assert result.median == max(after, default=0)
        assert (result.bound == "lower") == (max(after, default=0) > 0.9 * SECOND)
        assert recording.records[0].result.directions[0].streams[0].lost == len(lost)


def test_a_queue_that_drains_faster_than_it_fills_recovers_at_once() -> None:
    result, _ = measured(FakeEngine(step(1), arrivals=queueing(50, 10_000)), repeats=1)
    assert result.median == 0
    (time, *_) = times(result)
    assert time.within_ns == INTERVAL_NS + LAG_NS
    assert time.overload_lost > 0
    assert time.reduced_lost == 0


def test_a_background_stream_counts_too() -> None:
    engine = FakeEngine(step(1), arrivals=absent((SECOND // 2, SECOND + 30_000_000)))
    result, _ = measured(
        engine, repeats=1, traffic=[{"mix": "50/50", "background_ip": 6}]
    )
    assert result.median == pytest.approx(30_000_000, abs=INTERVAL_NS)


def test_the_longer_of_both_directions_counts() -> None:
    def later(_number: int, result: TrialResult) -> TrialResult:
        forward, reverse = result.directions
        stream = reverse.streams[0]
        assert stream.last_loss
        last = stream.last_loss.model_copy(
            update={"last_ns": SECOND + 70_000_000, "end_ns": SECOND + 70_100_000}
        )
        streams = [stream.model_copy(update={"last_loss": last})]
        changed = reverse.model_copy(update={"streams": streams})
        return result.model_copy(update={"directions": [forward, changed]})

    engine = FakeEngine(step(1), arrivals=absent((SECOND // 2, SECOND + 30_000_000)))
    result, _ = measured(changing(engine, later))
    assert result.median == 70_000_000
    assert result.recovery
    forward, reverse = result.recovery.directions
    assert forward.repeats[0]
    assert forward.repeats[0].value_ns < 30_000_000
    assert reverse.repeats[0]
    assert reverse.repeats[0].within_ns == 100_000 + LAG_NS


def test_what_is_lost_to_the_end_is_a_lower_bound() -> None:
    engine = FakeEngine(step(1), arrivals=absent((SECOND // 2, 2 * SECOND)))
    result, _ = measured(engine)
    assert result.bound == "lower"
    assert result.verdict == "pass"
    assert result.median == pytest.approx(SECOND, abs=INTERVAL_NS)
    assert any("in 3 of 3 repeats" in reason.message for reason in result.reasons)


def test_the_average_counts() -> None:
    ends = iter([10, 10, 20, 20, 60, 60])

    def forward(due_ns: Sequence[int]) -> bytearray:
        return absent((SECOND // 2, SECOND + next(ends) * 1_000_000))(due_ns)

    result, _ = measured(FakeEngine(step(1), arrivals=forward))
    assert result.median == pytest.approx(30_000_000, abs=INTERVAL_NS)


# --- what does not count


def test_a_device_that_loses_nothing_was_not_overloaded() -> None:
    result, recording = measured(FakeEngine(step(20_000)))
    assert len(recording.records) == 1
    assert result.median is None
    assert result.verdict == "invalid"
    (reason,) = result.reasons
    assert reason.message.startswith("not overloaded: nothing was lost at 11,000 fps")


def shaded(direction: DirectionResult, *, may_lose: bool) -> DirectionResult:
    shadow = Shadow(
        begin_ns=SECOND + 20_000_000,
        end_ns=SECOND + 40_000_000,
        of="sender",
        may_lose=may_lose,
        frames=None,
    )
    return direction.model_copy(update={"shadows": [shadow]})


@pytest.mark.parametrize(("may_lose", "trials"), [(True, 4), (False, 3)])
def test_a_last_loss_in_the_shadow_of_a_stall_is_measured_again(
    may_lose: bool, trials: int
) -> None:
    def first(number: int, result: TrialResult) -> TrialResult:
        if number > 1:
            return result
        directions = [shaded(d, may_lose=may_lose) for d in result.directions]
        return result.model_copy(update={"directions": directions})

    engine = FakeEngine(step(1), arrivals=absent((SECOND // 2, SECOND + 30_000_000)))
    result, recording = measured(changing(engine, first))
    assert result.verdict == "pass"
    assert len(recording.records) == trials


@pytest.mark.parametrize(
    ("caught_up_ns", "max_lag_ns", "trials"),
    [
        (SECOND + 60_000_000, 50_000_000, 4),
        (SECOND + 60_000_000, 5_000_000, 3),
        (SECOND - 10_000_000, 50_000_000, 3),
    ],
)
def test_an_overload_that_left_late_is_measured_again(
    caught_up_ns: int, max_lag_ns: int, trials: int
) -> None:
    stall = Stall(
        begin_ns=SECOND // 2,
        caught_up_ns=caught_up_ns,
        max_lag_ns=max_lag_ns,
        away_ns=0,
        frames=500,
    )

    def first(number: int, result: TrialResult) -> TrialResult:
        stalls = [stall] if number == 1 else []
        directions = [
            d.model_copy(update={"stalls": stalls}) for d in result.directions
        ]
        return result.model_copy(update={"directions": directions})

    engine = FakeEngine(step(1), arrivals=absent((SECOND // 2, SECOND + 30_000_000)))
    result, recording = measured(changing(engine, first))
    assert len(recording.records) == trials
    assert result.verdict == "pass"


def test_it_never_counts_however_often() -> None:
    def always(_number: int, result: TrialResult) -> TrialResult:
        directions = [shaded(d, may_lose=True) for d in result.directions]
        return result.model_copy(update={"directions": directions})

    engine = FakeEngine(step(1), arrivals=absent((SECOND // 2, SECOND + 30_000_000)))
    result, _ = measured(changing(engine, always))
    assert result.median is None
    assert result.verdict == "invalid"
    assert any("recovery window" in reason.message for reason in result.reasons)


def test_a_frame_that_the_tester_dropped_may_have_been_the_last() -> None:
    def dropped(number: int, result: TrialResult) -> TrialResult:
        drops = 1 if number == 1 else 0
        ports = [p.model_copy(update={"interface_drops": drops}) for p in result.ports]
        return result.model_copy(update={"ports": ports})

    engine = FakeEngine(step(1), arrivals=absent((SECOND // 2, SECOND + 30_000_000)))
    result, recording = measured(changing(engine, dropped))
    assert len(recording.records) == 4
    assert result.verdict == "pass"


def test_damaged_frames_are_told() -> None:
    engine = FakeEngine(
        step(1),
        arrivals=absent((SECOND // 2, SECOND + 30_000_000)),
        damages=lambda _frames: Damage(checksum_zero=1),
    )
    result, _ = measured(engine, repeats=1)
    assert any("arrived damaged" in reason.message for reason in result.reasons)


# --- of a campaign


def test_the_throughput_is_found_before(tmp_path: Path) -> None:
    what = campaign(
        spec(trial_duration_s=1, max_rate_fps=20_000, resolution="5%"),
        spec(
            procedure="system-recovery",
            max_rate_fps=20_000,
            overload_duration_s=1,
            reduced_duration_s=1,
            repeats=2,
        ),
    )
    results = Run(tmp_path / "run", FakeEngine(step(10_000)))(what)
    throughput, found = results.cells
    assert found.verdict == "pass"
    assert found.load
    assert found.load.cell == throughput.id
    assert found.load.rate_fps == throughput.median
    assert found.recovery
    assert found.recovery.overload_fps == int(1.1 * (throughput.median or 0))
    assert found.median == 0


def test_without_a_throughput_nothing_is_sent(tmp_path: Path) -> None:
    what = campaign(
        spec(trial_duration_s=1, max_rate_fps=20_000, resolution="5%"),
        spec(procedure="system-recovery", max_rate_fps=20_000),
    )
    # A single frame of each trial is lost at any rate.
    results = Run(tmp_path / "run", FakeEngine(lambda _rate, n: n - 1))(what)
    _, found = results.cells
    assert found.verdict == "invalid"
    assert found.reasons[0].code == "no_throughput"
