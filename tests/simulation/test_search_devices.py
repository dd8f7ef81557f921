"""Searches on simulated devices: noisy, dying, behind a slow or flaky tester."""

from __future__ import annotations

import random

import pytest

from dutperf.search import Resolution, SearchResult
from dutperf.search.binary import binary_search
from dutperf.simulation.simulated_tester import (
    Device,
    SimulatedTester,
    SlopeDevice,
    StepDevice,
)
from tools.search_devices import (
    BurstDevice,
    DuplicatingDevice,
    DyingDevice,
    HysteresisDevice,
    RandomLossDevice,
    UnstableDevice,
    WarmupDevice,
)

CAPACITY_FPS = 400_000
SEEDS = range(20)


def search(device: Device, tester: SimulatedTester, seed: int = 1) -> SearchResult:
    return binary_search(
        tester.bench(device, seed),
        max_rate_fps=1_488_095,
        duration_s=1,
        resolution=Resolution.parse("1%"),
    )


def rng() -> random.Random:
    return random.Random(7)  # noqa: S311 - repeatable noise


@pytest.mark.parametrize(
    ("rate_fps", "received"),
    [(1, 100), (CAPACITY_FPS, 100), (CAPACITY_FPS + 1, 99), (2 * CAPACITY_FPS, 50)],
)
def test_a_step_device_forwards_up_to_its_capacity(
    rate_fps: int, received: int
) -> None:
    assert StepDevice(CAPACITY_FPS).forward(rate_fps, 100, rng()) == received


def test_a_dead_device_forwards_nothing() -> None:
    assert StepDevice(0).forward(1, 100, rng()) == 0
    assert StepDevice(0).forward(1, 0, rng()) == 0


def test_random_loss_is_as_likely_as_asked() -> None:
    device = RandomLossDevice(StepDevice(CAPACITY_FPS), probability=0.01)
    received = device.forward(1000, 1_000_000, rng())
    assert 1_000_000 - received == pytest.approx(10_000, rel=0.05)


def test_a_slope_device_loses_more_often_the_nearer_to_its_capacity() -> None:
    device = SlopeDevice(CAPACITY_FPS, noise=0.05)
    draws = rng()

    def passes(rate_fps: float) -> int:
        return sum(device.forward(rate_fps, 1000, draws) == 1000 for _ in range(200))

    assert passes(0.8 * CAPACITY_FPS) == 200
    assert 60 < passes(CAPACITY_FPS) < 140
    assert passes(1.2 * CAPACITY_FPS) == 0


def test_bursts_lose_what_arrives_in_them_and_long_trials_meet_more() -> None:
    device = BurstDevice(StepDevice(CAPACITY_FPS), every_s=60, burst_s=0.01)
    draws = rng()

    def lossless(seconds: int) -> int:
        frames = 1000 * seconds
        received = [device.forward(1000, frames, draws) for _ in range(500)]
        assert all((frames - r) % 10 == 0 or frames - r < 100 for r in received)
        return received.count(frames)

    assert lossless(1) > 480
    assert 130 < lossless(60) < 240  # e to the -1 of 500 is 184


def test_a_device_with_hysteresis_recovers_below_its_lower_capacity() -> None:
    device = HysteresisDevice(1000, share=0.9)
    rates = [1000, 1001, 950, 900, 950]
    lossless = [device.forward(rate, 10_000, rng()) == 10_000 for rate in rates]
    assert lossless == [True, False, False, True, True]


def test_a_device_warms_up_while_it_works() -> None:
    device = WarmupDevice(1000, cold=0.5, warm_s=10)
    assert device.forward(501, 5010, rng()) < 5010
    assert device.forward(500, 500 * 100, rng()) == 500 * 100
    assert device.forward(999, 999, rng()) == 999


def test_an_unstable_device_keeps_its_capacity_for_a_while_only() -> None:
    device, draws = UnstableDevice(1000, noise=0.2, hold_s=10), rng()
    forwarded = [device.forward(2000, 20_000, draws) for _ in range(4)]
    held = UnstableDevice(1000, noise=0.2, hold_s=1000)
    assert len(set(forwarded)) == 4
    assert len({held.forward(2000, 20_000, draws) for _ in range(4)}) == 1


