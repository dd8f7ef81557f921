"""Thousands of trials in one engine: the last is as the first, and nothing grows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
from livetools import (
    MS,
    Trial,
    Usage,
    counting,
    engines_of,
    measured_once,
    open_rings,
    running_engine,
    usage,
)

from dutperf.engine.client import Engine
from tools.calibrate.truth import by_result

pytestmark = counting("endurance")

TRIALS = int(os.environ.get("DUTPERF_ENDURANCE_TRIALS", "600"))
"""10,000 take two minutes (docs/developing.md)."""
WARM = 100
"""Trials after which everything that is made once has been made."""
TINY = Trial(fps=20_000, ms=1, extra={"settle_ns": 0, "residual_wait_ns": MS})
GROWN_KB = 512
"""Of 10,000 trials less than 60 bytes each."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with running_engine(tmp_path) as it:
        open_rings(it)
        yield it


def test_thousands_of_trials_cost_no_memory_no_files_and_no_time(
    engine: Engine, tmp_path: Path
) -> None:
    (pid,) = engines_of(os.getpid())
    overheads_ns: list[int] = []
    before: Usage | None = None
    for number in range(TRIALS):
        result = measured_once(engine, TINY.request(1 + number % 65_535))
        assert {c.sent for c in by_result(result).values()} == {20}
        overheads_ns.append(result.overhead_ns)
        if number == WARM:
            before = usage(pid)
    after = usage(pid)
    assert before is not None
    assert after.resident_kb - before.resident_kb < GROWN_KB
    assert after[1:] == before[1:]
    tenth = TRIALS // 10
    first, last = overheads_ns[:tenth], overheads_ns[-tenth:]
    assert median(last) < 10 * median(first)  # others may have the CPUs meanwhile
    assert (tmp_path / "engine.log").stat().st_size < 64 * 1024
