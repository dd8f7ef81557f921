"""What the tester itself has of the delays that it tells."""

from __future__ import annotations

from dutperf.protocol import DirectionResult, Histogram
from dutperf.stats import histogram_median, histogram_percentile


def usual_share_ns(direction: DirectionResult) -> float:
    """What it has of half of the direction's delays, at most."""
    return sum(histogram_median(part.buckets) for part in _parts(direction))


def rare_share_ns(direction: DirectionResult) -> float:
    """What it has of all but 2 in 1000 of them: one long stall must not tell all."""
    return sum(
        histogram_percentile(part.buckets, 999, 1000) for part in _parts(direction)
    )


def _parts(direction: DirectionResult) -> list[Histogram]:
    """A frame waits for its send call to end, and for the receiver to look."""
    both = (direction.send_call_ns, direction.receive_gap_ns)
    return [part for part in both if part.count]
