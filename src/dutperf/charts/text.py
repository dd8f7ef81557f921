"""Numbers and times as people read them. A missing value is a dash, never a zero."""

from __future__ import annotations

import math
from datetime import datetime
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Context

from dutperf.results import units
from dutperf.tables import Span, Style, Value

MISSING = "\N{EN DASH}"
NBSP = "\N{NO-BREAK SPACE}"
AT_LEAST = f"\N{GREATER-THAN OR EQUAL TO}{NBSP}"
"""Before a figure that is a lower bound."""
AT_MOST = "\N{LESS-THAN OR EQUAL TO}\N{NARROW NO-BREAK SPACE}"
"""Before a delay that is an upper bound."""
BELOW = "<\N{NARROW NO-BREAK SPACE}"
"""Before the tester's own delay, where a figure is less than that."""
INFINITE = "\N{INFINITY} (lost)"
STYLE = Style(
    absent={
        None: MISSING,
        "lost": INFINITE,
        "undefined": MISSING,
        "invalid": "invalid",
    },
    bounds={None: "", "lower": AT_LEAST, "upper": AT_MOST, "below": BELOW},
    minus="\N{MINUS SIGN}",
    space=NBSP,
    micro="µ",
)
_NEARLY_ALL_PERCENT = 99.9
_NEXT_UNIT_FROM = 1_000


def shown(entry: Value | Span | str) -> str:
    """What stands in a table."""
    return entry if isinstance(entry, str) else entry.text(STYLE)


def whole(value: float | None) -> str:
    """A count or a rate: thousands separated, no decimals unless it is small."""
    return MISSING if value is None else units.whole(value)


def decimal(value: float | None, places: int = 1) -> str:
    """Thousands separated, with a fixed number of decimals."""
    return MISSING if value is None else f"{value:,.{places}f}"


def percent(value: float | None) -> str:
    """A share: three significant digits, so that a small loss never reads as none.

    Nor does what is below 100 % ever read as all.
    """
    if value is None:
        return MISSING
    rounding = ROUND_DOWN if value > _NEARLY_ALL_PERCENT else ROUND_HALF_EVEN
    digits = Context(prec=3, rounding=rounding).create_decimal(repr(value))
    return f"{digits.normalize():f}{NBSP}%"


def duration_ns(value: float | None, digits: int = 3) -> str:
    """Nanoseconds in the unit that leaves one to three digits before the point."""
    if value is None:
        return MISSING
    for scale, unit in ((1, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")):
        shown = f"{value / scale:.{digits}g}"
        if float(shown) < _NEXT_UNIT_FROM:
            return f"{float(shown):g}{NBSP}{unit}"
    return f"{whole(value / 1e9)}{NBSP}s"


def delay_ns(value: float | None) -> str:
    """A measured delay, with its sign: four digits, as fine as it is recorded.

    Infinite stands for frames that were lost.
    """
    if value is None:
        return MISSING
    if math.isinf(value):
        return "\N{INFINITY}"
    sign = "\N{MINUS SIGN}" if value < 0 else ""
    return f"{sign}{duration_ns(abs(value), 4)}"


def moment(stamp: str) -> str:
    """An ISO 8601 time stamp in words; anything else as it is."""
    try:
        when = datetime.fromisoformat(stamp)
    except ValueError:
        return stamp
    zone = f" {when.tzname()}" if when.tzinfo else ""
    return f"{when.day} {when:%B %Y, %H:%M}{zone}"


def sentence(words: str) -> str:
    """``words`` with a capital letter at the begin, unless a test case's name."""
    if any(letter.isdigit() for letter in words.partition(" ")[0]):
        return words
    return words[:1].upper() + words[1:]


def plural(count: int, noun: str) -> str:
    """``1 trial``, ``2 trials``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
