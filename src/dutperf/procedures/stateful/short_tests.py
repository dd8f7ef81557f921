"""Tests so short that they measure the device's queue (RFC 9693 4.5).

A device that opens C connections a second, and lets Q frames wait, passes a test of N
at any rate up to C / (1 - Q / N): the last Q frames are still waiting when all were
sent. The tests that failed tell both: of N frames at rate R it loses N - Q - C N / R,
which is a straight line over 1 / R.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from dutperf.protocol import Reason, TrialResult
from dutperf.results.units import about
from dutperf.search import Resolution
from dutperf.standards import Deviation

_LEAST_SHARE = Fraction(1, 100)
"""No resolution is so fine that less than this is worth a longer test."""


class Loss(NamedTuple):
    """A test whose phase 1 failed."""

    rate_per_s: int
    lost: int


class Queue(NamedTuple):
    """What the losses say of the device: frames that may wait, and its rate."""

    frames: float
    rate_per_s: float


def queue_of(losses: Sequence[Loss], connections: int) -> Queue | None:
    """The line of least squares; None: they do not lie on one of such a device."""
    points = [(1 / rate, lost / connections) for rate, lost in losses]
    if len({x for x, _ in points}) < 2:
        return None
    mean_x = math.fsum(x for x, _ in points) / len(points)
    mean_y = math.fsum(y for _, y in points) / len(points)
    square = math.fsum((x - mean_x) ** 2 for x, _ in points)
    slope = math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / square
    share = 1 - (mean_y - slope * mean_x)
    if slope >= 0 or not 0 < share < 1:
        return None
    return Queue(share * connections, -slope)


def too_short(
    losses: Sequence[Loss], connections: int, found_per_s: float, resolution: Resolution
) -> Reason | None:
    """Whether the queue raised what was found by more than its resolution."""
    queue = queue_of(losses, connections)
    if queue is None:
        return None
    allowed = max(
        resolution.width_fps(found_per_s), _LEAST_SHARE * Fraction(found_per_s)
    )
    if found_per_s - queue.rate_per_s <= allowed:
        return None
    enough = math.ceil(queue.frames * found_per_s / float(allowed))
    return Reason(
        code="short_tests",
        message=f"{connections:,} connections may be too few: by what the failed tests "
        f"lost about {queue.frames:,.0f} frames wait in the device, which hides that "
        f"it opens about {about(queue.rate_per_s)}/s",
        hint=f"open {_rounded_up(enough):,} or more (--connections)",
    )


def opened_per_s(result: TrialResult) -> float:
    """How fast a test that passed opened its connections, until the last frame came.

    N / (N/R + largest delay): what was still in the device when all were sent, it has
    had that much longer for. A test proves no higher rate (RFC 9693 4.5).
    """
    (direction,) = result.directions
    sent = sum(stream.sent for stream in direction.streams)
    delays_ns = [stream.delay_ns.max or 0 for stream in direction.streams]
    took_s = sent / direction.intended_rate_fps + max(delays_ns) / 1e9
    return sent / took_s


def unproven(
    result: TrialResult, rate_per_s: int, resolution: Resolution
) -> Reason | None:
    """Why a test that passed is no proof of its rate; None: it is one."""
    opened = opened_per_s(result)
    allowed = max(resolution.width_fps(rate_per_s), _LEAST_SHARE * Fraction(rate_per_s))
    if rate_per_s - opened <= allowed:
        return None
    (direction,) = result.directions
    delay_s = max(stream.delay_ns.max or 0 for stream in direction.streams) / 1e9
    enough = math.ceil(delay_s * rate_per_s * rate_per_s / float(allowed))
    connections = sum(stream.sent for stream in direction.streams)
    return Reason(
        code="short_tests",
        message=f"{rate_per_s:,}/s passed, but {connections:,} connections are too few "
        f"to prove it: frames took up to {about(delay_s * 1000)} ms, so it is known of "
        f"{about(opened)}/s",
        hint=f"open {_rounded_up(enough):,} or more (--connections)",
    )


def as_deviation(reason: Reason) -> Deviation:
    """The same beside what the RFC asks for."""
    rule = "the rate at which as many are opened as are asked for"
    return Deviation("RFC 9693 4.5", rule, reason.message, "text")


def _rounded_up(number: int) -> int:
    """To two digits."""
    unit = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // unit) * unit
