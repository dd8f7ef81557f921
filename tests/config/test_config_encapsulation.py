"""The tunnel of a side: short forms, what is refused, and where it goes."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import make_campaign, make_testbed
from jsonschema import Draft202012Validator

from dutperf.config import Campaign, Testbed, expand, from_data, json_schemas
from dutperf.errors import InputError
from dutperf.procedures.max_rate import mean_wire_size
from dutperf.protocol.base import Encapsulation, SegmentRouting
from dutperf.protocol.stream_messages import FieldCopy
from dutperf.results.environment import PortRecord
from dutperf.run.engine_session import neighbours, port_specs
from dutperf.run.trial_request import trial_request

VXLAN = {
    "kind": "vxlan",
    "remote": "2001:db8::1",
    "vni": 42,
    "inner_mac": "02:00:00:00:00:42",
}

SIDS = ["2001:db8:5::1", "2001:db8:5::2", "2001:db8:5::3"]


def srv6(**keys: Any) -> dict[str, Any]:  # noqa: ANN401 - YAML
    return {"kind": "srv6", "srh": SIDS} | keys


def data(left: Any, **keys: Any) -> dict[str, Any]:  # noqa: ANN401 - YAML
    testbed: dict[str, Any] = make_testbed().model_dump(exclude_none=True)
    testbed["left"] |= {"encapsulation": left} | keys
    return testbed


def tunnelled(left: Any, **keys: Any) -> Testbed:  # noqa: ANN401 - YAML
    return from_data(Testbed, data(left, **keys), "testbed")


def frames(size: int = 64, **keys: Any) -> Campaign:  # noqa: ANN401 - YAML
    asked = {"procedure": "throughput", "ip": [4], "frame_size": [size]} | keys
    return make_campaign(asked)


def own(version: int) -> tuple[str, str]:
    here = make_testbed().left.ip(6 if version == 6 else 4)
    assert here
    assert here.gateway
    return here.address, here.gateway


@pytest.mark.parametrize(
    ("given", "kind", "ends", "longer"),
    [
        ("ipv4-in-ipv6", "ip", own(6), 40),
        ({"kind": "ipv4-in-ipv6", "remote": "2001:db8::1"}, "ip", None, 40),
        ("ipv6-in-ipv4", "ip", own(4), 20),
        ({"kind": "gre", "remote": "10.0.0.1", "local": "10.0.0.2"}, "gre", None, 24),
        ({"kind": "gre", "remote": "2001:db8::1"}, "gre", None, 44),
        (VXLAN, "vxlan", None, 70),
        (VXLAN | {"remote": "10.0.0.1"}, "vxlan", None, 50),
        (srv6(), "srv6", own(6), 40 + 8 + 3 * 16),
        (srv6(srh={"segments": SIDS, "reduced": True}), "srv6", None, 40 + 8 + 2 * 16),
        (
            srv6(
                srh={"segments": SIDS[:1], "reduced": True},
                received_srh={"segments": SIDS[:1], "reduced": True},
            ),
            "srv6",
            None,
            40,
        ),
    ],
)
def test_it_has_the_sides_addresses_unless_it_names_its_own(
    given: Any,  # noqa: ANN401 - YAML
    kind: str,
    ends: tuple[str, str] | None,
    longer: int,
) -> None:
    side = tunnelled(given).left
    assert side.tunnel
    assert side.tunnel.kind == kind
    assert side.tunnel.bytes == longer
    assert side.mtu == side.port.mtu - longer
    if ends:
        assert (side.tunnel.local, side.tunnel.remote) == ends
    again = from_data(Testbed, tunnelled(given).model_dump(exclude_none=True), "t")
    assert again.left.tunnel == side.tunnel
    schema = Draft202012Validator(json_schemas()["testbed"])
    assert list(schema.iter_errors(data(given))) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("gre", "left.encapsulation.remote: gre needs the DUT's end"),
        ("4in6", "left.encapsulation.kind"),
        ({"kind": "ipv4-in-ipv6", "remote": "10.0.0.1"}, "outer headers of IPv6"),
        ({"kind": "ipv6-in-ipv4", "local": "2001:db8::1"}, "outer headers of IPv4"),
        ({"kind": "gre", "remote": "10.0.0.1", "local": "::1"}, "encapsulation.local"),
        ({"kind": "gre", "remote": "10.0.0.300"}, "encapsulation.remote"),
        ({"kind": "gre", "remote": "10.0.0.1", "vni": 1}, "gre has no vni"),
        (VXLAN | {"vni": 2**24}, "encapsulation.vni"),
        ({k: v for k, v in VXLAN.items() if k != "inner_mac"}, "vxlan needs inner_mac"),
        ({"kind": "ipv6-in-ipv4", "tunnel_per_host": True}, "tunnel_per_host"),
        ({"kind": "gre", "remote": "10.0.0.1", "key": 5}, "encapsulation.key"),
        ("srv6", "encapsulation.srh: srv6 needs the segments of its packets"),
        (srv6(local="10.0.0.1"), "outer headers of IPv6"),
        (srv6(vni=1), "srv6 has no vni"),
        (srv6(tunnel_per_host=True), "tunnel_per_host: does not go with srv6"),
        (srv6(srh=["10.0.0.1"]), "encapsulation.srh"),
        (srv6(srh=17 * SIDS[:1]), "encapsulation.srh"),
        (srv6(srh={"segments": SIDS, "segments_left": 3}), "srh.segments_left: 3 must"),
        (srv6(received_srh={"segments": SIDS, "tag": 65536}), "received_srh.tag"),
        ({"kind": "gre", "remote": "10.0.0.1", "srh": SIDS}, "gre has no srh"),
        (srv6(flow_label=2**20), "encapsulation.flow_label"),
        (srv6(flow_label="random"), "encapsulation.flow_label"),
        ({"kind": "ipv6-in-ipv4", "flow_label": 1}, "flow_label: needs outer headers"),
        (
            {
                "kind": "ipv4-in-ipv6",
                "flow_label": "flow",
                "binding_table": {
                    "ipv4_prefix": "192.0.2.0/24",
                    "first_b4": "2001:db8::1/64",
                    "psid_length": 4,
                },
            },
            "take a number",
        ),
    ],
)
def test_what_is_no_tunnel_is_refused_by_its_key(wrong: Any, said: str) -> None:  # noqa: ANN401 - YAML
    with pytest.raises(InputError) as refused:
        tunnelled(wrong)
    assert said in refused.value.message


def test_it_goes_neither_with_labels_nor_with_several_ports() -> None:
    with pytest.raises(InputError, match="encapsulation: does not go with mpls"):
        tunnelled("ipv4-in-ipv6", mpls=[16])


def test_inside_nobody_is_asked_for_so_the_inner_gateway_may_be_missing() -> None:
    place = tunnelled("ipv4-in-ipv6", ipv4={"address": "198.18.0.2"})
    cell = expand(frames(), place)[0]
    left, _ = neighbours(place, [cell]).ports
    _, outer_gateway = own(6)
    assert left.resolve == [outer_gateway]
    forward, _ = trial_request(place, cell, 1000, 1).directions
    assert forward.streams[0].next_hop == outer_gateway
    assert forward.streams[0].src_ip == "198.18.0.2"
    with pytest.raises(InputError, match="gateway is missing"):
        tunnelled("ipv4-in-ipv6", ipv6={"address": "2001:2::2"})


def test_all_segments_are_left_of_what_is_sent_and_none_of_what_arrives() -> None:
    outer = tunnelled(srv6(received_srh=SIDS[:2])).left.tunnel
    assert outer
    assert outer.srh
    assert outer.received_srh
    assert (outer.srh.segments_left, outer.srh.destination) == (2, SIDS[0])
    assert (outer.received_srh.segments_left, outer.received_srh.destination) == (
        0,
        SIDS[1],
    )
    by_default = tunnelled(srv6()).left.tunnel
    assert by_default
    assert by_default.received_srh == SegmentRouting(
        segments=[own(6)[0]], segments_left=0
    )


def test_of_segments_each_way_has_its_own_length() -> None:
    """The link carries the longer one, and as many frames as that allows."""
    place = tunnelled(srv6(received_srh={"segments": SIDS[:1], "reduced": True}))
    assert place.left.tunnel
    sent, received = 40 + 8 + 3 * 16, 40
    assert place.left.mtu == place.left.port.mtu - sent
    port = PortRecord(
        name="left",
        driver="af_xdp",
        dpdk_name="net_af_xdp",
        device="left",
        mac="02:00:00:00:00:01",
        link_speed_mbps=None,
        encapsulation=place.left.tunnel,
    )
    for direction, longer in (("forward", sent), ("reverse", received), ("both", sent)):
        cell = expand(frames(128, direction=[direction]), place)[0]
        assert mean_wire_size(cell, port) == 128 + longer


def test_it_is_answered_for_where_it_has_an_address_of_its_own() -> None:
    place = tunnelled({"kind": "ipv4-in-ipv6", "local": "2001:2::b4"})
    left, right = neighbours(place, expand(frames(), place)).ports
    assert "2001:2::b4" in [each.first for each in left.own]
    assert "2001:2::b4" not in [each.first for each in right.own]


def test_it_is_answered_for_the_segment_that_packets_come_to() -> None:
    place = tunnelled(srv6(received_srh=SIDS))
    left, _ = neighbours(place, expand(frames(), place)).ports
    assert SIDS[-1] in [each.first for each in left.own]


def test_each_side_has_its_own_on_ports_and_frames() -> None:
    place = tunnelled("ipv4-in-ipv6")
    left, right = port_specs(place, "af_xdp")
    assert (left.encapsulation, right.encapsulation) == (place.left.tunnel, None)
    cell = expand(frames(), place)[0]
    forward, reverse = trial_request(place, cell, 1000, 1).directions
    tunnel = place.left.tunnel
    assert (forward.encapsulation, forward.received_encapsulation) == (tunnel, None)
    assert (reverse.encapsulation, reverse.received_encapsulation) == (None, tunnel)
    assert forward.streams[0].frame_sizes == cell.frame_sizes
    assert forward.streams[0].copies == []


def test_each_host_has_a_tunnel_of_its_own() -> None:
    place = tunnelled({"kind": "ipv4-in-ipv6", "tunnel_per_host": True})
    addresses = {"left": {"hosts": 16}}
    cell = expand(frames(traffic={"addresses": addresses}), place)[0]
    forward, reverse = trial_request(place, cell, 1000, 1).directions
    varied = next(v for v in forward.streams[0].vary if v.field == "src_ip")
    assert forward.streams[0].copies == [
        FieldCopy(
            field="outer_src",
            offset=varied.offset + 96,
            width=varied.width,
            of="src_ip",
            of_offset=varied.offset,
        )
    ]
    assert reverse.streams[0].copies == []
    assert reverse.received_encapsulation
    assert reverse.received_encapsulation.local_bits == 96
    left, _ = neighbours(place, [cell]).ports
    outer, _ = own(6)
    ends = [each for each in left.own if each.count == 16 and ":" in each.first]
    assert [each.first.rpartition(":")[0] for each in ends] == [
        outer.rpartition(":")[0]
    ]


def labelled(
    label: int | str,
    **traffic: Any,  # noqa: ANN401 - YAML
) -> tuple[int, list[tuple[str, int, int, int]]]:
    """The outer flow label, and what stands in it: field, its offset, width, place."""
    place = tunnelled({"kind": "ipv4-in-ipv6", "flow_label": label})
    cell = expand(frames(traffic=traffic), place)[0]
    forward, reverse = trial_request(place, cell, 1000, 1).directions
    assert forward.encapsulation
    assert reverse.streams[0].copies == []
    copies = forward.streams[0].copies
    assert {copy.field for copy in copies} <= {"outer_flow_label"}
    return forward.encapsulation.flow_label, [
        (c.of, c.of_offset, c.width, c.offset) for c in copies
    ]


def test_the_outer_flow_label_is_a_number() -> None:
    assert labelled(0) == (0, [])
    assert labelled(0xABCDE) == (0xABCDE, [])


def test_each_flow_has_an_outer_flow_label_of_its_own() -> None:
    """Of all that varies the last bits; what does not vary tells nothing."""
    random = {"source": "random", "destination": "random"}
    assert labelled("flow", ports=random) == (
        0,
        [("src_port", 6, 10, 10), ("dst_port", 6, 10, 0)],
    )
    fixed = {"source": "fixed", "destination": "fixed"}
    assert labelled("flow", ports=fixed) == (0, [])
    addresses = {"left": {"hosts": 16}}
    assert labelled("flow", ports=random, addresses=addresses)[1] == [
        ("src_ip", 27, 5, 15),
        ("src_port", 9, 7, 8),
        ("dst_port", 8, 8, 0),
    ]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"ip": [6]}, "ipv4-in-ipv6, and 6 has IPv6 there"),
        ({"traffic": {"mix": "90/10", "background_ip": 6}}, "all test frames of that"),
        ({"traffic": {"fragmented": True}, "direction": ["forward"]}, "fragmented"),
    ],
)
def test_what_does_not_fit_inside_is_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        expand(frames(1500, **keys), tunnelled("ipv4-in-ipv6"))
    assert said in refused.value.message


def test_outer_headers_are_part_of_what_the_mtu_carries() -> None:
    place = tunnelled("ipv4-in-ipv6")
    expand(frames(1478), place)
    with pytest.raises(InputError, match="frames of at most 1478 bytes") as refused:
        expand(frames(1479), place)
    assert "beside the 40 bytes of left.encapsulation" in refused.value.message


def test_of_packets_inside_no_ttl_is_expected_unless_it_is_told() -> None:
    place = tunnelled("ipv4-in-ipv6")
    assert place.hops_between(4, 4) is None
    assert place.model_copy(update={"hops": 1}).hops_between(4, 4) == 1


def test_a_side_without_is_stored_as_before() -> None:
    assert "encapsulation" not in make_testbed().model_dump()["left"]
    again = Encapsulation.model_validate(
        {"kind": "ip", "local": "10.0.0.1", "remote": "10.0.0.2"}
    )
    assert again.bytes == 20
