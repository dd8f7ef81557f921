"""``dutperf bench --lab`` on the real lab: what belongs to what, not how fast.

Trials are far too short for figures, and the machine may do anything meanwhile.
"""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
from labtools import leftovers
from livetools import DRIVERS, LAB, dutperf, needs_engine

pytestmark = [*needs_engine, pytest.mark.lab]


@pytest.fixture(scope="module")
def bench() -> dict[str, Any]:
    short = ("--rounds", "1", "--trial-duration", "0.05")
    done = dutperf("bench", "--lab", LAB, *short, "--json")
    assert done.returncode in (0, 1), done.stderr
    assert "[2/2] " in done.stderr
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def test_both_drivers_are_benched_and_the_lab_is_gone(bench: dict[str, Any]) -> None:
    assert bench["lab"] == LAB
    assert {d["driver"] for d in bench["drivers"]} == set(DRIVERS)
    assert all(not d["unusable"] for d in bench["drivers"])
    assert leftovers() == []


def test_rates_are_those_of_trials_that_held(bench: dict[str, Any]) -> None:
    for driver in bench["drivers"]:
        for purpose, good in (("valid", {"pass", "fail"}), ("lossless", {"pass"})):
            held = {
                trial["rate_fps"]
                for trial in driver["trials"]
                if trial["purpose"] == purpose and trial["verdict"] in good
            }
            assert driver[purpose]["median_fps"] in held | {None}
        valid, lossless = driver["valid"], driver["lossless"]
        assert (lossless["median_fps"] or 0) <= (valid["median_fps"] or 0)


def test_the_worker_sends_in_bursts_and_late_but_never_early(
    bench: dict[str, Any],
) -> None:
    for trial in (t for d in bench["drivers"] for t in d["trials"]):
        assert 1 <= trial["burst_mean"] <= 32
        assert trial["lag_p50_ns"] <= trial["lag_p99_ns"] <= trial["lag_max_ns"]
        assert 0 <= trial["lost_percent"] <= 100


@pytest.mark.skipif(shutil.which("perf") is None, reason="needs perf")
def test_the_time_is_shared_between_the_engine_and_the_kernel(
    bench: dict[str, Any],
) -> None:
    for driver in bench["drivers"]:
        profiled = driver["profiled"]
        if (
            driver["profiler_trouble"]
            or not profiled
            or profiled["verdict"] == "invalid"
        ):
            continue  # perf is not allowed, or too noisy here
        worker = driver["worker"]
        shares = {s["name"]: s["percent"] for s in worker["shares"]}
        assert sum(shares.values()) == pytest.approx(100, abs=1)
        assert shares["send, receive, vary"] > 0
        assert shares["socket, sending"] + shares["wire to the DUT (veth)"] > 0
        assert worker["kernel_percent"] > 0
        assert worker["top_kernel"]
