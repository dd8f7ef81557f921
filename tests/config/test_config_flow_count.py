"""Numbers of network flows: the four-tuples that they make, names, and refusals."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from config_samples import make_campaign, make_testbed
from ruamel.yaml import YAML

from dutperf.config import deviations, expand, load_campaign, resolved, spec_from
from dutperf.config.flows import flows
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.ports import MOST_FLOWS
from dutperf.protocol.base import DirectionName

THROUGHPUT: dict[str, Any] = {"procedure": "throughput", "ip": [4]}
BY_ADDRESSES = {"flows_by": "addresses"}
Tuple = tuple[str, str, int, int]


def cells(*specs: dict[str, Any]) -> list[Cell]:
    return expand(make_campaign(*specs), make_testbed())


def tuples(cell: Cell, direction: DirectionName, frames: int) -> list[Tuple]:
    """The four-tuples of the first frames, one by one."""
    [flow] = flows(make_testbed(), cell, direction)
    source, destination = cell.traffic.ports.of(direction)

    def nth(least: int, most: int, frame: int) -> int:
        return least + frame % (most - least + 1)

    return [
        (
            flow.source.with_values([nth(f.min, f.max, k) for f in flow.source.fields]),
            flow.destination.with_values(
                [nth(f.min, f.max, k) for f in flow.destination.fields]
            ),
            nth(*source.bounds, k),
            nth(*destination.bounds, k),
        )
        for k in range(frames)
    ]


@pytest.mark.parametrize("by", ["ports", "addresses", "sources"])
@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("count", [1, 2, 5, 100])
def test_there_are_exactly_so_many_flows_and_all_get_as_many_frames(
    by: str, ip: int, count: int
) -> None:
    asked = {"ip": [ip], "flows": [count], "traffic": {"flows_by": by}}
    [cell] = cells(THROUGHPUT | asked)
    forward = tuples(cell, "forward", 3 * count)
    assert Counter(Counter(forward).values()) == {3: count}
    answers = [(b, a, d, c) for a, b, c, d in tuples(cell, "reverse", 3 * count)]
    assert answers == forward


@pytest.mark.parametrize("ip", [4, 6])
def test_sources_are_hosts_of_the_left_side_alone(ip: int) -> None:
    asked = {"ip": [ip], "flows": [5], "traffic": {"flows_by": "sources"}}
    [cell] = cells(THROUGHPUT | asked)
    found = tuples(cell, "forward", 5)
    assert len({source for source, *_ in found}) == 5
    assert len({each[1:] for each in found}) == 1


def test_every_field_of_a_flow_goes_up_in_step() -> None:
    """What ``tuples`` takes for granted."""
    for by in ("ports", "addresses", "sources"):
        [cell] = cells(THROUGHPUT | {"flows": 7, "traffic": {"flows_by": by}})
        [flow] = flows(make_testbed(), cell, "forward")
        fields = [*flow.source.fields, *flow.destination.fields]
        ports = list(cell.traffic.ports.of("forward"))
        assert {field.mode for field in fields} <= {"increasing"}
        assert {port.mode for port in ports} <= {"increasing", "fixed"}


def test_each_number_of_flows_is_a_cell() -> None:
    found = cells(
        THROUGHPUT | {"flows": [1, 16], "traffic": [{}, {"name": "hosts"}]},
        {"procedure": "pdv", "ip": [4], "rate_fps": "throughput", "flows": [16, 1]},
        THROUGHPUT
        | {"flows": [4], "traffic": {"mix": "50/50", "flows_by": "addresses"}},
    )
    assert [cell.id for cell in found] == [
        "throughput-ip4-64-both-flows1",
        "throughput-ip4-64-both-flows16",
        "throughput-ip4-64-both-hosts-flows1",
        "throughput-ip4-64-both-hosts-flows16",
        "pdv-ip4-64-both-at-throughput-flows16",
        "pdv-ip4-64-both-at-throughput-flows1",
        "throughput-ip4-84-both-mix50-50-flows4-by-addresses",
    ]


@pytest.mark.parametrize("profile", ["flows1x", "flows1", "64"])
def test_cells_of_other_sizes_and_numbers_of_flows_are_a_series(profile: str) -> None:
    asked = {"flows": [1, 16], "traffic": {"name": profile}, "frame_size": [64, 128]}
    found = cells(THROUGHPUT | asked)
    assert {cell.series for cell in found} == {f"throughput-ip4-both-{profile}-flows"}
    assert len({cell.id for cell in found}) == 4


def test_only_cells_with_a_number_of_flows_are_of_a_series() -> None:
    by = {"flows": [4], "traffic": {"flows_by": "addresses"}}
    assert [c.series for c in cells(THROUGHPUT, THROUGHPUT | by)] == [
        None,
        "throughput-ip4-both-flows-by-addresses",
    ]


def test_the_load_is_the_throughput_with_as_many_flows() -> None:
    *_, last = cells(
        THROUGHPUT | {"flows": [1, 4]},
        {"procedure": "pdv", "ip": [4], "rate_fps": "throughput", "flows": [4]},
    )
    assert last.throughput_cell == "throughput-ip4-64-both-flows4"
    with pytest.raises(InputError, match="no throughput of the same frames"):
        cells(
            THROUGHPUT,
            {"procedure": "pdv", "ip": [4], "rate_fps": "throughput", "flows": [4]},
        )


def test_a_number_of_flows_is_no_deviation_from_random_ports() -> None:
    one, many = cells(THROUGHPUT | {"flows": [1, 16]})
    assert [*deviations(one), *deviations(many)] == []


def test_the_resolved_campaign_gives_the_same_cells(tmp_path: Path) -> None:
    campaign = make_campaign(
        THROUGHPUT | {"flows": [1, 4], "traffic": [{}, {"name": "a", "ttl": 9}]},
        THROUGHPUT | {"flows": [1, 4], "traffic": {"flows_by": "addresses"}},
    )
    text = io.StringIO()
    YAML(typ="safe", pure=True).dump(resolved(campaign, make_testbed()), text)
    (tmp_path / "c.yaml").write_text(text.getvalue())
    again = load_campaign(tmp_path / "c.yaml")
    assert expand(again, make_testbed()) == expand(campaign, make_testbed())


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"flows": [0]}, "flows[0]: must be at least 1, not 0"),
        (
            {"flows": [MOST_FLOWS + 1]},
            "flows[0]: must be at most 64512, as many as there are ports from 1024 on",
        ),
        (
            {"flows": [1], "stateful": {"connections": 9, "phase1_rate": 9}},
            "flows: must be left out of a stateful test (stateful.connections)",
        ),
        ({"flows": [4, 4]}, "flows: must not list 4 twice"),
        ({"flows": "many"}, "flows: must be a whole number, not 'many'"),
        ({"flows": 2, "traffic": {"networks": 4}}, "so leave traffic.networks out"),
        ({"flows": 2, "traffic": {"addresses": 4}}, "so leave traffic.addresses out"),
        (
            {"flows": 2, "traffic": {"ports": {"source": "random:1-9"}}},
            "so leave traffic.ports out",
        ),
        ({"flows": 2, "traffic": {"flows": 4}}, "so leave traffic.flows out"),
        ({"traffic": {"flows": 2, "networks": 4}}, "so leave networks out"),
        (
            {"traffic": {"flows": 2, "flows_by": "x"}},
            "traffic.flows_by: must be 'ports'",
        ),
    ],
)
def test_what_contradicts_a_number_of_flows_is_refused(
    keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as refusal:
        spec_from(THROUGHPUT | keys, "here")
    assert message in refusal.value.message


def test_as_many_flows_as_ports_are_allowed() -> None:
    [cell] = cells(THROUGHPUT | {"flows": MOST_FLOWS})
    source, _ = cell.traffic.ports.of("forward")
    assert source.bounds == (1024, 65535)


PDV: dict[str, Any] = {"procedure": "pdv", "ip": [4], "rate_fps": "1000 per flow"}


def test_a_rate_for_each_flow_makes_a_load_that_grows_with_them() -> None:
    found = cells(PDV | {"flows": [1, 4, 16]})
    assert [cell.spec.given_rate_fps for cell in found] == [1000, 4000, 16_000]
    assert [cell.id for cell in found] == [
        f"pdv-ip4-64-both-at-1000fps-per-flow-flows{n}" for n in (1, 4, 16)
    ]
    [series] = {cell.series for cell in found}
    assert series == "pdv-ip4-both-at-1000fps-per-flow-flows"
    assert {cell.throughput_cell for cell in found} == {None}


def test_the_load_is_none_that_was_looked_for() -> None:
    found = list(deviations(cells(PDV | {"flows": [4]})[0]))
    assert "at 4,000 fps, 1,000 per flow" in [each.actual for each in found]


def test_a_profile_may_say_the_flows_of_a_rate_for_each() -> None:
    [cell] = cells(PDV | {"traffic": {"flows": 7}})
    assert cell.spec.given_rate_fps == 7000


def test_the_resolved_campaign_keeps_the_rate_for_each_flow(tmp_path: Path) -> None:
    campaign = make_campaign(PDV | {"flows": [1, 4], "rate_fps": "1000  per flow"})
    text = io.StringIO()
    YAML(typ="safe", pure=True).dump(resolved(campaign, make_testbed()), text)
    (tmp_path / "c.yaml").write_text(text.getvalue())
    again = load_campaign(tmp_path / "c.yaml")
    assert expand(again, make_testbed()) == expand(campaign, make_testbed())


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "rate_fps: 1000 per flow needs a number of flows"),
        (
            {"traffic": [{"flows": 2}, {"name": "other"}]},
            "rate_fps: 1000 per flow needs a number of flows",
        ),
        ({"flows": [1], "rate_fps": "0 per flow"}, "rate_fps: must be at least 1"),
        (
            {"flows": [1], "rate_fps": "9999999999999 per flow"},
            "rate_fps: must be at most 1000000000000",
        ),
        (
            {"flows": [1], "rate_fps": "90% per flow"},
            "rate_fps: must be whole frames per second like 100000, or throughput",
        ),
    ],
)
def test_a_rate_for_each_flow_that_cannot_be_is_refused(
    keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as refusal:
        spec_from(PDV | keys, "here")
    assert message in refusal.value.message


@pytest.mark.parametrize("procedure", ["outage", "frame-loss"])
def test_it_is_for_delays_alone(procedure: str) -> None:
    asked = {"procedure": procedure, "rate_fps": "1000 per flow", "flows": [1]}
    with pytest.raises(InputError, match="rate_fps"):
        spec_from(asked, "here")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"flows": [1, 4], "max_rate_fps": 3999},
            "1000 per flow, 4000 of 4 flows, is more than the maximum rate",
        ),
        (
            {"flows": [2], "rate_fps": "600000000000 per flow"},
            "1200000000000 of 2 flows, must be at most 1000000000000",
        ),
    ],
)
def test_a_load_that_grew_too_high_is_refused(
    keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as refusal:
        cells(PDV | keys)
    assert message in refusal.value.message


@pytest.mark.parametrize("by", ["addresses", "sources"])
def test_more_hosts_than_there_are_addresses_are_refused_with_their_number(
    by: str,
) -> None:
    left = {"port": {"interface": "tl"}}
    ipv4 = {"address": "198.18.255.200", "gateway": "198.18.255.1"}
    testbed = make_testbed(left=left | {"ipv4": ipv4})
    asked = THROUGHPUT | {"flows": [1, 56], "traffic": {"flows_by": by}}
    with pytest.raises(InputError) as refusal:
        expand(make_campaign(asked), testbed)
    told = "from 198.18.255.200 on there are 55 addresses, fewer than 56 hosts"
    assert told in refusal.value.message
    assert len(expand(make_campaign(asked | {"flows": [55]}), testbed)) == 1