def test_copies_take_room_but_never_stand_for_a_lost_frame() -> None:
    device = DuplicatingDevice(StepDevice(1010), share=0.01)
    assert device.forward(1000, 10_000, rng()) == 10_000
    assert device.forward(1001, 10_010, rng()) < 10_010
    assert device.forward(2000, 20_000, rng()) == pytest.approx(10_000, rel=0.001)


def test_a_bench_counts_trials_their_time_and_the_waits() -> None:
    bench = SimulatedTester(waits_s=9).bench(StepDevice(1000))
    assert bench(1000, 60).loss_ratio == 0
    assert bench(2000, 60).loss_ratio == pytest.approx(0.5)
    assert (bench.trials, bench.elapsed_s) == (2, 138)


def test_a_trial_that_stops_at_a_loss_takes_until_the_loss_was_told() -> None:
    tester = SimulatedTester(stops_at_loss=True, waits_s=9)
    bench = tester.bench(StepDevice(1000))
    bench(1000, 60)
    assert bench.elapsed_s == 69
    bench(2000, 60)
    assert bench.elapsed_s == 69 + 9.5


def test_the_same_seed_gives_the_same_search() -> None:
    device = SlopeDevice(CAPACITY_FPS, noise=0.05)
    tester = SimulatedTester(flaky=0.2)
    assert search(device, tester, seed=3) == search(device, tester, seed=3)
    assert search(device, tester, seed=3) != search(device, tester, seed=4)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_noisy_device_is_found_within_its_noise(seed: int) -> None:
    result = search(SlopeDevice(CAPACITY_FPS, noise=0.02), SimulatedTester(), seed)
    assert result.conclusion == "found"
    assert result.rate_fps == pytest.approx(CAPACITY_FPS, rel=0.15)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_flaky_tester_does_not_change_what_is_found(seed: int) -> None:
    device = StepDevice(CAPACITY_FPS)
    result = search(device, SimulatedTester(flaky=0.1), seed)
    if result.conclusion == "found":
        assert result.rate_fps == search(device, SimulatedTester()).rate_fps
    else:
        assert result.conclusion == "unstable"
    assert len(result.steps) <= 3 * 12


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tester_whose_limit_wanders_by_ten_percent_says_that_it_is_the_limit(
    seed: int,
) -> None:
    tester = SimulatedTester(limit_fps=350_000, noise=0.1)
    result = search(StepDevice(CAPACITY_FPS), tester, seed)
    assert result.conclusion == "tester_limited"
    assert result.rate_fps is not None
    assert 0.75 * 350_000 < result.rate_fps < 1.1 * 350_000
    assert len(result.steps) < 15


@pytest.mark.parametrize("seed", SEEDS)
def test_a_device_well_below_a_wandering_tester_is_found(seed: int) -> None:
    tester = SimulatedTester(limit_fps=350_000, noise=0.1)
    result = search(StepDevice(200_000), tester, seed)
    assert result.conclusion == "found"
    assert result.rate_fps == pytest.approx(200_000, rel=0.011)


@pytest.mark.parametrize("trials", range(12))
def test_a_device_that_dies_ends_the_search(trials: int) -> None:
    result = search(DyingDevice(StepDevice(CAPACITY_FPS), trials), SimulatedTester())
    assert len(result.steps) <= 22
    assert result.conclusion in ("found", "nothing_passed")
    assert (result.rate_fps or 0) <= CAPACITY_FPS


@pytest.mark.parametrize("seed", SEEDS)
def test_rare_random_loss_ends_the_search_with_a_rate_that_passed(seed: int) -> None:
    device = RandomLossDevice(StepDevice(CAPACITY_FPS), probability=1e-6)
    result = search(device, SimulatedTester(), seed)
    passed = [s.rate_fps for s in result.steps if s.outcome.verdict == "pass"]
    assert result.rate_fps == max(passed, default=None)
    assert result.conclusion in ("found", "nothing_passed")
