"""TCP connections: what is sent, what is refused, what differs from trial to trial."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from config_samples import make_campaign, make_testbed
from planning import TRANSLATOR
from pydantic import ValidationError

from dutperf.config import Testbed, expand
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.procedures.passport_use import sent_by
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
        ({"object_bytes": 1400}, "a response holds 1384"),
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
