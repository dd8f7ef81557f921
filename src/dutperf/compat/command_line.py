"""The command lines of siitperf-tp, siitperf-lat and siitperf-pdv: numbers by place."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from dutperf import stats
from dutperf.errors import InputError
from dutperf.protocol.base import DirectionName
from dutperf.protocol.result_messages import (
    DirectionResult,
    Reason,
    StreamResult,
    TrialResult,
)
from dutperf.protocol.stream_messages import foreground_frames

Command = Literal["tp", "lat", "pdv"]

MAX_RATE_FPS = 10**12
_MAX_COUNT = 2**32 - 1


class Argument(NamedTuple):
    """One number of a command line; ``name`` is how the field knows it."""

    name: str
    unit: str
    least: int
    most: int


_TRIAL = (
    Argument("ipv6_size", "bytes with FCS", 84, 1538),
    Argument("rate", "frames per second and direction", 1, MAX_RATE_FPS),
    Argument("duration", "s", 1, 3600),
    Argument("global_timeout", "ms", 0, 60_000),
    Argument("n", "frames", 1, 10**6),
    Argument("m", "of n frames are foreground", 0, 10**6),
)
_PHASE1 = (
    Argument("N", "frames of phase 1", 1, _MAX_COUNT),
    Argument("M", "entries of the state table", 1, _MAX_COUNT),
    Argument("R", "frames per second in phase 1", 1, MAX_RATE_FPS),
    Argument("T", "ms, timeout of phase 1", 1, 2000),
    Argument("D", "ms, from phase 1 to phase 2", 1, 100_000_000),
)
_OWN: dict[Command, tuple[Argument, ...]] = {
    "tp": (),
    "lat": (
        Argument("delay", "s, until the first tagged frame", 0, 3600),
        Argument("timestamps", "tagged frames", 1, 50_000),
    ),
    "pdv": (Argument("frame_timeout", "ms, 0: PDV is computed", 0, 60_000),),
}
_LONGEST_IPV6 = 1518


@dataclass(frozen=True)
class Phase1:
    """N M R T D; times in milliseconds."""

    frames: int
    entries: int
    rate_fps: int
    timeout_ms: int
    gap_ms: int


@dataclass(frozen=True)
class Arguments:
    """One trial as it is asked for; ``m`` of ``n`` frames are foreground.

    ``m`` and ``n`` in lowest terms: 2 of 2 are 1 of 1. ``notices``: what was ignored.
    """

    command: Command
    ipv6_size: int
    rate_fps: int
    duration_s: int
    timeout_ms: int
    n: int
    m: int
    phase1: Phase1 | None = None
    first_tag_s: int = 0
    tags: int | None = None
    frame_timeout_ms: int | None = None
    notices: tuple[str, ...] = ()


def expected(command: Command, *, stateful: bool) -> tuple[Argument, ...]:
    """The numbers that a command line has, in order."""
    return _TRIAL + (_PHASE1 if stateful else ()) + _OWN[command]


def read_arguments(
    command: Command, words: Sequence[str], *, stateful: bool, only_ipv4: bool
) -> Arguments:
    """Read and check a command line, without the command itself.

    Args:
        command: which of the three.
        words: what stands behind it.
        stateful: whether the file says Stateful 1 or 2.
        only_ipv4: whether both sides send IPv4.

    Raises:
        InputError: too few arguments, or one that is out of its range.
    """
    wanted = expected(command, stateful=stateful)
    if len(words) < len(wanted):
        names = " ".join(f"<{each.name}>" for each in wanted)
        kind = "1 or 2" if stateful else "0"
        raise InputError(
            f"siitperf-{command} with Stateful {kind} in siitperf.conf takes "
            f"{len(wanted)} arguments, and {len(words)} are given; it takes: {names}"
        )
    given = {
        each.name: _number(each, word)
        for each, word in zip(wanted, words, strict=False)
    }
    common = math.gcd(given["n"], given["m"])
    found = Arguments(
        command=command,
        ipv6_size=given["ipv6_size"],
        rate_fps=given["rate"],
        duration_s=given["duration"],
        timeout_ms=given["global_timeout"],
        n=given["n"] // common,
        m=given["m"] // common,
        phase1=_phase1(given) if stateful else None,
        first_tag_s=given.get("delay", 0),
        tags=given.get("timestamps"),
        frame_timeout_ms=given.get("frame_timeout"),
        notices=tuple(_ignored(words[len(wanted) :])),
    )
    _check(found, only_ipv4=only_ipv4)
    return _with_possible_tags(found)


def _ignored(words: Sequence[str]) -> Iterator[str]:
    if words:
        named = " ".join(words)[:80]
        yield f"arguments ignored, as the command takes none after the others: {named}"


def _number(argument: Argument, word: str) -> int:
    value = int(word) if re.fullmatch(r"[0-9]{1,15}", word) else None
    if value is None or not argument.least <= value <= argument.most:
        raise InputError(
            f"{argument.name} must be a number from {argument.least} to "
            f"{argument.most} ({argument.unit}), not {word[:40]!r}"
        )
    return value


def _phase1(given: dict[str, int]) -> Phase1:
    return Phase1(given["N"], given["M"], given["R"], given["T"], given["D"])


def _check(found: Arguments, *, only_ipv4: bool) -> None:
    if found.ipv6_size > _LONGEST_IPV6 and not only_ipv4:
        raise InputError(
            f"ipv6_size must be at most {_LONGEST_IPV6} (bytes with FCS) where a side "
            f"sends IPv6, not {found.ipv6_size}"
        )
    if found.m > found.n:
        raise InputError("m must not be above n: m of n frames are foreground")
    if found.tags is not None and found.first_tag_s >= found.duration_s:
        raise InputError(
            f"delay must be below duration, {found.duration_s} s, not "
            f"{found.first_tag_s} s"
        )
    if found.phase1:
        if found.m == 0:
            raise InputError("m must be at least 1: background opens no connections")
        _check_phase1(found.phase1)


def _with_possible_tags(found: Arguments) -> Arguments:
    """Each is another foreground frame; with background alone those are tagged."""
    if found.tags is None:
        return found
    frames = found.rate_fps * found.duration_s
    if found.m:
        frames = foreground_frames(frames, found.m, found.n)
    most = frames - frames * found.first_tag_s // found.duration_s
    if found.tags <= most:
        return found
    notice = (
        f"timestamps {found.tags}: {most} are used, one for each foreground frame of a "
        f"direction after the first {found.first_tag_s} s"
    )
    return replace(found, tags=most, notices=(*found.notices, notice))


def _check_phase1(phase1: Phase1) -> None:
    needed_ms = 1000 * phase1.frames / phase1.rate_fps + phase1.timeout_ms
    if needed_ms > phase1.gap_ms:
        raise InputError(
            f"D must be at least 1000*N/R + T, that is {math.ceil(needed_ms)} ms, not "
            f"{phase1.gap_ms}"
        )
    if phase1.entries > phase1.frames:
        raise InputError(
            f"M must not be above N: {phase1.frames} frames cannot fill "
            f"{phase1.entries} entries"
        )


# The lines that scripts around siitperf read: one figure a line.
#
# A trial that is invalid has no ``frames sent`` line, and one with the word
# ``invalid``: nobody takes it for a result. It has ``frames received``, as siitperf
# prints it: scripts that do not look for the word take a missing count for a loss of
# everything.


STATE_TABLE = "Failed to fill state table"
LATE = 1.00001
"""siitperf's own limit: a sender that takes longer makes its direction invalid."""
_NAMES: dict[DirectionName, str] = {"forward": "Forward", "reverse": "Reverse"}
_PRELIMINARY = "Preliminary"
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
    return _PRELIMINARY if phase1 else _NAMES[direction.name]


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
