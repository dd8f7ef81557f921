"""Several ports on each side (RFC 2544 16): testbeds, paths, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import several_ports
from planning import TESTBED, cell

from dutperf.config import Testbed, from_data, notices
from dutperf.config.deviations import deviations
from dutperf.config.paths import port_paths
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.traffic import PortPattern
from dutperf.protocol.base import MAX_PAIRS

Data = dict[str, Any]


def read(change: Callable[[Data], object], pairs: int = 2) -> Testbed:
    data = several_ports.testbed_data(pairs)
    change(data)
    return from_data(Testbed, data, "testbed.yaml")


def at(number: int, **keys: object) -> Cell:
    return cell(several_ports.testbed(number), **keys)


@pytest.mark.parametrize("pairs", range(1, MAX_PAIRS + 1))
def test_ports_are_told_left_to_right_by_their_numbers(pairs: int) -> None:
    testbed = several_ports.testbed(pairs)
    assert testbed.pairs == pairs
    labels = [port.label for port in testbed.tester_ports]
    left = ["left", "left 2", "left 3", "left 4"][:pairs]
    right = ["right", "right 2", "right 3", "right 4"][:pairs]
    assert labels == left + right


def test_a_testbed_of_one_pair_is_written_as_before_there_could_be_several() -> None:
    written = several_ports.testbed(1).model_dump()
    assert "more_ports" not in written["left"]
    assert "number" not in str(written)
    again = Testbed.model_validate(several_ports.testbed(2).model_dump())
    assert again == several_ports.testbed(2)


def test_a_pair_of_ports_is_a_testbed_of_its_own() -> None:
    view = several_ports.testbed(3).between(2, 1)
    assert view.pairs == 1
    assert view.left.ip(4) == ("198.18.2.2", "198.18.2.1")
    assert view.right.ip(6) == ("2001:2:0:8001::2", "2001:2:0:8001::1")
    assert TESTBED.between(0, 0) is TESTBED


def _mtu(data: Data) -> None:
    data["left"]["more_ports"][0]["port"]["mtu"] = 9000


def _same_port(data: Data) -> None:
    data["left"]["more_ports"][0]["port"] = data["left"]["port"]


def _same_address(data: Data) -> None:
    data["right"]["more_ports"][0]["ipv4"]["address"] = "198.18.0.2"


def _ring(data: Data) -> None:
    data["right"]["more_ports"][0]["port"] = {"ring": True}


def _virtual(data: Data) -> None:
    data["left"]["more_ports"][0]["ipv4"]["virtual"] = "198.19.5.2"


def _without_gateway(data: Data) -> None:
    del data["left"]["more_ports"][0]["ipv4"]["gateway"]


def _tagged(data: Data) -> None:
    data["left"]["more_ports"][0]["vlan"] = 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda data: data["right"].pop("more_ports"),
            "right.more_ports: must list as many ports as left.more_ports, 1, not 0",
        ),
        (
            lambda data: data["left"]["more_ports"].append(
                several_ports.port_data("left", 2)
            ),
            "right.more_ports: must list as many ports as left.more_ports, 2, not 1",
        ),
        (_mtu, "left.more_ports[0].port.mtu: is 9000, and that of left.port 1500"),
        (_same_port, "left.port and left.more_ports[0].port are the same port"),
        (
            _same_address,
            "left.ipv4.address and right.more_ports[0].ipv4.address are both",
        ),
        (_ring, "a ring joins both ports"),
        (_virtual, "left.more_ports[0].ipv4.virtual: is for translators"),
        (_without_gateway, "left.more_ports[0].ipv4: gateway is missing"),
        (_tagged, "left.more_ports[0].vlan"),
        (
            lambda data: data["left"]["more_ports"][0].pop("ipv6"),
            "left.more_ports[0].ipv6: all ports of a side have addresses of the same",
        ),
        (
            lambda data: data["right"].pop("ipv4"),
            "IP versions, and of IPv4 only right.more_ports[0] has one",
        ),
    ],
)
def test_ports_that_do_not_fit_together_are_refused(
    change: Callable[[Data], object], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        read(change)
    assert message in caught.value.message


def test_more_than_four_ports_on_a_side_are_refused() -> None:
    with pytest.raises(InputError, match=r"left\.more_ports"):
        from_data(Testbed, several_ports.testbed_data(MAX_PAIRS + 1), "testbed.yaml")


def of_the_rfc() -> list[str]:
    """RFC 2544 16, literally: each input's stream, frame after frame of all inputs."""
    inputs, outputs = "ABC", "XYZ"
    streams = {port: [f"{port}{out}" for out in outputs] for port in inputs}
    return [streams[port][turn] for turn in range(len(outputs)) for port in inputs]


