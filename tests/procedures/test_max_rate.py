from __future__ import annotations

import pytest
from planning import TESTBED, TRANSLATOR, campaign, cell, spec

from dutperf.config import expand
from dutperf.errors import InputError
from dutperf.procedures.max_rate import MaxRate, check_links, max_rate
from dutperf.protocol import PortsResult, PortStatus
from dutperf.run.engine_session import port_specs
from dutperf.simulation.fake_engine import FakeEngine, perfect


def ports(*speeds_mbps: int | None) -> list[PortStatus]:
    opened = FakeEngine(perfect()).open_ports(port_specs(TESTBED, "af_packet"))
    return [
        port.model_copy(update={"link_speed_mbps": speed})
        for port, speed in zip(opened.ports, speeds_mbps, strict=True)
    ]


def test_the_slower_port_limits_by_its_media_rate() -> None:
    found = max_rate(cell(max_rate_fps=None), ports(10_000, 1000))
    assert found == MaxRate(1_488_095, "media")


def test_what_was_set_is_the_limit_whatever_the_ports_say() -> None:
    assert max_rate(cell(max_rate_fps=7), ports(None, 1000)) == MaxRate(7, "set")


def narrow(mtu: int) -> PortsResult:
    """The right port is an interface of another MTU than the testbed says."""
    left, right = ports(10_000, 10_000)
    return PortsResult(ports=[left, right.model_copy(update={"mtu": mtu})])


def test_frames_that_the_link_as_it_is_cannot_carry_are_refused() -> None:
    fits, too_large = cell(frame_size=[512]), cell(frame_size=[1024])
    check_links(TESTBED, narrow(1005), [fits])
    with pytest.raises(InputError) as caught:
        check_links(TESTBED, narrow(1005), [fits, too_large])
    assert caught.value.message.startswith(f"{too_large.id}: frame_size: 1024 does not")
    assert "MTU 1005 carries frames of at most 1023 bytes" in caught.value.message
    assert "ip link" in caught.value.hint


def test_a_link_that_carries_more_than_the_testbed_says_changes_nothing() -> None:
    check_links(TESTBED, narrow(9000), [cell(frame_size=[1518])])


@pytest.mark.parametrize("unknown", [None, 0])
def test_an_unknown_speed_asks_for_max_rate(unknown: int | None) -> None:
    with pytest.raises(InputError, match="right port") as caught:
        max_rate(cell(max_rate_fps=None), ports(1000, unknown))
    assert "--max-rate" in caught.value.hint


@pytest.mark.parametrize(
    ("traffic", "rate_fps"),
    [
        ({}, 12_019_230),  # 84 bytes on the left limit, although 64 go to the right
        ({"mix": "10/90"}, 12_019_230),
        ({"imix": "ag"}, 1_522_533),  # (84 + 1518) / 2 bytes
    ],
)
def test_the_media_rate_of_a_translator_is_that_of_its_larger_frames(
    traffic: dict[str, str], rate_fps: int
) -> None:
    translated = spec(ip=["6-4"], max_rate_fps=None, traffic=traffic)
    [only] = expand(campaign(translated), TRANSLATOR)
    assert max_rate(only, ports(10_000, 10_000)) == MaxRate(rate_fps, "media")


def test_a_mix_is_limited_by_the_mean_of_its_frames() -> None:
    mixed = cell(max_rate_fps=None, traffic={"mix": "50/50"})  # 64 and 84 bytes
    assert max_rate(mixed, ports(10_000, 10_000)).rate_fps == 10**10 // (8 * (74 + 20))


def load(rate_fps: int, max_rate_fps: int | None = None) -> MaxRate:
    given = cell(procedure="pdv", rate_fps=rate_fps, max_rate_fps=max_rate_fps)
    return max_rate(given, ports(10_000, 1000))


def test_a_fixed_load_is_its_own_limit() -> None:
    assert load(1_488_095) == MaxRate(1_488_095, "load")


def test_a_fixed_load_that_the_media_cannot_carry_is_refused() -> None:
    with pytest.raises(InputError, match="more than the ports' media carry, 1488095"):
        load(1_488_096)


def test_a_maximum_that_was_set_stands_for_a_nominal_speed() -> None:
    assert load(2_000_000, max_rate_fps=2_000_000).rate_fps == 2_000_000


def test_a_fixed_load_needs_no_link_speed() -> None:
    given = cell(procedure="pdv", rate_fps=5, max_rate_fps=None)
    assert max_rate(given, ports(None, None)) == MaxRate(5, "load")
