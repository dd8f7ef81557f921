"""Connections over many addresses: how many there are, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import bench_data, make_campaign, make_testbed

from dutperf.config import Campaign, Testbed, expand, notices, resolved
from dutperf.config.flows import flows, own_hosts
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.stateful_keys import Stateful


def gateway() -> Testbed:
    """NAT44 and NAT64, the private side on the left."""
    data = bench_data()
    data["left"]["ipv4"]["virtual"] = "198.19.1.1"
    data["right"]["ipv6"]["virtual"] = "64:ff9b::198.19.1.2"
    return make_testbed(**data)


def one_cell(
    traffic: dict[str, Any],
    procedure: str = "connection-rate",
    ip: int | str = 4,
    **stateful: object,
) -> Cell:
    keys = {"procedure": procedure, "ip": [ip], "traffic": traffic}
    (cell,) = expand(make_campaign(keys | {"stateful": stateful}), gateway())
    return cell


def connections(traffic: dict[str, Any], **keys: Any) -> Stateful:  # noqa: ANN401
    found = one_cell(traffic, **keys).stateful
    assert found is not None
    return found


UNEVEN = {"addresses": {"left": {"hosts": 6}, "right": {"hosts": 5}}}


def test_ports_and_addresses_are_combined() -> None:
    ports = {"source_ports": "10000-10999", "destination_ports": "80-81"}
    found = connections(UNEVEN, connections=60_000, **ports)
    assert (found.source_addresses, found.destination_addresses) == (6, 5)
    assert found.combinations == 1000 * 2 * 6 * 5
    assert found.mappings == 1000 * 6
    assert connections(UNEVEN, connections=5000, **ports).mappings == 5000


def test_the_initiators_addresses_are_the_sources() -> None:
    found = connections(UNEVEN, connections=1000, initiator="right")
    assert (found.source_addresses, found.destination_addresses) == (5, 6)


@pytest.mark.parametrize(
    ("number", "last"), [(30_000, 80), (30_001, 81), (100_000, 83)]
)
def test_addresses_leave_fewer_destination_ports_to_be_needed(
    number: int, last: int
) -> None:
    found = connections(UNEVEN, connections=number, source_ports="10000-10999")
    emptied = found.model_copy(update={"is_emptied": True})
    assert emptied.destinations == (80, last)


@pytest.mark.parametrize(
    ("hosts", "ports", "last"),
    [(UNEVEN, "10000-10999", 4079), ({"addresses": 2000}, "1024-65535", 80 + 1089)],
)
def test_one_enumeration_is_for_all_tests_if_no_hook_empties_the_table(
    hosts: dict[str, Any], ports: str, last: int
) -> None:
    for number in (1, 30_000, 100_000):
        found = connections(hosts, connections=number, source_ports=ports)
        assert found.destinations == (80, last)
        assert found.combinations <= 2**48
        assert list(found.troubles()) == []


def test_fewer_connections_are_of_the_same_combinations() -> None:
    found = connections(UNEVEN, connections=100_000, source_ports="10000-10999")
    fewer = found.with_connections(7)
    assert fewer.connections == 7
    assert fewer.combinations == found.combinations


@pytest.mark.parametrize(
    ("traffic", "stateful", "told"),
    [
        (
            UNEVEN,
            {"source_ports": "1-10", "destination_ports": "7-7", "connections": 301},
            "300 combinations of source_ports 1-10 and destination_ports 7-7, 6 source",
        ),
        (
            UNEVEN,
            {"source_ports": "7-7", "connections": 2_000_000},
            "ports from 80 on, 6 source and 5 destination addresses give",
        ),
        (
            {"addresses": {"right": {"hosts": 6, "mode": "increasing"}}},
            {"connections": 100},
            "traffic.addresses.right.mode: must be left out of a stateful test",
        ),
        (
            {"addresses": 60_000},
            {"connections": 100, "destination_ports": "80-179"},
            "more than the 2^48 that can be told apart",
        ),
        (
            {"addresses": 5, "networks": 9},
            {"connections": 100},
            "networks: must be left out",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    traffic: dict[str, Any], stateful: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match="stateful") as caught:
        one_cell(traffic, **stateful)
    assert told in str(caught.value)


@pytest.mark.parametrize("stateful", [{"alpha": 0.8}, {"phase1_rate": 1000}])
def test_the_responder_must_know_whom_to_answer_before_the_first_frame(
    stateful: dict[str, Any],
) -> None:
    """Behind a translator of versions, the initiator has another address there."""
    data = gateway().model_dump(exclude_none=True)
    del data["left"]["ipv4"]["virtual"]
    procedure = "throughput" if "phase1_rate" in stateful else "connection-rate"
    keys = {
        "procedure": procedure,
        "ip": ["6-4"],
        "stateful": {"connections": 100, **stateful},
    }
    if procedure == "throughput":
        keys["direction"] = "forward"
    with pytest.raises(InputError, match="which IPv4 address stands for it"):
        expand(make_campaign(keys), make_testbed(**data))


def test_hosts_that_the_testbed_has_no_place_for_are_refused() -> None:
    with pytest.raises(InputError, match=r"from 198\.18\.1\.2 on there are 65277"):
        one_cell({"addresses": 65_300}, connections=100)


def test_a_side_whose_address_is_fixed_has_one() -> None:
    found = connections({"addresses": {"left": {"mode": "fixed"}}}, connections=9)
    assert (found.source_addresses, found.destination_addresses) == (1, 1)


def test_the_resolved_campaign_has_the_same_cells() -> None:
    keys = {"procedure": "connection-rate", "stateful": {"connections": 70_000}}
    profiles = [{"addresses": 3}, {"addresses": 4}, {}]
    campaign = make_campaign(keys | {"ip": [4], "traffic": profiles})
    cells = expand(campaign, gateway())
    assert [cell.stateful and cell.stateful.source_addresses for cell in cells] == [
        *(3, 4, 1)
    ]
    written = resolved(campaign, gateway()) | {"lab": "linux-router"}
    assert expand(Campaign.model_validate(written), gateway()) == cells


def test_the_tester_is_every_host_on_both_sides() -> None:
    cell = one_cell(UNEVEN, connections=100)
    (left,), (right,) = (own_hosts(gateway(), cell, s) for s in gateway().sides)
    assert (left.lowest, left.highest) == ("198.18.1.2", "198.18.1.7")
    assert (right.lowest, right.highest) == ("198.19.1.2", "198.19.1.6")


def test_the_hosts_behind_a_nat64_are_one_address_of_its_own() -> None:
    opened = {"connections": 100, "phase1_rate": 1000}
    cell = one_cell({"addresses": 5}, "throughput", "6-4", **opened)
    (there,) = flows(gateway(), cell, "forward")
    (back,) = flows(gateway(), cell, "reverse")
    assert (there.source.lowest, there.source.highest) == ("2001:2::2", "2001:2::4:2")
    ends = (there.destination.lowest, there.destination.highest)
    assert ends == ("64:ff9b::c613:102", "64:ff9b::c613:106")
    assert (back.destination.base, back.destination.fields) == ("198.19.1.1", ())


def test_test_cases_that_ask_the_same_of_the_device_are_told_together() -> None:
    keys = {"procedure": "throughput", "ip": [4], "frame_size": [64, 128, 256]}
    stateful = {"connections": 1000, "phase1_rate": 1000}
    campaign = make_campaign(keys | {"stateful": stateful})
    (told,) = (
        n for n in notices(gateway(), expand(campaign, gateway())) if "keep a" in n
    )
    assert told.startswith("throughput-ip4-64-both-1000connections and 2 more: before ")


def test_public_ports_must_do_for_all_addresses() -> None:
    keys = {"procedure": "connection-rate", "ip": [4], "traffic": UNEVEN}
    stateful = {"connections": 1_000_000}
    campaign = make_campaign(keys | {"stateful": stateful})
    told = " ".join(notices(gateway(), expand(campaign, gateway())))
    assert "240,000 pairs of address and port" in told
    assert "needs 4 addresses" in told
    assert "or narrow source_ports or addresses" in told
