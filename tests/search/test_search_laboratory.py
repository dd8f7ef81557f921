"""Searches on simulated devices: noisy, dying, behind a slow or flaky tester."""

from __future__ import annotations

import random

import pytest

from dutperf.search import Resolution, SearchResult, binary_search
from dutperf.search.laboratory import (
    Device,
    DyingDevice,
    RandomLossDevice,
    SimulatedTester,
    SlopeDevice,
    StepDevice,
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
