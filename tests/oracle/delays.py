"""Latency, PDV and IPDV once more, from the delays that each trial recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from dutperf.evidence import accounting
from oracle import formulas
from oracle.searches import Asked, Repeat

Json = dict[str, Any]


class Reading(NamedTuple):
    """A figure of one stream in one trial; infinite: too much was lost."""

    value: float | None
    samples: int
    lost: int = 0
    rounding: float = 0.0


class Quantity(NamedTuple):
    """What is read of a stream, and which share of it may be the tester's.

    ``share``: "usual" of half of all delays, "rare" of all but 2 in 1000, "floor" of
    each; None: it is a difference, in which the tester's share may be any.
    """

    name: str
    read: Callable[[Json], Reading | None]
    share: str | None = None
    summary: str = "median"


def derived_delays(procedure: str, settings: Json, asked: Sequence[Asked]) -> Json:
    """The figures of a cell whose delays were measured at a load that was given."""
    quantities = _QUANTITIES[procedure]
    if settings.get("rfc2544_latency"):
        quantities = (Quantity("latency", typical, "usual", "mean"),)
    quantities += tuple(map(_percentile, settings.get("percentiles") or ()))
    numbers = sorted({each.repeat for each in asked})
    tried = [[a for a in asked if a.repeat == n] for n in numbers]
    trials = [t[-1].trial if t[-1].kind != "invalid" else None for t in tried]
    valid = [trial for trial in trials if trial is not None]
    measures = [m for q in quantities for m in _measures(q, trials, valid)]
    main = [
        m
        for m in measures
        if m["name"] == quantities[0].name and m["stream"] == "foreground"
    ]
    repeats = []
    for place, (trial, took) in enumerate(zip(trials, tried, strict=True)):
        value = _largest([m["repeats"][place]["value"] for m in main])
        kind = "pass" if trial else "invalid"
        repeats.append(Repeat(value, kind, trials=len(took)).as_stored())
    return {
        "median": _largest([m["result"]["value"] for m in main]),
        "bound": None,
        "bound_cause": None,
        "repeats": repeats,
        "verdict": "pass" if len(valid) == len(trials) else "invalid",
        "spread": None,
        "measures": measures,
        "frames": _frames(valid),
        "delays": _tester(valid),
    }


# --- what is read of a stream


def typical(stream: Json) -> Reading | None:
    """RFC 8219 7.2: the median of the tags; one tag: its latency (RFC 2544 26.2)."""
    return _of_tags(stream, formulas.median)


def worst_case(stream: Json) -> Reading | None:
    """RFC 8219 7.2: the 99.9th percentile of the tags."""
    return _of_tags(stream, lambda v: formulas.percentile(v, Fraction(999, 1000)))


def _percentile(percent: float) -> Quantity:
    """That was asked for, of the tags."""
    share = Fraction(str(percent)) / 100
    return Quantity(
        f"p{percent:.12g}",
        lambda stream: _of_tags(stream, lambda v: formulas.percentile(v, share)),
        "rare",
    )


def _of_tags(
    stream: Json, figure: Callable[[Sequence[float]], float]
) -> Reading | None:
    tags = stream.get("tags")
    if tags is None:
        return None
    delays = [math.inf if delay is None else delay for delay in tags["delays_ns"]]
    if not delays:
        return Reading(None, 0)
    return Reading(figure(delays), len(delays), tags["lost"])


def variation(stream: Json) -> Reading:
    """RFC 8219 7.3.1: PDV = D99.9 - Dmin of the frames that arrived."""
    least = stream["delay_ns"]["min"]
    high = high_delay(stream)
    return high._replace(value=None if high.value is None else high.value - least)


def high_delay(stream: Json) -> Reading:
    """D99.9: the end of the bucket that it is in."""
    delays = stream["delay_ns"]
    if delays["min"] is None:
        return Reading(None, 0)
    low, high = formulas.high_bucket(delays["buckets"])
    return Reading(high, delays["count"], rounding=high - low)


def least_delay(stream: Json) -> Reading:
    """Dmin."""
    delays = stream["delay_ns"]
    none = delays["min"] is None
    return Reading(None, 0) if none else Reading(delays["min"], delays["count"])


def _of_pairs(
    figure: Callable[[formulas.Buckets], tuple[float, float]],
) -> Callable[[Json], Reading | None]:
    """RFC 8219 7.3.2, of the differences between frames sent one after the other."""

    def read(stream: Json) -> Reading | None:
        pairs = stream.get("ipdv_ns")
        if pairs is None:
            return None
        if not pairs["count"]:
            return Reading(None, 0)
        low, high = figure(pairs["buckets"])
        return Reading(high, pairs["count"], rounding=high - low)

    return read


_QUANTITIES = {
    "latency": (
        Quantity("TL", typical, "usual"),
        Quantity("WCL", worst_case, "rare"),
    ),
    "pdv": (
        Quantity("PDV", variation, "rare"),
        Quantity("Dmin", least_delay, "floor"),
        Quantity("D99.9", high_delay, "rare"),
    ),
    "ipdv": (
        Quantity("IPDV max", _of_pairs(lambda b: (b[-1][1], b[-1][1]))),
        Quantity("IPDV median", _of_pairs(formulas.middle_buckets)),
        Quantity("IPDV min", _of_pairs(lambda b: (b[0][0], b[0][0]))),
    ),
}


# --- repeats of one quantity


def _measures(
    quantity: Quantity, trials: Sequence[Json | None], valid: Sequence[Json]
) -> Iterator[Json]:
    """One for each direction and stream that has it."""
    if not valid:
        return
    for d, direction in enumerate(accounting.directions(valid[0])):
        for s, stream in enumerate(direction["streams"]):
            if quantity.read(stream) is not None:
                yield _measure(quantity, trials, d, s) | {
                    "name": quantity.name,
                    "direction": direction["name"],
                    "stream": stream["name"],
                    "summary": quantity.summary,
                }


def _measure(quantity: Quantity, trials: Sequence[Json | None], d: int, s: int) -> Json:
    readings: list[Reading | None] = []
    at_most: list[bool] = []
    for trial in trials:
        direction = accounting.directions(trial)[d] if trial else None
        stream = direction["streams"][s] if direction else None
        readings.append(quantity.read(stream) if stream else None)
        at_most.append(
            bool(direction and stream and _may_be_less(quantity, direction, stream))
        )
    ranked, least = [], []
    for reading, most in zip(readings, at_most, strict=True):
        if reading and reading.value is not None:
            ranked.append(reading.value)
            least.append(0.0 if most else reading.value)
    averaged = quantity.summary == "mean" and math.inf not in ranked
    summary = formulas.mean if averaged else formulas.median
    if quantity.summary == "mean" and not averaged:
        summary = _most
    low = lambda v: formulas.percentile(v, Fraction(1, 100))  # noqa: E731
    high = lambda v: formulas.percentile(v, Fraction(99, 100))  # noqa: E731
    return {
        "repeats": [
            _figure(reading, most)
            for reading, most in zip(readings, at_most, strict=True)
        ],
        "samples": [reading.samples if reading else 0 for reading in readings],
        "lost": [reading.lost if reading else 0 for reading in readings],
        "rounding_ns": max((float(r.rounding) for r in readings if r), default=0.0),
        "count": len(ranked),
        "result": _summary(ranked, least, summary),
        "percentile_1": _summary(ranked, least, low),
        "percentile_99": _summary(ranked, least, high),
        "spread": formulas.spread(ranked),
    }


def _figure(reading: Reading | None, most: bool) -> Json:
    if reading is None or reading.value is None:
        absent = "undefined" if reading else "invalid"
        return {"value": None, "absent": absent, "at_most": False, "below_ns": None}
    if math.isinf(reading.value):
        return {"value": None, "absent": "lost", "at_most": False, "below_ns": None}
    return {"value": reading.value, "absent": None, "at_most": most, "below_ns": None}


def _summary(
    ranked: Sequence[float],
    least: Sequence[float],
    figure: Callable[[Sequence[float]], float],
) -> Json:
    """An upper bound if it would be another one with what may be less taken as 0."""
    if not ranked:
        return _figure(Reading(None, 0), most=False)
    value = figure(ranked)
    return _figure(Reading(value, 1), most=value != figure(least))


def _most(values: Sequence[float]) -> float:
    """An average in which one is infinite is infinite."""
    return max(values)


def _largest(values: Sequence[float | None]) -> float | None:
    """None where one of them is."""
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None


# --- the tester's own share


def _may_be_less(quantity: Quantity, direction: Json, stream: Json) -> bool:
    """Whether no small part, over a quarter, may be the tester's own."""
    reading = quantity.read(stream)
    if reading is None or reading.value is None or math.isinf(reading.value):
        return False
    if _moved(quantity, reading.value, direction, stream):
        return True
    if quantity.share is None or reading.value == 0:
        return False
    return _share(quantity.share, direction) > reading.value / 4


