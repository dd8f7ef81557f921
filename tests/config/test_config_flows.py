"""Which addresses frames carry: Table 1 of paper 002, hosts, networks, and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import bench_data, make_campaign, make_testbed

from dutperf.config import Testbed, expand, notices
from dutperf.config.flows import Flow, flows, own_hosts
from dutperf.config.sizes import mean_frame_size, sizes_in, sizes_text
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.hosts import BitField
from dutperf.protocol.base import DirectionName


def translating(**right: object) -> Testbed:
    """A translator's testbed: both versions and a virtual address on each side."""
    data = bench_data()
    data["left"]["ipv4"]["virtual"] = "198.18.9.2"
    data["left"]["ipv6"]["virtual"] = "2001:2:0:9::2"
    data["right"]["ipv4"]["virtual"] = "198.19.9.2"
    data["right"]["ipv6"]["virtual"] = "2001:2:0:1000::2"
    data["right"] |= right
    return make_testbed(**data)


TRANSLATING = translating()


def one_cell(testbed: Testbed, **keys: object) -> Cell:
    [cell] = expand(make_campaign({"procedure": "throughput", **keys}), testbed)
    return cell


def ends(flow: Flow) -> tuple[int, str, str, str]:
    return flow.version, flow.source.base, flow.destination.base, flow.next_hop


@pytest.mark.parametrize(
    ("ip", "forward", "reverse"),
    [
        (
            "6-4",
            (6, "2001:2::2", "2001:2:0:1000::2", "2001:2::1"),
            (4, "198.19.1.2", "198.18.9.2", "198.19.1.1"),
        ),
        (
            "4-6",
            (4, "198.18.1.2", "198.19.9.2", "198.18.1.1"),
            (6, "2001:2:0:8000::2", "2001:2:0:9::2", "2001:2:0:8000::1"),
        ),
        (
            4,
            (4, "198.18.1.2", "198.19.1.2", "198.18.1.1"),
            (4, "198.19.1.2", "198.18.1.2", "198.19.1.1"),
        ),
        (
            6,
            (6, "2001:2::2", "2001:2:0:8000::2", "2001:2::1"),
            (6, "2001:2:0:8000::2", "2001:2::2", "2001:2:0:8000::1"),
        ),
    ],
)
def test_addresses_follow_table_1(
    ip: object, forward: tuple[object, ...], reverse: tuple[object, ...]
) -> None:
    cell = one_cell(TRANSLATING, ip=[ip])
    assert [ends(f) for f in flows(TRANSLATING, cell, "forward")] == [forward]
    assert [ends(f) for f in flows(TRANSLATING, cell, "reverse")] == [reverse]


def test_background_goes_from_real_to_real_of_its_version() -> None:
    cell = one_cell(TRANSLATING, ip=["6-4"], traffic={"mix": "90/10"})
    foreground, background = flows(TRANSLATING, cell, "reverse")
    assert (foreground.name, foreground.version) == ("foreground", 4)
    assert ends(background) == (
        6,
        "2001:2:0:8000::2",
        "2001:2::2",
        "2001:2:0:8000::1",
    )


def without(testbed: Testbed, side: str, key: str, *inner: str) -> Testbed:
    data = testbed.model_dump(exclude_none=True)
    block = data[side]
    for name in (key, *inner)[:-1]:
        block = block[name]
    del block[(key, *inner)[-1]]
    return Testbed.model_validate(data)


@pytest.mark.parametrize(
    ("gone", "keys", "message", "hint"),
    [
        (
            ("right", "ipv4"),
            {"ip": ["6-4"]},
            "procedures[0].ip: 6-4 is asked for, but testbed bench has no IPv4",
            "add the key right.ipv4 with address (the tester) and gateway",
        ),
        (
            ("right", "ipv6", "virtual"),
            {"ip": ["6-4"]},
            "procedures[0].ip: 6-4 sends IPv6 to the right side, which receives IPv4",
            "add the key right.ipv6.virtual: the address that the device under test",
        ),
        (
            ("left", "ipv4", "virtual"),
            {"ip": ["6-4"]},
            "which IPv4 address stands for it",
            "add the key left.ipv4.virtual",
        ),
        (
            ("right", "ipv6"),
            {"ip": [4], "traffic": {"mix": "50/50"}},
            "traffic.background_ip: IPv6 background is asked for, but testbed bench",
            "--background-ip",
        ),
    ],
)
def test_what_the_testbed_lacks_is_named_with_the_key_to_add(
    gone: tuple[str, ...], keys: dict[str, Any], message: str, hint: str
) -> None:
    testbed = without(TRANSLATING, *gone)
    with pytest.raises(InputError) as caught:
        one_cell(testbed, **keys)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_one_direction_needs_no_virtual_address_of_the_sender() -> None:
    testbed = without(TRANSLATING, "left", "ipv4", "virtual")
    cell = one_cell(testbed, ip=["6-4"], direction="forward")
    assert len(flows(testbed, cell, "forward")) == 1


