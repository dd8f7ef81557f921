"""Noise is rarely split, and a step is found where it is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import ruptures

from dutperf.stats import levels as module
from dutperf.stats.levels import change_points
from tools.alarms import noise


def series(seed: int, runs: int, noise: float, steps: dict[int, float]) -> list[float]:
    """Rates around 300,000 fps; ``steps``: place -> factor from there on."""
    draws = np.random.default_rng(seed)
    level, found = 3e5, []
    for at in range(runs):
        level *= steps.get(at, 1)
        found.append(level * math.exp(draws.normal(0, noise)))
    return found


@pytest.mark.parametrize("noise", [0.001, 0.02])
def test_of_20_series_of_noise_at_most_one_is_split(noise: float) -> None:
    split = [bool(change_points(series(seed, 20, noise, {}))) for seed in range(20)]
    assert sum(split) <= 1


def test_a_step_of_10_percent_is_found_where_it_is() -> None:
    for seed in range(10):
        for factor in (0.9, 1.1):
            assert change_points(series(seed, 20, 0.01, {12: factor})) == [12]


def test_each_of_two_steps_is_found() -> None:
    assert change_points(series(1, 40, 0.01, {15: 0.9, 28: 1.2})) == [15, 28]


def test_one_run_alone_is_no_level() -> None:
    for at in (0, 10, 19):
        values = series(2, 20, 0.01, {})
        values[at] *= 2
        assert at not in change_points(values)


@pytest.mark.parametrize("noise", [0.001, 0.02])
def test_a_change_or_a_broken_night_before_hides_no_change(noise: float) -> None:
    for seed in range(10):
        doubled = series(seed, 24, noise, {10: 2, 20: 0.8})
        assert change_points(doubled) == [10, 20]
        broken = series(seed, 24, noise, {20: 0.8})
        broken[5] *= 0.01
        assert change_points(broken)[-1:] == [20]


def test_three_nights_are_a_level() -> None:
    for seed in range(10):
        assert change_points(series(seed, 20, 0.01, {17: 0.9})) == [17]


@pytest.mark.parametrize("kind", ["normal", "heavy-tailed", "correlated 0.3"])
@pytest.mark.parametrize("runs", [12, 20, 40])
def test_no_noise_is_split_in_more_than_1_of_20_series(kind: str, runs: int) -> None:
    draws = np.random.default_rng(8)
    split = [
        change_points(np.exp(0.02 * noise(draws, kind, runs)).tolist())
        for _ in range(100)
    ]
    assert sum(map(bool, split)) <= 5


def test_a_scale_changes_nothing() -> None:
    values = series(3, 20, 0.01, {9: 1.1})
    assert change_points([value * 1e-6 for value in values]) == change_points(values)


@pytest.mark.parametrize("runs", [0, 1, 2, 10])
def test_a_short_series_tells_nothing(runs: int) -> None:
    assert change_points(series(1, runs, 0, {runs // 2: 2.0})) == []


def test_equal_values_have_no_change_and_a_step_between_them_has() -> None:
    assert change_points([1e5] * 20) == []
    assert change_points([1e5] * 10 + [9e4] * 10) == [10]


def _cost(part: Sequence[float]) -> float:
    mean = sum(part) / len(part)
    return sum((value - mean) ** 2 for value in part)


def _slowly(values: Sequence[float], penalty: float) -> list[int]:
    """Of all ways to cut at up to two places the one with the least cost."""
    logs = [math.log(value) for value in values]
    ways: Iterator[tuple[int, ...]] = itertools.chain.from_iterable(
        itertools.combinations(range(3, len(logs) - 2), k) for k in range(3)
    )
    found: dict[tuple[int, ...], float] = {}
    for way in ways:
        parts = [logs[a:b] for a, b in itertools.pairwise([0, *way, len(logs)])]
        if min(map(len, parts)) >= 3:
            found[way] = sum(map(_cost, parts)) + penalty * len(way)
    _, best = min((cost, way) for way, cost in found.items())
    return list(best)


def _slow_penalty(values: Sequence[float]) -> float:
    """199 of 200 shuffles gain less by their best split."""
    logs = [math.log(value) for value in values]
    draws = np.random.default_rng(5)
    best = []
    for _ in range(600):
        draws.shuffle(logs)
        splits = range(3, len(logs) - 2)
        best.append(
            _cost(logs) - min(_cost(logs[:k]) + _cost(logs[k:]) for k in splits)
        )
    return sorted(best)[-3]


def test_a_slow_twin_finds_the_same() -> None:
    for seed, steps in ((1, {}), (2, {6: 0.95}), (3, {5: 1.1, 10: 0.9})):
        values = series(seed, 15, 0.01, steps)
        logs = np.log(values)
        penalty = module._penalty(logs)
        assert penalty == pytest.approx(_slow_penalty(values), rel=0.15)
        assert module._cut(logs, penalty) == _slowly(values, penalty)


def test_a_figure_that_has_no_logarithm_is_refused() -> None:
    with pytest.raises(ValueError, match="math domain error"):
        change_points([0.0] * 20)


@pytest.mark.parametrize("at_once", [1, 7_000, 10**9])
def test_it_is_pelt_with_the_whole_of_the_shuffles(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """The slow twin: all shuffles at once, PELT in Python, which looks at each end."""
    monkeypatch.setattr(module, "_MOST_VALUES", at_once)
    for seed in range(3):
        values = series(seed, 30 + seed, 0.02, {7: 0.97, 11: 1.08, 20: 0.9})
        logs = np.array([math.log(value) for value in values])
        penalty = module._penalty(logs)
        assert penalty == pytest.approx(_penalty(logs))
        assert module._cut(logs, penalty) == _pelt(logs, penalty)


def _penalty(logs: np.ndarray[Any, Any]) -> float:
    draws, runs = np.random.default_rng(1), len(logs)
    best = []
    series_of_logs = np.tile(logs - logs.mean(), (1999, 1))
    for shuffled in draws.permuted(series_of_logs, axis=1):
        sums = itertools.accumulate(shuffled[:-3])
        gains = [s**2 * runs / (k * (runs - k)) for k, s in enumerate(sums, 1)]
        best.append(max(gains[2:]))
    return float(np.quantile(best, 0.995)) * (1 + 1e-9)


def _pelt(logs: np.ndarray[Any, Any], penalty: float) -> list[int]:
    search = ruptures.Pelt(model="l2", min_size=3, jump=1).fit(logs)
    return list(search.predict(pen=penalty)[:-1])
