"""TCP connections: what is sent, what is refused, what differs from trial to trial."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from config_samples import make_campaign, make_testbed
from planning import TRANSLATOR
from pydantic import ValidationError

from dutperf.config import Testbed, expand
from dutperf.config.phase2 import timing_of
from dutperf.config.sizes import mean_frame_size
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.procedures.passport_use import sent_by
from dutperf.procedures.stateful.establishing import opening, phase1
from dutperf.protocol.stream_messages import StreamRequest
from dutperf.run.trial_request import trial_request


def cells(testbed: Testbed | None = None, **keys: Any) -> list[Cell]:  # noqa: ANN401 - YAML
    spec = {"procedure": "tcp-connection-rate", **keys}
    return expand(make_campaign(spec), testbed or make_testbed())


def stream(cell: Cell, trial_id: int = 1, rate_fps: int = 1000) -> StreamRequest:
    request = trial_request(make_testbed(), cell, rate_fps, trial_id)
    assert request.tcp == cell.spec.tcp is not None
    (direction,) = request.directions
    (only,) = direction.streams
    return only


def test_each_frame_is_a_syn_of_a_size_of_its_own() -> None:
    for cell, size in zip(cells(ip=[4, 6]), (74, 94), strict=True):
        only = stream(cell)
        assert only.frame_sizes == only.received_frame_sizes == [size]
        assert {v.mode for v in only.vary} == {"enumerate"}
    (translated,) = cells(TRANSLATOR, ip=["6-4"])
    assert translated.frame_sizes == [94]


def test_no_trial_has_the_four_tuples_of_another() -> None:
    (cell,) = cells(ip=[4], trial_duration_s=60)
    ranges = []
    for trial_id in range(1, 200):
        tuples = stream(cell, trial_id, 10_000).tuples
        assert tuples is not None
        assert (tuples.count, tuples.order) == (600_000, "once")
        ranges.append((tuples.first, tuples.first + tuples.count))
    ranges.sort()
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(ranges))


def test_more_connections_than_four_tuples_are_refused() -> None:
    ports = {"source": "random:1024-2023", "destination": "fixed:80"}
    (cell,) = cells(ip=[4], trial_duration_s=1, traffic={"ports": ports})
    assert stream(cell, rate_fps=1000).tuples is not None
    with pytest.raises(InputError, match="1,001 connections in a trial, and 1,000"):
        stream(cell, rate_fps=1001)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"direction": "both"}, "from one side"),
        ({"frame_size": [64]}, "SYN of a connection"),
        ({"flows": [1, 10]}, "SYN of a connection"),
        ({"traffic": {"imix": "aaf"}}, "SYN of a connection"),
        ({"traffic": {"group": "239.1.1.1"}, "ip": [4]}, "SYN of a connection"),
        ({"traffic": {"ipv4_options": ["nop"]}, "ip": [4]}, "SYN of a connection"),
        ({"mss": 535}, "mss"),
        ({"object_bytes": 65_001}, "object_bytes"),
        ({"until": "never"}, "until"),
    ],
)
def test_what_connections_have_no_use_for_is_refused(
    keys: dict[str, Any], told: str
) -> None:
    with pytest.raises((InputError, ValidationError), match=told):
        cells(**keys)


def test_the_tester_is_measured_by_such_connections() -> None:
    (cell,) = cells(ip=[4], until="answered")
    (sent,) = sent_by(cell)
    assert sent.tcp == cell.spec.tcp
    assert sent.features == "TCP connections, answered, random ports"


# SYNs of a flood, beside data on open connections.


def flooded(percent: float = 25, **keys: Any) -> list[Cell]:  # noqa: ANN401 - YAML
    opened = {"connections": 1000, "phase1_rate": 1000, "transport": "tcp"}
    spec = {
        "procedure": "throughput",
        "ip": [4],
        "traffic": {"flood_percent": percent},
        "stateful": opened | keys.pop("stateful", {}),
    }
    return expand(make_campaign(spec | keys), make_testbed())


def test_the_initiator_alone_sends_a_flood_to_ports_of_no_connection() -> None:
    (cell,) = flooded(stateful={"destination_ports": "80-90"})
    assert cell.id.endswith("-25percent-flood")
    request = trial_request(make_testbed(), cell, 1000, 3)
    forward, reverse = request.directions
    assert (len(reverse.streams), reverse.mix) == (1, None)
    stream, syns = forward.streams
    assert forward.mix
    assert (forward.mix.foreground, forward.mix.of) == (3, 4)
    assert (stream.syn, syns.syn, syns.name) == (False, True, "beside")
    assert syns.frame_sizes == syns.received_frame_sizes == [74]
    ports = {v.field: (v.min, v.max, v.mode) for v in syns.vary}
    assert ports["dst_port"] == (91, 65535, "enumerate")
    assert ports["src_port"] == (1024, 65535, "enumerate")
    (cell,) = flooded(stateful={"destination_ports": "40000-65535"})
    syns = trial_request(make_testbed(), cell, 1000, 3).directions[0].streams[1]
    assert {v.field: (v.min, v.max) for v in syns.vary}["dst_port"] == (1, 39999)
    # A quarter of them is smaller.
    assert mean_frame_size(cell, "left") == cell.frame_sizes[0]
    (cell,) = flooded(direction="forward")
    assert mean_frame_size(cell, "left") == (3 * cell.frame_sizes[0] + 74) / 4


def test_a_flood_by_udp_is_of_frames_like_the_streams() -> None:
    (cell,) = flooded(stateful={"transport": "udp", "destination_ports": "80-90"})
    forward, reverse = trial_request(make_testbed(), cell, 1000, 3).directions
    stream, flood = forward.streams
    assert (len(reverse.streams), flood.name, flood.syn) == (1, "beside", False)
    assert flood.frame_sizes == stream.frame_sizes
    ports = {v.field: (v.min, v.max, v.mode) for v in flood.vary}
    assert ports["dst_port"] == (91, 65535, "enumerate")
    assert ports["src_port"] == (1024, 65535, "enumerate")
    assert mean_frame_size(cell, "left") == cell.frame_sizes[0]


def test_no_connection_is_opened_beside_a_flood() -> None:
    (cell,) = flooded()
    (plain,) = expand(
        make_campaign(
            {
                "procedure": "throughput",
                "ip": [4],
                "stateful": {
                    "connections": 1000,
                    "phase1_rate": 1000,
                    "transport": "tcp",
                },
            }
        ),
        make_testbed(),
    )
    assert cell.stateful
    assert plain.stateful
    assert timing_of(cell) == timing_of(plain)
    one_way = cell.model_copy(update={"direction": "forward"})
    request = trial_request(make_testbed(), one_way, 1000, 3)
    for made in (
        opening(request, cell, cell.stateful),
        phase1(request, cell, cell.stateful, 2),
    ):
        (only,) = made.directions[0].streams
        assert made.directions[0].mix is None
        assert not only.syn
        assert made.duration_ns == 10**9


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"stateful": None}, "measured on open connections"),
        ({"stateful": {"destination_ports": "1-65535"}}, "no port that is of no"),
        ({"direction": "reverse"}, "sent by the initiator"),
        ({"traffic": {"flood_percent": 1, "broadcast_percent": 1}}, "not both"),
    ],
)
def test_a_flood_is_refused_that_would_not_be_one(
    keys: dict[str, Any], told: str
) -> None:
    opened = {"connections": 1000, "phase1_rate": 1000, "transport": "tcp"}
    spec: dict[str, Any] = {
        "procedure": "throughput",
        "ip": [4],
        "traffic": {"flood_percent": 25},
        "stateful": opened,
    }
    for key, given in keys.items():
        both = isinstance(spec.get(key), dict) and isinstance(given, dict)
        spec[key] = spec[key] | given if both else given
    spec = {key: given for key, given in spec.items() if given is not None}
    with pytest.raises((InputError, ValidationError), match=told):
        expand(make_campaign(spec), make_testbed())
