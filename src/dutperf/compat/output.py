"""The lines that scripts around siitperf read: one figure a line.

A trial that is invalid has no ``frames sent`` line, and one with the word ``invalid``:
nobody takes it for a result. It has ``frames received``, as siitperf prints it: scripts
that do not look for the word take a missing count for a loss of everything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from dutperf import stats
from dutperf.compat.arguments import Arguments
from dutperf.protocol.base import DirectionName
from dutperf.protocol.result_messages import (
    DirectionResult,
    Reason,
    StreamResult,
    TrialResult,
)

STATE_TABLE = "Failed to fill state table"
LATE = 1.00001
"""siitperf's own limit: a sender that takes longer makes its direction invalid."""
_NAMES: dict[DirectionName, str] = {"forward": "Forward", "reverse": "Reverse"}
_PHASE1 = "Preliminary"
_NS_PER_MS = 1e6


def trial_lines(
    arguments: Arguments, result: TrialResult, *, strict: bool, phase1: bool = False
) -> Iterator[str]:
    """What is printed of a trial.

    Args:
        arguments: the command line.
        result: the trial.
        strict: judged by the engine; otherwise as siitperf counts, which takes what
            the tester itself dropped for lost.
        phase1: it is phase 1 of a stateful command.
    """
    limit_ns = _limit_ns(arguments, phase1=phase1)
    if strict and result.verdict.kind == "invalid":
        yield from _why(result.verdict.reasons)
        for direction in result.directions:
            yield _received(direction, strict=True, phase1=phase1)
        return
    for direction in result.directions:
        name = _name(direction, phase1=phase1)
        took_s = direction.sending_ns / 1e9
        yield f"Info: {name} sender's sending took {took_s:.10f} seconds."
        trouble = "" if strict else _trouble(direction, limit_ns)
        if trouble:
            yield f"{name} {trouble}, the trial is invalid."
            yield _received(direction, strict=strict, phase1=phase1)
            continue
        yield f"{name} frames sent: {_sent(direction)}"
        yield _received(direction, strict=strict, phase1=phase1)
        yield from _remarks(name, direction)
        if not phase1:
            yield from _delays(name, arguments, direction)


def _why(reasons: list[Reason]) -> Iterator[str]:
    """What made a trial invalid; what else is known of it may be the tester's fault."""
    begin = "this trial is invalid: "
    for reason in reasons:
        hint = f" ({reason.hint})" if reason.hint else ""
        yield f"Info: {begin}{reason.message}{hint}"
        begin = ""


def is_invalid(
    arguments: Arguments, result: TrialResult, *, strict: bool, phase1: bool = False
) -> bool:
    """Whether ``trial_lines`` calls it so."""
    if strict:
        return result.verdict.kind == "invalid"
    limit_ns = _limit_ns(arguments, phase1=phase1)
    return any(_trouble(direction, limit_ns) for direction in result.directions)


def _limit_ns(arguments: Arguments, *, phase1: bool) -> float:
    return math.inf if phase1 else LATE * arguments.duration_s * 10**9


def _trouble(direction: DirectionResult, limit_ns: float) -> str:
    """What makes a direction invalid even as siitperf counts; empty: nothing."""
    sent = _sent(direction)
    intended = sum(stream.intended for stream in direction.streams)
    if sent < intended:
        return f"sender gave up after {sent} of {intended} frames"
    return "sending took too long" if direction.sending_ns > limit_ns else ""


def _name(direction: DirectionResult, *, phase1: bool) -> str:
    return _PHASE1 if phase1 else _NAMES[direction.name]


def _sent(direction: DirectionResult) -> int:
    return sum(stream.sent for stream in direction.streams)


def _received(direction: DirectionResult, *, strict: bool, phase1: bool) -> str:
    """In time; as siitperf counts also what came twice or damaged."""
    count = sum(stream.received - stream.late for stream in direction.streams)
    if not strict:
        count += sum(s.duplicate + s.corrupt for s in direction.streams)
    return f"{_name(direction, phase1=phase1)} frames received: {count}"


def _remarks(name: str, direction: DirectionResult) -> Iterator[str]:
    """What a device did to frames beside forwarding or losing them."""
    for stream in direction.streams:
        if stream.corrupt:
            kinds = stream.damaged.by_kind if stream.damaged else {}
            named = ", ".join(
                f"{kind} {count}" for kind, count in kinds.items() if count
            )
            yield f"Info: {name} frames damaged: {stream.corrupt} ({named})"
        if stream.duplicate:
            yield f"Info: {name} frames duplicated: {stream.duplicate}"
        if stream.reordered:
            yield f"Info: {name} frames reordered: {stream.reordered}"


def _delays(
    name: str, arguments: Arguments, direction: DirectionResult
) -> Iterator[str]:
    if arguments.command == "lat":
        yield from _latency(name, arguments, direction.streams[0])
    elif arguments.frame_timeout_ms:
        missing = sum(stream.lost for stream in direction.streams)
        yield f"Info: {name} frames completely missing: {missing}"
    elif arguments.command == "pdv":
        yield from _variation(name, direction.streams)


def _latency(name: str, arguments: Arguments, stream: StreamResult) -> Iterator[str]:
    """A lost tag counts with the largest delay that it could have had."""
    if stream.tags is None:
        return
    most_ns = arguments.duration_s * 1e9 + arguments.timeout_ms * 1e6
    delays = [most_ns if d is None else d for d in stream.tags.delays_ns]
    yield f"{name} TL: {_ms(stats.median(delays))}"
    yield f"{name} WCL: {_ms(stats.percentile(delays, 999, 1000))}"


def _variation(name: str, streams: list[StreamResult]) -> Iterator[str]:
    """Over foreground and background; without a frame that arrived there is none."""
    found = [stream.delay_ns for stream in streams if stream.delay_ns.min is not None]
    if not found:
        return
    least = min(each.min for each in found if each.min is not None)
    most = max(each.max for each in found if each.max is not None)
    buckets = stats.merged_histogram([each.buckets for each in found])
    _, high = stats.percentile_bounds(buckets, 999, 1000)
    yield f"Info: {name} D99_9th_perc: {_ms(high)}"
    yield f"Info: {name} Dmin: {_ms(least)}"
    yield f"Info: {name} Dmax: {_ms(most)}"
    yield f"{name} PDV: {_ms(high - least)}"


def _ms(value_ns: float) -> str:
    return f"{value_ns / _NS_PER_MS:.6f}"
