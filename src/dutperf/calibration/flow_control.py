"""What flow control does to a throughput (paper 001, section IV), where all is known.

A device that is too slow drops frames, or it withholds its descriptors: then whoever
sends waits, and no frame is ever lost. A tester that counts only lost frames passes
each such trial, at rates that were never sent; this one says that it was held back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dutperf import stats
from dutperf.calibration.grid import (
    KERNEL_LAB,
    MEMORY_LAB,
    SMALL,
    Extent,
    queue_frames,
)
from dutperf.calibration.model import FlowControl, Path, Point, Row
from dutperf.calibration.truth import served_per_s
from dutperf.calibration.witness import Witnessed
from dutperf.config.labs import IN_FLIGHT_FRAMES
from dutperf.results import CellResult

RATES = (20_000, 100_000)
RING_FRAMES: Mapping[Path, int] = {"memory": 4096, "af_packet": IN_FLIGHT_FRAMES}
"""What is before the device: filled once while nobody drops."""
_DURATION_S = 1.0
_OFFERED_TIMES = 4
"""The service rate: the most that the search offers."""
_SHARE = 0.01
"""By how much dutperf's figure may be above what the device and its ring take."""


class Pairing(NamedTuple):
    """The same device: dropping, and withholding while the tester's ports wait."""

    dropping: Point
    waiting: Point


def pairings(extent: Extent, paths: Sequence[Path]) -> list[Pairing]:
    """A pair for each rate in shared memory, and one on packet sockets.

    In shared memory the device withholds its descriptors. A packet socket that is full
    drops, so there the wire holds frames back, as one does whose other end sends pause
    frames. AF_XDP sockets have nothing of the kind. That wire's timers take the
    sender's CPU, at 100,000 frames per second nearly all of it; so it has the low rate.
    """
    rates = RATES[: 1 if extent.quick else None]
    found = [_pairing(rate, extent) for rate in rates if "memory" in paths]
    return found + [_on_sockets(RATES[0], extent)] * ("af_packet" in paths)


def _pairing(rate: int, extent: Extent) -> Pairing:
    def service(*, withhold: bool) -> dict[str, Any]:
        told = {"rate_fps": rate, "queue_frames": queue_frames(rate)}
        return {"forward": {"service": told | {"withhold": withhold}}}

    first = _point(rate, extent, service(withhold=False), 0.2)
    wait_s = (queue_frames(rate) + RING_FRAMES["memory"]) / rate + 0.2
    second = _point(rate, extent, service(withhold=True), wait_s)
    return Pairing(first, replace(second, name=f"{first.name}-on", waits=True))


def _on_sockets(rate: int, extent: Extent) -> Pairing:
    first = replace(_pairing(rate, extent).dropping, lab=KERNEL_LAB, path="af_packet")
    wait_s = RING_FRAMES["af_packet"] / rate + 0.2
    second = _point(rate, extent, {}, wait_s)
    return Pairing(
        first,
        replace(
            second,
            name=f"{first.name}-on",
            lab=KERNEL_LAB,
            path="af_packet",
            held_back_fps=rate,
        ),
    )


def _point(
    rate: int, extent: Extent, behaviour: Mapping[str, Any], residual_wait_s: float
) -> Point:
    queue = queue_frames(rate)
    spec = {
        "procedure": "throughput",
        "trial_duration_s": _DURATION_S,
        "max_rate_fps": _OFFERED_TIMES * rate,
        "resolution": "0.2%",
        "early_stop": False,  # as a classic tester's trials go on to their end
        "residual_wait_s": round(residual_wait_s, 3),
    }
    return Point(
        name=f"flow-control-{rate}",
        quantity="flow-control",
        lab=MEMORY_LAB,
        words=f"{rate:,} fps served; {SMALL.words}",
        behaviour=behaviour,
        specs=(extent.keys | SMALL.keys | spec,),
        figures=("throughput",),
        expected={"throughput": rate + (queue + 1) / _DURATION_S},
        queue_frames=queue,
    )


def compared(
    pairing: Pairing,
    dropping: Row,
    without: Sequence[Witnessed],
    cell: CellResult,
    waiting: Sequence[Witnessed],
) -> FlowControl:
    """What the search found where the tester had to wait, beside where it had not."""
    service = pairing.dropping.behaviour["forward"]["service"]
    told = [each.account for each in without if each.account]
    served = served_per_s(told, "forward", pairing.dropping.queue_frames)
    ring = RING_FRAMES[pairing.dropping.path] / _DURATION_S
    most = (dropping.account or service["rate_fps"]) + ring
    trials = [each for each in waiting if each.record.role == "trial"]
    classic = _classic(trials)
    reasons = list(dropping.reasons)
    if served is None:
        reasons.append("the device has no account of how fast it was")
    if cell.median is not None and cell.median > most * (1 + _SHARE):
        reasons.append(f"{cell.median:,.0f} fps is more than the device took")
    return FlowControl(
        path=pairing.dropping.path,
        service_fps=service["rate_fps"],
        dropping=dropping,
        most_fps=round(most, 1),
        found_fps=cell.median,
        bound=cell.bound,
        held_back=sum(_is_held_back(each) for each in trials),
        trials=len(trials),
        classic_fps=classic.record.load_fps if classic else None,
        classic_offered_fps=_offered_fps(classic) if classic else None,
        verdict="MISSED" if reasons else "within",
        reasons=reasons,
    )


def _classic(trials: Sequence[Witnessed]) -> Witnessed | None:
    """The fastest that lost nothing, however long it took."""
    lossless = [each for each in trials if not _lost(each)]
    return max(lossless, key=lambda each: each.record.load_fps, default=None)


def _lost(each: Witnessed) -> int:
    return sum(s.lost for d in each.record.result.directions for s in d.streams)


def _offered_fps(each: Witnessed) -> float:
    rates = [d.offered_rate_fps for d in each.record.result.directions]
    return round(stats.median(rates), 1)


def _is_held_back(each: Witnessed) -> bool:
    return any(r.code == "held_back" for r in each.record.result.verdict.reasons)
