"""Outages (RFC 6201 1.3) once more, by frames lost and by time stamps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dutperf.evidence import accounting
from oracle import records
from oracle.searches import Asked, Repeat, averaged

Json = dict[str, Any]


def derived_outage(settings: Json, asked: Sequence[Asked]) -> Json:
    """The figures of a cell, each trial of which was interrupted once."""
    numbers = sorted({each.repeat for each in asked})
    tried = [[each for each in asked if each.repeat == n] for n in numbers]
    trials = [t[-1].trial if t[-1].kind != "invalid" else None for t in tried]
    valid = [trial for trial in trials if trial is not None]
    directions = [
        {
            "direction": direction["name"],
            "repeats": [_time(trial, place) if trial else None for trial in trials],
            "by_connection": [
                _by_connection(trial, place) if trial else None for trial in trials
            ]
            if settings.get("by_connection")
            else None,
        }
        for place, direction in enumerate(
            accounting.directions(valid[0]) if valid else []
        )
    ]
    repeats = []
    for place, took in enumerate(tried):
        times = [time for d in directions if (time := d["repeats"][place])]
        value = max((time["value_ns"] for time in times), default=None)
        bound = "lower" if any(time["bound"] for time in times) else None
        kind = "pass" if times else "invalid"
        repeats.append(Repeat(value, kind, bound, trials=len(took)))
    within = [t["within_ns"] for d in directions for t in d["repeats"] if t]
    return averaged(repeats, max(within, default=0)) | {
        "outage": {
            "trigger_ns": round(settings["trigger_after_s"] * 10**9),
            "actions": [act for took in tried for act in _actions(took[-1].trial)],
            "within_ns": max(within),
            "directions": directions,
        }
        if within
        else None,
    }


def _time(trial: Json, place: int) -> Json:
    direction = accounting.directions(trial)[place]
    streams = direction["streams"]
    lost = sum(stream["lost"] for stream in streams)
    doubted = sum(stream.get("lost_in_shadow", 0) for stream in streams)
    doubted = min(lost, doubted + records.own_drops(trial, direction))
    interval = 1e9 / direction["offered_rate_fps"]
    each, uneven = interval, 0.0
    if beside := direction.get("beside"):
        own = sum(stream["sent"] for stream in streams)
        share = own / (own + beside["sent"])
        each, uneven = 1e9 / (direction["offered_rate_fps"] * share), interval
    longest: Json = {"frames": 0, "begin_ns": None, "end_ns": None}
    length = -1
    for stream in streams:
        run = stream["longest_loss"]
        if run and run["last_ns"] - run["begin_ns"] > length:
            longest, length = run, run["last_ns"] - run["begin_ns"]
    open_end = any(s["last_loss"] and s["last_loss"]["end_ns"] is None for s in streams)
    silence, quiet = direction["longest_silence"], None
    if silence:
        end = silence["end_ns"]
        until = trial["request"]["duration_ns"] if end is None else end
        quiet = max(0, until - silence["begin_ns"])
    return {
        "value_ns": lost * each,
        "within_ns": each * (1 + doubted) + uneven + (direction["lag_ns"]["max"] or 0),
        "bound": "lower" if open_end else None,
        "lost": lost,
        "longest_lost": longest["frames"],
        "begin_ns": longest["begin_ns"],
        "end_ns": longest["end_ns"],
        "silence_ns": quiet,
    }


def _by_connection(trial: Json, place: int) -> Json:
    """Frames of a connection lost in a row, times how far they are apart."""
    direction = accounting.directions(trial)[place]
    stream, told = direction["streams"][0], direction["streams"][0]["connections"]
    request = next(
        d for d in trial["request"]["directions"] if d["name"] == direction["name"]
    )
    number = request["streams"][0]["tuples"]["count"]
    frame_ns = trial["request"]["duration_ns"] / stream["intended"]
    longest = sorted((high, times) for _, high, times in told["back_lost"]["buckets"])
    back = sum(times for _, times in longest)
    still = sum(each[2] for each in told["tenths"])
    once = sum(n for low, high, n in told["open_lost"]["buckets"] if high == 1 == low)
    learn, table = trial["request"]["learn"], trial["result"]["table"]
    learns = learn is not None and learn["direction"] == direction["name"]

    def at_least(percent: int) -> float | None:
        """The least that so many percent of those back do not exceed."""
        needed, have = -(-back * percent // 100), 0
        for turns, times in longest:
            have += times
            if have >= needed:
                return float(turns * number * frame_ns)
        return None

    named = []
    for each in told["named"]:
        if each["lost"] == 1:
            continue
        frames = range(each["connection"], stream["sent"], number)
        first = frames[len(frames) - each["lost"]]
        named.append(
            {
                "connection": each["connection"],
                "begin_ns": round(first * frame_ns),
                "ends": each["ends"],
            }
        )
    asked = min(number, stream["sent"])
    return {
        "connections": asked,
        "turn_ns": number * frame_ns,
        "whole": asked - back - still,
        "back": back,
        "died": still - once,
        "unclear": once,
        "moved": table["changed"] if table and learns else None,
        "median_ns": at_least(50),
        "p99_ns": at_least(99),
        "longest_ns": at_least(100),
        "last_back_ns": told["last_back"] and told["last_back"] * frame_ns,
        "tenths": [
            {"connections": n, "back": well, "open": gone}
            for n, well, gone in told["tenths"]
        ],
        "named": named,
        "block_ns": told["block_frames"] * frame_ns,
        "out": told["out"],
    }


def _actions(trial: Json) -> list[Json]:
    """What hooks did while frames were sent."""
    return [
        {
            "command": run["command"],
            "host": run["host"],
            "repeat": trial["repeat"],
            "started_ns": None
            if run["after_s"] is None
            else round(run["after_s"] * 10**9),
            "duration_ns": round(run["duration_s"] * 10**9),
        }
        for run in records.hook_runs(trial, "during_trial")
    ]
