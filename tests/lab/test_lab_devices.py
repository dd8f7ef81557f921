"""The devices as data: addresses and mappings that must fit together."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from dutperf import lab
from dutperf.lab.devices.tayga_siit import tayga_siit
from dutperf.lab.translator import configuration

BENCHMARKING = [
    ipaddress.ip_network(text) for text in ("198.18.0.0/15", "2001:2::/48", "fe80::/10")
]


def is_for_benchmarking(text: str) -> bool:
    network = ipaddress.ip_interface(text).network
    return any(
        network.version == whole.version and network.subnet_of(whole)  # type: ignore[arg-type]
        for whole in BENCHMARKING
    )


@pytest.mark.parametrize("name", lab.LABS)
def test_all_addresses_are_for_benchmarking(name: str) -> None:
    device = lab.LABS[name]
    owned = [text for side in device.addresses.values() for text in side]
    routed = [text for side in device.networks.values() for text in side]
    assert all(map(is_for_benchmarking, owned + routed))


@pytest.mark.parametrize("name", lab.LABS)
def test_each_side_finds_the_dut_on_its_link(name: str) -> None:
    device = lab.LABS[name]
    for config, addresses in (
        (device.left, device.addresses["left"]),
        (device.right, device.addresses["right"]),
    ):
        links = [ipaddress.ip_interface(text) for text in addresses]
        for real in filter(None, (config.ip(4), config.ip(6))):
            (link,) = [i for i in links if str(i.ip) == real.gateway]
            assert ipaddress.ip_address(real.address) in link.network


@pytest.mark.parametrize("hosts", [1, 7, 253])
def test_the_translator_knows_each_host_once(hosts: int) -> None:
    translator = tayga_siit(hosts).translator
    assert translator is not None
    ipv4, ipv6 = zip(*translator.pairs, strict=True)
    assert len(set(ipv4)) == len(set(ipv6)) == 2 * hosts
    assert translator.ipv4 not in ipv4
    assert translator.ipv6 not in ipv6


def test_hosts_that_follow_each_other_do_so_in_both_versions() -> None:
    translator = tayga_siit().translator
    assert translator is not None
    first_4, first_6 = (int(ipaddress.ip_address(text)) for text in translator.pairs[0])
    for number, (ipv4, ipv6) in enumerate(translator.pairs[:253]):
        assert int(ipaddress.ip_address(ipv4)) == first_4 + number
        assert int(ipaddress.ip_address(ipv6)) == first_6 + number


@pytest.mark.parametrize("hosts", [0, 254])
def test_a_translator_for_more_hosts_than_the_network_has_is_refused(
    hosts: int,
) -> None:
    with pytest.raises(ValueError, match=str(hosts)):
        tayga_siit(hosts)


def test_the_configuration_has_a_line_for_each_mapping() -> None:
    translator = tayga_siit(2).translator
    assert translator is not None
    assert configuration(translator, Path("/run/x")).splitlines() == [
        "tun-device siit",
        "ipv4-addr 198.18.0.1",
        "ipv6-addr 2001:2:0:1000::1",
        "data-dir /run/x",
        "map 198.18.0.2 2001:2::2",
        "map 198.18.0.3 2001:2::3",
        "map 198.19.0.2 2001:2:0:1000::2",
        "map 198.19.0.3 2001:2:0:1000::3",
    ]
