"""Measured values as text, in units that a terminal can show."""

from __future__ import annotations

from decimal import Context

from dutperf.catalogue import Unit

_SMALL = 9.5
_NEXT_UNIT_FROM = 1000


def in_unit(value: float, unit: Unit) -> str:
    """A rate in whole frames a second, a share in percent, or a duration."""
    if unit in ("fps", "frames", "connections/s", "connections"):
        return f"{whole(value)} {unit}"
    return f"{value:.6g} %" if unit == "percent" else duration(value)


def whole(value: float) -> str:
    """A count or a rate without decimals; of less than ten two digits, if it has some.

    Half a connection a second is not none.
    """
    small = abs(value) < _SMALL and value != int(value)
    return about(value) if small else f"{value:,.0f}"


def about(value: float, digits: int = 2) -> str:
    """So many digits are enough; never as a power of ten."""
    if abs(value) >= 10**digits - 0.5:
        return f"{value:,.0f}"
    return f"{Context(prec=digits).create_decimal(repr(value)).normalize():f}"


def duration(value_ns: float, digits: int = 6) -> str:
    """In the unit that leaves one to three digits before the point."""
    for unit, size in (("ns", 1), ("us", 1e3), ("ms", 1e6)):
        told = f"{value_ns / size:.{digits}g}"
        if abs(float(told)) < _NEXT_UNIT_FROM:  # once it is rounded
            return f"{told} {unit}"
    return f"{value_ns / 1e9:.{digits}g} s"
