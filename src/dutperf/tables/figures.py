"""Figures as tables tell them: digits and units are chosen here, once.

What is left to a renderer is its ``Style``: how it writes signs and what is no figure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Context
from typing import Literal

from dutperf.results import Bound, Figure, result_word
from dutperf.results import units as words
from dutperf.results.delay_results import Absent
from dutperf.results.rate_results import Derived

State = Literal["pass", "doubtful", "fail", "invalid", "open"]
_NEARLY_ALL_PERCENT = 99.9
_UNITS = (("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9))
_NEXT_UNIT_FROM = 1000


@dataclass(frozen=True)
class Style:
    """How a renderer writes what is neither letter nor digit.

    ``absent``: what stands where there is no figure, by the reason.
    """

    absent: Mapping[Absent | None, str]
    bounds: Mapping[Literal["lower", "upper", "below"] | None, str]
    minus: str
    space: str
    micro: str


@dataclass(frozen=True)
class Value:
    """One figure: its digits, with an ASCII minus, and its unit (us: microseconds).

    Without digits there is none; ``absent`` says why, null that it does not apply or
    was not measured. ``exact``: the same with all its digits, a time in nanoseconds;
    null: it is more than one number.
    """

    digits: str = ""
    unit: str = ""
    bound: Literal["lower", "upper", "below"] | None = None
    absent: Absent | None = None
    exact: float | None = field(default=None, compare=False)

    @property
    def is_time(self) -> bool:
        """Whether it is one, in whatever unit."""
        return any(self.unit == unit for unit, _ in _UNITS)

    def text(self, style: Style) -> str:
        """As ``style`` has it."""
        if not self.digits:
            return style.absent[self.absent]
        told = style.bounds[self.bound] + self.digits.replace("-", style.minus)
        unit = self.unit.replace("us", f"{style.micro}s")
        return f"{told}{style.space}{unit}" if unit else told


@dataclass(frozen=True)
class Span:
    """From one figure to another."""

    low: Value
    high: Value

    def text(self, style: Style) -> str:
        """As ``style`` has it; twice the same is one figure."""
        ends = (self.low.text(style), self.high.text(style))
        return " to ".join(dict.fromkeys(ends))


@dataclass(frozen=True)
class Verdict:
    """On a cell; open: the run ended in it."""

    state: State


def state_word(state: State) -> str:
    """What the verdict on a cell is called, wherever it is shown."""
    if state == "doubtful":
        return state
    return "not finished" if state == "open" else result_word(state)


Entry = Value | Span | Verdict | str
"""What stands in one place of a table."""
NONE = Value()


def count(
    value: float | None, bound: Literal["lower", "upper"] | None = None, unit: str = ""
) -> Value:
    """A rate or a number of things: thousands separated, no decimals unless small."""
    if value is None:
        return NONE
    return Value(words.whole(value), unit, bound, exact=value)


def number(value: object, digits: int = 6) -> Value:
    """A setting; whole numbers in full, others with so many digits."""
    if isinstance(value, int):
        return Value(f"{value:,}", exact=value)
    if isinstance(value, float):
        return Value(words.about(value, digits), exact=value)
    return NONE


def percent(value: float | None, bound: Bound = None, digits: int = 6) -> Value:
    """A share: frames are counted, so a small loss never reads as none.

    Nor does what is below 100 % ever read as all.
    """
    if value is None:
        return NONE
    rounding = ROUND_DOWN if value > _NEARLY_ALL_PERCENT else ROUND_HALF_EVEN
    told = Context(prec=digits, rounding=rounding).create_decimal(repr(value))
    return Value(f"{told.normalize():f}", "%", bound, exact=value)


def duration(value_ns: float | None, digits: int = 6) -> Value:
    """In the unit that leaves one to three digits before the point."""
    if value_ns is None:
        return NONE
    for unit, size in _UNITS:
        shown = float(f"{value_ns / size:.{digits}g}")
        if abs(shown) < _NEXT_UNIT_FROM:
            return Value(f"{shown:g}", unit, exact=value_ns)
    return replace(count(value_ns / 1e9, unit="s"), exact=value_ns)


def derived(figure: Derived | None, *, unit: bool = False) -> Value:
    """A time in the unit that fits; a rate or a number, with its ``unit`` if asked."""
    if figure is None or figure.value is None:
        return NONE
    if figure.unit == "s":
        return replace(duration(figure.value * 1e9, 4), bound=figure.bound)
    return count(figure.value, figure.bound, figure.unit if unit else "")


def delay(figure: Figure) -> Value:
    """Four digits, as fine as the buckets of a histogram; or why there is none."""
    if figure.value is None:
        return Value(absent=figure.absent)
    if math.isinf(figure.value):
        return Value(absent="lost")
    if figure.below_ns is not None:
        return replace(duration(figure.below_ns, 4), bound="below")
    bound: Literal["upper"] | None = "upper" if figure.at_most else None
    return replace(duration(figure.value, 4), bound=bound)
