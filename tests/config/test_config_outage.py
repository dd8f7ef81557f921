"""Outages: keys, hooks, what falls short of RFC 6201."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import make_campaign, make_cell, make_testbed

from dutperf.config import expand, notices
from dutperf.config.campaign import preset_keys
from dutperf.config.deviations import deviations
from dutperf.config.warnings import conformance_of
from dutperf.errors import InputError
from dutperf.run.preview import estimate

OUTAGE: dict[str, Any] = {"procedure": "outage"}
BY_THE_BOOK = {**OUTAGE, "id": "outage"}


def test_the_throughput_is_found_before() -> None:
    campaign = make_campaign({"procedure": "throughput"}, {**OUTAGE, "ip": [4]})
    *_, cell = expand(campaign, make_testbed())
    assert cell.id == "outage-ip4-64-both-at-throughput"
    assert cell.throughput_cell == "throughput-ip4-64-both"


def test_something_has_to_happen_before_the_end() -> None:
    keys = {**OUTAGE, "rate_fps": 1000, "trigger_after_s": 9, "trial_duration_s": 9}
    with pytest.raises((InputError, ValueError), match="not before the end"):
        expand(make_campaign(keys), make_testbed())


def test_quick_takes_seconds() -> None:
    found = preset_keys("quick", OUTAGE)
    assert found["trigger_after_s"] == 1
    assert found["trial_duration_s"] == 20
    assert preset_keys("standard", OUTAGE)["repeats"] == 3


def test_who_acts_is_told_before() -> None:
    keys = {**OUTAGE, "ip": [4], "rate_fps": 1000}
    hooks = {"during_trial": [{"command": ["true"]}]}
    with_hook = make_testbed(hooks=hooks)
    assert notices(with_hook, expand(make_campaign(keys), with_hook)) == []
    testbed = make_testbed()
    (told,) = notices(testbed, expand(make_campaign(keys), testbed))
    assert "15 s after a trial of outage has begun you are asked" in told


def test_defaults_are_by_the_book() -> None:
    cell = make_cell(**BY_THE_BOOK)
    assert deviations(cell) == []
    said = conformance_of(cell, deviations(cell), valid=True)
    assert said.statement == "unconditionally compliant with RFC 6201 4"


@pytest.mark.parametrize(
    ("keys", "rfc", "level"),
    [
        ({"trigger_after_s": 5}, "RFC 6201 4", "text"),
        ({"rate_fps": 5000}, "RFC 6201 4", "text"),
        ({"frame_sizes": [128]}, "RFC 6201 4", "text"),
        ({"repeats": 1}, "RFC 6201 1.4", "SHOULD"),
    ],
)
def test_each_shortfall_is_named(keys: dict[str, Any], rfc: str, level: str) -> None:
    (found,) = deviations(make_cell(**{**BY_THE_BOOK, **keys}))
    assert (found.rfc, found.level) == (rfc, level)


def test_less_before_the_outage_is_a_look() -> None:
    cell = make_cell(**BY_THE_BOOK, trigger_after_s=1)
    said = conformance_of(cell, deviations(cell), valid=True)
    assert (
        said.statement
        == "exploratory run, not a result by RFC 6201 4: an outage after 1 s"
    )


def test_what_it_takes_is_estimated() -> None:
    (found,) = estimate([make_cell(**BY_THE_BOOK, max_rate_fps=1_000_000)])
    assert found.repeats == 3
    assert 3 * 129 < found.duration_s < 3 * 129 + 12
