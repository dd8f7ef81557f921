"""Loads of a frame loss curve: series by steps, what ends early, and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import make_campaign, make_testbed

from dutperf.config import deviations, expand, spec_from
from dutperf.errors import InputError
from dutperf.model.loads import ends_when_lossless, falling_loads

LOSS: dict[str, Any] = {"procedure": "frame-loss", "ip": [4]}


def test_loads_are_exactly_those_that_are_written() -> None:
    assert falling_loads(10) == [100, 90, 80, 70, 60, 50, 40, 30, 20, 10]
    assert falling_loads(0.1)[-3:] == [0.3, 0.2, 0.1]
    assert falling_loads(7)[-2:] == [9, 2]
    assert falling_loads(2.3)[:3] == [100, 97.7, 95.4]


@pytest.mark.parametrize("step_percent", [0.1, 0.3, 1, 2.3, 2.5, 5, 7, 9.9, 10])
def test_the_rfcs_series_of_any_step_ends_when_lossless(step_percent: float) -> None:
    loads = falling_loads(step_percent)
    assert all(load > 0 for load in loads)
    assert ends_when_lossless(loads)
    assert not ends_when_lossless(loads[1:])
    assert not ends_when_lossless(loads[: len(loads) // 2])


@pytest.mark.parametrize(
    "loads",
    [[100], [100, 50], [100, 80, 60, 40, 20], [100, 90, 80], [100, 90, 85, 80], [50]],
)
def test_other_lists_are_measured_as_they_are(loads: list[float]) -> None:
    assert not ends_when_lossless(loads)


def test_a_finer_step_is_no_deviation_and_a_coarser_list_is_one() -> None:
    for keys in ({"load_step_percent": 5}, {"load_percent": [100, 95, 85]}, {}):
        [cell] = expand(make_campaign(LOSS | keys), make_testbed())
        assert deviations(cell) == []
    [cell] = expand(make_campaign(LOSS | {"load_percent": [100, 70]}), make_testbed())
    assert [found.rfc for found in deviations(cell)] == ["RFC 2544 26.3"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"load_step_percent": 5, "load_percent": [100]}, "not both"),
        ({"load_step_percent": 11}, "must be at most 10"),
        ({"load_step_percent": 0}, "must be at least 0.1"),
        (
            {"load_step_percent": 5, "procedure": "throughput"},
            "load_step_percent: unknown key: it is of frame-loss",
        ),
    ],
)
def test_steps_that_make_no_curve_are_refused(
    keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as refusal:
        spec_from(LOSS | keys, "here")
    assert message in refusal.value.message
