"""What a result says of the tester's passport is derived again, and each digit held."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from passport_sample import OWNER
from planning import Run, campaign, cell, spec

from dutperf.api.places import planned_testbeds
from dutperf.evidence import verify
from dutperf.procedures.passport_use import sent_by
from dutperf.results.passport import (
    Passport,
    PassportDelay,
    PassportEntry,
)
from dutperf.run.campaign_run import results_again
from dutperf.simulation.fake_engine import FakeEngine, step

FLOOR = PassportDelay(
    rate_fps=9, frames=99, minimum_ns=10, typical_ns=90_000, worst_ns=900_000
)
DELAYS = {"procedure": "latency", "rate_fps": 5000, "tags": 50, "repeats": 2}


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A rate near the safe one, and delays below the floor."""
    (sent,) = sent_by(cell())
    entry = PassportEntry(
        sent=sent,
        made_at="2026-01-01T00:00:00+00:00",
        trial_duration_s=0.5,
        trials=20,
        safe_rate_fps=100_000,
        highest_rate_fps=100_000,
        next_rate_fps=None,
        delays=[FLOOR],
        device_ns_per_frame=1234.5,
    )
    passport = Passport(owner=OWNER, entries=[entry])
    run = Run(tmp_path / "run", FakeEngine(step(95_000)))
    run.around = replace(run.around, passport=lambda *_all: passport)
    run(campaign(spec(), spec(**DELAYS)))
    return tmp_path / "run"


def test_shares_and_floors_are_derived_again(whole: Path) -> None:
    stored = json.loads((whole / "results.json").read_text())["cells"]
    assert stored[0]["passport"]["share_percent"] > 90
    assert stored[1]["measures"][0]["result"]["below_ns"] == 90_000
    found = verify(whole, planned_testbeds, results_again)
    assert found.good, found


@pytest.mark.parametrize(
    ("number", "place", "value"),
    [
        (0, ("passport", "share_percent"), 50.0),
        (0, ("passport", "safe_rate_fps"), 200_000),
        (0, ("passport", "rate_fps"), 1.0),
        (0, ("passport", "trials"), 21),
        (0, ("passport", "device_share_percent"), 1.0),
        (1, ("passport", "floor", "typical_ns"), 1),
        (1, ("measures", 0, "result", "below_ns"), None),
    ],
)
def test_another_share_or_floor_is_refused(
    whole: Path, number: int, place: tuple[str | int, ...], value: float | None
) -> None:
    path = whole / "results.json"
    stored = json.loads(path.read_text())
    at = stored["cells"][number]
    for key in place[:-1]:
        at = at[key]
    assert at[place[-1]] != value
    at[place[-1]] = value
    path.write_text(json.dumps(stored))
    assert not verify(whole, planned_testbeds, results_again).good
