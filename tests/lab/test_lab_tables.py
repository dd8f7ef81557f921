"""Routers with large tables: whose routes these are, and that the kernel has them."""

from __future__ import annotations

import re
from ipaddress import ip_network

import pytest
from labtools import TEST_NETWORKS, cross

from dutperf import lab
from dutperf.lab.devices import daemons
from dutperf.lab.devices.daemons import static_routes

SHARED = ip_network("100.64.0.0/10")
"""RFC 6598: addresses that providers share behind their NATs."""


def networks(routes: int) -> dict[int, list[str]]:
    found = re.findall(r"route (\S+) via", static_routes(routes))
    return {
        version: [each for each in found if (":" in each) == (version == 6)]
        for version in (4, 6)
    }


@pytest.mark.parametrize("routes", [10, 1000])
def test_they_are_as_many_as_asked_for_and_all_different(routes: int) -> None:
    for listed in networks(routes).values():
        assert len(listed) == len({ip_network(each) for each in listed}) == routes


def test_they_are_the_same_each_time() -> None:
    assert static_routes(1000) == static_routes(1000)


def test_no_test_frame_goes_there_and_they_are_nobodys_addresses() -> None:
    for listed in networks(1000).values():
        for network in map(ip_network, listed):
            assert network.is_private or network.overlaps(SHARED)
            assert not any(
                network.overlaps(tested)
                for tested in TEST_NETWORKS
                if tested.version == network.version
            )


@pytest.mark.lab
@pytest.mark.parametrize("routes", [10, 100_000])
def test_the_kernel_has_them_and_forwards(routes: int) -> None:
    with lab.session(f"linux-router-{routes}-routes") as testbed:
        for version in ("-4", "-6"):
            assert daemons.count_routes(version, "bird") == routes
        cross(testbed, 4, "left")
        cross(testbed, 6, "right")
