"""From a cell to the complete request: addresses, sizes, variations, mixes."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning import TESTBED, TRANSLATOR, campaign, cell

from dutperf.config import expand, spec_from
from dutperf.config.side import Ipv4Side, Port, RingPort
from dutperf.config.testbed import crossed
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.protocol.base import Side
from dutperf.protocol.port_messages import NeighboursParams
from dutperf.protocol.stream_messages import FieldVariation, Mix, StreamRequest
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.run.engine_session import neighbours
from dutperf.run.trial_request import trial_request


def request(**keys: object) -> TrialRequest:
    return trial_request(TESTBED, cell(**keys), 1000, 5)


def streams(trial: TrialRequest) -> dict[str, StreamRequest]:
    return {direction.name: direction.streams[0] for direction in trial.directions}


def varied(stream: StreamRequest) -> dict[str, FieldVariation]:
    return {f"{v.field} {v.offset}": v for v in stream.vary}


def test_forward_goes_from_left_to_right_through_the_left_gateway() -> None:
    forward = streams(request())["forward"]
    assert (forward.id, forward.src_ip, forward.dst_ip, forward.next_hop) == (
        0,
        "198.18.0.2",
        "198.19.0.2",
        "198.18.0.1",
    )


def test_reverse_is_the_mirror_of_forward() -> None:
    reverse = streams(request(ip=[6]))["reverse"]
    assert (reverse.id, reverse.src_ip, reverse.dst_ip, reverse.next_hop) == (
        2,
        "2001:2:0:1::2",
        "2001:2::2",
        "2001:2:0:1::1",
    )


def test_one_hop_is_expected_to_be_taken_of_the_ttl() -> None:
    found = [stream.received_ttl for stream in streams(request()).values()]
    assert found == [9, 9]
    assert streams(request(traffic={"ttl": 1}))["forward"].received_ttl is None


@pytest.mark.parametrize(
    ("keys", "native", "translated"),
    [
        ({}, 9, 9),
        ({"hops": 0}, 10, 10),
        ({"hops": 2}, 8, 8),
        ({"translated_hops": 3}, 9, 7),
        ({"hops": 2, "translated_hops": 3}, 8, 7),
        ({"translated_hops": 6, "ipv6_hops": 2}, 8, 4),
    ],
)
def test_a_testbed_may_have_more_hops_and_others_for_what_it_translates(
    keys: dict[str, int], native: int, translated: int
) -> None:
    testbed = TRANSLATOR.model_copy(update=keys)
    of = cell(testbed, ip=["6-4"], frame_size=[84], traffic={"mix": "90/10"})
    trial = trial_request(testbed, of, 1000, 5)
    for direction in trial.directions:
        found = {s.name: s.received_ttl for s in direction.streams}
        assert found == {"foreground": translated, "background": native}


def test_ports_that_are_joined_take_no_hop_and_of_an_unknown_one_nobody_knows() -> None:
    ring: dict[Side, Port] = dict.fromkeys(("left", "right"), RingPort(ring=True))
    joined = crossed(ring, name="ring")
    for ip in (4, 6):
        trial = trial_request(joined, cell(ip=[ip], frame_size=[84]), 1000, 5)
        assert {s.received_ttl for s in streams(trial).values()} == {10}
    left = joined.left.model_copy(
        update={"ipv4": Ipv4Side(address="198.18.0.2"), "next_hop_mac": "02::1"}
    )
    unknown = joined.model_copy(update={"left": left})
    assert unknown.hops_between(4, 4) is None
    assert unknown.model_copy(update={"hops": 1}).hops_between(4, 4) == 1


def test_fixed_ports_are_those_of_rfc_2544_c_2_6_4() -> None:
    ports = {"source": "fixed", "destination": "fixed"}
    forward = streams(request(traffic={"ports": ports}))["forward"]
    assert (forward.src_port, forward.dst_port) == (0xC020, 7)
    assert forward.vary == []


def test_ports_are_random_by_default() -> None:
    assert varied(streams(request())["forward"]) == {
        "src_port 0": FieldVariation(field="src_port", width=16, min=1024, max=65535),
        "dst_port 0": FieldVariation(field="dst_port", width=16, min=1, max=49151),
    }


def test_a_side_varies_as_source_and_as_destination() -> None:
    trial = request(traffic={"addresses": {"left": {"hosts": 10}}})
    forward, reverse = streams(trial)["forward"], streams(trial)["reverse"]
    left = varied(forward)["src_ip 24"]
    assert (left.width, left.min, left.max, left.mode) == (8, 2, 11, "random")
    assert varied(reverse)["dst_ip 24"] == left.model_copy(update={"field": "dst_ip"})
    assert "dst_ip 24" not in varied(forward)


def test_a_translated_frame_changes_its_size_and_its_addresses() -> None:
    [only] = cells_of({"procedure": "throughput", "ip": ["6-4"]})
    trial = trial_request(TRANSLATOR, only, 1000, 1)
    forward, reverse = streams(trial)["forward"], streams(trial)["reverse"]
    assert (forward.frame_sizes, forward.received_frame_sizes) == ([84], [64])
    assert (forward.src_ip, forward.dst_ip) == ("2001:2::2", "2001:2:0:1000::2")
    assert (reverse.frame_sizes, reverse.received_frame_sizes) == ([64], [84])
    assert (reverse.src_ip, reverse.dst_ip) == ("198.19.0.2", "198.18.0.2")


def test_a_mix_has_two_streams_a_direction() -> None:
    trial = request(traffic={"mix": "90/10"})
    assert [d.mix for d in trial.directions] == [Mix(foreground=9, of=10)] * 2
    found = [
        (s.id, s.name, s.ip_version, s.frame_sizes[0])
        for direction in trial.directions
        for s in direction.streams
    ]
    assert found == [
        (0, "foreground", 4, 64),
        (1, "background", 6, 84),
        (2, "foreground", 4, 64),
        (3, "background", 6, 84),
    ]


def test_an_imix_is_a_sequence_of_sizes() -> None:
    trial = request(traffic={"imix": "aabg"})
    assert streams(trial)["forward"].frame_sizes == [64, 64, 128, 1518]


def test_header_fields_are_the_profiles() -> None:
    profile = {"ttl": 64, "dscp": 46, "df": True, "flow_label": 7}
    ipv4 = streams(request(traffic=profile))["forward"]
    ipv6 = streams(request(ip=[6], traffic=profile))["forward"]
    assert (ipv4.ttl, ipv4.dscp, ipv4.df, ipv4.flow_label) == (64, 46, True, 0)
    assert (ipv6.ttl, ipv6.dscp, ipv6.df, ipv6.flow_label) == (64, 46, False, 7)


def test_checksums_are_verified_unless_the_profile_says_not_to() -> None:
    assert request().verify_checksums
    assert not request(traffic={"ignore_checksums": True}).verify_checksums


def test_a_random_flow_label_varies_in_ipv6_only() -> None:
    profile = {"flow_label": "random"}
    ipv4, ipv6 = request(traffic=profile), request(ip=[6], traffic=profile)
    label = varied(streams(ipv6)["forward"])["flow_label 0"]
    assert (label.width, label.max) == (20, 2**20 - 1)
    assert "flow_label 0" not in varied(streams(ipv4)["forward"])


def test_random_macs_are_those_of_rfc_4814_4_2() -> None:
    trial = request(traffic={"mac": "random"})
    for name, base in (("forward", "00:00:01"), ("reverse", "00:00:02")):
        stream = streams(trial)[name]
        assert stream.src_mac == f"{base}:00:00:00"
        found = varied(stream)
        assert (found["src_mac 0"].width, found["src_mac 0"].max) == (6, 63)
        assert (found["src_mac 24"].width, found["src_mac 24"].max) == (24, 2**24 - 1)


def test_everything_varies_at_once() -> None:
    profile = {
        "addresses": 100,
        "networks": 256,
        "mac": "random",
        "flow_label": "random",
        "mix": "1/2",
        "imix": "aaafg",
    }
    for direction in request(ip=[6], traffic=profile).directions:
        for stream in direction.streams:
            assert len(stream.vary) == 8


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_one_direction_alone_is_the_only_one_with_frames(direction: str) -> None:
    assert list(streams(request(direction=direction))) == [direction]


def test_times_limits_and_seed_are_the_cells() -> None:
    trial = request(
        trial_duration_s=0.5,
        settle_wait_s=0.25,
        residual_wait_s=0.125,
        lag_limit_ms=1.5,
        burst_limit=8,
    )
    assert (trial.trial_id, trial.seed) == (5, 1)
    assert (trial.duration_ns, trial.settle_ns) == (500_000_000, 250_000_000)
    assert (trial.residual_wait_ns, trial.lag_limit_ns) == (125_000_000, 1_500_000)
    assert trial.burst_limit == 8
    assert [d.rate_fps for d in trial.directions] == [1000, 1000]


def test_a_duration_may_differ_from_the_cells() -> None:
    trial = trial_request(TESTBED, cell(), 1000, 5, duration_s=0.1)
    assert trial.duration_ns == 100_000_000


def test_a_side_without_addresses_is_named_as_the_key_to_add() -> None:
    left = TESTBED.left.model_copy(update={"ipv6": None})
    testbed = TESTBED.model_copy(update={"left": left})
    with pytest.raises(InputError, match="IPv6") as caught:
        trial_request(testbed, cell(ip=[6]), 1000, 5)
    assert "ipv6" in caught.value.hint


NUMBERS = st.integers(0, 70000)
PORT = st.sampled_from(["random", "fixed:0", "increasing:1-2", "decreasing:0-65535"])
HOSTS = st.one_of(
    st.fixed_dictionaries({"hosts": NUMBERS}),
    st.fixed_dictionaries(
        {"min": NUMBERS, "max": NUMBERS},
        optional={
            "mode": st.sampled_from(["increasing", "decreasing", "random"]),
            "width": st.integers(1, 32),
            "ipv4_offset": st.integers(0, 31),
            "ipv6_offset": st.integers(0, 127),
        },
    ),
)
SIZES = st.sampled_from(["a", "aaafg", "az", "gh"])
TRAFFIC = st.fixed_dictionaries(
    {},
    optional={
        "ports": st.fixed_dictionaries(
            {}, optional={"source": PORT, "destination": PORT}
        ),
        "addresses": st.one_of(
            NUMBERS, st.fixed_dictionaries({}, optional={"left": HOSTS, "right": HOSTS})
        ),
        "networks": st.sampled_from([1, 2, 255, 256, 257]),
        "mix": st.sampled_from(["100/0", "90/10", "50/50", "2/3", "2/4", "9/1"]),
        "background_ip": st.sampled_from([4, 6]),
        "imix": SIZES,
        "df": st.booleans(),
        "ignore_checksums": st.booleans(),
        "flow_label": st.sampled_from([0, 5, "random"]),
        "mac": st.sampled_from(["fixed", "random"]),
    },
)
SPECS = st.fixed_dictionaries(
    {"procedure": st.just("throughput"), "traffic": TRAFFIC},
    optional={
        "ip": st.lists(st.sampled_from([4, 6, "6-4", "4-6"]), max_size=2, unique=True),
        "frame_size": st.lists(st.integers(64, 1600), max_size=2, unique=True),
        "direction": st.sampled_from(["both", "forward", "reverse"]),
        "trial_duration_s": st.sampled_from([0.01, 60]),
    },
)


def cells_of(data: dict[str, Any]) -> list[Cell]:
    return expand(campaign(spec_from(data, "x")), TRANSLATOR)


@settings(derandomize=True, deadline=None, database=None, max_examples=600)
@given(SPECS)
def test_every_configuration_is_refused_or_makes_valid_requests(
    data: dict[str, Any],
) -> None:
    with contextlib.suppress(InputError):
        for each in cells_of(data):
            trial = trial_request(TRANSLATOR, each, 1000, 1)
            assert TrialRequest.model_validate(trial.model_dump()) == trial
            own = neighbours(TRANSLATOR, [each])
            assert NeighboursParams.model_validate(own.model_dump()) == own
            check_sizes_after_the_dut(trial)


def check_sizes_after_the_dut(trial: TrialRequest) -> None:
    """What a side receives of a version is as large as what it sends of it."""
    for direction in trial.directions:
        for stream in direction.streams:
            pairs = zip(stream.frame_sizes, stream.received_frame_sizes, strict=True)
            assert {abs(sent - received) for sent, received in pairs} <= {0, 20}


@settings(derandomize=True, deadline=None, database=None, max_examples=100)
@given(st.integers(2, 253), st.sampled_from([4, 6, "6-4", "4-6"]), st.booleans())
def test_whom_the_tester_answers_for_is_whom_the_device_asks_for(
    hosts: int, ip: object, mixed: bool
) -> None:
    profile = {"addresses": hosts, "mix": "1/2" if mixed else "100/0"}
    data = {"procedure": "throughput", "ip": [ip], "traffic": profile}
    [only] = cells_of(data)
    left, right = neighbours(TRANSLATOR, [only]).ports
    directions = trial_request(TRANSLATOR, only, 1000, 1).directions
    for port, direction in zip((left, right), directions, strict=True):
        firsts = {r.first for r in port.own if r.count == hosts}
        assert firsts == {s.src_ip for s in direction.streams}
        assert len(port.resolve) == len({s.next_hop for s in direction.streams})