def _share(kind: str, direction: Json) -> float:
    """Of sending and of looking for what came, in nanoseconds."""
    if kind == "floor":
        return float(direction["delay_floor_ns"])
    parts = [direction["send_call_ns"], direction["receive_gap_ns"]]
    known = [part["buckets"] for part in parts if part["count"]]
    if kind == "usual":
        return sum(formulas.middle_buckets(each)[1] for each in known)
    return sum(formulas.high_bucket(each)[1] for each in known)


def _moved(quantity: Quantity, whole: float, direction: Json, stream: Json) -> bool:
    """Whether frames in the shadow of the tester's stalls moved it by over 1 %."""
    if not direction.get("shadows"):
        return False
    light = quantity.read(_in_light(stream))
    if light is None:
        return False
    if light.value is None or math.isinf(light.value):
        return True
    allowed = max(abs(light.value) / 100, _share("usual", direction))
    return abs(whole - light.value) > allowed


def _in_light(stream: Json) -> Json:
    """With the delays of frames that stood in no shadow only."""
    told = dict(stream)
    told["delay_ns"] = _less(stream["delay_ns"], stream.get("shaded_delay_ns"))
    if stream.get("ipdv_ns"):
        told["ipdv_ns"] = _less(stream["ipdv_ns"], stream.get("shaded_ipdv_ns"))
    if stream.get("tags"):
        shaded = set(stream["tags"].get("shaded", []))
        delays = [
            d for n, d in enumerate(stream["tags"]["delays_ns"]) if n not in shaded
        ]
        told["tags"] = {"delays_ns": delays, "lost": delays.count(None)}
    return told


