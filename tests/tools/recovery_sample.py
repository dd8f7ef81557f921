"""Runs on simulated devices that do what they are told: over time, and of queries."""

from __future__ import annotations

import tempfile
from pathlib import Path

from meters import METERED, SimulatedMeter, TimedEngine
from planning import Run, campaign, spec, spoilt, with_hooks

from dutperf.results import ResultsFile
from dutperf.simulation.fake_engine import (
    FakeEngine,
    absent,
    noisy,
    rising,
    step,
)

SECOND = 10**9
LATE_NS = 30_000_000


def recovery_results(until_ns: int = SECOND + LATE_NS, **keys: object) -> ResultsFile:
    """A throughput of 10,000 fps that is given; the device loses until ``until_ns``."""
    what = campaign(
        spec(
            procedure="system-recovery",
            throughput_fps=10_000,
            max_rate_fps=20_000,
            overload_duration_s=1,
            reduced_duration_s=1,
            **{"repeats": 2} | keys,
        )
    )
    engine = FakeEngine(lambda *_: 0, arrivals=absent((SECOND // 2, until_ns)))
    with tempfile.TemporaryDirectory() as directory:
        return Run(Path(directory) / "run", engine)(what)


def outage_results(*spans_ns: tuple[int, int], **keys: object) -> ResultsFile:
    """A device that is out for 300 ms, or in the spans given; nobody acts."""
    spans = spans_ns or ((1_200_000_000, 1_500_000_000),)
    what = campaign(
        spec(
            procedure="outage",
            max_rate_fps=20_000,
            **{
                "rate_fps": 1000,
                "trial_duration_s": 3,
                "trigger_after_s": 1,
                "repeats": 2,
            }
            | keys,
        )
    )
    engine = FakeEngine(lambda *_: 0, arrivals=absent(*spans))
    with tempfile.TemporaryDirectory() as directory:
        return Run(Path(directory) / "run", engine)(what)


def power_results(meter: SimulatedMeter | None = None, **keys: object) -> ResultsFile:
    """A device of 40 W and 10 µJ a frame, which loses some at full load."""
    given = {"trial_duration_s": 20, "load_percent": [10, 50, 100], "rate_fps": 100_000}
    what = campaign(spec(procedure="power", **given | keys))
    known = meter or SimulatedMeter(noise_w=0.3, idle_s=20)
    with tempfile.TemporaryDirectory() as directory:
        engine = TimedEngine(step(90_000))
        run = Run(
            Path(directory) / "run", engine, testbed=METERED, meter=lambda _: known
        )
        return run(what.model_copy(update={"testbed": [METERED]}))


def soak_results(trials: int = 30) -> ResultsFile:
    """A device whose delays grow, that loses some frames now and then."""
    asked = spec(
        procedure="soak",
        rate_fps=1000,
        max_rate_fps=20_000,
        trial_duration_s=1,
        hours=trials / 3600,
    )
    gauge = ["sh", "-c", "echo memory_bytes = $$"]  # another in each trial
    told = with_hooks(after_trial=[{"command": gauge}])
    engine = FakeEngine(
        noisy(10**6, one_in=9),
        delays=rising(50, spread_ns=3000),
        troubles=spoilt("sender_lag", 12),
    )
    with tempfile.TemporaryDirectory() as directory:
        return Run(Path(directory) / "run", engine, testbed=told)(campaign(asked))


def query_results() -> ResultsFile:
    """A DNS64 server at two shares of cached names and of AAAA; and as a resolver."""
    keys = {"ip": [6], "resolution": "5%", "repeats": 2}
    shares = {"aaaa_percent": [0, 50], "cached_percent": [0, 50], "cached_names": 1000}
    what = campaign(
        spec(procedure="dns64", **keys, **shares), spec(procedure="dns", **keys)
    )
    with tempfile.TemporaryDirectory() as directory:
        return Run(Path(directory) / "run", FakeEngine(step(9000)))(what)
