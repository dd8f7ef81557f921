"""What stored values have in common, and how measured ones read on a terminal."""

from __future__ import annotations

from decimal import Context

from pydantic import BaseModel, ConfigDict

from dutperf.catalogue import Unit
from dutperf.visible import visible_json

_SMALL = 9.5
_NEXT_UNIT_FROM = 1000


def in_unit(value: float, unit: Unit) -> str:
    """A rate in whole frames a second, a share in percent, a duration, an energy."""
    if unit == "ns":
        return duration(value)
    if unit == "nJ/bit":
        return f"{about(value, 4)} {unit}"
    return f"{value:.6g} %" if unit == "percent" else f"{whole(value)} {unit}"


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


# What all stored values have in common.


class Stored(BaseModel):
    """Base of all stored values: immutable; an unknown key is an error.

    So is a number that is none: JSON has no NaN, but Python reads it.
    """

    model_config = ConfigDict(
        defer_build=True, extra="forbid", frozen=True, allow_inf_nan=False
    )

    def stored_text(self, indent: int | None = None) -> str:
        """As JSON that may be looked at with ``cat``: a terminal obeys none of it."""
        return visible_json(self.model_dump_json(indent=indent))
