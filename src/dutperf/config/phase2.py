"""When phase 2 starts, and how long the device must remember (RFC 9693 4.7).

    0          N/R        N/R + T        D                    D + trial + wait
    | phase 1   | late frames |  pause   | phase 2, and its late frames |

A connection that is opened first and used last must live all that time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dutperf.config.testbed import Testbed
from dutperf.model.cell import Cell
from dutperf.model.fields import KeyedError
from dutperf.model.frames import version_of
from dutperf.model.stateful_keys import MARGIN, Stateful

USABLE_PORTS = 64_512
"""From 1024 on."""
_LONGEST_MS = 100_000_000


@dataclass(frozen=True)
class Timing:
    """``frames`` of phase 1 at ``rate_fps`` (R), background included.

    ``wait_ms`` is T and ``start_ms`` D: from the start of phase 1 to that of phase 2.
    ``needed_s`` is how long a connection may have to live.
    """

    frames: int
    rate_fps: int
    wait_ms: int
    start_ms: int
    needed_s: float

    @property
    def dut_timeout_s(self) -> float:
        """What the device's timeout should be at least: with a margin."""
        return self.needed_s * (1 + MARGIN)


def phase1_frames(connections: int, foreground: int, of: int) -> int:
    """How many frames have ``connections`` foreground ones, the last one included.

    ``foreground`` of ``of`` frames are, see ``foreground_frames``.
    """
    return -(-(connections - 1) * of // foreground) + 1


def timing_of(cell: Cell) -> Timing | None:
    """The times of each trial of ``cell``; None: no phase 2, or R is not known yet."""
    stateful = cell.phase2
    if stateful is None or not isinstance(stateful.phase1_rate, int):
        return None
    return timing_at(cell, stateful, stateful.phase1_rate)


def timing_at(cell: Cell, stateful: Stateful, rate_fps: int) -> Timing:
    """The times of each trial if R is ``rate_fps``; D = 1000 N/R + 2 T by default."""
    share = cell.traffic.of_mix
    frames = phase1_frames(stateful.connections, share.numerator, share.denominator)
    phase1_ms = -(-1000 * frames // rate_fps)
    start_ms = stateful.phase2_after_ms or phase1_ms + 2 * stateful.timeout_ms
    if stateful.transport == "tcp":  # opened by SYNs before
        start_ms_of_syns = phase1_ms + stateful.timeout_ms
    else:
        start_ms_of_syns = 0
    needed_s = (
        (start_ms_of_syns + start_ms) / 1000
        + cell.spec.trial_duration_s
        + cell.spec.residual_wait_s
    )
    return Timing(frames, rate_fps, stateful.timeout_ms, start_ms, needed_s)


def check_stateful(testbed: Testbed, cell: Cell) -> None:
    """Refuse phases that cannot be as they are asked for.

    A rate that is to be found is checked when it was.

    Raises:
        KeyedError: says which key is wrong.
    """
    if cell.stateful:
        _check_addresses(testbed, cell, cell.stateful)
    timing, limit_fps = timing_of(cell), testbed.max_rate_fps
    if timing and limit_fps is not None and timing.rate_fps > limit_fps:
        raise KeyedError(
            ("stateful", "phase1_rate"),
            f"{timing.rate_fps} is more than testbed "
            f"{testbed.name} allows, {limit_fps}",
            "lower it, or raise max_rate_fps of the testbed",
        )
    if cell.phase2 and timing:
        check_timing(cell, cell.phase2, timing)


def check_timing(cell: Cell, stateful: Stateful, timing: Timing) -> None:
    """Refuse phases that overlap, are too short or too long, or outlive connections.

    Raises:
        KeyedError: as above.
    """
    rate_fps = timing.rate_fps
    if timing.frames * 1000 < rate_fps:
        raise KeyedError(
            ("stateful", "phase1_rate"),
            f"at {rate_fps} frames per second phase 1 is shorter "
            f"than 1 ms, the shortest trial",
            f"lower it to at most {timing.frames * 1000}, or open more connections",
        )
    least_ms = -(-1000 * timing.frames // rate_fps) + timing.wait_ms
    if timing.start_ms < least_ms:
        raise KeyedError(
            ("stateful", "phase2_after_ms"),
            f"{timing.start_ms} ms is before the end of "
            f"phase 1: {timing.frames:,} frames at {rate_fps:,} a second and the wait "
            f"for late ones take {least_ms} ms",
            f"leave it out, or give at least {least_ms}",
        )
    if timing.start_ms > _LONGEST_MS:
        raise KeyedError(
            ("stateful", "phase1_rate"),
            f"at {rate_fps} frames per second phase 1 takes more "
            f"than {_LONGEST_MS // 1000:,} s",
            "raise it, or open fewer connections",
        )
    known_s = stateful.dut_timeout_s
    if known_s is not None and known_s <= timing.needed_s:
        raise KeyedError(
            ("stateful", "dut_timeout_s"),
            f"the device forgets a connection after "
            f"{known_s:g} s, but one must live {timing.needed_s:g} s: "
            f"{_parts(cell, timing)}",
            "raise the device's UDP timeout to at least "
            f"{math.ceil(10 * timing.dut_timeout_s) / 10:,} s and say so "
            "(--dut-timeout), open fewer connections, raise phase1_rate, or take "
            "shorter trials",
        )


def stateful_notices(cells: Iterable[Cell]) -> Iterator[str]:
    """What a user should know of the phases before the first frame, once."""
    plans: dict[str, list[str]] = {}
    short: dict[str, None] = {}
    for cell in cells:
        stateful = cell.stateful
        if stateful is None:
            continue
        if timing := timing_of(cell):
            plans.setdefault(_plan(cell, stateful, timing), []).append(cell.id)
        elif cell.phase2:
            told = (
                f"before each trial {stateful.connections:,} connections are opened at "
                f"{stateful.phase1_rate}; the required timeout is reported once the "
                "connection rate is known"
            )
            plans.setdefault(told, []).append(cell.id)
        short |= dict.fromkeys(_shortage(stateful))
    for told, (first, *others) in plans.items():
        yield f"{first}{f' and {len(others)} more' if others else ''}: {told}"
    yield from short


def _plan(cell: Cell, stateful: Stateful, timing: Timing) -> str:
    told = (
        f"before each trial {stateful.connections:,} connections are opened at "
        f"{timing.rate_fps:,} frames/s; the device must keep a connection without "
        f"frames for {timing.needed_s:.12g} s ({_parts(cell, timing)}): its timeout "
        f"should be at least {timing.dut_timeout_s:.4g} s"
    )
    known_s = stateful.dut_timeout_s
    if known_s is None:
        return f"{told}, which is not checked without --dut-timeout"
    if known_s < timing.dut_timeout_s:
        return f"{told}, {MARGIN:.0%} more; it is only {known_s:g} s"
    return f"{told}; it is {known_s:g} s"


def _parts(cell: Cell, timing: Timing) -> str:
    spec = cell.spec
    return (
        f"phase 2 starts {timing.start_ms / 1000:g} s after phase 1, and takes "
        f"{spec.trial_duration_s:g} s and the wait of {spec.residual_wait_s:g} s"
    )


def _shortage(stateful: Stateful) -> Iterator[str]:
    """RFC 9693 does not say it, but a device has no more ports than these."""
    addresses = stateful.expected.count if stateful.expected else 1
    if stateful.mappings > addresses * USABLE_PORTS:
        known = f"{addresses:,} public address{'' if addresses == 1 else 'es'}"
        least = math.ceil(stateful.mappings / USABLE_PORTS)
        yield (
            f"stateful: the initiator has {stateful.mappings:,} pairs of address and "
            f"port, but {known} have {addresses * USABLE_PORTS:,} ports: a device that "
            "gives each pair a public port of its own runs out of them; it needs "
            f"{least:,} addresses (tell them by public_addresses), or narrow "
            "source_ports" + (" or addresses" if stateful.source_addresses > 1 else "")
        )


def _check_addresses(testbed: Testbed, cell: Cell, stateful: Stateful) -> None:
    if stateful.expected is None:
        return
    version = version_of(cell.ip, stateful.responder)
    if stateful.expected.version != version:
        raise KeyedError(
            ("stateful", "public_addresses"),
            f"{stateful.public_addresses} cannot be what "
            f"{testbed.name} shows the responder, which receives IPv{version}",
            f"give IPv{version} addresses, or leave the key out",
        )
