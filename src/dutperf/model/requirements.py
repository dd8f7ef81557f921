"""What a user requires of figures, in words: ``throughput >= 200k``.

Whether figures are so, ``procedures.requirements`` judges.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from dutperf.catalogue import PROCEDURES, ProcedureName, Unit
from dutperf.errors import InputError
from dutperf.model.fields import written_number

_FORM = re.compile(r"(.*?)(>=|<=|\bat least\b|\bat most\b)(.*)", re.DOTALL)
_BOUND = re.compile(r"([-+0-9.,_]+(?:[eE][-+]?\d+)?)\s*([kMG]?)\s*(.*)", re.DOTALL)
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,6})?)(?: latency)?", re.IGNORECASE)
_TIMES_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_CALLED: dict[Unit, tuple[str, ...]] = {
    "fps": ("fps", "pps", "frames/s"),
    "percent": ("%", "percent"),
    "frames": ("frames",),
    "queries/s": ("queries/s", "qps", "/s"),
    "connections/s": ("connections/s", "cps", "/s"),
    "connections": ("connections", "sessions"),
    "ports": ("ports",),
    "ns": tuple(_TIMES_NS),
    "nJ/bit": ("nJ/bit",),
}
_EXAMPLES = "'throughput >= 200k', 'p99 latency <= 500us', 'frame loss <= 0.1%'"


@dataclass(frozen=True)
class Requirement:
    """``words``: as it was given. ``figure``: empty: what a cell is known by.

    ``bound`` is in the procedure's unit.
    """

    words: str
    procedure: ProcedureName
    figure: str
    at_least: bool
    bound: float


def requirement(text: str) -> Requirement:
    """``text`` understood.

    Raises:
        InputError: it is no requirement, there is no such figure, or the bound is of
            another unit than the figure.
    """
    told = _FORM.fullmatch(" ".join(text.split()))
    if told is None:
        raise InputError(f"{text!r} requires nothing of a figure", f"as {_EXAMPLES}")
    procedure, figure = figure_called(told[1].strip())
    unit = PROCEDURES[procedure].unit
    bound = told[3].strip()
    if unit == "ns" and not re.search("s$", bound):
        raise InputError(f"{text!r}: of which unit?", "a time has one: 500us, 2 ms")
    if unit == "nJ/bit" and not bound.endswith(unit):  # who thinks of watts is told
        raise InputError(f"{text!r}: of which unit?", f"it is in {unit}: 400 {unit}")
    at_least = told[2] in (">=", "at least")
    return Requirement(text, procedure, figure, at_least, bound_in_unit(bound, unit))


def figure_called(name: str) -> tuple[ProcedureName, str]:
    """Whose figure it is, and its name; empty: what a cell of that is known by.

    Raises:
        InputError: none is called so.
    """
    plain = name.lower().replace("-", " ")
    for each in PROCEDURES.values():
        words = (each.name.replace("-", " "), each.title.lower(), each.value)
        also = (other.lower() for other in each.also)
        if plain and plain in (*words, *also):
            return each.name, ""
        for figure, called in each.figures.items():
            if plain in (figure.lower(), called):
                return each.name, figure
    if percentile := _PERCENTILE.fullmatch(name):
        known = {"50": "TL", "99.9": "WCL"}
        return "latency", known.get(percentile[1], f"p{percentile[1]}")
    known_names = ", ".join(each.noun for each in PROCEDURES.values())
    raise InputError(
        f"no figure is called {name!r}", f"one of: {known_names}; p99 latency, TL, ..."
    )


def bound_in_unit(bound: float | str, unit: Unit) -> float:
    """A bound as it was given, in a figure's unit, which it may leave out.

    Raises:
        InputError: it is no number, or of another unit.
    """
    told = _BOUND.fullmatch(str(bound).strip())
    number = told and written_number(told[1].replace(",", "").replace("_", ""))
    if not told or number is None or not math.isfinite(number):
        raise InputError(f"{bound!r} is no bound", "for example 100000, or '2 ms'")
    factor = {"k": 1e3, "M": 1e6, "G": 1e9}.get(told[2], 1.0)
    called = told[3]
    if not told[2] or called not in ("", *_CALLED[unit]):
        factor, called = 1.0, told[2] + called  # the m of ms is no factor, nor is M
    if called not in ("", *_CALLED[unit]):
        raise InputError(f"{bound!r} is of another unit: the figure is in {unit}")
    return float(number) * factor * (_TIMES_NS.get(called, 1.0) if unit == "ns" else 1)
