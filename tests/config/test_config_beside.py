"""Frames beside the stream: what is refused, what is sent, what a cell is called."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from config_samples import make_campaign, make_testbed
from planning import TRANSLATOR

from dutperf.config import Testbed, expand, from_data
from dutperf.config.deviations import deviations
from dutperf.config.sizes import mean_frame_size
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.procedure_keys import StreamKeys
from dutperf.model.specs import SPECS
from dutperf.model.traffic import Traffic
from dutperf.protocol.stream_messages import Mix
from dutperf.run.trial_request import trial_request

BROADCAST = {"broadcast_percent": 1}
HOP_BY_HOP = {"hop_by_hop_percent": 10}
STREAMS = [
    kind
    for kind in SPECS.values()
    if issubclass(kind, StreamKeys) and kind.takes_beside
]


def cells(testbed: Testbed | None = None, **keys: Any) -> list[Cell]:  # noqa: ANN401 - YAML
    spec = {"procedure": "throughput", **keys}
    return expand(make_campaign(spec), testbed or make_testbed())


def one(**keys: Any) -> Cell:  # noqa: ANN401 - YAML
    [cell] = cells(**keys)
    return cell


@pytest.mark.parametrize(
    ("percent", "mix"),
    [
        (1, Mix(foreground=99, of=100)),
        (50, Mix(foreground=1, of=2)),
        (0.1, Mix(foreground=999, of=1000)),
        (12.34, Mix(foreground=4383, of=5000)),
    ],
)
def test_the_share_is_exact_and_even_in_each_direction(
    percent: float, mix: Mix
) -> None:
    cell = one(ip=[4], traffic={"broadcast_percent": percent})
    for way in trial_request(make_testbed(), cell, 1000, 1).directions:
        assert way.mix == mix
        assert [stream.name for stream in way.streams] == ["foreground", "beside"]
        rounds = 100 * mix.of
        beside = [
            number
            for number in range(rounds)
            if way.frames_of(1, number + 1) > way.frames_of(1, number)
        ]
        assert Fraction(len(beside), rounds) == Fraction(str(percent)) / 100
        gaps = {after - before for before, after in pairwise(beside)}
        assert max(gaps) - min(gaps) <= 1
        assert way.expected_among(rounds) == rounds - len(beside)


def test_broadcast_frames_are_the_streams_but_for_the_mac_address() -> None:
    traffic = BROADCAST | {"addresses": 5, "networks": 2, "ipv4_options": "nop"}
    cell = one(ip=[4], frame_size=[128], traffic=traffic)
    for way in trial_request(make_testbed(), cell, 1000, 1).directions:
        stream, beside = way.streams
        changed = {"id": stream.id + 1, "name": "beside"}
        changed |= {"dst_mac": "ff:ff:ff:ff:ff:ff", "ipv4_options": []}
        assert beside == stream.model_copy(update=changed)


def test_hop_by_hop_frames_are_the_streams_but_for_the_header() -> None:
    cell = one(ip=[6], frame_size=[128], traffic=HOP_BY_HOP)
    for way in trial_request(make_testbed(), cell, 1000, 1).directions:
        stream, beside = way.streams
        changed = {"id": stream.id + 1, "name": "beside"}
        changed |= {"ipv6_headers": ["hop-by-hop"]}
        assert beside == stream.model_copy(update=changed)
        assert stream.ipv6_headers == []


def test_the_smallest_frame_has_room_for_the_header() -> None:
    assert one(ip=[6], traffic=HOP_BY_HOP).frame_sizes == [92]
    longer = HOP_BY_HOP | {"ipv6_headers": "rfc5180"}
    assert one(ip=[6], traffic=longer).frame_sizes == [124]
    assert one(ip=[4], traffic=BROADCAST).frame_sizes == [64]
    with pytest.raises(InputError, match="has 92 bytes") as refused:
        cells(ip=[6], frame_size=[84], traffic=HOP_BY_HOP)
    assert "traffic.hop_by_hop_percent" in refused.value.message


def test_line_rates_are_those_of_the_streams_sizes() -> None:
    cell = one(ip=[4], traffic=BROADCAST | {"imix": "aaafg"})
    assert mean_frame_size(cell, "left") == Fraction(3 * 64 + 1280 + 1518, 5)


@pytest.mark.parametrize(
    ("traffic", "why"),
    [
        ({"broadcast_percent": 0}, "broadcast_percent"),
        ({"broadcast_percent": 50.5}, "broadcast_percent"),
        ({"broadcast_percent": 0.001}, "at most 2 decimal places"),
        (BROADCAST | {"mix": "90/10"}, "give mix or broadcast_percent"),
        (BROADCAST | HOP_BY_HOP, "give broadcast_percent or hop_by_hop_percent"),
        (HOP_BY_HOP | {"ipv6_headers": "hop-by-hop"}, "where all frames"),
    ],
)
def test_what_cannot_be_sent_is_refused(traffic: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        from_data(Traffic, traffic, "traffic")


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"ip": [6], "traffic": BROADCAST}, "IPv6 has no broadcast"),
        ({"ip": [4, 6], "traffic": BROADCAST}, "IPv6 has no broadcast"),
        ({"ip": [4], "traffic": HOP_BY_HOP}, "IPv4 has no hop-by-hop header"),
        (
            {
                "procedure": "connection-rate",
                "ip": [4],
                "stateful": {"connections": 9},
                "traffic": BROADCAST,
            },
            "must be left out of a stateful test",
        ),
    ],
)
def test_where_it_means_nothing_it_is_refused(keys: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        cells(**keys)


@pytest.mark.parametrize("kind", STREAMS)
def test_every_procedure_with_a_stream_takes_them(kind: type[StreamKeys]) -> None:
    asked: dict[str, dict[str, Any]] = {
        name: {"procedure": name, "ip": [4], "traffic": BROADCAST}
        for name in ("throughput", kind.named())
    }
    if kind.named() in ("latency", "pdv", "ipdv"):
        asked[kind.named()]["rate_fps"] = 1000
    found = expand(make_campaign(*asked.values()), make_testbed())[-1]
    assert found.procedure == kind.named()
    assert found.traffic.beside is not None


def test_a_translator_and_connections_have_none() -> None:
    with pytest.raises(InputError, match="translator takes it out"):
        cells(TRANSLATOR, ip=["6-4"], traffic=HOP_BY_HOP)
    stateful = {"connections": 100, "phase1_rate": 1000}
    with pytest.raises(InputError, match="left out of a stateful test"):
        cells(ip=[4], direction="forward", stateful=stateful, traffic=BROADCAST)


def test_a_cell_is_named_after_them() -> None:
    found = cells(ip=[4], traffic=[{}, BROADCAST, {"broadcast_percent": 0.5}])
    assert [cell.id.partition("both")[2] for cell in found] == [
        "",
        "-1percent-broadcast",
        "-0.5percent-broadcast",
    ]


@pytest.mark.parametrize(
    ("ip", "traffic", "rfc"),
    [
        (4, {"broadcast_percent": 1}, None),
        (4, {"broadcast_percent": 2}, "RFC 2544 11.1"),
        (6, {"hop_by_hop_percent": 1}, None),
        (6, {"hop_by_hop_percent": 50}, None),
        (6, {"hop_by_hop_percent": 20}, "RFC 5180 5.3"),
    ],
)
def test_other_shares_than_the_rfcs_are_told(
    ip: int, traffic: dict[str, Any], rfc: str | None
) -> None:
    plain = set(deviations(one(ip=[ip], frame_size=[128])))
    told = set(deviations(one(ip=[ip], frame_size=[128], traffic=traffic))) - plain
    assert [found.rfc for found in told] == ([rfc] if rfc else [])
