"""Traffic profiles: short forms, defaults of the RFCs, and everything that is wrong."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from config_samples import make_campaign, make_testbed
from jsonschema import Draft202012Validator

from dutperf.config import expand, from_data, json_schemas, resolved
from dutperf.errors import InputError
from dutperf.model.traffic import Traffic
from dutperf.protocol.stream_messages import FieldVariation

SHORT_AND_LONG = [
    (
        {"ports": {"source": "increasing:1000-2000"}},
        {"ports": {"source": {"mode": "increasing", "min": 1000, "max": 2000}}},
    ),
    (
        {"ports": {"destination": "fixed:53"}},
        {"ports": {"destination": {"mode": "fixed", "value": 53}}},
    ),
    ({"ports": {"source": "random"}}, {}),
    ({"networks": 256}, {"networks": {"left": 256, "right": 256}}),
    (
        {"addresses": 100},
        {"addresses": {"left": {"hosts": 100}, "right": {"hosts": 100}}},
    ),
    ({"imix": "aaafg"}, {"imix": {"sequence": "aaafg"}}),
    ({"flow_label": 7}, {"flow_label": "7"}),
]


def traffic(data: dict[str, Any]) -> Traffic:
    return from_data(Traffic, data, "traffic")


def refusal(data: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        traffic(data)
    return caught.value.message


@pytest.mark.parametrize(("short", "long"), SHORT_AND_LONG)
def test_a_short_form_means_the_same_as_its_block_of_keys(
    short: dict[str, Any], long: dict[str, Any]
) -> None:
    assert traffic(short) == traffic(long)


@pytest.mark.parametrize("data", [form for pair in SHORT_AND_LONG for form in pair])
def test_editors_accept_what_is_accepted(data: dict[str, Any]) -> None:
    spec = {"procedure": "throughput", "traffic": data}
    campaign = {"name": "x", "lab": "l", "procedures": [spec]}
    assert (
        list(Draft202012Validator(json_schemas()["campaign"]).iter_errors(campaign))
        == []
    )


def test_ports_are_by_default_those_of_rfc_4814() -> None:
    source, destination = Traffic().ports.of("forward")
    assert source.variation("src_port") == FieldVariation(
        field="src_port", width=16, min=1024, max=65535
    )
    assert destination.variation("dst_port") == FieldVariation(
        field="dst_port", width=16, min=1, max=49151
    )


def test_the_reverse_direction_may_have_other_ports() -> None:
    ports = traffic({"ports": {"source": "fixed:1", "reverse": {"source": "fixed:2"}}})
    forward, reverse = ports.ports.of("forward"), ports.ports.of("reverse")
    assert (forward[0].value, reverse[0].value) == (1, 2)
    assert forward[1] == reverse[1]


@pytest.mark.parametrize(
    ("mix", "share"),
    [
        ("100/0", Fraction(1)),
        ("90/10", Fraction(9, 10)),
        ("50/50", Fraction(1, 2)),
        ("10/90", Fraction(1, 10)),
        ("1/1", Fraction(1)),
        ("2/3", Fraction(2, 3)),
    ],
)
def test_a_mix_is_a_name_of_rfc_8219_or_m_of_n(mix: str, share: Fraction) -> None:
    assert traffic({"mix": mix}).foreground == share


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"mix": "80/20"}, "for 80 % foreground write 4/5"),
        ({"mix": "4/6"}, "m and n must be coprime: 4/6 is 2/3"),
        ({"mix": "7/5"}, "1 <= m <= n"),
        ({"mix": "0/100"}, "1 <= m <= n"),
        ({"mix": "1/1000001"}, "n must be at most 1000000"),
        ({"mix": "half"}, "must be one of 100/0, 90/10, 50/50, 10/90"),
        ({"ports": {"source": "random:9-5"}}, "empty: min 9 is above max 5"),
        ({"ports": {"source": "random:9-9"}}, "needs more than one value"),
        ({"ports": {"source": "random:1-65536"}}, "source.max: must be at most 65535"),
        ({"ports": {"source": "any"}}, "must be like random, random:1024-65535"),
        ({"ports": {"source": {"mode": "fixed", "min": 1}}}, "give value"),
        ({"ports": {"source": {"value": 5}}}, "value belongs to mode fixed"),
        ({"ports": {"sauce": 1}}, "did you mean source?"),
        ({"addresses": 1}, "left.hosts: must be at least 2"),
        ({"addresses": 65537}, "left.hosts: must be at most 65536"),
        ({"addresses": {"left": {}}}, "needs min and max, or hosts"),
        ({"addresses": {"left": {"min": 5, "max": 4}}}, "the range is empty"),
        ({"addresses": {"left": {"min": 5, "max": 5}}}, "more than one value"),
        (
            {"addresses": {"left": {"min": 1, "max": 256, "width": 8}}},
            "max 256 does not fit 8 bits, which hold at most 255",
        ),
        (
            {"addresses": {"left": {"min": 1, "max": 2, "ipv4_offset": 20}}},
            "ipv4_offset 20 and width 16 reach beyond the 32 bits of the address",
        ),
        (
            {"addresses": {"left": {"min": 1, "max": 2, "ipv6_offset": 120}}},
            "reach beyond the 128 bits",
        ),
        (
            {"addresses": {"left": {"hosts": 5, "min": 2}}},
            "hosts stands alone: take out min",
        ),
        (
            {"addresses": {"left": {"mode": "fixed", "hosts": 5}}},
            "mode fixed has no other keys",
        ),
        ({"networks": 0}, "networks.left: must be at least 1"),
        ({"networks": 257}, "networks.left: must be at most 256"),
        ({"imix": "aj"}, "the 16000-byte frames of letter j are larger"),
        ({"imix": "ax"}, "RFC 6985 names no size x"),
        ({"imix": ""}, "must be 1 to 64 letters"),
        ({"imix": "a" * 65}, "must be 1 to 64 letters"),
        ({"imix": {"sequence": "AB", "sizes": {"A": 64}}}, "letter B of sequence has"),
        ({"imix": {"sequence": "A", "sizes": {"A": 63}}}, "must be at least 64"),
        ({"imix": {"sequence": "A", "sizes": {"AB": 64}}}, "single letters"),
        ({"imix": {"sizes": {"A": 64}}}, "imix.sequence: is missing"),
        ({"flow_label": 2**20}, "must be 0 to 1048575, or random"),
        ({"flow_label": "some"}, "must be 0 to 1048575, or random"),
        ({"ttl": 0}, "ttl: must be at least 1"),
        ({"dscp": 64}, "dscp: must be at most 63"),
        ({"mac": "any"}, "mac: must be 'fixed' or 'random'"),
        ({"background_ip": 5}, "background_ip: must be 4 or 6"),
    ],
)
def test_a_wrong_value_is_named(data: dict[str, Any], told: str) -> None:
    assert told in refusal(data)


def test_an_imix_and_sizes_are_not_for_one_procedure() -> None:
    spec = {"procedure": "throughput", "frame_size": [64], "traffic": {"imix": "ab"}}
    with pytest.raises(InputError, match=r"give frame_size or traffic\.imix"):
        from_data(type(make_campaign(spec | {"traffic": {}}).procedures[0]), spec, "x")


@pytest.mark.parametrize(
    ("data", "label"),
    [
        ({}, ""),
        ({"mix": "90/10"}, "mix90-10"),
        ({"mix": "9/11", "background_ip": 4}, "mix9-11-ip4"),
        ({"networks": 256, "addresses": 50}, "net256-hosts50"),
        ({"networks": {"right": 8}}, "net1-8"),
        ({"addresses": {"right": {"min": 2, "max": 9}}}, "hosts1-8"),
        ({"ports": {"source": "fixed"}}, "ports"),
        ({"name": "office", "mix": "90/10"}, "office"),
    ],
)
def test_a_cell_is_named_after_what_is_special_in_its_traffic(
    data: dict[str, Any], label: str
) -> None:
    assert traffic(data).label == label


def test_an_imix_cell_is_named_after_its_sequence() -> None:
    spec = {"procedure": "throughput", "ip": [6], "traffic": {"imix": "aaafg"}}
    [cell] = expand(make_campaign(spec), make_testbed())
    assert cell.id == "throughput-ip6-imix-aaafg-both"
    assert cell.frame_sizes == [84, 84, 84, 1280, 1518]


def test_the_smallest_frames_of_an_imix_stay_64_bytes_in_ipv4() -> None:
    spec = {"procedure": "throughput", "ip": [4], "traffic": {"imix": "az"}}
    [cell] = expand(make_campaign(spec), make_testbed())
    assert cell.frame_sizes == [64, 1518]


def test_a_custom_imix_has_its_own_table() -> None:
    imix = {"sequence": "AAG", "sizes": {"A": 100, "G": 1400}}
    spec = {"procedure": "throughput", "ip": [4], "traffic": {"imix": imix}}
    [cell] = expand(make_campaign(spec), make_testbed())
    assert cell.frame_sizes == [100, 100, 1400]
    assert str(cell.traffic.imix) == "CUSTOM IMIX - AAG (A=100, G=1400)"


def test_two_profiles_of_the_same_name_ask_for_another_name() -> None:
    spec = {"procedure": "throughput", "ip": [4]}
    with pytest.raises(InputError) as caught:
        expand(make_campaign(spec, {**spec, "traffic": {"ttl": 64}}), make_testbed())
    assert "traffic.name" in caught.value.hint


@pytest.mark.parametrize("data", [form for pair in SHORT_AND_LONG for form in pair])
def test_the_resolved_campaign_gives_the_same_traffic(data: dict[str, Any]) -> None:
    campaign = make_campaign({"procedure": "throughput", "ip": [4], "traffic": data})
    again = from_data(type(campaign), resolved(campaign, make_testbed()), "resolved")
    assert again.procedures[0].traffic == campaign.procedures[0].traffic
