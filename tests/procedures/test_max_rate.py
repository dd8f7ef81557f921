from __future__ import annotations

from dataclasses import replace

import pytest
from gateways import NAT44
from planning import TESTBED, TRANSLATOR, campaign, cell, spec

from dutperf.config import expand
from dutperf.errors import InputError
from dutperf.procedures.max_rate import (
    LimitKind,
    MaxRate,
    check_links,
    max_rate,
)
from dutperf.protocol.port_messages import PortsResult, PortStatus
from dutperf.run.engine_session import port_specs
from dutperf.simulation.fake_engine import FakeEngine, perfect

STATEFUL = {"connections": 5, "phase1_rate": 5}
LATER = {"rate_fps": "throughput", "max_rate_fps": None}


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


def virtual(*speeds_mbps: int | None) -> list[PortStatus]:
    """The same without a medium: shared memory."""
    return [port.model_copy(update={"driver": "memif"}) for port in ports(*speeds_mbps)]


@pytest.mark.parametrize("procedure", ["throughput", "frame-loss"])
def test_what_has_no_medium_is_searched_from_where_no_tester_gets(
    procedure: str,
) -> None:
    asked = cell(procedure=procedure, max_rate_fps=None)
    assert max_rate(asked, virtual(None, None)) == MaxRate(148_809_523, "tester")


def test_what_no_tester_offers_is_so_much_of_the_shorter_frames() -> None:
    """64 bytes on one side of the translator, 84 on the other."""
    for family in ("6-4", "4-6"):
        translated = spec(ip=[family], max_rate_fps=None)
        [only] = expand(campaign(translated), TRANSLATOR)
        assert max_rate(only, virtual(None, None)).rate_fps == 148_809_523


def test_one_medium_beside_a_port_without_any_is_the_limit() -> None:
    left, _ = ports(1000, None)
    _, right = virtual(None, None)
    assert max_rate(cell(max_rate_fps=None), [left, right]).kind == "media"


@pytest.mark.parametrize(
    "asked",
    [
        {"procedure": "connection-rate", "stateful": {"connections": 5}},
        {"procedure": "throughput", "stateful": STATEFUL},
    ],
)
def test_what_is_not_probed_needs_a_maximum_on_ports_without_a_medium(
    asked: dict[str, object],
) -> None:
    with pytest.raises(InputError, match="left port"):
        max_rate(cell(NAT44, max_rate_fps=None, **asked), virtual(None, None))


def test_a_load_that_is_yet_to_be_found_is_no_limit_and_bounds_nothing() -> None:
    _, asked = expand(campaign(spec(), spec(procedure="pdv", **LATER)), TESTBED)
    found = max_rate(asked, ports(None, None))
    assert found == MaxRate(0, "found", "the load that is yet to be found")
    assert (found.words, found.bound_cause) == (found.detail, None)


@pytest.mark.parametrize("kind", ["media", "set", "found"])
def test_what_the_tester_cannot_offer_stays_what_100_percent_should_be(
    kind: LimitKind,
) -> None:
    asked = MaxRate(1_000_000, kind, shortfall="not the throughput")
    once = asked.lowered(400_000)
    assert once == MaxRate(
        400_000, "tester", shortfall="not the throughput", above=asked
    )
    assert once.lowered(300_000) == replace(once, rate_fps=300_000)


def test_below_what_no_tester_offers_100_percent_is_what_this_one_can() -> None:
    beyond = max_rate(cell(max_rate_fps=None), virtual(None, None))
    assert beyond.lowered(400_000) == MaxRate(400_000, "tester")


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