def _less(whole: Json, part: Json | None) -> Json:
    left = formulas.without(whole["buckets"], part["buckets"] if part else [])
    count = formulas.samples_of(left)
    return {"buckets": left, "count": count, "min": left[0][0] if left else None}


# --- beside the figures


def _frames(trials: Sequence[Json]) -> list[Json]:
    """Of each direction and stream, over all trials that count."""
    sums: dict[tuple[str, int], Json] = {}
    keys = ("sent", "received", "lost", "late", "negative_delays")
    for trial in trials:
        for direction in accounting.directions(trial):
            for stream in direction["streams"]:
                own = (direction["name"], stream["id"])
                names = {"direction": direction["name"], "stream": stream["name"]}
                so_far = sums.setdefault(own, names | dict.fromkeys(keys, 0))
                for key in keys:
                    so_far[key] += stream.get(key, 0)
    return list(sums.values())


def _tester(trials: Sequence[Json]) -> Json | None:
    """What the tester itself has of the delays."""
    every = [d for trial in trials for d in accounting.directions(trial)]
    if not every:
        return None
    return {
        "floor_ns": min(d["delay_floor_ns"] for d in every),
        "bound_ns": max(d["delay_bound_ns"] for d in every),
        "usual_bound_ns": max(round(_share("rare", d)) for d in every),
    }
