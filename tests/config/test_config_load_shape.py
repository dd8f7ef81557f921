"""Loads that are not steady: what their steps are, and where they are refused."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from planning import Recording, cell

from dutperf.config.deviations import deviations
from dutperf.config.warnings import conformance_of
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.loads import LoadShape
from dutperf.procedures.bursts import shaped_trials
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.trials import Ask
from dutperf.simulation.fake_engine import FakeEngine, perfect

RATE = 10_000
STEPS = [
    {"percent": 20.0, "duration_s": 0.5},
    {"percent": 100.0, "duration_s": 0.25},
    {"percent": 0.0, "duration_s": 0.25},
]


def shape(**keys: object) -> LoadShape:
    return LoadShape.model_validate(keys)


def loss_cell(**keys: object) -> Cell:
    given = {"procedure": "frame-loss", "trial_duration_s": 2, "load_percent": [100]}
    return cell(**given | keys)


def test_steps_are_as_given() -> None:
    steps = shape(steps=STEPS).of_load(RATE)
    assert [(s.rate_fps, s.duration_ns) for s in steps] == [
        (2_000, 500_000_000),
        (10_000, 250_000_000),
        (0, 250_000_000),
    ]


@pytest.mark.parametrize("low", [0, 25])
def test_a_ramp_goes_up_evenly_from_the_lowest_point_to_the_load(low: float) -> None:
    steps = shape(ramp_s=1.5, from_percent=low).of_load(RATE)
    rates = [step.rate_fps for step in steps]
    assert (rates[0], rates[-1]) == (RATE * low / 100, RATE)
    assert rates == sorted(rates)
    rises = [above - below for below, above in pairwise(rates)]
    assert max(rises) - min(rises) <= 1
    assert sum(step.duration_ns for step in steps) == 1_500_000_000


def test_a_sine_is_at_the_load_in_the_middle_and_half_of_it_on_average() -> None:
    steps = shape(sine_s=1, from_percent=0).of_load(RATE)
    rates = [step.rate_fps for step in steps]
    assert (rates[0], rates[50], max(rates)) == (0, RATE, RATE)
    assert rates[25] == RATE // 2
    assert math.isclose(sum(rates) / len(rates), RATE / 2, rel_tol=0.001)


def test_a_trial_follows_it() -> None:
    asked = loss_cell(traffic={"load_shape": {"steps": STEPS}})
    recording = Recording(FakeEngine(perfect()))
    trials = shaped_trials(recording.runner, asked, MaxRate(RATE, "set"))
    record = trials.run(Ask(asked, RATE))
    for direction in record.result.directions:
        assert direction.intended_rate_fps == RATE
        assert direction.streams[0].sent == 2 * (1_000 + 2_500)


def test_its_name_says_what_it_is() -> None:
    assert loss_cell(traffic={"load_shape": {"ramp_s": 2}}).id.endswith("-ramp2s")
    sine = loss_cell(traffic={"load_shape": {"sine_s": 2, "from_percent": 10}})
    assert sine.id.endswith("-sine2s-from10")


def test_its_figure_is_not_called_the_frame_loss_rate_of_the_rfc() -> None:
    asked = loss_cell(traffic={"load_shape": {"ramp_s": 2}})
    said = conformance_of(asked, deviations(asked), valid=True)
    assert said.status == "other_measure"
    assert "a load that changes: ramp2s" in said.statement


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "give one of steps, ramp_s and sine_s"),
        ({"ramp_s": 1, "sine_s": 1}, "give one of steps, ramp_s and sine_s"),
        ({"steps": STEPS[:1] * 2}, "the highest step must be 100"),
        ({"steps": STEPS, "from_percent": 5}, "from_percent is of a ramp or a sine"),
        ({"ramp_s": 5}, "takes 5 s, longer than a trial, 2 s"),
        ({"ramp_s": 0}, "0.1"),
    ],
)
def test_what_is_no_shape_is_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        loss_cell(traffic={"load_shape": keys})


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"procedure": "outage", "rate_fps": 1000}, "whose load over time is its own"),
        (
            {"procedure": "connection-rate", "stateful": {"connections": 1000}},
            "must be left out of connection-rate",
        ),
        (
            {
                "procedure": "throughput",
                "stateful": {"connections": 1000, "phase1_rate": 1000},
            },
            "must be left out of throughput",
        ),
        ({"procedure": "throughput"}, "must be left out of throughput"),
        (
            {"procedure": "throughput", "traffic": {"burst_frames": 16}},
            "give burst_frames or load_shape, not both",
        ),
    ],
)
def test_where_it_has_no_meaning_it_is_refused(keys: dict[str, Any], said: str) -> None:
    traffic = {"load_shape": {"ramp_s": 1}} | keys.pop("traffic", {})
    with pytest.raises(InputError, match=said):
        cell(traffic=traffic, **keys)
