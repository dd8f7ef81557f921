"""Measured values as text, in units that a terminal can show."""

from __future__ import annotations

from typing import Literal

Unit = Literal["fps", "percent", "ns", "connections/s", "connections"]


def in_unit(value: float, unit: Unit) -> str:
    """A rate in whole frames a second, a share in percent, or a duration."""
    if unit in ("fps", "connections/s", "connections"):
        return f"{value:,.0f} {unit}"
    return f"{value:.6g} %" if unit == "percent" else duration(value)


def about(value: float) -> str:
    """Two digits are enough; never as a power of ten."""
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.2g}"


def duration(value_ns: float) -> str:
    """In the unit that leaves one to three digits before the point."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(value_ns) >= size:
            return f"{value_ns / size:.6g} {unit}"
    return f"{value_ns:.6g} ns"
