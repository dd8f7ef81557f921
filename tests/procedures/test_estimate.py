"""What a campaign is expected to take agrees with what it takes."""

from __future__ import annotations

import pytest
from planning import TESTBED, Recording, campaign, cell, spec

from dutperf.config import expand
from dutperf.engine.fake import FakeEngine, step
from dutperf.procedures.estimate import estimate
from dutperf.procedures.executor import PROCEDURES
from dutperf.procedures.limits import MaxRate

WAITS = {"settle_wait_s": 2, "residual_wait_s": 3, "restabilise_wait_s": 5}


@pytest.mark.parametrize(
    "keys",
    [
        {"resolution": "5%"},
        {"resolution": "0.1%", "repeats": 3},
        {"resolution": "1000"},
        {"resolution": "2000000"},
        {"procedure": "frame-loss", "repeats": 2},
        {"procedure": "frame-loss", "load_percent": [100, 70, 20]},
        {"procedure": "latency", "rate_fps": 1000, "repeats": 4},
        {"procedure": "pdv", "rate_fps": 1000},
        {"procedure": "ipdv", "rate_fps": 1000, "repeats": 1},
    ],
)
def test_a_device_of_half_the_maximum_takes_as_many_trials_as_estimated(
    keys: dict[str, object],
) -> None:
    what = cell(**keys)
    recording = Recording(FakeEngine(step(500_000)))
    PROCEDURES[what.procedure](recording.runner, what, MaxRate(1_000_000, "set"))
    (expected,) = estimate([what])
    assert abs(len(recording.records) - expected.trials) <= what.repeats


def test_the_time_is_that_of_all_trials_with_their_waits() -> None:
    what = cell(
        procedure="frame-loss",
        resolution="0.1%",
        load_percent=[100, 50],
        repeats=3,
        trial_duration_s=60,
        **WAITS,
    )
    (expected,) = estimate([what])
    assert (expected.trials, expected.duration_s) == (6, 6 * 70)


def test_without_a_maximum_rate_links_of_10_gbit_s_are_assumed() -> None:
    unknown = cell(max_rate_fps=None, frame_size=[64])
    known = cell(max_rate_fps=14_880_952, frame_size=[64])
    assert estimate([unknown])[0].trials == estimate([known])[0].trials


def test_every_cell_of_a_campaign_has_its_estimate() -> None:
    cells = expand(campaign(spec(ip=[4, 6], frame_size=[128, 256])), TESTBED)
    assert [e.cell for e in estimate(cells)] == cells
