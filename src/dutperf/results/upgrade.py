"""Files of older schema versions as of today's: what they lack was not recorded.

Raw data only get what is missing, and nothing else is looked at: whether a file is
sound is found out afterwards, by the models.

Version 1 (0.1): no delays, no frame timeout, no loss by time, no causes of loss.
Version 2, at first: what was a lower bound is told by the codes of reasons; frames that
a sender catching up lost at the device's full ring had a count of their own; of what
procedure and testbed a trial is stood in the id of its cell; the name of a profile with
flows stood in its label only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dutperf import stats
from dutperf.catalogue import PROCEDURES
from dutperf.results.bounds import overall
from dutperf.results.model import RESULTS_SCHEMA_VERSION, CellResult
from dutperf.results.rate_results import BoundCause, GoalResult, RepeatResult

Json = dict[str, Any]
R = TypeVar("R", RepeatResult, GoalResult)

_NOTHING: Json = {"count": 0, "min": None, "max": None, "buckets": []}


def upgraded(data: Json) -> Json:
    """A whole file; its ``schema_version`` is a number, and not a newer one."""
    version = data["schema_version"]
    newer = data | {"schema_version": RESULTS_SCHEMA_VERSION}
    if isinstance(data.get("trials"), list):
        newer["trials"] = [upgraded_record(r, version) for r in data["trials"]]
    return newer


def upgraded_record(record: Any, version: int) -> Any:  # noqa: ANN401 - raw JSON
    """A trial record of a file of that version."""
    if not isinstance(record, dict):
        return record
    _tell_cell(record)
    if version == RESULTS_SCHEMA_VERSION:
        _forget(record.get("result"), "ring_full_catching_up")
        return record
    newer = {"delays_recorded": False, **record}
    request, result = record.get("request"), record.get("result")
    if isinstance(request, dict) and isinstance(result, dict):
        duration_ns = request.get("duration_ns", 1)
        newer["request"] = {"record": {"series_interval_ns": duration_ns}, **request}
        newer["result"] = _result(result, duration_ns)
    return newer


def cell_of_today(cell: CellResult) -> CellResult:
    """A cell as it was stored, with what it says today and did not say then."""
    return _with_profile(_with_bounds(cell))


def _with_profile(cell: CellResult) -> CellResult:
    """Of a cell with flows: its label ends with their number."""
    told = cell.parameters
    if told.get("flows") is None or "profile" in told:
        return cell
    by = "-by-addresses" if told.get("flows_by") == "addresses" else ""
    label = str(told.get("traffic") or "").removesuffix(f"flows{told['flows']}{by}")
    profile = {"profile": label.removesuffix("-")}
    return cell.model_copy(update={"parameters": told | profile})


def _with_bounds(cell: CellResult) -> CellResult:
    """A cell as it was stored, with what is a lower bound in it, if that is not said.

    Verdicts stay what they were: what ended at the tester's limit was invalid.
    """
    if "bound" in cell.model_fields_set or cell.procedure not in _SEARCHED:
        return cell
    repeats = [_with_bound(repeat, repeat.value, cell) for repeat in cell.repeats]
    goals = [_with_bound(goal, goal.lower_fps, cell) for goal in cell.goals]
    look = stats.interval_at_look if cell.settled else stats.median_interval
    found = overall(repeats, look)
    return cell.model_copy(
        update={
            "repeats": repeats,
            "goals": goals,
            "bound": found.bound,
            "bound_cause": found.bound_cause,
            "spread": found.spread if cell.spread else None,
        }
    )


def _with_bound(told: R, value: float | None, cell: CellResult) -> R:
    codes = [reason.code for reason in told.reasons]
    cause: BoundCause = None
    if told.verdict == "invalid":
        cause = "tester" if set(codes) == {"sender_behind"} else None
    elif "max_rate" not in codes or _at_line_rate(cell):
        return told
    elif cell.procedure == "table-capacity" or cell.parameters.get(_KIND) == "set":
        cause = "set"
    elif cell.media and cell.media.nominal:
        cause = "nominal"
    if value is None:
        return told
    return told.model_copy(update={"bound": "lower", "bound_cause": cause})


_SEARCHED = ("throughput", "connection-rate", "table-capacity")
_KIND = "max_load_is"


def _at_line_rate(cell: CellResult) -> bool:
    media = cell.media if cell.parameters.get(_KIND) == "media" else None
    return media is not None and not media.nominal


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


def _tell_cell(record: Json) -> None:
    """Of what a trial is, as far as the id of its cell shows it."""
    cell = record.get("cell")
    if isinstance(cell, str) and "procedure" not in record:
        own, at, testbed = cell.partition("@")
        known = (name for name in PROCEDURES if own.startswith(f"{name}-"))
        record |= {"procedure": next(known, None), "place": testbed if at else None}


def _forget(result: Any, key: str) -> None:  # noqa: ANN401 - raw JSON
    """Take ``key`` out of each direction of a trial's result, if it is there."""
    directions = result.get("directions") if isinstance(result, dict) else None
    for direction in directions if isinstance(directions, list) else []:
        if isinstance(direction, dict):
            direction.pop(key, None)


def _each(data: Json, key: str, add: Callable[[Json], Json]) -> Any:  # noqa: ANN401
    """The list under ``key`` with something added to each object in it."""
    found = data.get(key)
    if not isinstance(found, list):
        return found
    return [add(entry) if isinstance(entry, dict) else entry for entry in found]
