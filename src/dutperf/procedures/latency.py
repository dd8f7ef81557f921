"""Latency (RFC 8219 7.2, RFC 2544 26.2): how long tagged frames take.

RFC 8219: of 500 tagged frames or more the median is the typical latency TL, the 99.9th
percentile the worst-case latency WCL; the result is the median over the repeats.
RFC 2544: one tagged frame, the result is the average over the repeats; kept to show
what it misses (paper 004). A tagged frame that is lost takes infinitely long.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dutperf import stats
from dutperf.config.cell import Cell
from dutperf.config.specs import LatencySpec
from dutperf.procedures.measures import DelayPlan, Quantity, Reading
from dutperf.protocol import StreamResult
from dutperf.results.tester_share import rare_share_ns, usual_share_ns


def typical(stream: StreamResult) -> Reading | None:
    """Median of the tags' delays."""
    return _reading(stream, stats.median)


def worst_case(stream: StreamResult) -> Reading | None:
    """99.9th percentile of the tags' delays: with up to 1000 of them, the largest."""
    return _reading(stream, lambda delays: stats.percentile(delays, 999, 1000))


def _reading(
    stream: StreamResult, figure: Callable[[list[float]], float]
) -> Reading | None:
    """Null for a stream without tags; a tag that was lost ranks last."""
    tags = stream.tags
    if tags is None:
        return None
    delays = [math.inf if delay is None else delay for delay in tags.delays_ns]
    if not delays:
        return Reading(None, 0)
    return Reading(figure(delays), len(delays), tags.lost)


TYPICAL = Quantity(
    "TL",
    "typical latency, median of tags (RFC 8219 7.2)",
    typical,
    share_of_ns=usual_share_ns,
)
WORST_CASE = Quantity(
    "WCL",
    "worst-case latency, 99.9th percentile of tags (RFC 8219 7.2)",
    worst_case,
    share_of_ns=rare_share_ns,
)
SINGLE = Quantity(
    "latency",
    "latency of one tagged frame (RFC 2544 26.2)",
    typical,
    summary="mean",
    share_of_ns=usual_share_ns,
)


def latency_plan(cell: Cell) -> DelayPlan:
    """TL and WCL, or what RFC 2544 has instead."""
    of_rfc2544 = cell.spec_of(LatencySpec).rfc2544_latency
    quantities = (SINGLE,) if of_rfc2544 else (TYPICAL, WORST_CASE)
    return DelayPlan(quantities, "exact, in nanoseconds")
