"""Back-to-back frames: keys, the throughput that comes before, what falls short."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import make_campaign, make_cell, make_testbed

from dutperf.config import expand
from dutperf.config.deviations import deviations
from dutperf.config.rate_sources import with_sources
from dutperf.config.warnings import conformance_of
from dutperf.errors import InputError
from dutperf.model.rate_specs import BackToBackSpec, ThroughputSpec
from dutperf.run.preview import estimate

B2B: dict[str, Any] = {"procedure": "back-to-back"}
THROUGHPUT: dict[str, Any] = {"procedure": "throughput"}
BY_THE_BOOK = {**B2B, "throughput_fps": "throughput", "id": "b2b"}


def test_the_throughput_of_the_same_frames_corrects_it() -> None:
    campaign = make_campaign(THROUGHPUT, {**B2B, "ip": [4]})
    *_, cell = expand(campaign, make_testbed())
    assert cell.id == "back-to-back-ip4-64-both"
    assert cell.throughput_cell == "throughput-ip4-64-both"


def test_a_throughput_has_to_be_measured_before() -> None:
    with pytest.raises(InputError, match="throughput of the same frames"):
        expand(make_campaign(B2B), make_testbed())
    given = make_campaign({**B2B, "ip": [4], "throughput_fps": 1000})
    (cell,) = expand(given, make_testbed())
    assert cell.throughput_cell is None


def test_the_command_finds_the_throughput_itself() -> None:
    spec = BackToBackSpec.model_validate({**B2B, "direction": "forward", "ip": [6]})
    search, after = with_sources(spec)
    assert isinstance(search, ThroughputSpec)
    assert (search.direction, search.ip) == (["forward"], [6])
    # Of whole trials, whatever the longest burst is.
    assert search.trial_duration_s == 60
    assert search.resolution == ThroughputSpec.model_fields["resolution"].default
    assert after is spec
    quick, _ = with_sources(spec, "quick")
    assert quick.trial_duration_s == 1


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"traffic": {"imix": "aaafg"}}, "imix: must be left out"),
        ({"longest_burst_s": 31}, "longest_burst_s"),
        ({"step": "0"}, "step"),
        ({"resolution": "5%"}, "back-to-back.resolution"),
        ({"trial_duration_s": 5}, "back-to-back.trial_duration_s"),
    ],
)
def test_what_makes_no_sense_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, ValueError), match=message):
        expand(make_campaign(THROUGHPUT, {**B2B, "ip": [4], **keys}), make_testbed())


def test_defaults_are_by_the_book() -> None:
    cell = make_cell(**BY_THE_BOOK)
    assert deviations(cell) == []
    said = conformance_of(cell, deviations(cell), valid=True)
    assert said.statement == "unconditionally compliant with RFC 9004 6"


@pytest.mark.parametrize(
    ("keys", "rfc", "level"),
    [
        ({"repeats": 49}, "RFC 2544 26.4", "SHOULD"),
        ({"longest_burst_s": 1.9}, "RFC 2544 26.4", "MUST"),
        ({"throughput_fps": 1000}, "RFC 9004 5", "MUST"),
        ({"restabilise_wait_s": 1}, "RFC 2544 23", "text"),
    ],
)
def test_each_shortfall_is_named(keys: dict[str, Any], rfc: str, level: str) -> None:
    (found,) = deviations(make_cell(**{**BY_THE_BOOK, **keys}))
    assert (found.rfc, found.level) == (rfc, level)


def test_a_shorter_wait_is_against_both_rfcs() -> None:
    found = deviations(make_cell(**{**BY_THE_BOOK, "residual_wait_s": 1}))
    assert [(d.rfc, d.level) for d in found] == [
        ("RFC 2544 23", "text"),
        ("RFC 9004 6.2", "MUST"),
    ]


def test_what_it_takes_is_estimated() -> None:
    cell = make_cell(**BY_THE_BOOK, max_rate_fps=1_000_000)
    (found,) = estimate([cell])
    # 21 halvings of two million frames, of which every other fails twice.
    assert found.repeats == 50
    assert 50 * 21 < found.trials < 50 * 2 * 22
    assert found.duration_s > found.trials * 9
