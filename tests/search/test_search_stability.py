"""Which devices of the laboratory are said to have no single throughput.

The shares are those of docs/adr/0013-stability.md, from fixed seeds.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from dutperf.simulation.simulated_tester import SimulatedTester
from dutperf.stats import median_interval
from dutperf.stats.stability import examine
from tools.search_devices import WarmupDevice
from tools.searches import (
    CAPACITY_FPS,
    DEVICES,
    METHODS,
    RESOLUTION,
)

RUNS = 100
WIDTH_FPS = float(RESOLUTION.value * CAPACITY_FPS)


@cache
def campaigns(device: str, method: str) -> list[list[int]]:
    tester, campaign = METHODS[method]
    return [
        campaign(tester.bench(DEVICES[device](), f"{device} {method} {run}"))
        for run in range(RUNS)
    ]


@cache
def found(device: str, method: str) -> Counter[str]:
    """In how many percent of the campaigns there was which kind of finding."""
    kinds: Counter[str] = Counter()
    for values in campaigns(device, method):
        findings = examine(values, WIDTH_FPS)
        kinds.update({str(finding.kind) for finding in findings} or {"nothing"})
    return kinds


@pytest.mark.parametrize("method", ["classic", "narrowed", "auto"])
@pytest.mark.parametrize("device", ["step", "slope-0.5%", "duplicating"])
def test_a_steady_device_is_not_accused(device: str, method: str) -> None:
    assert found(device, method)["nothing"] >= 98


@pytest.mark.parametrize("method", ["classic", "narrowed", "auto"])
def test_an_unstable_device_is_named(method: str) -> None:
    kinds = found("unstable", method)
    assert kinds["nothing"] <= 5
    assert kinds["unstable"] >= 93


@pytest.mark.parametrize("method", ["narrowed", "auto"])
def test_where_the_interval_of_an_unstable_device_misses_it_is_named(
    method: str,
) -> None:
    """Fast repeats share its state, so their interval is too narrow."""
    missed = [values for values in campaigns("unstable", method) if misses(values)]
    silent = [values for values in missed if not examine(values, WIDTH_FPS)]
    assert len(missed) > len(silent)
    assert len(silent) <= 0.05 * RUNS


def misses(values: list[int]) -> bool:
    interval = median_interval(values)
    return interval is None or not interval.lower <= CAPACITY_FPS <= interval.upper


def test_a_warm_up_is_named_where_it_reaches_the_results() -> None:
    for method in ("classic", "narrowed"):
        assert found("warm-up", method) == {"outliers": RUNS}


@pytest.mark.parametrize("method", ["classic", "narrowed"])
def test_a_slow_warm_up_is_a_drift(method: str) -> None:
    campaign = METHODS[method][1]
    device = WarmupDevice(CAPACITY_FPS, cold=0.1, warm_s=7200)
    values = campaign(SimulatedTester().bench(device))
    kinds = {finding.kind for finding in examine(values, WIDTH_FPS)}
    assert "drift" in kinds


def test_repeats_that_a_rare_loss_spoilt_are_named() -> None:
    assert found("loss-1e-8", "classic")["nothing"] <= 5
    assert found("bursts", "classic")["nothing"] <= 15
