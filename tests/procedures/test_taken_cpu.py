"""Trials in which others had the device's CPU: repeated, not for ever, and told."""

from __future__ import annotations

import random
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from gateways import NAT44, ClearedEngine
from planning import TESTBED, FakeWatch, Recording, Run, campaign, cell, spec, spoilt

from dutperf.procedures.cpu_contention import (
    DeviceWatch,
    beside_repeated,
    came_again,
    dropped,
    explains,
    explains_absent,
    found_in,
    judged,
    lost_in,
)
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.stateful.connection_rate import measure_connection_rate
from dutperf.procedures.trials import PATIENT_ATTEMPTS, Ask
from dutperf.protocol.port_messages import InputQueueDrops
from dutperf.protocol.result_messages import Reason, TrialResult
from dutperf.results import CellResult
from dutperf.results.model import is_by_the_book
from dutperf.run.local_executor import measure_cell
from dutperf.run.trial_runner import TrialRunner
from dutperf.simulation.fake_engine import (
    Dut,
    FakeEngine,
    SimulatedNat,
    buffered,
    perfect,
    step,
)

CODE = "device_cpu_taken"
SECOND = 10**9
RATE = 1000
ALWAYS = 100 * SECOND
"""More than any trial here lasts: whatever is lost may be lost by it."""
BRIDGED_NS = 100 * SECOND // (2 * RATE)
SLOW = RATE - 1
"""Loses a frame a second and direction."""
FAST = 100_000
QUEUE = 5000
"""More than any burst here has."""
BURST = Ask(cell(), FAST, duration_s=0.01, attempts=PATIENT_ATTEMPTS)
"""1,000 frames in each direction, and seconds of waiting for the last of them."""


def verdicts(
    device: DeviceWatch | None, *, trials: int = 4, limit: int = SLOW
) -> list[str]:
    recording = Recording(FakeEngine(step(limit)), device=device)
    for _ in range(trials):
        recording.runner.run(Ask(cell(), RATE))
    return [record.result.verdict.kind for record in recording.records]


def codes(result: TrialResult) -> list[str]:
    return [reason.code for reason in result.verdict.reasons]


def test_a_trial_that_it_explains_is_repeated_and_the_third_one_counts() -> None:
    recording = Recording(FakeEngine(step(SLOW)), device=FakeWatch(SECOND))
    for _ in range(3):
        recording.runner.run(Ask(cell(), RATE))
    kinds = [record.result.verdict.kind for record in recording.records]
    assert kinds == ["invalid", "invalid", "fail"]
    assert [record.attempt for record in recording.records] == [1, 2, 3]
    for record in recording.records:
        assert codes(record.result)[:2] == [CODE, "frames_lost"]
        found = record.device_cpu
        assert found is not None
        assert (found.taken_ns, found.queue_frames) == (SECOND, 100)
        assert found.bridged_ns == BRIDGED_NS
    reason = recording.records[0].result.verdict.reasons[0]
    assert "CPU for 1,000 ms; its queue of 100 frames" in reason.message


def test_it_is_repeated_anew_for_what_is_asked_for_next() -> None:
    """Not for more of the same: a search counts what is invalid at a rate."""
    recording = Recording(FakeEngine(step(SLOW)), device=FakeWatch(SECOND))
    for rate_fps in (RATE, RATE, RATE, RATE, RATE + 1, RATE):
        recording.runner.run(Ask(cell(), rate_fps))
    kinds = [record.result.verdict.kind for record in recording.records]
    assert kinds == ["invalid", "invalid", "fail", "fail", "invalid", "invalid"]


def test_a_repetition_in_which_nobody_took_it_counts() -> None:
    assert verdicts(FakeWatch(SECOND, trials=1), trials=2) == ["invalid", "fail"]


def losing(*lost: int) -> Dut:
    """Loses so many frames, of one direction after the other."""
    losses = iter(lost)
    return lambda _rate_fps, frames: frames - next(losses)


