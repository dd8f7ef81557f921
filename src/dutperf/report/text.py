"""Numbers and times as people read them. A missing value is a dash, never a zero."""

from __future__ import annotations

from datetime import datetime

MISSING = "\N{EN DASH}"
NBSP = "\N{NO-BREAK SPACE}"


def whole(value: float | None) -> str:
    """A count or a rate: thousands separated, no decimals."""
    return MISSING if value is None else f"{value:,.0f}"


def decimal(value: float | None, places: int = 1) -> str:
    """Thousands separated, with a fixed number of decimals."""
    return MISSING if value is None else f"{value:,.{places}f}"


def percent(value: float | None) -> str:
    """A share: three significant digits, so that a small loss never reads as none."""
    if value is None:
        return MISSING
    text = f"{value:.3g}" if value < 100 else f"{value:.0f}"
    return f"{float(text):f}".rstrip("0").rstrip(".") + NBSP + "%"


def quantity(value: float | None, unit: str) -> str:
    """A measured value in the unit it is stored in."""
    if unit == "percent":
        return percent(value)
    return whole(value) + NBSP + unit


def duration_ns(value: float | None) -> str:
    """Nanoseconds in the unit that leaves one to three digits before the point."""
    if value is None:
        return MISSING
    for limit, unit in ((1e3, "ns"), (1e6, "µs"), (1e9, "ms")):
        if value < limit:
            return f"{value / (limit / 1e3):.3g}{NBSP}{unit}"
    return f"{value / 1e9:,.4g}{NBSP}s"


def moment(stamp: str) -> str:
    """An ISO 8601 time stamp in words; anything else as it is."""
    try:
        when = datetime.fromisoformat(stamp)
    except ValueError:
        return stamp
    zone = f" {when.tzname()}" if when.tzinfo else ""
    return f"{when.day} {when:%B %Y, %H:%M}{zone}"


def plural(count: int, noun: str) -> str:
    """``1 trial``, ``2 trials``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
