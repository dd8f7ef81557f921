"""Inter-packet delay variation (RFC 8219 7.3.2): how delays change from frame to frame.

IPDV(i) = D(i) - D(i-1) of frames sent one after the other, with its sign. A pair of
which a frame was lost has none. Its smallest, median and largest value are reported.
"""

from __future__ import annotations

from collections.abc import Callable

from dutperf import stats
from dutperf.config.cell import Cell
from dutperf.procedures.measures import DelayPlan, Quantity, Reading
from dutperf.protocol import Histogram, StreamResult


def _of_pairs(
    bounds: Callable[[Histogram], tuple[float, float]],
) -> Callable[[StreamResult], Reading | None]:
    """What to read of a histogram: where it lies for certain."""

    def read(stream: StreamResult) -> Reading | None:
        pairs = stream.ipdv_ns
        if pairs is None:
            return None
        if not pairs.count:
            return Reading(None, 0)
        low, high = bounds(pairs)
        return Reading(high, pairs.count, rounding=high - low)

    return read


MOST = Quantity(
    "IPDV max",
    "largest inter-packet delay variation (RFC 8219 7.3.2)",
    _of_pairs(lambda pairs: (pairs.buckets[-1][1],) * 2),
)
MEDIAN = Quantity(
    "IPDV median",
    "median inter-packet delay variation (RFC 8219 7.3.2)",
    _of_pairs(lambda pairs: stats.median_bounds(pairs.buckets)),
)
LEAST = Quantity(
    "IPDV min",
    "smallest inter-packet delay variation (RFC 8219 7.3.2)",
    _of_pairs(lambda pairs: (pairs.buckets[0][0],) * 2),
)


def ipdv_plan(_cell: Cell) -> DelayPlan:
    """The same of every cell."""
    return DelayPlan(
        (MOST, MEDIAN, LEAST),
        "smallest and largest exact, the median rounded up by {rounding} at most",
    )
