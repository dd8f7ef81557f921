"""The trials of a stateful test, made of a cell's ordinary request (RFC 9693 4).

phase 1      the initiator sends each four-tuple once, the responder learns them
phase 2      the cell's own trial: the initiator sends the same four-tuples in random
             order, the responder those that it learned, and goes on learning
validation   the responder sends one frame back for each; frame k is connection k
"""

from __future__ import annotations

from typing import Any

from dutperf.config import Cell
from dutperf.config.phase2 import Timing, phase1_frames
from dutperf.config.stateful_keys import Stateful, bounds
from dutperf.config.versions import version_of
from dutperf.protocol import MAX_SERIES, Record, TrialRequest

SURVIVAL_BLOCKS = 256
SHORTEST_NS = 1_000_000
_ADDRESSES = ("src_ip", "dst_ip")
_TUPLE = {"src_port", "dst_port", *_ADDRESSES}


def phase1(request: TrialRequest, cell: Cell, stateful: Stateful) -> TrialRequest:
    """``request``, which the initiator alone sends, as one that opens connections."""
    data, stream = _one_direction(request)
    _enumerate(stream, stateful)
    data["learn"] = _learn(cell, stateful)
    # All must arrive, however the trials of phase 2 are judged (RFC 9693 4.2).
    data |= {"frame_timeout_ns": None, "loss_tolerance_ppb": 0}
    return _timed(data, stateful)


def phase2(
    request: TrialRequest, cell: Cell, stateful: Stateful, timing: Timing
) -> TrialRequest:
    """``request`` as one on open connections; what the initiator sends is learned."""
    data = request.model_dump()
    for direction in data["directions"]:
        stream = direction["streams"][0]
        if direction["name"] == stateful.direction:
            _enumerate(stream, stateful)
            stream["tuples"] = _tuples("generated", stateful, "random")
            data["learn"] = _learn(cell, stateful) | {"keep": True}
        else:
            _answer(stream, stateful, stateful.responder_order)
    data["settle_ns"] = 0  # the device knows the tester from phase 1
    data["not_before_ns"] = timing.start_ms * 1_000_000
    return TrialRequest.model_validate(data)


def validation(request: TrialRequest, stateful: Stateful) -> TrialRequest:
    """``request``, which the responder alone sends, as a frame for each connection."""
    data, stream = _one_direction(request)
    data["directions"][0] |= {"streams": [stream], "mix": None}
    _answer(stream, stateful, "increasing")
    data["settle_ns"] = 0  # the device knows the tester from phase 1
    data |= {"frame_timeout_ns": None, "loss_tolerance_ppb": 0}
    return _timed(data, stateful)


def _one_direction(request: TrialRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    """As plain data: the request, and the foreground of its only direction."""
    data = request.model_dump()
    (direction,) = data["directions"]
    return data, direction["streams"][0]


def _enumerate(stream: dict[str, Any], stateful: Stateful) -> None:
    """Give the initiator's stream its four-tuples."""
    least, most = bounds(stateful.source_ports)
    first, last = stateful.destinations
    stream |= {"src_port": least, "dst_port": first}
    stream["enumeration_order"] = stateful.order
    # The source port changes fastest, the destination address last (RFC 9693 4.4).
    stream["vary"] = [
        *([] if first == last and least == most else _ports("src_port", least, most)),
        *_ports("dst_port", first, last),
        *(
            varied | {"mode": "enumerate"}
            for field in _ADDRESSES
            for varied in stream["vary"]
            if varied["field"] == field
        ),
        *_besides_tuple(stream),
    ]


def _answer(stream: dict[str, Any], stateful: Stateful, order: str) -> None:
    """Give the responder's stream what was learned."""
    # A frame whose tuple was never learned must not find a connection by chance.
    stream |= {"vary": _besides_tuple(stream), "dst_port": 0}
    stream["tuples"] = _tuples("learned", stateful, order)


def _learn(cell: Cell, stateful: Stateful) -> dict[str, Any]:
    expected = stateful.expected
    return {
        "direction": stateful.direction,
        "ip_version": version_of(cell.ip, stateful.responder),
        "entries": stateful.connections,
        "expected": expected.model_dump() if expected else None,
    }


def _tuples(source: str, stateful: Stateful, order: str) -> dict[str, Any]:
    return {"source": source, "count": stateful.connections, "order": order}


def _timed(data: dict[str, Any], stateful: Stateful) -> TrialRequest:
    """Exactly one foreground frame for each connection, and the wait T.

    What a trial of phase 2 records beside its counts, this one does not.
    """
    (direction,) = data["directions"]
    mix = direction["mix"] or {"foreground": 1, "of": 1}
    frames = phase1_frames(stateful.connections, mix["foreground"], mix["of"])
    duration_ns = max(SHORTEST_NS, round(frames * 10**9 / direction["rate_fps"]))
    data["duration_ns"] = duration_ns
    data["residual_wait_ns"] = stateful.timeout_ms * 1_000_000
    given_ns = data["record"]["series_interval_ns"]
    data["record"] = Record(
        series_interval_ns=max(given_ns, -(-duration_ns // MAX_SERIES)),
        survival_blocks=min(SURVIVAL_BLOCKS, stateful.connections),
    ).model_dump()
    return TrialRequest.model_validate(data)


def _ports(field: str, least: int, most: int) -> list[dict[str, Any]]:
    return [
        {"field": field, "width": 16, "min": least, "max": most, "mode": "enumerate"}
    ]


def _besides_tuple(stream: dict[str, Any]) -> list[dict[str, Any]]:
    return [v for v in stream["vary"] if v["field"] not in _TUPLE]
