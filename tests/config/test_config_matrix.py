"""A campaign is a matrix: lists multiply to cells, and a list of one needs no list."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from config_samples import make_campaign, make_testbed
from jsonschema import Draft202012Validator

from dutperf.config import expand, json_schemas, load_campaign
from dutperf.errors import InputError

THROUGHPUT = {"procedure": "throughput", "ip": [4]}
MANY_HOSTS = {"name": "many", "addresses": 250}


def ids(*procedures: dict[str, Any]) -> list[str]:
    return [cell.id for cell in expand(make_campaign(*procedures), make_testbed())]


def refused(path: Path, lines: str) -> str:
    """What is said of a campaign file with ``lines`` in its procedure."""
    text = "name: x\nlab: linux-router\nprocedures:\n- procedure: throughput\n"
    path = path / "campaign.yaml"
    path.write_text(text + "".join(f"  {line}\n" for line in lines.splitlines()))
    with pytest.raises(InputError) as caught:
        load_campaign(path)
    return caught.value.message.removeprefix(f"{path}:")


def test_sizes_profiles_and_directions_multiply() -> None:
    found = ids(
        THROUGHPUT
        | {
            "frame_size": [64, 128],
            "traffic": [{}, MANY_HOSTS],
            "direction": ["both", "forward", "reverse"],
        }
    )
    ways = ("both", "forward", "reverse")
    assert sorted(found) == sorted(
        f"throughput-ip4-{size}-{way}{name}"
        for size, way, name in product((64, 128), ways, ("", "-many"))
    )
    assert found[:3] == [f"throughput-ip4-64-{way}" for way in ways]


def test_each_cell_has_one_profile_and_one_direction() -> None:
    spec = {**THROUGHPUT, "traffic": [{}, MANY_HOSTS], "direction": ["reverse"]}
    plain, many = expand(make_campaign(spec), make_testbed())
    assert plain.direction == many.direction == "reverse"
    assert plain.traffic.addresses.count("left") == 1
    assert many.traffic.addresses.count("left") == 250


def test_an_imix_beside_another_profile_has_its_own_sizes() -> None:
    spec = {**THROUGHPUT, "traffic": [{}, {"name": "mixed", "imix": "ag"}]}
    assert ids(spec) == ["throughput-ip4-64-both", "throughput-ip4-imix-ag-both-mixed"]


@pytest.mark.parametrize("key", ["traffic", "direction"])
def test_one_value_is_a_list_of_one(key: str) -> None:
    value = {"traffic": MANY_HOSTS, "direction": "forward"}[key]
    assert ids({**THROUGHPUT, key: value}) == ids({**THROUGHPUT, key: [value]})


def test_editors_accept_both_ways_of_writing() -> None:
    schema = Draft202012Validator(json_schemas()["campaign"])
    for many in (False, True):
        spec = THROUGHPUT | {
            "traffic": [{}, MANY_HOSTS] if many else MANY_HOSTS,
            "direction": ["both", "forward"] if many else "both",
        }
        data = {"name": "x", "lab": "l", "procedures": [spec]}
        assert list(schema.iter_errors(data)) == []
    wrongs: list[dict[str, Any]] = [
        {"direction": []},
        {"direction": "up"},
        {"traffic": [1]},
    ]
    for wrong in wrongs:
        data = {"name": "x", "lab": "l", "procedures": [THROUGHPUT | wrong]}
        assert list(schema.iter_errors(data))


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("direction: []", "5: procedures[0].direction: must have at least 1 entry"),
        ("traffic: []", "5: procedures[0].traffic: must have at least 1 entry"),
        ("ip: []", "5: procedures[0].ip: must have at least 1 entry"),
        ("frame_size: []", "5: procedures[0].frame_size: must have at least 1 entry"),
        ("testbeds: []", "5: procedures[0].testbeds: must have at least 1 entry"),
        (
            "direction: [both, forward, both]",
            "5: procedures[0].direction: must not list both twice",
        ),
        ("direction: up", "5: procedures[0].direction: must be 'both', 'forward' or"),
        (
            "direction:\n- both\n- up",
            "7: procedures[0].direction[1]: must be 'both', 'forward' or 'reverse'",
        ),
        ("direction:", "5: procedures[0].direction: must be 'both', 'forward' or"),
        ("traffic: {ttl: 0}", "5: procedures[0].traffic.ttl: must be at least 1"),
        (
            "traffic:\n- {}\n- {ttll: 9}",
            "7: procedures[0].traffic[1].ttll: unknown key; did you mean ttl?",
        ),
        (
            "traffic:\n- {name: a}\n- {ttl: 9}\n- {name: a}",
            "5: procedures[0].traffic: profiles 0 and 2 would have the same name, 'a'",
        ),
        (
            "traffic: [{}, {ttl: 9}]",
            (
                "5: procedures[0].traffic: profiles 0 and 1 would have the same name, "
                "the default profile's: give each a name"
            ),
        ),
        (
            "stateful: {connections: 9, phase1_rate: 8}\nflows: [1, 2]",
            "6: procedures[0].flows: must be left out of a stateful test",
        ),
        (
            "stateful: {connections: 9, phase1_rate: 8}\ntraffic: {networks: 4}",
            "6: procedures[0].traffic.networks: must be left out of a stateful test",
        ),
        (
            "traffic: [{}, {name: mixed, imix: ag}]\nframe_size: [64]",
            "4: procedures[0]: give frame_size or traffic.imix, not both",
        ),
    ],
)
def test_what_is_no_matrix_is_refused_with_its_line(
    tmp_path: Path, lines: str, told: str
) -> None:
    assert refused(tmp_path, lines).startswith(told)
