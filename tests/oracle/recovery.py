"""System recovery (RFC 2544 26.5) once more, from the last loss of each trial."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dutperf.evidence import accounting
from oracle.searches import Asked, Repeat, averaged

Json = dict[str, Any]


def derived_recovery(settings: Json, asked: Sequence[Asked]) -> Json | None:
    """The figures of a cell; None: its loads were lowered to where none overloads."""
    overload, throughput = asked[-1].load_fps, settings["max_load_fps"]
    if 0 < overload <= throughput:
        return None
    # An overload that the tester could not offer was lowered before anything counted.
    own = [each for each in asked if each.load_fps == overload]
    numbers = sorted({each.repeat for each in own})
    tried = [[each for each in own if each.repeat == n] for n in numbers]
    trials = [t[-1].trial if t[-1].kind != "invalid" else None for t in tried]
    names = [d["name"] for d in accounting.directions(own[0].trial)]
    valid = [trial for trial in trials if trial is not None]
    directions = [
        {
            "direction": name,
            "repeats": [_time(trial, place) if trial else None for trial in trials],
        }
        for place, name in enumerate(names if valid else [])
    ]
    repeats = []
    for place, took in enumerate(tried):
        times = [time for d in directions if (time := d["repeats"][place])]
        longest = max(times, key=lambda time: time["value_ns"], default=None)
        repeats.append(
            Repeat(
                longest["value_ns"] if longest else None,
                "pass" if longest else "invalid",
                longest["bound"] if longest else None,
                trials=len(took),
            )
        )
    within = [t["within_ns"] for d in directions for t in d["repeats"] if t]
    told = averaged(repeats, max(within, default=0)) | {"recovery": None}
    if not valid:
        return told
    first, then = valid[0]["request"]["directions"][0]["steps"]
    return told | {
        "recovery": {
            "throughput_fps": throughput,
            "overload_fps": first["rate_fps"],
            "reduced_fps": then["rate_fps"],
            "overload_ns": first["duration_ns"],
            "reduced_ns": then["duration_ns"],
            "within_ns": max(within),
            "directions": directions,
        },
    }


def _time(trial: Json, place: int) -> Json:
    """From A to B of one direction, and until the next frame was due."""
    direction = accounting.directions(trial)[place]
    fall, then = trial["request"]["directions"][place]["steps"]
    begin = fall["duration_ns"]
    after = [
        stream["last_loss"]
        for stream in direction["streams"]
        if stream["last_loss"] and stream["last_loss"]["last_ns"] >= begin
    ]
    last = max(after, key=lambda run: int(run["last_ns"]), default=None)
    # Between two frames of the stream one is beside it, at most.
    intervals = 2 if direction.get("beside") else 1
    value, until = 0, -(-intervals * 10**9 // then["rate_fps"])
    bound = None
    if last is not None:
        value = last["last_ns"] - begin
        if last["end_ns"] is not None:
            until = last["end_ns"] - last["last_ns"]
        if Fraction(value, then["duration_ns"]) > Fraction(9, 10):
            bound = "lower"
    before = later = 0
    for stream in direction["streams"]:
        series = stream["series"]
        pairs = zip(series["sent"], series["received"], strict=True)
        for number, (sent, received) in enumerate(pairs):
            if number * series["interval_ns"] < begin:
                before += sent - received
            else:
                later += sent - received
    return {
        "value_ns": value,
        "within_ns": until + (direction["lag_ns"]["max"] or 0),
        "bound": bound,
        "overload_lost": before,
        "reduced_lost": later,
    }
