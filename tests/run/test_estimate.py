"""What a campaign is expected to take agrees with what it takes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from gateways import logging_to
from planning import TESTBED, Recording, campaign, cell, spec

from dutperf.config import expand
from dutperf.errors import InputError
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.measurements import METHODS
from dutperf.procedures.throughput import measure_throughput
from dutperf.run.preview import estimate
from dutperf.simulation.fake_engine import FakeEngine, step

FIRST_FRAMES = 1  # a trial before those of the procedure
WAITS = {"settle_wait_s": 2, "residual_wait_s": 3, "restabilise_wait_s": 5}


@pytest.mark.parametrize(
    "keys",
    [
        {"search": "classic", "resolution": "5%"},
        {"search": "classic", "resolution": "0.1%", "repeats": 3},
        {"search": "classic", "resolution": "1000"},
        {"search": "classic", "resolution": "2000000"},
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
    METHODS[what.procedure].trials.measure(
        recording.runner, what, MaxRate(1_000_000, "set")
    )
    (expected,) = estimate([what])
    own = expected.trials - FIRST_FRAMES
    assert abs(len(recording.records) - own) <= what.repeats


@pytest.mark.parametrize(
    "keys",
    [
        {"repeats": 20},
        {"repeats": 20, "search": "verified"},
        {"repeats": "auto"},
        {"search": "mlrsearch", "resolution": "1%", "goals": [{}, "0.5%:50%"]},
    ],
)
def test_searches_that_depend_on_noise_are_estimated_roughly(
    keys: dict[str, object],
) -> None:
    what = cell(trial_duration_s=60, **keys)
    device = random.Random(7)  # noqa: S311 - repeatable noise

    def forward(rate_fps: float, frames: int) -> int:
        limit_fps = device.gauss(500_000, 2_500)
        return frames if rate_fps <= limit_fps else int(frames * limit_fps / rate_fps)

    recording = Recording(FakeEngine(forward))
    measure_throughput(recording.runner, what, MaxRate(1_000_000, "set"))
    (expected,) = estimate([what])
    most = expected.most or expected
    assert expected.trials * 0.5 <= len(recording.records) <= most.trials * 1.5


def test_ending_hopeless_trials_early_saves_time_and_no_trial() -> None:
    early, late = estimate(
        [
            cell(trial_duration_s=60, repeats=20, early_stop=early)
            for early in (True, False)
        ]
    )
    assert early.trials == late.trials
    assert early.duration_s < 0.8 * late.duration_s


def test_repeating_until_settled_takes_from_the_first_look_to_the_last() -> None:
    (auto,) = estimate([cell(repeats="auto")])
    assert (auto.repeats, auto.most and auto.most.repeats) == (8, 64)
    (once,) = estimate([cell(repeats="auto", max_repeats=8)])
    assert (once.repeats, once.most) == (8, None)


def test_what_mlrsearch_cannot_search_is_refused() -> None:
    with pytest.raises(InputError, match="the lowest rate that MLRsearch tries"):
        estimate([cell(search="mlrsearch", resolution="1%", max_rate_fps=1000)])


def test_the_time_is_that_of_all_trials_with_their_waits() -> None:
    what = cell(
        procedure="frame-loss",
        load_percent=[100, 50],
        repeats=3,
        trial_duration_s=60,
        **WAITS,
    )
    (expected,) = estimate([what])
    first_s = 0.1 + 10
    assert (expected.trials, expected.duration_s) == (7, 6 * 70 + first_s)


@pytest.mark.parametrize(
    ("keys", "probes"),
    [
        ({}, 3),
        ({"procedure": "frame-loss"}, 3),
        ({"procedure": "pdv", "rate_fps": 1000}, 0),
    ],
)
def test_what_virtual_ports_can_offer_takes_about_a_second(
    keys: dict[str, object], probes: int
) -> None:
    what = cell(**keys)
    (plain,), (probed,) = estimate([what]), estimate([what], ["simulated"])
    assert probed.trials - plain.trials == probes
    assert probed.duration_s - plain.duration_s == pytest.approx(probes * 0.4)


def test_without_a_maximum_rate_links_of_10_gbit_s_are_assumed() -> None:
    unknown = cell(max_rate_fps=None, frame_size=[64])
    known = cell(max_rate_fps=14_880_952, frame_size=[64])
    assert estimate([unknown])[0].trials == estimate([known])[0].trials


def test_every_cell_of_a_campaign_has_its_estimate() -> None:
    cells = expand(campaign(spec(ip=[4, 6], frame_size=[128, 256])), TESTBED)
    assert [e.cell for e in estimate(cells)] == cells


def test_the_time_of_a_log_is_waited_for_twice_in_each_test() -> None:
    def takes_s(within_s: float) -> float:
        keys = {"procedure": "nat-log", "tests": 3, "log_within_s": within_s}
        asked = cell(logging_to(Path("/log")), **keys)
        return estimate([asked])[0].duration_s

    assert takes_s(11) - takes_s(1) == pytest.approx(3 * 2 * 10)
