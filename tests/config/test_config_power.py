"""What the procedure power may be told, and what a testbed must have for it."""

from __future__ import annotations

from typing import Any

import pytest
from meters import METERED, with_meter
from planning import TESTBED, cell

from dutperf.config import deviations
from dutperf.config.testbed import PowerMeter
from dutperf.errors import InputError
from dutperf.run.preview import estimate

KEYS: dict[str, Any] = {"procedure": "power", "rate_fps": 1000}


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({}, "accuracy_percent"),
        ({"accuracy_percent": 1}, "exactly one"),
        ({"accuracy_percent": 1, "rapl": "a", "command": ["b"]}, "exactly one"),
        ({"accuracy_percent": 1, "command": []}, "at least 1"),
        ({"accuracy_percent": 0, "rapl": "a"}, "greater than 0"),
        ({"accuracy_percent": 100, "rapl": "a"}, "less than 100"),
        ({"accuracy_percent": 1, "rapl": "a", "every_s": 0}, "every_s"),
        ({"accuracy_percent": 1, "rapl": "a", "ssh": {"host": "b"}}, "command alone"),
        (
            {
                "accuracy_percent": 1,
                "ipmi": {"host": "b", "user": "-x", "password": {"env": "P"}},
            },
            "begin with",
        ),
        (
            {
                "accuracy_percent": 1,
                "ipmi": {"host": "b", "user": "u", "password": "p"},
            },
            "password",
        ),
        ({"accuracy_percent": 1, "snmp": {"host": "b", "oid": "-r"}}, "oid"),
    ],
)
def test_a_meter_is_one_whose_accuracy_is_known(keys: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        PowerMeter.model_validate(keys)


def test_without_a_meter_nothing_is_sent() -> None:
    with pytest.raises(InputError, match="has no power meter"):
        cell(TESTBED, **KEYS)


def test_a_trial_must_hold_readings_enough() -> None:
    with pytest.raises(InputError, match="too short for 6 readings"):
        cell(METERED, **KEYS, trial_duration_s=7.9)
    cell(METERED, **KEYS, trial_duration_s=8)
    slow = with_meter(TESTBED, averaging_s=4.5)
    with pytest.raises(InputError, match=r"which take 31\.5 s"):
        cell(slow, **KEYS, trial_duration_s=31)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"load_percent": [10, 50]}, "must have 100"),
        ({"load_percent": [100, 110]}, "must be at most 100"),
        ({"load_percent": [0, 100]}, "must be above 0"),
        ({"flows": [1, 10]}, "must be left out"),
        ({"stateful": {"connections": 10, "phase1_rate": 10}}, "must be left out"),
    ],
)
def test_loads_and_frames_are_those_of_one_stream(
    keys: dict[str, Any], why: str
) -> None:
    with pytest.raises((InputError, ValueError), match=why):
        cell(METERED, **KEYS | keys)


def test_loads_rise() -> None:
    asked = cell(METERED, **KEYS, load_percent=[100, 5, 50])
    assert asked.spec.model_dump()["load_percent"] == [5, 50, 100]


def test_it_takes_a_trial_more_than_there_are_loads() -> None:
    asked = cell(METERED, **KEYS, load_percent=[50, 100], restabilise_wait_s=0)
    alone = cell(METERED, **KEYS, load_percent=[100], restabilise_wait_s=0)
    (two,), (one,) = estimate([asked]), estimate([alone])
    assert two.trials == one.trials + 1
    assert two.duration_s - one.duration_s == pytest.approx(64)
    assert one.duration_s >= 2 * 60 + 4


def test_it_is_called_by_its_own_name() -> None:
    found = [d for d in deviations(cell(METERED, **KEYS)) if d.level == "definition"]
    assert [d.rfc for d in found] == ["draft-ietf-bmwg-powerbench"]
