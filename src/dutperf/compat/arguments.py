"""The command lines of siitperf-tp, siitperf-lat and siitperf-pdv: numbers by place."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from dutperf.errors import InputError
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
