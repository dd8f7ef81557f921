"""Sweeps of one number: which test cases they are, how these are named, refusals."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from config_samples import make_campaign, make_testbed

from dutperf.config import between, expand
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.results.model import comparable

THROUGHPUT: dict[str, Any] = {"procedure": "throughput", "ip": [4]}


def cells(sweep: dict[str, Any], **keys: object) -> list[Cell]:
    return expand(make_campaign(THROUGHPUT | {"sweep": sweep} | keys), make_testbed())


def numbers(found: list[Cell]) -> list[int]:
    return [each.spec.sweep.number for each in found if each.spec.sweep]


def test_numbers_have_even_ratios_and_both_ends() -> None:
    found = numbers(cells({"key": "addresses", "max": 4096, "points": 7}))
    assert found == [1, 4, 16, 64, 256, 1024, 4096]
    found = numbers(cells({"key": "networks", "min": 3, "max": 200, "points": 20}))
    assert (found[0], found[-1]) == (3, 200)
    ratios = [b / a for a, b in pairwise(found) if a > 20]
    assert max(ratios) < 1.1 * min(ratios)


def test_near_numbers_are_one() -> None:
    assert numbers(cells({"key": "ports", "max": 3, "points": 9})) == [1, 2, 3]


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("addresses", "throughput-ip4-64-both-6addresses"),
        ("ports", "throughput-ip4-64-both-6ports"),
        ("networks", "throughput-ip4-64-both-6networks"),
        ("flows", "throughput-ip4-64-both-flows6"),
    ],
)
def test_each_number_is_a_test_case_with_it_in_its_name(key: str, name: str) -> None:
    found = cells({"key": key, "values": [6, 2]})
    assert numbers(found) == [2, 6]
    assert found[1].id == name
    assert len({each.series for each in found}) == 1
    assert found[0].series is not None


def test_the_frames_have_as_many_of_it() -> None:
    [one, six] = cells({"key": "addresses", "values": [1, 6]})
    assert [six.traffic.addresses.count(side) for side in ("left", "right")] == [6, 6]
    assert one.traffic.addresses.count("left") == 1
    [one, six] = cells({"key": "ports", "values": [1, 6]})
    assert [port.bounds for port in six.traffic.ports.of("forward")] == [
        (1024, 1029),
        (1, 6),
    ]
    assert [str(port) for port in one.traffic.ports.of("forward")] == [
        "fixed 1024",
        "fixed 1",
    ]
    [_, sized] = cells({"key": "frame_size", "values": [64, 1000]})
    assert sized.frame_sizes == [1000]


def test_a_named_profile_and_several_sizes_have_sweeps_of_their_own() -> None:
    found = cells(
        {"key": "networks", "values": [1, 9]},
        frame_size=[64, 128],
        traffic=[{"name": "one"}, {"name": "two"}],
    )
    assert len(found) == 8
    assert {each.series for each in found} == {
        "throughput-ip4-both-one-over-networks",
        "throughput-ip4-both-two-over-networks",
    }


def test_connections_are_swept_up_to_what_is_given() -> None:
    sweep = {"key": "connections", "values": [10, 100]}
    found = cells(sweep, procedure="connection-rate", stateful={"connections": 100})
    assert [each.stateful.connections for each in found if each.stateful] == [10, 100]
    assert len({each.series for each in found}) == 1


def test_what_is_added_is_as_if_it_had_been_asked_for() -> None:
    for key in ("addresses", "ports", "networks", "flows", "frame_size"):
        first, asked = cells({"key": key, "values": [100, 200]})
        assert between(first, make_testbed(), 200) == asked


def test_how_a_sweep_goes_on_is_no_part_of_what_is_measured() -> None:
    [one] = cells({"key": "networks", "values": [9]})
    [other] = cells({"key": "networks", "values": [9], "refine": 0})
    assert comparable(one) == comparable(other)
    [plain] = expand(
        make_campaign(THROUGHPUT | {"traffic": {"networks": 9}}), make_testbed()
    )
    assert comparable(one) == comparable(plain)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"sweep": {"key": "networks"}}, "needs max, or values"),
        ({"sweep": {"key": "networks", "max": 257}}, "at most 256"),
        ({"sweep": {"key": "networks", "min": 9, "max": 9}}, "must be more than min"),
        ({"sweep": {"key": "networks", "max": 9, "values": [3]}}, "not both"),
        ({"sweep": {"key": "networks", "values": [3, 3]}}, "3 twice"),
        (
            {"sweep": {"key": "networks", "max": 9}, "traffic": {"networks": 4}},
            "leave traffic.networks out",
        ),
        (
            {"sweep": {"key": "ports", "max": 9}, "traffic": {"flows": 4}},
            "leave traffic.flows out",
        ),
        (
            {"sweep": {"key": "frame_size", "max": 99}, "frame_size": [64]},
            "leave frame_size out",
        ),
        (
            {"sweep": {"key": "connections", "max": 99}},
            "needs the most of them in stateful.connections",
        ),
        (
            {
                "procedure": "latency",
                "rate_fps": 1000,
                "sweep": {"key": "networks", "max": 9},
            },
            "one figure",
        ),
        (
            {
                "procedure": "system-recovery",
                "sweep": {"key": "networks", "max": 9},
            },
            "must be 0",
        ),
    ],
)
def test_what_does_not_fit_is_refused_at_its_key(
    keys: dict[str, Any], told: str
) -> None:
    with pytest.raises((InputError, ValueError), match=told):
        expand(make_campaign(THROUGHPUT | keys), make_testbed())