@pytest.mark.parametrize(
    ("keys", "ipv6", "ipv4", "text"),
    [
        ({"ip": ["6-4"]}, [84], [64], "84/64 (IPv6/IPv4)"),
        ({"ip": ["4-6"], "frame_size": [128]}, [128], [108], "128/108 (IPv6/IPv4)"),
        ({"ip": [4]}, [64], [64], "64"),
        ({"ip": [4], "traffic": {"mix": "90/10"}}, [84], [64], "84/64 (IPv6/IPv4)"),
        (
            {"ip": [6], "traffic": {"mix": "1/2", "background_ip": 4}},
            [84],
            [64],
            "84/64 (IPv6/IPv4)",
        ),
        (
            {"ip": ["6-4"], "traffic": {"imix": "ab"}},
            [84, 128],
            [64, 108],
            "IMIX - ab: 84 128/64 108 (IPv6/IPv4)",
        ),
    ],
)
def test_where_both_versions_occur_ipv4_frames_are_20_bytes_shorter(
    keys: dict[str, Any], ipv6: list[int], ipv4: list[int], text: str
) -> None:
    cell = one_cell(TRANSLATING, **keys)
    assert (sizes_in(cell, 6), sizes_in(cell, 4)) == (ipv6, ipv4)
    assert sizes_text(cell) == text


