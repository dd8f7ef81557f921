"""MPLS labels of a side: short forms, what is refused, and where they go."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import make_campaign, make_testbed
from jsonschema import Draft202012Validator

from dutperf.config import Campaign, Testbed, expand, from_data, json_schemas
from dutperf.errors import InputError
from dutperf.protocol.base import MplsLabel
from dutperf.run.engine_session import port_specs
from dutperf.run.trial_request import trial_request

SHORT_AND_LONG: list[tuple[Any, list[MplsLabel]]] = [
    (16, [MplsLabel(label=16)]),
    ([1_048_575], [MplsLabel(label=1_048_575)]),
    ({"label": 100, "tc": 7, "ttl": 1}, [MplsLabel(label=100, tc=7, ttl=1)]),
    (
        [16, {"label": 17, "ttl": 255}, 18],
        [MplsLabel(label=16), MplsLabel(label=17, ttl=255), MplsLabel(label=18)],
    ),
    ([], []),
]


def data(left: Any, **keys: Any) -> dict[str, Any]:  # noqa: ANN401 - YAML
    testbed: dict[str, Any] = make_testbed().model_dump(exclude_none=True)
    testbed["left"] |= {"mpls": left} | keys
    testbed["right"] |= {"mpls": 20}
    return testbed


def labelled(left: Any, **keys: Any) -> Testbed:  # noqa: ANN401 - YAML
    return from_data(Testbed, data(left, **keys), "testbed")


def frames(size: int) -> Campaign:
    keys = {"procedure": "throughput", "ip": [4], "frame_size": [size]}
    return make_campaign(keys)


@pytest.mark.parametrize(("short", "labels"), SHORT_AND_LONG)
def test_a_number_is_a_label(short: Any, labels: list[MplsLabel]) -> None:  # noqa: ANN401 - YAML
    found = labelled(short)
    assert found.left.mpls == labels
    again = from_data(Testbed, found.model_dump(exclude_none=True), "testbed")
    assert again.left.mpls == labels
    schema = Draft202012Validator(json_schemas()["testbed"])
    assert list(schema.iter_errors(data(short))) == []


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        (15, "left.mpls"),
        (2**20, "left.mpls"),
        ("16", "left.mpls"),
        (True, "left.mpls"),
        ([16, 17, 18, 19], "left.mpls: "),
        ({"label": 16, "tc": 8}, "tc"),
        ({"label": 16, "ttl": 0}, "ttl"),
        ({"label": 16, "bottom": True}, "bottom"),
    ],
)
def test_what_is_no_label_is_refused_by_its_key(wrong: Any, where: str) -> None:  # noqa: ANN401 - YAML
    with pytest.raises(InputError) as refused:
        labelled(wrong)
    assert where in refused.value.message
    assert "left.mpls" in refused.value.message


def test_each_side_has_its_own_on_ports_and_frames() -> None:
    place = labelled([16, 17])
    left, right = port_specs(place, "af_xdp")
    assert left.mpls == place.left.mpls
    assert right.mpls == [MplsLabel(label=20)]
    cell = expand(frames(64), place)[0]
    forward, reverse = trial_request(place, cell, 1000, 1).directions
    assert (forward.mpls, forward.received_mpls) == (left.mpls, right.mpls)
    assert (reverse.mpls, reverse.received_mpls) == (right.mpls, left.mpls)
    assert forward.streams[0].frame_sizes == cell.frame_sizes


def test_of_packets_behind_labels_no_ttl_is_expected_unless_it_is_told() -> None:
    place = labelled(16)
    assert place.hops_between(4, 4) is None
    assert place.model_copy(update={"hops": 1}).hops_between(4, 4) == 1


@pytest.mark.parametrize(
    ("keys", "fits"),
    [({}, 1510), ({"vlan": 10}, 1510), ({"vlan": [10, 20]}, 1502)],
)
def test_labels_are_part_of_what_the_mtu_carries(
    keys: dict[str, Any], fits: int
) -> None:
    place = labelled([16, 17], **keys)
    expand(frames(fits), place)
    with pytest.raises(InputError, match=f"frames of at most {fits} bytes") as refused:
        expand(frames(fits + 1), place)
    names = "left.vlan and left.mpls" if keys else "left.mpls"
    assert f"beside the {1518 - fits} bytes of {names}" in refused.value.message
