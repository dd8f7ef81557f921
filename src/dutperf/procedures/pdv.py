"""Packet delay variation (RFC 8219 7.3.1): how far the delays of a stream spread.

PDV = D99.9 - Dmin over all frames that arrive: the 99.9th percentile of their delays
less the smallest. A frame that is lost has no delay; losses are counted beside it.
"""

from __future__ import annotations

from collections.abc import Callable

from dutperf import stats
from dutperf.config.cell import Cell
from dutperf.procedures.measures import DelayPlan, Quantity, Reading
from dutperf.protocol import Histogram, StreamResult
from dutperf.results.tester_share import rare_share_ns


def _of_delays(
    bounds: Callable[[Histogram, int], tuple[int, int]],
) -> Callable[[StreamResult], Reading]:
    """What to read of a histogram and its smallest delay: where it lies for certain."""

    def read(stream: StreamResult) -> Reading:
        delays = stream.delay_ns
        if delays.min is None:
            return Reading(None, 0)
        low, high = bounds(delays, delays.min)
        return Reading(high, delays.count, rounding=high - low)

    return read


def _high(delays: Histogram, _least_ns: int) -> tuple[int, int]:
    return stats.percentile_bounds(delays.buckets, 999, 1000)


def _spread(delays: Histogram, least_ns: int) -> tuple[int, int]:
    low, high = _high(delays, least_ns)
    return low - least_ns, high - least_ns


PDV = Quantity(
    "PDV",
    "packet delay variation, D99.9 - Dmin of the frames that arrived (RFC 8219 7.3.1)",
    _of_delays(_spread),
    share_of_ns=rare_share_ns,
)
LEAST = Quantity(
    "Dmin",
    "smallest delay (RFC 8219 7.3.1)",
    _of_delays(lambda _delays, least_ns: (least_ns, least_ns)),
    share_of_ns=lambda direction: direction.delay_floor_ns,
)
HIGH = Quantity(
    "D99.9",
    "99.9th percentile of the delays (RFC 8219 7.3.1)",
    _of_delays(_high),
    share_of_ns=rare_share_ns,
)


def pdv_plan(_cell: Cell) -> DelayPlan:
    """The same of every cell."""
    return DelayPlan(
        (PDV, LEAST, HIGH),
        "smallest and largest exact, others rounded up by {rounding} at most",
    )
