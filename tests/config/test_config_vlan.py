"""VLAN tags of a side: short forms, what is refused, and where they go."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import make_campaign, make_testbed
from jsonschema import Draft202012Validator

from dutperf.config import Campaign, Testbed, expand, from_data, json_schemas
from dutperf.errors import InputError
from dutperf.protocol.base import VlanTag
from dutperf.run.engine_session import port_specs
from dutperf.run.trial_request import trial_request

SHORT_AND_LONG: list[tuple[Any, list[VlanTag]]] = [
    (10, [VlanTag(id=10)]),
    (0, [VlanTag(id=0)]),
    ([4094], [VlanTag(id=4094)]),
    ({"id": 7, "pcp": 3}, [VlanTag(id=7, pcp=3)]),
    ([10, 100], [VlanTag(tpid=0x88A8, id=10), VlanTag(id=100)]),
    (
        [{"id": 10, "pcp": 1}, 100],
        [VlanTag(tpid=0x88A8, id=10, pcp=1), VlanTag(id=100)],
    ),
    ([{"id": 1, "tpid": 0x8100}, {"id": 2}], [VlanTag(id=1), VlanTag(id=2)]),
    ({"id": 1, "tpid": 0x88A8}, [VlanTag(tpid=0x88A8, id=1)]),
    ("100-199", [VlanTag(id=100, last_id=199)]),
    (["7-7", 5], [VlanTag(tpid=0x88A8, id=7, last_id=7), VlanTag(id=5)]),
    ({"id": 1, "last_id": 4094, "pcp": 5}, [VlanTag(id=1, last_id=4094, pcp=5)]),
    ([], []),
]


def data(left: Any, right: Any = 20, **port: Any) -> dict[str, Any]:  # noqa: ANN401 - YAML
    keys: dict[str, Any] = make_testbed().model_dump(exclude_none=True)
    keys["left"] |= {"vlan": left}
    keys["right"] |= {"vlan": right}
    for side in ("left", "right"):
        keys[side]["port"] |= port
    return keys


def tagged(left: Any, right: Any = 20, **port: Any) -> Testbed:  # noqa: ANN401 - YAML
    return from_data(Testbed, data(left, right, **port), "testbed")


def frames(size: int) -> Campaign:
    keys = {"procedure": "throughput", "ip": [4], "frame_size": [size]}
    return make_campaign(keys)


@pytest.mark.parametrize(("short", "tags"), SHORT_AND_LONG)
def test_a_number_is_a_tag_and_two_are_one_in_the_other(
    short: Any,  # noqa: ANN401 - YAML
    tags: list[VlanTag],
) -> None:
    found = tagged(short)
    assert found.left.vlan == tags
    again = from_data(Testbed, found.model_dump(exclude_none=True), "testbed")
    assert again.left.vlan == tags


@pytest.mark.parametrize(("short", "tags"), SHORT_AND_LONG)
def test_editors_accept_what_is_accepted(
    short: Any,  # noqa: ANN401 - YAML
    tags: list[VlanTag],
) -> None:
    schema = Draft202012Validator(json_schemas()["testbed"])
    assert list(schema.iter_errors(data(short, [t.model_dump() for t in tags]))) == []


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        (4095, "left.vlan"),
        (-1, "left.vlan"),
        ("10", "left.vlan"),
        (True, "left.vlan"),
        ([1, 2, 3], "left.vlan: "),
        ([1, {"id": 2, "pcp": 8}], "pcp"),
        ({"id": 1, "tpid": 0x0800}, "tpid"),
        ("100-4095", "left.vlan"),
        ("100-", "left.vlan"),
        ("199-100", "last_id 100 is below id 199"),
        ([1, "5-6"], "last_id is for the outermost tag"),
        ({"id": 1, "dei": 1}, "dei"),
    ],
)
def test_what_is_no_tag_is_refused_by_its_key(wrong: Any, where: str) -> None:  # noqa: ANN401 - YAML
    with pytest.raises(InputError) as refused:
        tagged(wrong)
    assert where in refused.value.message
    assert "left.vlan" in refused.value.message


def test_each_side_has_its_own_on_ports_and_frames() -> None:
    place = tagged([10, 100])
    left, right = port_specs(place, "af_xdp")
    assert left.vlan == place.left.vlan
    assert right.vlan == [VlanTag(id=20)]
    cell = expand(frames(64), place)[0]
    forward, reverse = trial_request(place, cell, 1000, 1).directions
    assert (forward.vlan, forward.received_vlan) == (left.vlan, right.vlan)
    assert (reverse.vlan, reverse.received_vlan) == (right.vlan, left.vlan)
    assert forward.streams[0].frame_sizes == cell.frame_sizes


def test_of_a_range_each_frame_has_one() -> None:
    place = tagged({"id": 100, "last_id": 199})
    cell = expand(frames(64), place)[0]
    forward, reverse = trial_request(place, cell, 1000, 1).directions
    (varied,) = [v for v in forward.streams[0].vary if v.field == "vlan_id"]
    assert (varied.offset, varied.width, varied.mode) == (0, 12, "random")
    assert (varied.min, varied.max) == (100, 199)
    assert forward.vlan == reverse.received_vlan == place.left.vlan
    assert all(v.field != "vlan_id" for v in reverse.streams[0].vary)


@pytest.mark.parametrize(
    ("tags", "fits"),
    [(10, 1518), ([10, 100], 1510), ([{"id": 1, "tpid": 33024}, 2], 1514)],
)
def test_the_mtu_has_room_for_one_8021q_tag(tags: Any, fits: int) -> None:  # noqa: ANN401 - YAML
    expand(frames(fits), tagged(tags))
    with pytest.raises(InputError, match=f"frames of at most {fits} bytes") as refused:
        expand(frames(fits + 1), tagged(tags))
    if fits < 1518:
        assert "beside the" in refused.value.message
        assert f"raise left.port.mtu to {1501}" in (refused.value.hint or "")
