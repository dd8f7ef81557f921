"""Axes of time: logarithmic for delays, signed for their variation."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dutperf.report.chart import Figure
from dutperf.report.text import delay_ns, duration_ns

_ROOM = 1.25
_MANY_DECADES = 2.5


def delay_range(values_ns: Sequence[float]) -> tuple[float, float]:
    """Ends of a logarithmic axis, as powers of ten."""
    low = math.log10(max(min(values_ns), 1) / _ROOM)
    return low, math.log10(max(*values_ns, 2) * _ROOM)


def log_axis(low: float, high: float, until: float = math.inf) -> Figure:
    """A logarithmic axis of nanoseconds whose ticks have the unit that fits.

    Args:
        low: end, as power of ten.
        high: end, as power of ten.
        until: no tick beyond this power of ten; what follows is room for labels.
    """
    steps = (1,) if high - low > _MANY_DECADES else (1, 2, 5)
    ticks = [
        step * 10**decade
        for decade in range(math.floor(low), math.ceil(high) + 1)
        for step in steps
    ]
    last = min(high, until)
    shown = [tick for tick in ticks if low <= math.log10(tick) <= last and tick >= 1]
    return {
        "type": "log",
        "range": [round(low, 4), round(high, 4)],
        "tickvals": shown,
        "ticktext": [duration_ns(tick) for tick in shown],
    }


class SignedScale:
    """Positive and negative values on one axis: linear near zero, logarithmic beyond.

    The inverse hyperbolic sine of value / unit: every value has a place, zero too.
    """

    def __init__(self, unit_ns: float, largest_ns: float) -> None:
        self._unit_ns = unit_ns
        self._largest_ns = max(largest_ns, unit_ns)

    @classmethod
    def around(cls, typical_ns: float, largest_ns: float) -> SignedScale:
        """The scale for values half of which are within ``typical_ns`` of zero.

        They are in its linear part: a single hump of values must not look like two.
        """
        unit_ns = 10.0 ** math.ceil(math.log10(max(2 * typical_ns, 1)))
        return cls(unit_ns, largest_ns)

    def __call__(self, value_ns: float) -> float:
        """Where ``value_ns`` stands."""
        return math.asinh(value_ns / self._unit_ns)

    def value_ns(self, place: float) -> float:
        """What stands at ``place``."""
        return math.sinh(place) * self._unit_ns

    @property
    def ends(self) -> tuple[float, float]:
        """Where the axis begins and ends."""
        end = self(self._largest_ns * _ROOM)
        return -end, end

    def ticks(self) -> Figure:
        """At zero and at powers of ten on both sides, far enough from each other."""
        decades = math.floor(math.log10(self._largest_ns / self._unit_ns)) + 1
        every = 1 + decades // 5
        sizes = [self._unit_ns * 10**d for d in range(decades - 1, -1, -every)]
        if len(sizes) > 1:
            sizes = [size for size in sizes if size > self._unit_ns]
        values = [*(-size for size in sizes), 0.0, *reversed(sizes)]
        return {
            "tickvals": [round(self(value), 4) for value in values],
            "ticktext": [delay_ns(value) for value in values],
        }
