"""A cell's figures by its trials: throughput, frame loss, back-to-back frames."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import dropwhile
from typing import Any

from dutperf.evidence import accounting
from oracle import formulas, records
from oracle.beside import Source, beside, limit_of, share_of
from oracle.connections import derived_connections
from oracle.delays import derived_delays
from oracle.outage import derived_outage
from oracle.passports import beside_passport
from oracle.phases import counted_trials
from oracle.power import derived_power
from oracle.recovery import derived_recovery
from oracle.searches import (
    Asked,
    Limit,
    Repeat,
    averaged,
    concluded,
    mlr_goals,
    overall,
    without_withdrawn,
)
from oracle.soak import derived_soak

Json = dict[str, Any]


def derived_cell(source: Source) -> Json:
    """All that follows of one cell."""
    told = _NOTHING | _by_procedure(source)
    for key in _NOT_ALWAYS_DERIVED.get(source.cell["procedure"], ()):
        told.pop(key, None)
    told |= beside(source, told)
    return told | beside_passport(source, told)


def _by_procedure(source: Source) -> Json:
    procedure = source.cell["procedure"]
    asked = counted_trials(source.trials, interrupted=procedure == "outage")
    if not asked and procedure not in _ON_CONNECTIONS:
        return _UNMEASURED
    match procedure:
        case (
            "throughput"
            | "multicast-throughput"
            | "dns64"
            | "dns"
            | "tcp-connection-rate"
        ):
            return _throughput(source, asked)
        case "frame-loss":
            return _frame_loss(source, asked)
        case "back-to-back":
            return _back_to_back(source, asked)
        case "latency" | "pdv" | "ipdv":
            return derived_delays(procedure, source.settings, asked)
        case "system-recovery":
            return derived_recovery(source.settings, asked) or _UNMEASURED
        case "outage":
            return derived_outage(source.settings, asked)
        case "power":
            return derived_power(source.cell["cell"], asked)
        case "soak":
            return derived_soak(asked)
        case _:
            return derived_connections(
                procedure,
                source.settings
                | {"is_emptied": source.cell["cell"]["stateful"]["is_emptied"]},
                source.trials,
                limit_of(source),
                translates=source.cell["cell"]["stateful"]["translates"],
            )


_ON_CONNECTIONS = {
    "connection-rate",
    "table-capacity",
    "teardown-rate",
    "tcp-capacity",
    "tcp-half-open",
    "tcp-request-rate",
    "tcp-teardown-rate",
    "idle-timeout",
    "nat-behaviour",
    "port-limit",
    "nat-log",
}
_NOTHING: Json = {
    "points": [],
    "derived": [],
    "timeouts": [],
    "goals": [],
    "measures": [],
    "frames": [],
    "delays": None,
    "settled": None,
    "withdrawn": None,
    "capacity": [],
    "teardown": [],
    "behaviour": [],
    "log": None,
    "expiry": [],
    "damage": None,
    "eviction": None,
    "recovery": None,
    "outage": None,
    "power": None,
    "soak": None,
}
"""What a cell has none of, unless its procedure does."""
_NOT_ALWAYS_DERIVED = {
    "throughput": ("damage",),
    "multicast-throughput": ("damage",),
    "dns64": ("damage",),
    "dns": ("damage",),
    "tcp-connection-rate": ("damage",),
    "connection-rate": ("eviction",),
    "table-capacity": ("eviction",),
    "tcp-capacity": ("eviction",),
    "tcp-half-open": ("eviction",),
}
_UNMEASURED: Json = {
    "median": None,
    "bound": None,
    "bound_cause": None,
    "repeats": [],
    "verdict": "invalid",
    "spread": None,
}


# --- throughput (RFC 2544 26.1)


def _throughput(source: Source, asked: Sequence[Asked]) -> Json:
    settings, limit = source.settings, limit_of(source)
    goals = settings.get("goals")
    numbers = sorted({each.repeat for each in asked})
    searched = [[each for each in asked if each.repeat == n] for n in numbers]
    told_goals: list[Json] = []
    if goals:
        found = [mlr_goals(trials, settings, limit) for trials in searched]
        repeats = [each[0] for each in found]
        told_goals = [goal for each in found for goal in each[1]]
        withdrawn: Json | None = None
    else:
        repeats = [concluded(each, settings["resolution"], limit) for each in searched]
        repeats, searched, withdrawn = without_withdrawn(settings, repeats, searched)
    rounding = formulas.Rounding(
        looks=str(settings["repeats"]).startswith("auto"),
        resolution=settings["resolution"],
        highest=limit.fps,
    )
    told = overall(repeats, rounding)
    if told_goals:
        kinds = {goal["verdict"] for goal in told_goals}
        valid = "pass" if "pass" in kinds else "fail"
        told["verdict"] = "invalid" if "invalid" in kinds else valid
    passed = [_last_at(t, r.value) for t, r in zip(searched, repeats, strict=True)]
    return told | {
        "goals": told_goals,
        "withdrawn": withdrawn,
        "timeouts": _timeouts(settings, passed),
        "settled": _settled(settings, repeats, told["spread"]),
        "parameters": _known({"max_load_fps": _maximum(source, asked)}),
        "derived": _of_bursts(settings, told["median"], told["bound"]),
    }


def _of_bursts(settings: Json, rate: float | None, bound: str | None) -> list[Json]:
    """Of bursts (RFC 2544 21): how far apart they may be begun, and the pause."""
    if "burst_frames" not in settings:
        return []
    frames, peak = settings["burst_frames"], settings["burst_rate_fps"]
    each = frames / rate if rate else None
    pause = None if each is None else max(0.0, each - frames / peak)
    told = {"burst interval": each, "pause between bursts": pause}
    upper = "upper" if bound else None
    return [
        {"name": name, "value": value, "bound": upper} for name, value in told.items()
    ]


def _maximum(source: Source, asked: Sequence[Asked]) -> int:
    """The maximum is tried first, or what is safe for the tester; then it is above.

    0: nothing above that was tried, so the trials do not tell.
    """
    first_fps, most_fps = asked[0].load_fps, max(each.load_fps for each in asked)
    safe_fps = (source.cell.get("passport") or {}).get("safe_rate_fps")
    began_safe = safe_fps == first_fps and not source.settings.get("goals")
    return 0 if began_safe and most_fps == first_fps else max(first_fps, most_fps)


def _settled(
    settings: Json, repeats: Sequence[Repeat], spread: Json | None
) -> Json | None:
    """How ``repeats: auto`` ended: whether the interval was as narrow as asked for."""
    width = settings.get("interval_width")
    if width is None:
        return None
    count = sum(repeat.value is not None for repeat in repeats)
    reached = False
    if (
        spread
        and count in formulas.LOOKS
        and "interval_upper" not in spread["lower_bounds"]
    ):
        low, high = spread["interval_lower"], spread["interval_upper"]
        middle = spread["median"]
        least = formulas.width_at(settings["resolution"], middle)
        values = sorted(r.value for r in repeats if r.value is not None)
        widest = max(Fraction(_plain_upper(values)) - Fraction(low), least)
        reached = high is not None and widest <= formulas.width_at(width, middle)
    return {
        "max_repeats": settings["max_repeats"],
        "looks": sum(look <= count for look in formulas.LOOKS),
        "reached": reached,
    }


def _plain_upper(values: Sequence[float]) -> float:
    """The upper end of the interval at a look, before it is widened."""
    found = formulas.Rounding(looks=True).interval(values)
    return found[1] if found else max(values)


def _last_at(asked: Sequence[Asked], load_fps: float | None) -> Json | None:
    """The last valid trial of full length at a rate."""
    longest = max((each.seconds for each in asked), default=Fraction(0))
    found = [
        each.trial
        for each in asked
        if (each.load_fps, each.seconds) == (load_fps, longest)
        and each.kind != "invalid"
    ]
    return found[-1] if found else None


def _timeouts(settings: Json, trials: Sequence[Json | None]) -> list[Json]:
    """The loss by each timeout of the sweep (paper 004), in the same trials."""
    told = []
    swept = str(settings.get("timeout_sweep_ms") or "")
    for place, milliseconds in enumerate(filter(None, swept.split(", "))):
        losses = [
            None if trial is None else records.timeout_loss_percent(trial, place)
            for trial in trials
        ]
        known = [loss for loss in losses if loss is not None]
        told.append(
            {
                "timeout_ns": round(Fraction(milliseconds) * 10**6),
                "loss_percent": formulas.median(known) if known else None,
                "repeats": losses,
            }
        )
    return told


# --- frame loss (RFC 2544 26.3)


def _frame_loss(source: Source, asked: Sequence[Asked]) -> Json:
    settings = source.settings
    loads = list(dict.fromkeys(each.load_fps for each in asked))
    # Loads that the tester could not offer were lowered before anything counted.
    while loads[1:] and _was_lowered(asked, loads[0], source):
        loads.pop(0)
    points = [
        _point(settings, load, [a for a in asked if a.load_fps == load])
        for load in loads
    ]
    told = [point for point in points if point["loss_percent"] is not None]
    highest = (told or points)[0]
    spoilt = any(r["verdict"] == "invalid" for p in points for r in p["repeats"])
    known: Json = {} if spoilt else {"verdict": "pass"}
    for point, stored in zip(points, source.cell.get("points", []), strict=False):
        if _is_share(stored["load_percent"], settings, point.get("load_fps", 0)):
            point["load_percent"] = stored["load_percent"]
    return known | {
        "median": highest["loss_percent"],
        "bound": None,
        "bound_cause": None,
        "repeats": highest["repeats"],
        "spread": highest["spread"],
        "points": points,
    }


def _known(load: Json) -> Json:
    """Nothing, where no trial of phase 2 tells which load its phase 1 was for."""
    return {key: fps for key, fps in load.items() if fps}


def _was_lowered(asked: Sequence[Asked], load_fps: int, source: Source) -> bool:
    """Whether a load was given up for a lower maximum: then it is above all shares."""
    at = [each for each in asked if each.load_fps == load_fps]
    stored = {point["load_fps"] for point in source.cell.get("points", [])}
    return (
        load_fps not in stored
        and all(each.kind == "invalid" for each in at)
        and sum(records.could_not_offer(each.trial) for each in at) > 1
    )


def _is_share(percent: float, settings: Json, load_fps: int) -> bool:
    """Whether a load is that share of 100 %, in whole frames; or the most of all."""
    whole = settings["max_load_fps"]
    if max(1, int(Fraction(str(percent)) * whole / 100)) == load_fps:
        return True
    return bool(float(f"{load_fps * 100 / whole:.4g}") == percent)


def _point(settings: Json, load_fps: int, asked: Sequence[Asked]) -> Json:
    numbers = sorted({each.repeat for each in asked})
    tried = [[each for each in asked if each.repeat == n] for n in numbers]
    counted = [t[-1].trial if t[-1].kind != "invalid" else None for t in tried]
    values = _losses(counted)
    known = [value for value in values if value is not None]
    valid = [trial for trial in counted if trial is not None]
    # Of one that was measured: phase 1, which may be tried again, has one direction.
    names = [d["name"] for d in accounting.directions(valid[0])] if valid else []
    told = []
    for name in names if len(names) > 1 else []:
        of = _losses(counted, name)
        shown = [loss for loss in of if loss is not None]
        told.append(
            {
                "direction": name,
                "loss_percent": formulas.median(shown),
                "repeats": of,
            }
        )
    return _known({"load_fps": load_fps}) | {
        "loss_percent": formulas.median(known) if known else None,
        "repeats": [
            Repeat(
                value, "invalid" if value is None else "pass", trials=len(t)
            ).as_stored()
            for value, t in zip(values, tried, strict=True)
        ],
        "directions": told,
        "timeouts": _timeouts(settings, counted),
        "spread": formulas.spread(known),
    }


def _losses(
    trials: Sequence[Json | None], name: str | None = None
) -> list[float | None]:
    """Of each trial that counts, in one direction or in all."""
    return [
        None if trial is None else records.loss_percent(trial, name) for trial in trials
    ]


# --- back-to-back frames (RFC 9004)


def _back_to_back(source: Source, asked: Sequence[Asked]) -> Json:
    settings = source.settings
    rate_fps = asked[-1].load_fps
    # Bursts at a rate that the tester could not offer were all made anew at a lower.
    bursts = [
        each._replace(load_fps=records.burst_frames(each.trial))
        for each in asked
        if each.load_fps == rate_fps
    ]
    longest = max(1, int(rate_fps * Fraction(str(settings["longest_burst_s"]))))
    # A search begins with the longest; short ones before it told what can be offered.
    bursts = list(dropwhile(lambda each: each.load_fps != longest, bursts))
    numbers = sorted({each.repeat for each in bursts})
    repeats = [
        concluded(
            [each for each in bursts if each.repeat == n],
            settings["step"],
            Limit(longest, "set"),
            offers=False,
        )
        for n in numbers
    ]
    values = [r.value for r in repeats if r.value is not None]
    most = max(values, default=0.0)
    told = averaged(repeats, float(formulas.width_at(settings["step"], most)))
    average = told["median"]
    throughput = _throughput_before(source)
    return told | {
        "derived": _buffer_times(average, rate_fps, throughput, values, told["bound"]),
        "parameters": {"max_load_fps": rate_fps},
    }


def _buffer_times(
    average: float | None,
    rate_fps: int,
    throughput: float | None,
    values: Sequence[float],
    bound: str | None,
) -> list[Json]:
    """RFC 9004 6.4."""
    implied = corrected = None
    if average is not None:
        implied = average / rate_fps
        if throughput is not None:
            corrected = formulas.corrected_buffer_time_s(average, rate_fps, throughput)
    return [
        {"name": "corrected buffer time", "value": corrected, "bound": bound},
        {"name": "implied buffer time", "value": implied, "bound": bound},
        {"name": "throughput", "value": throughput, "bound": None},
        {
            "name": "standard deviation",
            "value": formulas.standard_deviation(values),
            "bound": None,
        },
    ]


def _throughput_before(source: Source) -> float | None:
    """Given, or a share of what the throughput cell of the same frames found."""
    given = source.settings.get("throughput_fps")
    if isinstance(given, int | float):
        return given
    own = source.cell["id"]
    wanted = _throughput_cell(own, source)
    return None if given is None or wanted is None else share_of(str(given), wanted)


def _throughput_cell(own: str, source: Source) -> Json | None:
    """The one that is measured for it: its id differs by the procedure only."""
    name = own.replace("back-to-back", "throughput", 1)
    found = source.done.get(name)
    return found if found and found["verdict"] == "pass" and found["median"] else None
