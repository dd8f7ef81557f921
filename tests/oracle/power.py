"""Watts by load and energy by frame once more, from the readings of each trial."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dutperf.evidence import accounting
from oracle import formulas, records
from oracle.searches import Asked, Repeat, averaged

Json = dict[str, Any]
_SURE = Fraction(95, 100)
_FEWEST = 6


def derived_power(cell: Json, asked: Sequence[Asked]) -> Json:
    """Idle, then each load; the figure is that of full load."""
    loads = sorted({each.load_fps for each in asked})
    tried = {load: _last_of_repeats(asked, load) for load in loads}
    idle = _mean([_watts(t.trial, "idle") for t in tried[loads[0]]])
    points = [_bare(idle) | {"load_percent": 0.0, "load_fps": 0}]
    percents = cell["spec"]["load_percent"]
    for percent, load in zip(percents, loads, strict=False):
        points.append(_point(tried[load], idle))
        points[-1] |= {"load_percent": percent, "load_fps": load}
    took = [
        [each for each in asked if (each.load_fps, each.repeat) == (loads[-1], n)]
        for n in sorted({each.repeat for each in asked if each.load_fps == loads[-1]})
    ]
    whole = len(loads) == len(percents)
    values = [_nj_per_bit(each) if whole else None for each in tried[loads[-1]]]
    repeats = [
        Repeat(value, "invalid" if value is None else "pass", trials=len(trials))
        for value, trials in zip(values, took, strict=True)
    ]
    return averaged(repeats, 0) | {"power": {"points": points}}


def _last_of_repeats(asked: Sequence[Asked], load_fps: int) -> list[Asked]:
    own = {each.repeat: each for each in asked if each.load_fps == load_fps}
    return [own[number] for number in sorted(own)]


def _nj_per_bit(each: Asked) -> float | None:
    watts = _watts(each.trial, "trial") if each.kind != "invalid" else None
    bps = _forwarded(each.trial)[1]
    return watts["watts"] / bps * 1e9 if watts and bps else None


def _bare(watts: Json | None) -> Json:
    return {
        "forwarded_fps": None,
        "forwarded_bps": None,
        "lost_percent": None,
        "watts": watts,
        "total": None,
        "marginal": None,
    }


def _point(tried: Sequence[Asked], idle: Json | None) -> Json:
    valid = [each.trial for each in tried if each.kind != "invalid"]
    read = [
        _watts(each.trial, "trial") if each.kind != "invalid" else None
        for each in tried
    ]
    watts = _mean(read)
    point = _bare(watts)
    if not valid:
        return point
    rates = [_forwarded(trial) for trial in valid]
    point["forwarded_fps"] = formulas.mean([fps for fps, _ in rates])
    point["forwarded_bps"] = formulas.mean([bps for _, bps in rates])
    point["lost_percent"] = formulas.mean([_lost_percent(trial) for trial in valid])
    if watts and all(fps > 0 for fps, _ in rates):
        point["total"] = _energy(watts, None, rates)
        point["marginal"] = _energy(watts, idle, rates) if idle else None
    return point


def _energy(
    watts: Json, idle: Json | None, rates: Sequence[tuple[float, float]]
) -> Json:
    found: Json = {}
    error = watts["systematic_w"] + watts["random_w"]
    power = watts["watts"]
    if idle:
        error += idle["systematic_w"] + idle["random_w"]
        power -= idle["watts"]
    for place, of in enumerate(("packet", "bit")):
        found[f"{of}_nj"] = formulas.mean([power / r[place] * 1e9 for r in rates])
        found[f"{of}_bound_nj"] = formulas.mean([error / r[place] * 1e9 for r in rates])
    return found


def _forwarded(trial: Json) -> tuple[float, float]:
    """Frames, and bits of those as they left the device."""
    fps = bits = 0.0
    for asked, came in zip(
        trial["request"]["directions"], accounting.directions(trial), strict=True
    ):
        sent = sum(stream["sent"] for stream in came["streams"])
        lost = max(0, accounting.missing(came) - records.own_drops(trial, came))
        rate = came["offered_rate_fps"] * (sent - lost) / sent if sent else 0.0
        sizes = [
            (stream["sent"], formulas.mean(told["received_frame_sizes"]))
            for told, stream in zip(asked["streams"], came["streams"], strict=True)
        ]
        fps += rate
        bits += rate * 8 * sum(n * size for n, size in sizes) / max(1, sent)
    return fps, bits


def _lost_percent(trial: Json) -> float:
    lost = sent = 0
    for way in accounting.directions(trial):
        lost += max(0, accounting.missing(way) - records.own_drops(trial, way))
        sent += sum(stream["sent"] for stream in way["streams"])
    return lost * 100 / sent


def _mean(read: Sequence[Json | None]) -> Json | None:
    told = [each for each in read if each]
    if not told or len(told) < len(read):
        return None
    scatter = sum(each["random_w"] ** 2 for each in told) ** 0.5 / len(told)
    ends = formulas.mean_interval([each["watts"] for each in told], _SURE)
    if ends:
        scatter = max(scatter, (ends[1] - ends[0]) / 2)
    return {
        "watts": formulas.mean([each["watts"] for each in told]),
        "systematic_w": formulas.mean([each["systematic_w"] for each in told]),
        "random_w": scatter,
        "readings": sum(each["readings"] for each in told),
    }


def _watts(trial: Json, of: str) -> Json | None:
    """By the energy under the line of readings, divided by its time."""
    (told,) = [each for each in trial["metered"] if each["of"] == of]
    begin, end = told["begin_ns"], told["end_ns"]
    if told["clock_set"] or begin is None or end is None:
        return None
    steady = begin + round(told["averaging_s"] * 10**9)
    own = []
    for each in told["readings"]:
        if each["asked_ns"] < end and each["answered_ns"] > begin and each["failed"]:
            return None
        if each["asked_ns"] >= steady and each["answered_ns"] <= end:
            own.append(((each["asked_ns"] + each["answered_ns"]) / 2, each))
    stamps = {each["stamp"] for _, each in own}
    if len(own) > 1 and len(stamps) == 1 and stamps != {None}:
        return None
    parts: list[tuple[float, float]] = []
    for place, (at, each) in enumerate(own):
        before = own[place - 1] if place else None
        after = own[place + 1] if place + 1 < len(own) else None
        if each["joules"] is not None:
            if before:
                energy = each["joules"] - before[1]["joules"]
                parts.append((energy * 1e9 / (at - before[0]), at - before[0]))
            continue
        left = (before[0] + at) / 2 if before else steady
        right = (after[0] + at) / 2 if after else end
        parts.append((each["watts"], right - left))
    if len(parts) < _FEWEST or end - steady < _FEWEST * told["averaging_s"] * 1e9:
        return None
    watts = sum(w * span for w, span in parts) / sum(span for _, span in parts)
    if watts <= 0:
        return None
    share = told["accuracy_percent"] / 100
    # The most that the truth may be, by |read - truth| <= share * truth + rest.
    most = (watts + told["accuracy_w"]) / (1 - share)
    return {
        "watts": watts,
        "systematic_w": most - watts,
        "random_w": formulas.half_width_of_series([w for w, _ in parts]),
        "readings": len(own),
    }
