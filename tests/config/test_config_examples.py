"""The example files work as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_samples import make_campaign, make_testbed

from dutperf import lab
from dutperf.catalogue import PROCEDURES
from dutperf.config import (
    deviations,
    expand,
    load_campaign,
    load_testbed,
    notices,
)
from dutperf.model.frames import IpVersions

EXAMPLES = Path(__file__).parents[2] / "examples"
IN_THE_FIRST_NETWORK = {
    side: {
        "port": {"interface": side},
        "ipv4": {"address": f"198.{n}.0.2", "gateway": f"198.{n}.0.1"},
        "ipv6": {"address": f"2001:2:0:{p}::2", "gateway": f"2001:2:0:{p}::1"},
    }
    for side, n, p in (("left", 18, "0"), ("right", 19, "8000"))
}


def test_the_hardware_testbed_has_both_versions_and_legal_addresses() -> None:
    testbed = load_testbed(EXAMPLES / "hardware-testbed.yaml")
    cells = expand(make_campaign({"procedure": "throughput"}), testbed)
    assert testbed.ip_versions() == [4, 6]
    assert notices(testbed, cells) == []


def test_the_router_campaign_is_by_the_book() -> None:
    cells = expand(load_campaign(EXAMPLES / "linux-router.yaml"), make_testbed())
    # In an outage somebody has to act, the router has no route for a group and no
    # meter, TCP connections and queries are no matter of it, and a soak takes a day.
    left_out = (
        "outage",
        "multicast-throughput",
        "tcp-connection-rate",
        "dns64",
        "dns",
        "soak",
        "power",
    )
    assert {cell.procedure for cell in cells} == {
        name
        for name, each in PROCEDURES.items()
        if each.family != "connections" and name not in left_out
    }
    sizes = [c.frame_sizes[0] for c in cells if c.traffic.flows is None]
    assert set(sizes) == {64, 84, 128, 256, 512, 1024, 1280, 1518}
    assert {c.traffic.flows for c in cells} == {None, 1, 4, 16, 256, 4096}
    assert all(c.throughput_cell for c in cells if c.spec.rate_reference)
    assert [found for cell in cells for found in deviations(cell)] == []


def test_the_demo_is_short_and_says_where_it_deviates() -> None:
    cells = expand(load_campaign(EXAMPLES / "demo.yaml"), make_testbed())
    assert [cell.id for cell in cells] == [
        "throughput-ip4-64-both-mlrsearch",
        "throughput-ip6-84-both-mlrsearch",
        "frame-loss-ip4-64-both-at-throughput",
        "frame-loss-ip6-84-both-at-throughput",
        "latency-ip4-64-both-at-50percent-of-throughput",
        "latency-ip6-84-both-at-50percent-of-throughput",
    ]
    assert all(cell.spec.trial_duration_s <= 3 for cell in cells)
    assert all(cell.spec.max_rate_fps is None for cell in cells)
    assert all(deviations(cell) for cell in cells)


def test_the_translator_campaign_has_the_mixes_of_rfc_8219() -> None:
    campaign = load_campaign(EXAMPLES / "nat64.yaml")
    [testbed] = campaign.testbeds
    cells = expand(campaign, testbed)
    assert {cell.ip for cell in cells} == {"6-4"}
    assert {cell.traffic.mix for cell in cells} == {"100/0", "90/10", "50/50", "10/90"}
    assert notices(testbed, cells) == []


def test_the_networks_campaign_lacks_routing_updates_only() -> None:
    campaign = load_campaign(EXAMPLES / "networks.yaml")
    cells = expand(campaign, make_testbed(**IN_THE_FIRST_NETWORK))
    assert {cell.traffic.networks.left for cell in cells} == {1, 256}
    for cell in cells:
        wanted = ["RFC 2544 13"] if cell.traffic.networks.left > 1 else []
        assert [found.rfc for found in deviations(cell)] == wanted


def test_the_modifiers_campaign_has_what_the_rfcs_put_beside_a_stream() -> None:
    campaign = load_campaign(EXAMPLES / "modifiers.yaml")
    cells = expand(campaign, make_testbed(**IN_THE_FIRST_NETWORK))
    beside = {cell.traffic.beside and cell.traffic.beside.words for cell in cells}
    assert beside == {
        None,
        "1 % broadcast frames",
        "1 % hop-by-hop frames",
        "10 % hop-by-hop frames",
        "50 % hop-by-hop frames",
    }
    assert not any(deviations(cell) for cell in cells)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda p: p.name)
def test_every_example_says_how_to_use_it(path: Path) -> None:
    assert path.read_text().startswith("# ")


def test_the_filters_campaign_compares_numbers_of_filters() -> None:
    campaign = load_campaign(EXAMPLES / "filters.yaml")
    testbeds = [lab.plan(keys) for keys in campaign.labs]
    cells = expand(campaign, *testbeds)
    assert {(cell.testbed, cell.ip) for cell in cells} == {
        (f"linux-firewall-{rules}", ip) for rules in (1, 25, 100) for ip in (4, 6)
    }


def test_the_ipv4aas_campaign_measures_chains_and_a_gateway_alike() -> None:
    campaign = load_campaign(EXAMPLES / "ipv4aas.yaml")
    cells = expand(campaign, *(lab.plan(keys) for keys in campaign.labs))
    measured: dict[str, set[tuple[str, IpVersions, int]]] = {}
    for cell in cells:
        told = (cell.procedure, cell.ip, cell.frame_sizes[0])
        measured.setdefault(cell.testbed or "", set()).add(told)
    capacity: set[tuple[str, IpVersions, int]] = {("table-capacity", 4, 84)}
    chain = measured["464xlat"] | capacity
    assert measured["nft-nat44"] == measured["4in6"] == chain
    assert len(measured) == 11
    always = {"throughput", "frame-loss", "latency", "pdv"}
    for name, of_lab in measured.items():
        procedures = {procedure for procedure, *_ in of_lab}
        assert always <= procedures
        opens = "connection-rate" in procedures
        assert opens == bool(lab.plan(name).hooks.table_count)
        assert {size for *_, size in of_lab} == {84, 1280}
    assert all(cell.spec.question for cell in cells)


def test_the_matrix_campaign_compares_two_labs() -> None:
    campaign = load_campaign(EXAMPLES / "matrix.yaml")
    assert campaign.lab == ["linux-router", "tayga-siit"]
    cells = expand(campaign, *(lab.plan(keys) for keys in campaign.labs))
    assert {(cell.testbed, cell.ip) for cell in cells} == {
        ("linux-router", 4),
        ("linux-router", 6),
        ("tayga-siit", "6-4"),
    }
    assert {cell.direction for cell in cells} == {"both", "forward"}
    assert {cell.traffic.name for cell in cells} == {None, "translated", "half-native"}
    assert all(cell.spec.trial_duration_s == 1 for cell in cells)


def test_the_encapsulation_campaign_has_the_tester_at_the_other_end() -> None:
    campaign = load_campaign(EXAMPLES / "encapsulation.yaml")
    places = {keys.label: lab.plan(keys) for keys in campaign.labs}
    tunnels = {label: place.left.tunnel for label, place in places.items()}
    assert tunnels.pop("native") is None
    assert {label: (t and t.kind, t and t.bytes) for label, t in tunnels.items()} == {
        "ipv4-in-ipv6": ("ip", 40),
        "gre": ("gre", 24),
        "vxlan": ("vxlan", 50),
        "srv6": ("srv6", 80),
        "map-e": ("ip", 40),
        "lw4o6": ("ip", 40),
    }
    assert all(place.right.tunnel is None for place in places.values())
    for label, bits in (("map-e", 40), ("lw4o6", 48)):
        relayed = places[label].left
        assert relayed.edge_rule
        assert relayed.tunnel
        assert (relayed.tunnel.remote, relayed.tunnel.local_bits) == ("2001:2::1", bits)
    assert len(expand(campaign, *places.values())) == 14
