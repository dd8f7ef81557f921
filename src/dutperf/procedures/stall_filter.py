"""Delays without the tester's stalls: what a trial says of the frames in the light.

A sender that was away sends a burst when it is back, and the queue that the burst
builds is what a worst case then shows. The engine knows which frames stood in the
shadow of a stall (docs/adr/0001-schedule-and-lag.md); a figure that they move by more
than its error is the tester's: the trial is run again, and in the last one of several
the figure is an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from dutperf.protocol.result_messages import (
    NOTHING,
    DirectionResult,
    Histogram,
    Reason,
    StreamResult,
    TagResult,
    TrialResult,
    Verdict,
)
from dutperf.results.units import duration
from dutperf.results.words import usual_share_ns

if TYPE_CHECKING:
    from dutperf.procedures.delays import Quantity


ERROR = 0.01
"""Of a delay, where the tester's usual share in it is less: what repeats tell apart."""


def stream_in_light(stream: StreamResult) -> StreamResult:
    """``stream`` with the delays of those frames only that stood in no shadow."""
    return stream.model_copy(
        update={
            "delay_ns": less(stream.delay_ns, stream.shaded_delay_ns),
            "ipdv_ns": stream.ipdv_ns
            and less(stream.ipdv_ns, stream.shaded_ipdv_ns or NOTHING),
            "tags": stream.tags and _tags_in_light(stream.tags),
        }
    )


def less(whole: Histogram, part: Histogram) -> Histogram:
    """``whole`` without ``part``, which has the same buckets; ends to the bucket."""
    buckets = [list(bucket) for bucket in whole.buckets]
    place = 0
    for lowest, _, count in part.buckets:
        while buckets[place][1] < lowest:
            place += 1
        buckets[place][2] -= count
    left = [(low, high, count) for low, high, count in buckets if count > 0]
    return Histogram(
        count=whole.count - part.count,
        min=left[0][0] if left else None,
        max=left[-1][1] if left else None,
        buckets=left,
    )


def _tags_in_light(tags: TagResult) -> TagResult:
    shaded = set(tags.shaded)
    delays = [d for place, d in enumerate(tags.delays_ns) if place not in shaded]
    return TagResult(lost=delays.count(None), delays_ns=delays)


def moved(
    quantity: Quantity, direction: DirectionResult, stream: StreamResult
) -> tuple[float | None, float | None] | None:
    """The figure of all frames and of those in the light, if they differ too much."""
    if not direction.shadows:
        return None
    all_of, in_light = quantity.read(stream), quantity.read(stream_in_light(stream))
    if all_of is None or all_of.value is None or in_light is None:
        return None
    if _same(all_of.value, in_light.value, usual_share_ns(direction)):
        return None
    return all_of.value, in_light.value


def _same(whole: float, in_light: float | None, share_ns: float) -> bool:
    if in_light is None or math.isinf(whole) or math.isinf(in_light):
        return whole == in_light
    return abs(whole - in_light) <= max(ERROR * abs(in_light), share_ns)


def moved_words(
    quantity: Quantity, direction: DirectionResult, stream: StreamResult
) -> str | None:
    """What the tester's stalls did to a figure, in words; None: nothing."""
    found = moved(quantity, direction, stream)
    if found is None:
        return None
    whole, in_light = map(_words, found)
    return (
        f"{direction.name}: {quantity.name} is {whole} with the frames in recovery "
        f"windows of the tester's own stalls, and {in_light} without"
    )


def _words(value: float | None) -> str:
    if value is None:
        return "nothing"
    return "infinite" if math.isinf(value) else duration(value)


class Rejudge(Protocol):
    """Has the last word on whether a trial tells anything."""

    def __call__(self, result: TrialResult, *, again: bool) -> TrialResult:
        """``result`` as it counts; ``again``: it may be run once more."""
        ...


def rejudged_by(quantities: Sequence[Quantity]) -> Rejudge:
    """Trials in which stalls of the tester decide are invalid, while there are others.

    The last one stands, and what they moved in it is an upper bound.
    """

    def judge(result: TrialResult, *, again: bool) -> TrialResult:
        if not again or result.verdict.kind == "invalid":
            return result
        told = [
            moved_words(quantity, direction, stream)
            for direction in result.directions
            for stream in direction.streams
            for quantity in quantities
        ]
        reasons = [_reason(words) for words in told if words]
        if not reasons:
            return result
        verdict = Verdict(kind="invalid", reasons=[*reasons, *result.verdict.reasons])
        return result.model_copy(update={"verdict": verdict})

    return judge


def _reason(message: str) -> Reason:
    return Reason(
        code="sender_burst",
        message=message,
        hint="isolate the tester's cores; the trial is worth repeating",
    )
