"""What a trial says in two places, or says though something else rules it out."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

Json = dict[str, Any]


def contradictions(trials: Iterable[Json], schema_version: int) -> Iterator[str]:
    """Of each trial, as plain JSON; what an old file does not have is passed over."""
    before: dict[str | None, Json] = {}
    for trial in trials:
        last = before.get(trial.get("place"))
        for told in (*_of_trial(trial, schema_version), *_counters(trial, last)):
            yield f"trial {trial['number']}: {told}"
        if last or trial.get("environment"):  # else nobody knows of openings
            before[trial.get("place")] = trial


def of_their_cells(trials: Iterable[Json], cells: Iterable[Json]) -> Iterator[str]:
    """Procedure and testbed of each trial are those of its cell."""
    known = {cell["id"]: cell for cell in cells}
    for trial in trials:
        cell = known.get(trial["cell"], {})
        for key in ("procedure", "place"):
            one, other = trial.get(key), cell.get(key)
            if None not in (one, other) and one != other:
                yield f"trial {trial['number']}: {key} is {one}, of its cell {other}"


def _of_trial(trial: Json, schema_version: int) -> Iterator[str]:
    request, result = trial["request"], trial["result"]
    if schema_version > 1 and not trial.get("delays_recorded", True):
        yield "it has no delays, which only files of schema version 1 have not"
    if result.get("ended_early") and result["verdict"]["kind"] == "pass":
        yield "it passed, and ended early for what was lost"
    asked = {each["name"]: each["streams"] for each in request["directions"]}
    for direction in result["directions"]:
        of = asked.get(direction["name"], [])
        for stream, wanted in zip(direction["streams"], of, strict=False):
            for told in _of_stream(stream, wanted, direction, request):
                yield f"{direction['name']} {stream['name']}: {told}"


def _counters(trial: Json, before: Json | None) -> Iterator[str]:
    """Those of a port rise from its opening on, which the first trial begins with.

    Where something was wrong with the ports, they may not.
    """
    ports = {} if before is None or trial.get("environment") else _ports_of(before)
    for name, port in _ports_of(trial).items():
        damaged = port.get("damaged")
        if damaged and sum(damaged.values()) != port["corrupt"]:
            yield f"{name}: its kinds of damage are not {port['corrupt']} in sum"
        counts = [_counts(port[key]) for key in ("before", "after")]
        if name in ports:
            counts.insert(0, _counts(ports[name]["after"]))
        for one, other in itertools.pairwise(counts):
            if wrong := [key for key in other if one.get(key, -1) > other[key]]:
                yield f"{name}: its counters ran backwards: {', '.join(wrong)}"
            if one.keys() != other.keys():
                yield f"{name}: it has other counters than before"


def _ports_of(trial: Json) -> dict[str, Json]:
    """By name and number; none of an invalid trial."""
    if trial["result"]["verdict"]["kind"] == "invalid":
        return {}
    ports = trial["result"].get("ports", [])
    return {f"{port['name']} {port.get('number', 0)}": port for port in ports}


def _counts(counters: Json) -> dict[str, int]:
    own = {key: count for key, count in counters.items() if isinstance(count, int)}
    pauses = {each["name"]: each["count"] for each in counters.get("pauses") or []}
    return own | pauses


def _of_stream(
    stream: Json, asked: Json, direction: Json, request: Json
) -> Iterator[str]:
    if (stream["id"], stream["name"]) != (asked["id"], asked["name"]):
        yield f"stream {stream['id']}, and {asked['name']} {asked['id']} asked for"
    interval = request.get("record", {}).get("series_interval_ns")
    if interval and stream["series"]["interval_ns"] != interval:
        yield f"its series is not of {interval} ns"
    if request.get("frame_timeout_ns") is None and stream.get("late"):
        yield "frames were late, and there was no timeout"
    if stream.get("unplaced") and stream.get("window_frames") is None:
        yield "frames came from beyond a window that it did not have"
    if stream.get("lost_in_shadow") and direction.get("shadows") == []:
        yield "frames were lost in the shadow of a stall, and there was none"
    yield from _losses(stream)
    yield from _altered(stream.get("inspected") or {}, asked)


def _losses(stream: Json) -> Iterator[str]:
    longest, last = stream.get("longest_loss"), stream.get("last_loss")
    runs = stream.get("loss_runs", {}).get("count")
    if runs == 1 and longest != last:
        yield "the longest of its runs of lost frames is not the last, and it has one"
    if runs == 0 and (longest or last):
        yield "it has a run of lost frames, and lost none"


def _altered(inspected: Json, asked: Json) -> Iterator[str]:
    """Frames with another TTL or DSCP have one, and others have not."""
    ttl = asked.get("received_ttl")
    if ttl is not None and inspected.get("frames"):
        others = {inspected["least_ttl"], inspected["most_ttl"]} != {ttl}
        if others != bool(inspected["ttl"]):
            yield f"{inspected['ttl']} frames came with another TTL than {ttl}"
    if inspected and bool(inspected["dscp"]) != (inspected["other_dscp"] is not None):
        yield f"{inspected['dscp']} frames came with another DSCP"
