"""A line through a series: its slope, its interval, and steps instead of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from dutperf import stats
from dutperf.stats.slopes import Drift


def noise(seed: int, length: int) -> list[float]:
    draws = random.Random(seed)  # noqa: S311
    return [draws.gauss(0, 1) for _ in range(length)]


def hours(length: int) -> list[float]:
    return [n / 60 for n in range(length)]


def found(values: Sequence[float], **keys: object) -> Drift:
    told = stats.drift(hours(len(values)), values, 0.95, **keys)  # type: ignore[arg-type]
    assert told
    return told


@pytest.mark.parametrize("length", [10, 23, 24, 25, 100, 481])
def test_the_slope_is_that_of_least_squares_through_the_parts(length: int) -> None:
    values = [2 * n / 60 + each for n, each in enumerate(noise(length, length))]
    parts = min(24, length)
    ends = [length * part // parts for part in range(parts + 1)]
    pieces = [range(*each) for each in pairwise(ends)]
    x = [np.mean([n / 60 for n in each]) for each in pieces]
    y = [np.median([values[n] for n in each]) for each in pieces]
    slope, _ = np.polyfit(x, y, 1)
    assert found(values).slope == pytest.approx(slope)


def test_its_interval_holds_it_as_often_as_it_says() -> None:
    inside = 0
    for seed in range(200):
        values = [n / 60 + each for n, each in enumerate(noise(seed, 48))]
        told = found(values)
        inside += told.lower < 1 < told.upper
    assert inside >= 185


def test_a_slope_that_would_be_seen_in_4_of_5_is() -> None:
    seen = 0
    for seed in range(100):
        values = noise(seed, 240)
        least = found(values).seen_from
        # Of this very noise the interval is as wide, wherever the slope is.
        other = noise(1000 + seed, 240)
        grown = found([each + least * n / 60 for n, each in enumerate(other)])
        seen += grown.lower > 0
    assert 70 <= seen <= 99


def test_noise_that_is_alike_widens_it() -> None:
    alike, before = [], 0.0
    for each in noise(1, 480):
        before = 0.99 * before + (1 - 0.99**2) ** 0.5 * each
        alike.append(before)
    told, plain = found(alike), found(noise(1, 480))
    assert told.upper - told.lower > 4 * (plain.upper - plain.lower)


def test_units_change_nothing() -> None:
    values = noise(3, 100)
    told, scaled = found(values), found([1e6 * each - 5 for each in values])
    assert scaled.lower == pytest.approx(1e6 * told.lower)
    assert scaled.upper == pytest.approx(1e6 * told.upper)


def test_one_value_far_away_moves_no_part() -> None:
    values = noise(4, 480)
    broken = [*values[:100], 1e9, *values[101:]]
    assert found(broken).slope == pytest.approx(found(values).slope, abs=0.05)


@pytest.mark.parametrize("value", [0.0, 0.1, -7.0, 1e300, 5e-324])
def test_what_is_constant_has_no_slope(value: float) -> None:
    told = found([value] * 100)
    assert (told.slope, told.lower, told.upper, told.steps) == (0, 0, 0, ())


def test_a_straight_line_is_no_step_and_a_step_no_line() -> None:
    assert found([float(n) for n in range(96)]).steps == ()
    (step,) = found([0.0] * 40 + [1.0] * 56).steps
    assert step.at == pytest.approx(40 / 60)
    assert (step.before, step.after) == (0, 1)


def test_a_spike_is_none_either() -> None:
    values = noise(5, 480)
    values[200:260] = [each + 50 for each in values[200:260]]
    steps = found(values).steps
    assert [round(step.at * 60 / 20) for step in steps] in ([], [10, 13])


@pytest.mark.parametrize("length", range(10))
def test_few_values_tell_nothing(length: int) -> None:
    assert stats.drift(hours(length), [1.0] * length, 0.95) is None
