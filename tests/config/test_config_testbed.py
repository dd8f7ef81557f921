"""Real and virtual addresses of the two sides."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import bench_data, make_testbed

from dutperf.config import Testbed, from_data
from dutperf.config.side import MemifPort, RealAddress
from dutperf.config.sizes import default_versions
from dutperf.errors import InputError

IPV6 = {"address": "2001:2::2", "gateway": "2001:2::1"}
IPV4 = {"address": "198.19.1.2", "gateway": "198.19.1.1"}
SEEN_FROM_LEFT = {"virtual": "64:ff9b::198.19.1.2"}
SEEN_FROM_RIGHT = {"virtual": "198.18.1.2"}


def nat64() -> dict[str, Any]:
    """IPv6 on the left, IPv4 on the right, nothing else."""
    data = bench_data()
    data["left"] |= {"ipv4": SEEN_FROM_RIGHT, "ipv6": IPV6}
    data["right"] |= {"ipv4": IPV4, "ipv6": SEEN_FROM_LEFT}
    return data


def test_a_side_may_have_only_a_virtual_address_in_a_version() -> None:
    right = make_testbed(**nat64()).right
    assert right.ip(6) is None
    assert right.virtual(6) == "64:ff9b::c613:102"
    assert right.ip(4) == RealAddress("198.19.1.2", "198.19.1.1")


def test_without_being_told_a_testbed_with_virtual_addresses_translates() -> None:
    assert default_versions(make_testbed(**nat64())) == ["6-4"]
    assert default_versions(make_testbed()) == [4, 6]


@pytest.mark.parametrize(
    ("left_ipv4", "message"),
    [
        ({}, "left.ipv4: is empty: give address and gateway, or the virtual"),
        ({"address": "198.18.1.2"}, "left.ipv4: gateway is missing"),
        ({"gateway": "198.18.1.1"}, "left.ipv4: address is missing"),
        (
            {"virtual": "198.19.1.2"},
            "left.ipv4.virtual and right.ipv4.address are both 198.19.1.2",
        ),
        ({"virtual": "2001:2::2"}, "left.ipv4.virtual: must be an IPv4 address"),
    ],
)
def test_addresses_that_make_no_sense_are_refused(
    left_ipv4: dict[str, str], message: str
) -> None:
    data = nat64()
    data["left"]["ipv4"] = left_ipv4
    with pytest.raises(InputError) as caught:
        from_data(Testbed, data, "testbed.yaml")
    assert message in caught.value.message


def test_a_ring_in_shared_memory_has_the_length_that_memif_can_have() -> None:
    data = bench_data()
    for side in ("left", "right"):
        data[side]["port"] = {"memif": f"/run/{side}.sock", "ring_frames": 16384}
    port = make_testbed(**data).left.port
    assert isinstance(port, MemifPort)
    assert port.ring_frames == 16384


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        (10000, "left.port.ring_frames: must be a power of 2: 4096, 8192 or 16384"),
        (32768, "left.port.ring_frames: must be at most 16384"),
        (32, "left.port.ring_frames: must be at least 64"),
    ],
)
def test_other_lengths_of_rings_are_refused(frames: int, message: str) -> None:
    data = bench_data()
    data["left"]["port"] = {"memif": "/run/a.sock", "ring_frames": frames}
    with pytest.raises(InputError) as caught:
        from_data(Testbed, data, "testbed.yaml")
    assert message in caught.value.message