def test_the_mesh_has_the_order_of_the_rfcs_example() -> None:
    found = [f"{'ABC'[s]}{'XYZ'[r]}" for s, r in port_paths(3, "mesh")]
    assert found == of_the_rfc()
    assert port_paths(3, None) == port_paths(3, "mesh")


@pytest.mark.parametrize("pairs", range(1, MAX_PAIRS + 1))
def test_in_a_mesh_all_ports_have_the_same_rate_at_any_time(pairs: int) -> None:
    paths = port_paths(pairs, "mesh")
    assert sorted(paths) == [(s, r) for s in range(pairs) for r in range(pairs)]
    for begin in range(0, len(paths), pairs):
        turn = paths[begin : begin + pairs]
        assert [sends for sends, _ in turn] == list(range(pairs))
        assert len({receives for _, receives in turn}) == 1


def test_pairs_are_port_by_port() -> None:
    assert port_paths(3, "pairs") == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"ip": ["6-4"]}, "ip: translation is measured by one port on each side, and"),
        ({"traffic": {"routes": "rip"}}, "traffic.routes: routes are told by one port"),
        ({"traffic": {"routes": "ospf"}}, "traffic.routes: routes are told by one"),
        ({"procedure": "outage"}, "procedure: outages are measured by one port on"),
        (
            {"traffic": {"addresses": 1000}},
            "198.18.0.2 (left) and 198.18.1.2 (left 2), but not by the same values",
        ),
        (
            {"traffic": {"networks": 4}},
            "traffic.networks.right: bits 16 to 23 vary of 198.19.0.2 (right)",
        ),
        (
            {"traffic": {"addresses": {"left": {"width": 16, "min": 258, "max": 500}}}},
            "198.18.0.2 (left) and 198.18.1.2 (left 2), and are what tells the ports",
        ),
        (
            {
                "traffic": {
                    "addresses": {"left": {"width": 8, "min": 2, "max": 20}},
                    "networks": {"left": 4},
                }
            },
            "traffic.networks.left",
        ),
    ],
)
def test_what_several_ports_cannot_do_is_refused(keys: Data, message: str) -> None:
    with pytest.raises(InputError) as caught:
        at(2, **keys)
    assert message in caught.value.message


def test_connections_are_opened_by_one_port_on_each_side() -> None:
    with pytest.raises(InputError, match="stateful: connections are opened by one"):
        at(2, procedure="connection-rate", stateful={"connections": 1000})


def test_the_device_at_another_port_is_no_host() -> None:
    data = several_ports.testbed_data(2)
    data["left"]["more_ports"][0]["ipv4"]["gateway"] = "198.18.0.9"
    testbed = Testbed.model_validate(data)
    with pytest.raises(InputError, match=r"the addresses of left from 198\.18\.0\.2"):
        cell(testbed, traffic={"addresses": 20})
    assert cell(testbed, traffic={"addresses": 5}).pairs == 2


@pytest.mark.parametrize(("pattern", "ending"), [(None, ""), ("pairs", "-pairs")])
def test_cells_are_named_after_a_pattern_that_is_not_the_rfcs(
    pattern: PortPattern | None, ending: str
) -> None:
    found = at(2, traffic={"port_pattern": pattern})
    assert found.id == f"throughput-ip4-64-both{ending}"
    assert found.pairs == 2


def requirements(found: Cell) -> list[tuple[str | None, str]]:
    return [
        (each.level, each.actual)
        for each in deviations(found)
        if each.rfc == "RFC 2544 16"
    ]


def test_what_is_short_of_section_16_is_told() -> None:
    assert requirements(at(2, direction=["forward"])) == []
    assert requirements(at(1)) == []
    both = ("MUST", "to those of the other side")
    assert requirements(at(2)) == [both]
    pairs = {"port_pattern": "pairs"}
    each = ("SHOULD", "each to one output port")
    assert requirements(at(2, traffic=pairs)) == [each, both]
    assert requirements(at(1, traffic=pairs)) == []


def test_addresses_of_all_ports_are_looked_at() -> None:
    data = several_ports.testbed_data(2)
    data["right"]["more_ports"][0]["ipv4"] = {
        "address": "192.0.2.2",
        "gateway": "192.0.2.1",
    }
    testbed = Testbed.model_validate(data)
    found = notices(testbed, [cell(testbed)])
    assert [text.split(" is outside")[0] for text in found] == [
        "right.more_ports[0].ipv4.address 192.0.2.2",
        "right.more_ports[0].ipv4.gateway 192.0.2.1",
    ]
