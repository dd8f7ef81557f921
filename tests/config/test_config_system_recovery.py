"""System recovery: keys, the throughput that comes before, what falls short."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import make_campaign, make_cell, make_testbed

from dutperf.config import expand
from dutperf.config.campaign import preset_keys
from dutperf.config.deviations import deviations
from dutperf.config.rate_sources import with_sources
from dutperf.config.warnings import conformance_of
from dutperf.errors import InputError
from dutperf.model.rate_specs import ThroughputSpec
from dutperf.model.specs import SystemRecoverySpec
from dutperf.run.preview import estimate

RECOVERY: dict[str, Any] = {"procedure": "system-recovery"}
THROUGHPUT: dict[str, Any] = {"procedure": "throughput"}
BY_THE_BOOK = {**RECOVERY, "id": "recovery"}


def test_the_throughput_of_the_same_frames_is_what_is_overloaded() -> None:
    campaign = make_campaign(THROUGHPUT, {**RECOVERY, "ip": [4]})
    *_, cell = expand(campaign, make_testbed())
    assert cell.id == "system-recovery-ip4-64-both"
    assert cell.throughput_cell == "throughput-ip4-64-both"
    with pytest.raises(InputError, match="throughput of the same frames"):
        expand(make_campaign(RECOVERY), make_testbed())


def test_another_overload_is_another_cell() -> None:
    campaign = make_campaign(
        THROUGHPUT,
        {**RECOVERY, "ip": [4]},
        {**RECOVERY, "ip": [4], "overload_percent": 150},
    )
    *_, cell = expand(campaign, make_testbed())
    assert cell.id == "system-recovery-ip4-64-both-overload-150percent"


def test_the_command_finds_the_throughput_itself() -> None:
    spec = SystemRecoverySpec.model_validate({**RECOVERY, "direction": "forward"})
    search, after = with_sources(spec)
    assert isinstance(search, ThroughputSpec)
    assert search.direction == ["forward"]
    assert search.trial_duration_s == 60
    assert after is spec


def test_quick_is_a_second_of_each() -> None:
    found = preset_keys("quick", RECOVERY)
    assert found["overload_duration_s"] == found["reduced_duration_s"] == 1
    assert found["repeats"] == 1
    standard = preset_keys("standard", RECOVERY)
    assert standard["overload_duration_s"] == 60
    assert standard["repeats"] == 10


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"overload_percent": 100}, "overload_percent"),
        ({"overload_duration_s": 0}, "overload_duration_s"),
        ({"trial_duration_s": 5}, "system-recovery.trial_duration_s"),
        ({"throughput_fps": "fast"}, "throughput_fps"),
    ],
)
def test_what_makes_no_sense_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, ValueError), match=message):
        expand(
            make_campaign(THROUGHPUT, {**RECOVERY, "ip": [4], **keys}), make_testbed()
        )


def test_defaults_are_by_the_book() -> None:
    cell = make_cell(**BY_THE_BOOK)
    assert deviations(cell) == []
    said = conformance_of(cell, deviations(cell), valid=True)
    assert said.statement == "unconditionally compliant with RFC 2544 26.5"


@pytest.mark.parametrize(
    ("keys", "level", "actual"),
    [
        ({"overload_duration_s": 5}, "text", "5 s instead of at least 60 s"),
        ({"overload_percent": 150}, "text", "150 %"),
        ({"repeats": 1}, "SHOULD", "a single repeat"),
        ({"throughput_fps": 5000}, "text", "5,000 fps, as given"),
        ({"throughput_fps": "throughput p5"}, "text", "throughput p5"),
    ],
)
def test_each_shortfall_is_named(keys: dict[str, Any], level: str, actual: str) -> None:
    (found,) = deviations(make_cell(**{**BY_THE_BOOK, **keys}))
    assert (found.rfc, found.level, found.actual) == ("RFC 2544 26.5", level, actual)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"overload_duration_s": 1}, "an overload of 1 s"),
        ({"repeats": 1}, "a single repeat"),
    ],
)
def test_a_hasty_one_is_a_look(keys: dict[str, Any], why: str) -> None:
    cell = make_cell(**{**BY_THE_BOOK, **keys})
    said = conformance_of(cell, deviations(cell), valid=True)
    assert said.statement == f"exploratory run, not a result by RFC 2544 26.5: {why}"


def test_what_it_takes_is_estimated() -> None:
    (found,) = estimate([make_cell(**BY_THE_BOOK, max_rate_fps=1_000_000)])
    assert found.repeats == 10
    # Ten trials of two minutes and their waits, and the first frames.
    assert found.trials == 11
    assert 1290 < found.duration_s < 1310