def test_the_mean_size_is_that_of_the_mix_on_each_side() -> None:
    cell = one_cell(TRANSLATING, ip=["6-4"], traffic={"mix": "90/10"})
    assert mean_frame_size(cell, "left") == 84
    assert mean_frame_size(cell, "right") == 64 * 9 / 10 + 84 / 10


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"ip": ["6-4"], "frame_size": [64]}, "64 is too small for IPv6 (IPv4"),
        (
            {"ip": [4], "traffic": {"mix": "90/10"}, "frame_size": [83]},
            "83 is",
        ),
        ({"ip": ["4-6"], "frame_size": [1538]}, "1538 does not fit the right"),
        ({"ip": ["6-4"], "frame_size": [1519]}, "1519 does not fit the left"),
        (
            {"ip": [4], "traffic": {"imix": "ah"}},
            "traffic.imix: 2112 does not fit the left port",
        ),
        (
            {"ip": [6], "traffic": {"imix": {"sequence": "A", "sizes": {"A": 70}}}},
            "traffic.imix: 70 is too small for IPv6",
        ),
    ],
)
def test_sizes_are_checked_on_each_side(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        one_cell(TRANSLATING, **keys)
    assert message in caught.value.message


def test_ipv4_frames_of_1518_bytes_need_a_larger_mtu_only_where_they_are_ipv6() -> None:
    testbed = translating(port={"interface": "tr", "mtu": 1520})
    cell = one_cell(testbed, ip=["4-6"], frame_size=[1538])
    assert sizes_in(cell, 4) == [1518]


def fields_of(
    testbed: Testbed, direction: DirectionName = "forward", **keys: object
) -> tuple[tuple[BitField, ...], tuple[BitField, ...]]:
    cell = one_cell(testbed, **keys)
    [flow] = flows(testbed, cell, direction)
    return flow.source.fields, flow.destination.fields


def varied(*where: int) -> BitField:
    offset, width, low, high = where
    return BitField(offset, width, low, high, "random")


@pytest.mark.parametrize(
    ("ip", "hosts", "expected"),
    [
        (4, 253, varied(24, 8, 2, 254)),
        (4, 254, varied(16, 16, 0x0102, 0x0102 + 253)),
        (6, 1000, varied(96, 16, 0, 999)),
        (6, 65536, varied(96, 16, 0, 65535)),
    ],
)
def test_hosts_begin_with_the_sides_own_address(
    ip: int, hosts: int, expected: BitField
) -> None:
    source, destination = fields_of(TRANSLATING, ip=[ip], traffic={"addresses": hosts})
    assert source == destination == (expected,)


def test_a_field_is_where_the_profile_says() -> None:
    bits = {"mode": "decreasing", "width": 8, "min": 2, "max": 9, "ipv6_offset": 120}
    source, destination = fields_of(
        TRANSLATING, ip=[6], traffic={"addresses": {"left": bits}}
    )
    assert source == (BitField(120, 8, 2, 9, "decreasing"),)
    assert destination == ()


@pytest.mark.parametrize(
    ("ip", "place"), [(4, varied(16, 8, 0, 255)), (6, varied(56, 8, 0, 255))]
)
def test_networks_vary_in_the_destination_only(ip: int, place: BitField) -> None:
    traffic = {"networks": {"right": 256}}
    assert fields_of(TRANSLATING, ip=[ip], traffic=traffic) == ((), (place,))
    assert fields_of(TRANSLATING, "reverse", ip=[ip], traffic=traffic) == ((), ())


def test_networks_begin_with_the_addresss_own() -> None:
    _, destination = fields_of(TRANSLATING, ip=[4], traffic={"networks": 4})
    assert destination == (varied(16, 8, 1, 4),)


def test_an_address_that_embeds_ipv4_varies_where_that_does() -> None:
    testbed = translating(
        ipv6={"virtual": "64:ff9b::198.19.1.2"},
    )
    source, destination = fields_of(
        testbed, ip=["6-4"], traffic={"addresses": 100, "networks": {"right": 256}}
    )
    assert source == (varied(96, 16, 0, 99),)
    assert destination == (varied(120, 8, 2, 101), varied(112, 8, 0, 255))


@pytest.mark.parametrize(
    ("ip", "traffic", "message"),
    [
        (4, {"addresses": 65300}, "addresses.left: from 198.18.1.2 on there are 65277"),
        (
            4,
            {"addresses": 300, "networks": 256},
            "the networks take bits 16 to 23 of 198.19.1.2, and its hosts vary in bits",
        ),
        (
            4,
            {"addresses": {"right": {"width": 8, "min": 1, "max": 254}}},
            "include 198.19.1.1, the device under test itself (right.ipv4.gateway)",
        ),
        (
            6,
            {"addresses": {"left": {"ipv6_offset": 112, "min": 1, "max": 9}}},
            "include 2001:2::1, the device under test itself",
        ),
        (
            4,
            {"addresses": {"left": {"width": 8, "min": 2, "max": 255}}},
            "whose last 8 bits are 1 (broadcast)",
        ),
        (
            4,
            {"addresses": {"left": {"ipv4_offset": 16, "min": 0, "max": 9}}},
            "whose last 16 bits are 0 (the network)",
        ),
        (
            4,
            {"addresses": {"left": {"width": 16, "min": 258, "max": 65535}}},
            "whose last 16 bits are 1 (broadcast)",
        ),
        (
            6,
            {"addresses": {"left": {"ipv6_offset": 112, "min": 0, "max": 0xFFFF}}},
            "include 2001:2::1, the device under test itself",
        ),
        (
            4,
            {"addresses": {"left": {"width": 20, "min": 2, "max": 70000}}},
            "69999 addresses are more than the 65536",
        ),
        (
            6,
            {"addresses": {"left": {"ipv6_offset": 48, "min": 1, "max": 0xF000}}},
            "include 2001:2:0:8000::2, which stands for the other side (right.ipv6.add",
        ),
        (
            4,
            {"addresses": {"left": {"width": 3, "ipv4_offset": 0, "min": 5, "max": 7}}},
            "reaches into 224.0.0.0/3, which holds no addresses of hosts",
        ),
        (
            6,
            {
                "addresses": {
                    "left": {"width": 8, "ipv6_offset": 0, "min": 1, "max": 255}
                }
            },
            "reaches into ff00::/8",
        ),
    ],
)
def test_addresses_that_cannot_be_are_refused_with_their_key(
    ip: int, traffic: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        one_cell(TRANSLATING, ip=[ip], traffic=traffic)
    assert message in caught.value.message
    assert "procedures[0].traffic." in caught.value.message
    assert caught.value.hint


def test_networks_beyond_the_last_one_are_refused() -> None:
    data = bench_data()
    data["left"]["ipv4"] = {"address": "198.18.2.2", "gateway": "198.18.2.1"}
    with pytest.raises(InputError, match=r"bits 16 to 23 are 2.* there are 254, fewer"):
        one_cell(make_testbed(**data), ip=[4], traffic={"networks": 255})


def test_the_tester_has_hosts_but_not_the_networks_behind_it() -> None:
    cell = one_cell(TRANSLATING, ip=[4], traffic={"addresses": 9, "networks": 256})
    [hosts] = own_hosts(TRANSLATING, cell, "right")
    assert (hosts.lowest, hosts.highest) == ("198.19.1.2", "198.19.1.10")


def test_hosts_outside_the_benchmarking_network_give_a_notice() -> None:
    bits = {"width": 2, "min": 0, "max": 2, "ipv4_offset": 14}
    traffic = {"addresses": {"left": bits}}
    campaign = make_campaign({"procedure": "throughput", "ip": [4], "traffic": traffic})
    [notice] = notices(make_testbed(), expand(campaign, make_testbed()))
    assert notice.startswith(
        "left.ipv4.address 198.16.1.2 to 198.18.1.2 is outside 198.18.0.0/15"
    )


def test_benchmarking_addresses_in_the_well_known_prefix_give_no_notice() -> None:
    testbed = translating(ipv6={"virtual": "64:ff9b::198.19.1.2"})
    campaign = make_campaign({"procedure": "throughput", "ip": ["6-4"]})
    assert notices(testbed, expand(campaign, testbed)) == []


@pytest.mark.parametrize(("df", "count"), [(False, 1), (True, 0)])
def test_large_ipv4_frames_to_a_translator_without_df_give_a_notice(
    df: bool, count: int
) -> None:
    spec = {
        "procedure": "throughput",
        "ip": ["6-4"],
        "frame_size": [1280, 1518],
        "traffic": {"df": df},
    }
    found = notices(TRANSLATING, expand(make_campaign(spec), TRANSLATING))
    assert len(found) == count
    assert all("throughput-ip6-4-1518-both" in notice for notice in found)
