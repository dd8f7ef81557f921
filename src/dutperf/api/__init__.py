"""dutperf in other people's programs: ``import dutperf`` has these names.

    with dutperf.Tester(lab="linux-router") as tester:
        with tester.traffic(ip=4, frame_size=64) as traffic:
            trial = traffic.trial(rate_fps=100_000, duration_s=1)
        found = tester.measure("throughput", preset="quick", ip=4, frame_size=64)

What is promised of them is in docs/python.md. Commands, the plugin of pytest, the
keywords of Robot Framework and adapters (``dutperf.adapters``) call what is here.
"""

from __future__ import annotations

from dutperf.api.in_tasks import AsyncTester, AsyncTraffic
from dutperf.api.tester import Measured, Tester
from dutperf.api.traffic import Found, Traffic, Trial
from dutperf.errors import (
    BusyError,
    DutperfError,
    EngineError,
    InputError,
    SetupError,
    StorageError,
)
from dutperf.results.figures import Figure
from dutperf.run.stream_counts import DirectionCounts

__all__ = [
    "AsyncTester",
    "AsyncTraffic",
    "BusyError",
    "DirectionCounts",
    "DutperfError",
    "EngineError",
    "Figure",
    "Found",
    "InputError",
    "Measured",
    "SetupError",
    "StorageError",
    "Tester",
    "Traffic",
    "Trial",
]