def attempts(dut: Dut, ask: Ask, trials: int) -> list[TrialResult]:
    recording = Recording(FakeEngine(dut), device=FakeWatch(ALWAYS))
    return [recording.runner.run(ask).result for _ in range(trials)]


def kinds_of(results: list[TrialResult]) -> list[str]:
    return [result.verdict.kind for result in results]


def test_a_burst_that_loses_as_many_frames_three_times_counts() -> None:
    """A buffer that is full loses the same each time; others do not."""
    results = attempts(step(FAST * 9 // 10), BURST, trials=4)
    assert kinds_of(results) == ["invalid", "invalid", "fail", "fail"]
    told = results[2].verdict.reasons[0]
    assert told.code == CODE
    assert told.message.endswith("it lost as many frames twice before, so it counts")


def test_it_is_compared_with_all_that_were_tried_before() -> None:
    losses = (100, 100, 90, 30, 99, 100, 100, 101)
    results = attempts(losing(*losses), BURST, trials=4)
    assert kinds_of(results) == ["invalid"] * 3 + ["fail"]


def test_a_burst_that_loses_others_each_time_is_tried_as_often_as_any() -> None:
    losses = [lost for number in range(1, 7) for lost in (number * 50, 0)]
    results = attempts(losing(*losses), BURST, trials=PATIENT_ATTEMPTS)
    assert kinds_of(results) == ["invalid"] * (PATIENT_ATTEMPTS - 1) + ["fail"]
    last = results[-1].verdict.reasons[0]
    assert last.message.endswith("repeating it has not helped")


def test_another_burst_is_compared_with_its_own_trials() -> None:
    """Not with those of the one before it, although as many are lost."""
    longer = replace(BURST, duration_s=0.02)
    recording = Recording(FakeEngine(losing(*[9] * 8)), device=FakeWatch(ALWAYS))
    results = [recording.runner.run(ask).result for ask in 2 * [BURST, longer]]
    assert kinds_of(results) == ["invalid"] * 4


def test_a_long_trial_with_the_same_loss_is_tried_as_often_as_any() -> None:
    """Who takes a share of the CPU all the time costs as much in each of them."""
    asked = replace(BURST, duration_s=0.5)
    results = attempts(step(FAST * 9 // 10), asked, trials=PATIENT_ATTEMPTS)
    assert kinds_of(results) == ["invalid"] * (PATIENT_ATTEMPTS - 1) + ["fail"]


@pytest.mark.parametrize(
    ("lost", "before", "again"),
    [
        (500, [], False),
        (500, [500], False),
        (500, [495, 495], True),
        (500, [494, 500], False),
        (500, [505, 1, 495], True),
        (500, [506, 500], False),
        (10, [12, 8], True),
        (10, [7, 10], False),
        (1, [9, 3, 1], True),
    ],
)
def test_losses_are_alike_to_a_hundredth_or_two_frames(
    lost: int, before: list[int], again: bool
) -> None:
    record = Recording(FakeEngine(losing(lost, 0))).runner.run(BURST)
    assert lost_in(record.result) == lost
    assert came_again(record.request, record.result, before, QUEUE) is again


@pytest.mark.parametrize(
    ("lost", "again"),
    [
        ((900, 0), True),  # of 2,000 frames one queue takes 100, or each takes 100
        ((1000, 899), False),
        ((1000, 880), True),
        ((900, 900), False),
        ((890, 881), True),
    ],
)
def test_all_but_the_queue_is_what_a_slice_costs_each_time(
    lost: tuple[int, int], again: bool
) -> None:
    record = Recording(FakeEngine(losing(*lost))).runner.run(BURST)
    before = [sum(lost)] * 2
    assert came_again(record.request, record.result, before, 100) is again


@pytest.mark.parametrize(("duration_ns", "again"), [(10**8, True), (10**8 + 1, False)])
def test_a_burst_is_short_in_a_tenth_of_the_wait(duration_ns: int, again: bool) -> None:
    record = Recording(FakeEngine(losing(5, 5))).runner.run(BURST)
    timed = {"duration_ns": duration_ns, "residual_wait_ns": SECOND}
    request = record.request.model_copy(update=timed)
    assert came_again(request, record.result, [10, 10], QUEUE) is again


def test_the_longest_burst_is_found_with_others_beside() -> None:
    """In not many more trials than alone on the device's CPU."""
    asked = cell(
        procedure="back-to-back", longest_burst_s=0.1, step="1", throughput_fps=9000
    )
    limit = MaxRate(FAST, "set")
    alone = Recording(FakeEngine(buffered(400, 9000)))
    expected = measure_cell(alone.runner, asked, limit)
    beside = Recording(FakeEngine(buffered(400, 9000)), device=FakeWatch(ALWAYS))
    found = measure_cell(beside.runner, asked, limit)
    assert found.median == expected.median
    failed = sum(r.result.verdict.kind == "fail" for r in alone.records)
    assert len(beside.records) <= len(alone.records) + 2 * failed


SLICE_S = 0.004
BUFFER = 1000


def sliced(share: float, serves_fps: float, seed: int) -> Dut:
    """Others have ``share`` of its CPU, a slice at a time; a queue of ``BUFFER``."""
    draw, period = random.Random(seed), SLICE_S / share  # noqa: S311

    def forward(rate_fps: float, frames: int) -> int:
        phase = draw.uniform(0, period)
        received, waiting = 0, 0.0
        for frame in range(frames):
            is_away = (phase + frame / rate_fps) % period < SLICE_S
            served = 0 if is_away else serves_fps / rate_fps
            waiting = max(0.0, waiting - served)
            if waiting + 1 <= BUFFER:
                waiting, received = waiting + 1, received + 1
        return received

    return forward


@pytest.mark.parametrize(
    ("share", "serves_fps", "truth", "least"),
    [
        (0.3, 10_000_000, 2000, 2000),
        (0.5, 10_000_000, 2000, 2000),
        (0.1, 300_000, 1428, 1428),
        (0.3, 300_000, 1428, 1400),
    ],
)
def test_slices_of_the_cpu_hardly_shorten_the_longest_burst(
    share: float, serves_fps: float, truth: int, least: int
) -> None:
    """The whole rule on a device of which the truth is known."""
    asked = cell(
        procedure="back-to-back",
        longest_burst_s=0.002,
        step="1",
        direction="forward",
        repeats=1,
        throughput_fps=9000,
    )
    found = []
    for seed in range(15):
        watch = FakeWatch(round(SLICE_S * SECOND))
        watch.queue_frames = BUFFER
        dut = sliced(share, serves_fps, seed)
        recording = Recording(FakeEngine(dut), device=watch)
        result = measure_cell(recording.runner, asked, MaxRate(1_000_000, "set"))
        assert result.median is not None
        found.append(result.median)
    assert statistics.median(found) == pytest.approx(truth, abs=1)
    assert min(found) >= least


def test_without_anybody_who_knows_nothing_changes() -> None:
    recording = Recording(FakeEngine(step(SLOW)))
    record = recording.runner.run(Ask(cell(), RATE))
    assert (record.result.verdict.kind, record.device_cpu) == ("fail", None)


@pytest.mark.parametrize(
    ("taken_ns", "limit"),
    [
        (0, SLOW),
        (BRIDGED_NS, SLOW),  # the queue bridges it
        (SECOND, RATE // 2),  # a tenth of the time, half of the frames
    ],
)
def test_what_it_does_not_explain_counts_at_once(taken_ns: int, limit: int) -> None:
    assert verdicts(FakeWatch(taken_ns), limit=limit) == ["fail"] * 4


@pytest.mark.parametrize(
    ("lost", "explained"), [(0, False), (1, True), (499, True), (500, False)]
)
def test_no_more_is_explained_than_came_while_the_cpu_was_taken(
    lost: int, explained: bool
) -> None:
    """499.9 frames of both directions in a quarter of a second: 499."""
    record = Recording(FakeEngine(perfect())).runner.run(Ask(cell(), RATE))
    forward, *others = record.result.directions
    (stream,) = forward.streams
    fewer = stream.model_copy(update={"lost": lost})
    forward = forward.model_copy(update={"streams": [fewer]})
    result = record.result.model_copy(update={"directions": [forward, *others]})
    found = found_in(record.request, SECOND // 4 - 50_000, 100)
    assert explains_absent(found, record.request, result) is explained


def test_what_becomes_of_a_trial_that_it_explains_is_told() -> None:
    record = Recording(FakeEngine(step(SLOW))).runner.run(Ask(cell(), RATE))
    found = found_in(record.request, 51_260_000, 100)
    for again, kind, told in (
        (True, "invalid", "it is repeated"),
        (False, "fail", "repeating it has not helped"),
    ):
        verdict = judged(record.result, found, again=again).verdict
        assert verdict.kind == kind
        assert verdict.reasons[0].message == (
            "other programs used the device's CPU for 51.3 ms; its queue of 100 "
            f"frames covers 50 ms: {told}"
        )
        assert "keep other work off" in verdict.reasons[0].hint


def test_the_result_counts_its_trials_of_either_kind() -> None:
    recording = Recording(FakeEngine(step(SLOW)), device=FakeWatch(SECOND))
    asked = cell(procedure="frame-loss")
    result = measure_cell(
        Recording(FakeEngine(perfect())).runner, asked, MaxRate(RATE, "set")
    )
    for _ in range(3):
        recording.runner.run(Ask(asked, RATE))
    told = beside_repeated(result, recording.records).reasons[-2:]
    why = "other programs used the device's CPU for longer than its queue covers"
    assert [reason.message for reason in told] == [
        f"2 trials with lost frames repeated, because {why}",
        f"1 trial with lost frames counted, although {why}, time after time",
    ]
    assert all("keep other work off" in reason.hint for reason in told)


def now_and_then(limit: int) -> Dut:
    """A step that loses a frame in one of four directions, too."""
    losses, forward = iter([1, 0, 0, 0] * 100), step(limit)
    return lambda rate_fps, frames: forward(rate_fps, frames) - next(losses, 0)


def test_what_passed_only_because_a_loss_was_repeated_is_named_for_it(
    tmp_path: Path,
) -> None:
    """The bias of it: docs/verdicts.md."""
    asked = campaign(spec(resolution="1%", max_rate_fps=100_000, repeats=2))
    found: list[CellResult] = []
    for name, device in (("a", FakeWatch(SECOND)), ("b", None)):
        run = Run(tmp_path / name, FakeEngine(now_and_then(70_000)), device=device)
        found += run(asked).cells
    named, alone = found
    assert named.quantity == (
        "throughput per direction, losses verified by up to 2 trials"
    )
    (point,) = [d for d in named.deviations if "did not count" in d.actual]
    assert (point.level, named.verified_by) == ("definition", 2)
    assert named.conformance is not None
    assert named.conformance.status == "other_measure"
    assert not is_by_the_book(named)
    assert point.actual.endswith("because other programs used the device's CPU")
    assert alone.quantity == "throughput per direction (RFC 2544 26.1)"
    assert not [d for d in alone.deviations if "did not count" in d.actual]


def test_so_it_is_with_connections_opened_anew_in_between() -> None:
    """Both attempts, and phase 1 before each of them."""
    recording = Recording(FakeEngine(losing(1, 0, 0, 0)), device=FakeWatch(SECOND))
    asked = Ask(cell(), RATE)
    for _ in range(2):
        recording.runner.run(asked)
    lost, passed = recording.records
    opened = passed.model_copy(update={"role": "phase1", "load_fps": 2 * RATE})
    result = measure_cell(
        Recording(FakeEngine(perfect())).runner, cell(), MaxRate(RATE, "set")
    )
    records = [opened, lost, opened, passed]
    assert "verified by up to 2 trials" in beside_repeated(result, records).quantity
    assert beside_repeated(result, [lost, opened]).quantity == result.quantity


def test_what_failed_in_the_end_forgave_nothing(tmp_path: Path) -> None:
    asked = campaign(spec(resolution="1%", max_rate_fps=100_000))
    run = Run(tmp_path, FakeEngine(step(70_000)), device=FakeWatch(ALWAYS))
    (result,) = run(asked).cells
    assert result.quantity == "throughput per direction (RFC 2544 26.1)"


def test_damaged_frames_are_the_devices_own() -> None:
    recording = Recording(FakeEngine(step(SLOW)))
    record = recording.runner.run(Ask(cell(), RATE))
    found = found_in(record.request, SECOND, 100)
    assert explains(found, record.request, record.result)
    damaged = Reason(code="corrupt_frames", message="1 of them damaged")
    reasons = [*record.result.verdict.reasons, damaged]
    verdict = record.result.verdict.model_copy(update={"reasons": reasons})
    result = record.result.model_copy(update={"verdict": verdict})
    assert not explains(found, record.request, result)


def test_a_trial_that_passed_counts_and_the_time_is_stored() -> None:
    recording = Recording(FakeEngine(perfect()), device=FakeWatch(SECOND))
    record = recording.runner.run(Ask(cell(), RATE))
    assert record.result.verdict.kind == "pass"
    assert record.device_cpu is not None


def test_attempts_that_others_spoilt_are_attempts_too() -> None:
    engine = FakeEngine(step(SLOW), troubles=spoilt("link_changed", 1))
    recording = Recording(engine, device=FakeWatch(SECOND))
    for _ in range(3):
        recording.runner.run(Ask(cell(), RATE))
    kinds = [record.result.verdict.kind for record in recording.records]
    assert kinds == ["invalid", "invalid", "fail"]


@pytest.mark.parametrize(
    "keys",
    [
        {"search": "classic"},
        {"search": "narrowed", "repeats": 3},
        {"search": "verified", "verify_trials": 3},
        {"search": "mlrsearch"},
    ],
    ids=lambda keys: keys["search"],
)
def test_every_search_comes_to_its_end(keys: dict[str, object]) -> None:
    """Although each of its trials is explained."""
    given = {"resolution": "1%", "trial_duration_s": 1, **keys}
    asked = cell(**given)
    limit = MaxRate(100_000, "set")
    with_it = Recording(FakeEngine(step(70_000)), device=FakeWatch(ALWAYS))
    found = measure_cell(with_it.runner, asked, limit)
    without = Recording(FakeEngine(step(70_000)))
    expected = measure_cell(without.runner, asked, limit)
    assert (found.verdict, found.median) == (expected.verdict, expected.median)
    assert len(with_it.records) > len(without.records)


@pytest.mark.parametrize("procedure", ["frame-loss", "latency", "pdv", "ipdv"])
def test_every_fixed_load_has_a_result(procedure: str) -> None:
    own: dict[str, dict[str, object]] = {
        "frame-loss": {"load_percent": [100]},
        "latency": {"first_tag_s": 1, "tags": 100},
    }
    keys: dict[str, object] = {} if procedure == "frame-loss" else {"rate_fps": RATE}
    keys |= own.get(procedure, {})
    asked = cell(procedure=procedure, trial_duration_s=10, repeats=2, **keys)
    recording = Recording(FakeEngine(step(SLOW)), device=FakeWatch(ALWAYS))
    result = measure_cell(recording.runner, asked, MaxRate(RATE, "set"))
    assert result.verdict == "pass"
    counted = [r for r in recording.records if r.role == "trial"]
    assert [r.result.verdict.kind for r in counted] == 2 * [
        *["invalid"] * (PATIENT_ATTEMPTS - 1),
        "fail",
    ]


@pytest.mark.parametrize("alpha", [None, 0.8])
def test_the_rate_of_connections_is_found(alpha: float | None) -> None:
    stateful = {"connections": 1000} | ({} if alpha is None else {"alpha": alpha})
    asked = cell(procedure="connection-rate", resolution="10", stateful=stateful)
    engine = ClearedEngine(SimulatedNat(connection_rate_fps=777))
    recording = Recording(engine, testbed=NAT44, device=FakeWatch(ALWAYS))
    limit = MaxRate(100_000, "set")
    result = measure_connection_rate(recording.runner, asked, limit)
    assert result.verdict == "pass"
    assert result.median == pytest.approx(777, abs=10)


def test_a_resumed_run_takes_the_same_trials_from_the_journal() -> None:
    first = Recording(FakeEngine(step(SLOW)), device=FakeWatch(SECOND))
    for _ in range(3):
        first.runner.run(Ask(cell(), RATE))
    more: list[str] = []
    resumed = TrialRunner(
        FakeEngine(step(SLOW)),
        TESTBED,
        journal=lambda record: more.append(record.result.verdict.kind),
        on_event=lambda _event: None,
        sleep=lambda _seconds: None,
        device=FakeWatch(SECOND),
        stored=first.records[:2],
    )
    again = [resumed.run(Ask(cell(), RATE)) for _ in range(3)]
    assert again[:2] == first.records[:2]
    assert more == ["fail"]


def test_a_resumed_run_knows_what_was_lost_before() -> None:
    first = Recording(FakeEngine(losing(60, 40, 40, 60)), device=FakeWatch(ALWAYS))
    for _ in range(2):
        first.runner.run(BURST)
    more: list[str] = []
    resumed = TrialRunner(
        FakeEngine(losing(50, 50)),
        TESTBED,
        journal=lambda record: more.append(record.result.verdict.kind),
        on_event=lambda _event: None,
        sleep=lambda _seconds: None,
        device=FakeWatch(ALWAYS),
        stored=first.records,
    )
    again = [resumed.run(BURST) for _ in range(3)]
    assert again[:2] == first.records
    assert more == ["fail"]


def test_the_result_tells_how_many_were_repeated(tmp_path: Path) -> None:
    asked = campaign(spec(resolution="1%", max_rate_fps=100_000))
    run = Run(tmp_path / "run", FakeEngine(step(70_000)), device=FakeWatch(ALWAYS))
    (result,) = run(asked).cells
    told = [reason.message for reason in result.reasons if reason.code == CODE]
    assert len(told) == 2
    assert "trials with lost frames repeated" in told[0]
    assert "counted, although" in told[1]
    quiet = Run(tmp_path / "quiet", FakeEngine(step(70_000)))
    (other,) = quiet(asked).cells
    assert not [reason for reason in other.reasons if reason.code == CODE]


def test_what_the_device_dropped_stands_in_the_record_and_decides_nothing() -> None:
    watch = FakeWatch(0)
    recording = Recording(FakeEngine(step(SLOW)), device=watch)
    record = recording.runner.run(Ask(cell(), RATE))
    assert record.result.verdict.kind == "fail"
    assert record.device_drops is not None
    assert record.device_drops.input_queue == 0
    assert record.device_drops.interfaces == {}

    queues = [
        InputQueueDrops(cpu=0, dropped=9, time_squeeze=1),
        InputQueueDrops(cpu=watch.cpu, dropped=40, time_squeeze=0),
    ]
    result = record.result.model_copy(update={"input_queues": queues})
    before: dict[str, dict[str, int]] = {
        "left": {"rx_dropped": 5, "tx_dropped": 7},
        "right": {"rx_dropped": 3},
    }
    watch.dropped = before | {"left": {"rx_dropped": 5, "tx_dropped": 10}}
    found = dropped(watch, before, result)
    assert found.input_queue == 40
    assert found.interfaces == {"left": {"tx_dropped": 3}}
    # An interface or a counter that was not there before began at nothing.
    watch.dropped = {"left": {"rx_dropped": 1}, "right": {"tx_dropped": 1}}
    began = dropped(watch, {"right": {"rx_dropped": 3}}, result)
    assert began.interfaces == watch.dropped
    # A device that is gone tells nothing more.
    watch.dropped = {"left": {}, "right": {}}
    assert dropped(watch, before, result).interfaces == {}


def test_without_a_watch_nobody_knows_what_the_device_dropped() -> None:
    recording = Recording(FakeEngine(step(SLOW)))
    assert recording.runner.run(Ask(cell(), RATE)).device_drops is None
