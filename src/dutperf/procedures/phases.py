"""The trials of a stateful test, made of a cell's ordinary request (RFC 9693 4.2, 4.6).

phase 1      the initiator sends each four-tuple once, the responder learns them
validation   the responder sends one frame back for each; frame k is connection k
"""

from __future__ import annotations

from typing import Any

from dutperf.config import Cell
from dutperf.config.stateful import Stateful, bounds
from dutperf.config.versions import version_of
from dutperf.engine.protocol import Side, TrialRequest

SURVIVAL_BLOCKS = 256
SHORTEST_NS = 1_000_000
_PORTS = {"src_port", "dst_port"}


def phase1(request: TrialRequest, cell: Cell, stateful: Stateful) -> TrialRequest:
    """``request``, which the initiator alone sends, as one that opens connections."""
    data, stream = _one_stream(request)
    least, most = bounds(stateful.source_ports)
    first, last = stateful.destinations
    stream |= {"src_port": least, "dst_port": first}
    stream["enumeration_order"] = stateful.order
    # The source port changes fastest (RFC 9693 4.4).
    stream["vary"] = [
        *([] if first == last and least == most else _ports("src_port", least, most)),
        *_ports("dst_port", first, last),
        *_besides_ports(stream),
    ]
    responder: Side = "right" if stateful.initiator == "left" else "left"
    data["learn"] = {
        "direction": stateful.direction,
        "ip_version": version_of(cell.ip, responder),
        "entries": stateful.connections,
    }
    return _timed(data, stateful)


def validation(request: TrialRequest, stateful: Stateful) -> TrialRequest:
    """``request``, which the responder alone sends, as a frame for each connection."""
    data, stream = _one_stream(request)
    # A frame whose tuple was never learned must not find a connection by chance.
    stream |= {"vary": _besides_ports(stream), "dst_port": 0}
    stream["tuples"] = {
        "source": "learned",
        "count": stateful.connections,
        "order": "increasing",
    }
    data["settle_ns"] = 0  # the device knows the tester from phase 1
    return _timed(data, stateful)


def _one_stream(request: TrialRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    """As plain data: the request, and the stream of its only direction."""
    data = request.model_dump()
    (direction,) = data["directions"]
    return data, direction["streams"][0]


def _timed(data: dict[str, Any], stateful: Stateful) -> TrialRequest:
    """Exactly one frame for each connection, and the wait T."""
    (direction,) = data["directions"]
    connections, rate_per_s = stateful.connections, direction["rate_fps"]
    data["duration_ns"] = max(SHORTEST_NS, round(connections * 10**9 / rate_per_s))
    data["residual_wait_ns"] = stateful.timeout_ms * 1_000_000
    data["record"]["survival_blocks"] = min(SURVIVAL_BLOCKS, connections)
    return TrialRequest.model_validate(data)


def _ports(field: str, least: int, most: int) -> list[dict[str, Any]]:
    return [
        {"field": field, "width": 16, "min": least, "max": most, "mode": "enumerate"}
    ]


def _besides_ports(stream: dict[str, Any]) -> list[dict[str, Any]]:
    return [v for v in stream["vary"] if v["field"] not in _PORTS]
