"""The devices as data: addresses and mappings that must fit together."""

from __future__ import annotations

import ipaddress
from dataclasses import replace
from pathlib import Path

import pytest
from labstates import make_state

from dutperf import lab
from dutperf.config.flows import hosts
from dutperf.config.sizes import default_versions
from dutperf.config.testbed import Testbed
from dutperf.errors import SetupError
from dutperf.lab import topology
from dutperf.lab.devices import device_of
from dutperf.lab.devices.translators import MAX_HOSTS, tayga_siit
from dutperf.model.frames import IpVersions
from dutperf.model.hosts import AddressSet
from dutperf.model.stateful_keys import Phase2Keys
from dutperf.model.traffic import Traffic
from dutperf.protocol.base import IpVersion, Side

BENCHMARKING = [
    ipaddress.ip_network(text)
    for text in ("198.18.0.0/15", "2001:2::/48", "fe80::/10", "10.0.0.0/8")
]


TRANSPARENT = {"wire", "vxlan"}


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
    inner = [text for box in device.boxes for text in box.inner]
    assert all(map(is_for_benchmarking, owned + routed + inner))


@pytest.mark.parametrize("name", lab.LABS)
def test_each_has_a_testbed(name: str) -> None:
    testbed = lab.plan(name)
    assert testbed.name == name
    assert default_versions(testbed)


@pytest.mark.parametrize("name", sorted(lab.LABS.keys() - TRANSPARENT))
def test_each_side_finds_the_dut_on_its_link(name: str) -> None:
    device = lab.LABS[name]
    assert device.addresses.keys() == device.tester_ports.keys()
    for end, port in device.tester_ports.items():
        links = [ipaddress.ip_interface(text) for text in device.addresses[end]]
        outer = getattr(port.config, "encapsulation", None)
        versions: list[IpVersion] = [outer.outer_version] if outer else [4, 6]
        for real in filter(None, map(port.config.ip, versions)):
            (link,) = [i for i in links if str(i.ip) == real.gateway]
            assert ipaddress.ip_address(real.address) in link.network


@pytest.mark.parametrize("name", ["linux-router-2x2", "known-answer-2x2"])
def test_two_ports_on_a_side_are_wired_by_their_own_ends(name: str) -> None:
    device = lab.LABS[name]
    assert list(device.tester_ports) == ["left", "left2", "right", "right2"]
    ports = [port.config.port for port in device.tester_ports.values()]
    own = [
        getattr(p, "interface", None) or Path(getattr(p, "memif", "")) for p in ports
    ]
    assert [Path(each).name for each in own] == list(device.tester_ports)
    testbed = lab.plan(name)
    assert testbed.pairs == 2
    networks = [ipaddress.ip_interface(a[0]).network for a in device.addresses.values()]
    assert len(set(networks)) == 4


def test_links_are_told_of_both_namespaces() -> None:
    assert topology.links(lab.LABS["linux-router-2x2"]) == (
        *("tester/left", "tester/left2", "tester/right", "tester/right2"),
        *("dut/left", "dut/left2", "dut/right", "dut/right2"),
    )
    assert topology.links(lab.LABS["known-answer-2x2"]) == ()


@pytest.mark.parametrize("name", sorted(TRANSPARENT))
def test_where_nothing_routes_each_side_finds_the_other(name: str) -> None:
    wire = lab.LABS[name]
    for config, other in ((wire.left, wire.right), (wire.right, wire.left)):
        for version in (4, 6):
            found, far = config.ip(version), other.ip(version)
            assert found
            assert far
            assert found.gateway == far.address


@pytest.mark.parametrize("count", [1, 7, MAX_HOSTS])
def test_the_translator_knows_each_host_once(count: int) -> None:
    (translator,) = tayga_siit(count).translators.values()
    ipv4, ipv6 = zip(*translator.pairs, strict=True)
    assert len(set(ipv4)) == len(set(ipv6)) == 2 * count
    assert translator.ipv4 not in ipv4
    assert translator.ipv6 not in ipv6


@pytest.mark.parametrize("side", ["left", "right"])
def test_trials_with_many_addresses_meet_a_mapping_for_each(side: Side) -> None:
    """The plan varies the address of a host in both versions: the pairs follow it."""
    device = tayga_siit()
    testbed = Testbed(name="x", left=device.left, right=device.right)
    traffic = Traffic.model_validate({"addresses": MAX_HOSTS})
    config = testbed.sides[side]
    real_6, real_4 = config.ip(6), config.ip(4)
    base_4 = config.virtual(4) or (real_4.address if real_4 else "")
    base_6 = config.virtual(6) or (real_6.address if real_6 else "")
    by_version = [
        every_address(hosts(testbed, traffic, side, base)) for base in (base_4, base_6)
    ]
    (translator,) = device.translators.values()
    assert set(zip(*by_version, strict=True)) <= set(translator.pairs)


def every_address(hosts: AddressSet) -> list[str]:
    (field,) = hosts.fields
    assert field.max - field.min + 1 == MAX_HOSTS
    return [hosts.with_values([n]) for n in range(field.min, field.max + 1)]


@pytest.mark.parametrize("count", [0, MAX_HOSTS + 1])
def test_a_translator_for_more_hosts_than_the_network_has_is_refused(
    count: int,
) -> None:
    with pytest.raises(ValueError, match=str(count)):
        tayga_siit(count)


def test_the_configuration_has_a_line_for_each_mapping() -> None:
    (translator,) = tayga_siit(2).translators.values()
    assert translator.configuration(Path("/run/x")).splitlines() == [
        "tun-device siit",
        "ipv4-addr 198.18.0.1",
        "ipv6-addr 2001:2:0:1000::1",
        "data-dir /run/x",
        "map 198.18.0.2 2001:2::2",
        "map 198.18.0.3 2001:2::1:2",
        "map 198.19.0.2 2001:2:0:1000::2",
        "map 198.19.0.3 2001:2:0:1000::1:2",
    ]


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("known-answer-nat44", 4),
        ("known-answer-nat64", "6-4"),
        ("known-answer-nat66", 6),
        ("known-answer-nat46", "4-6"),
        ("nft-nat44", 4),
        ("nft-nat66", 6),
        ("tayga-nat64", "6-4"),
        ("464xlat", 4),
        ("4in6", 4),
    ],
)
def test_connections_go_by_default_through_what_the_gateway_translates(
    name: str, version: IpVersions
) -> None:
    connections = Phase2Keys(connections=[100], phase1_rate=100)
    assert default_versions(lab.plan(name), connections) == [version]


def test_a_lab_of_a_device_that_we_lack_is_named_with_what_to_do() -> None:
    """One that a later version made, and left up."""
    state = replace(make_state(None), device="hyper-router")
    with pytest.raises(SetupError, match="'hyper-router' is up") as told:
        device_of(state)
    assert "lab down --all" in told.value.hint
