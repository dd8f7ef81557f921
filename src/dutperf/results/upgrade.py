"""Files of older schema versions as of today's: what they lack was not recorded.

Only adds what is missing, and looks at nothing else: whether the file is sound is
found out afterwards, by the models.

Version 1 (0.1): no delays, no frame timeout, no loss by time, no causes of loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dutperf.results.model import RESULTS_SCHEMA_VERSION

Json = dict[str, Any]

_NOTHING: Json = {"count": 0, "min": None, "max": None, "buckets": []}


def upgraded(data: Json) -> Json:
    """A whole file; its ``schema_version`` is a number, and not a newer one."""
    version = data["schema_version"]
    if version == RESULTS_SCHEMA_VERSION:
        return data
    newer = data | {"schema_version": RESULTS_SCHEMA_VERSION}
    if isinstance(data.get("trials"), list):
        newer["trials"] = [upgraded_record(r, version) for r in data["trials"]]
    return newer


def upgraded_record(record: Any, version: int) -> Any:  # noqa: ANN401 - raw JSON
    """A trial record of a file of that version."""
    if version == RESULTS_SCHEMA_VERSION or not isinstance(record, dict):
        return record
    newer = {"delays_recorded": False, **record}
    request, result = record.get("request"), record.get("result")
    if isinstance(request, dict) and isinstance(result, dict):
        duration_ns = request.get("duration_ns", 1)
        newer["request"] = {"record": {"series_interval_ns": duration_ns}, **request}
        newer["result"] = _result(result, duration_ns)
    return newer


def _result(result: Json, duration_ns: int) -> Json:
    return {
        **result,
        "directions": _each(result, "directions", lambda d: _direction(d, duration_ns)),
        "ports": _each(result, "ports", lambda port: {"fragments": 0, **port}),
    }


def _direction(direction: Json, duration_ns: int) -> Json:
    missing = {
        "send_call_ns": _NOTHING,
        "receive_gap_ns": _NOTHING,
        "delay_floor_ns": 0,
        "delay_bound_ns": 0,
    }
    streams = _each(direction, "streams", lambda s: _stream(s, duration_ns))
    return {**missing, **direction, "streams": streams}


def _stream(stream: Json, duration_ns: int) -> Json:
    whole = {
        "interval_ns": duration_ns,
        "sent": [stream.get("sent", 0)],
        "received": [stream.get("received", 0)],
    }
    missing = {
        "late": 0,
        "slower": [],
        "corrupt": 0,
        "negative_delays": 0,
        "window_frames": None,
        "unplaced": 0,
        "delay_ns": _NOTHING,
        "ipdv_ns": None,
        "tags": None,
        "series": whole,
        "loss_runs": _NOTHING,
    }
    return {**missing, **stream}


def _each(data: Json, key: str, add: Callable[[Json], Json]) -> Any:  # noqa: ANN401
    """The list under ``key`` with something added to each object in it."""
    found = data.get(key)
    if not isinstance(found, list):
        return found
    return [add(entry) if isinstance(entry, dict) else entry for entry in found]
