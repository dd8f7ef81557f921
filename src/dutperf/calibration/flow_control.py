"""What flow control does to a throughput (paper 001, section IV), where all is known.

A device that is too slow drops frames, or it withholds its descriptors: then whoever
sends waits, and no frame is ever lost. A tester that counts only lost frames passes
each such trial, at rates that were never sent; this one says that it was held back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dutperf import stats
from dutperf.calibration.grid import MEMORY_LAB, SMALL, Extent, queue_frames
from dutperf.calibration.model import FlowControl, Point, Row
from dutperf.calibration.truth import served_per_s
from dutperf.calibration.witness import Witnessed
from dutperf.results import CellResult

RATES = (20_000, 100_000)
_RING_FRAMES = 4096
_DURATION_S = 1.0
_OFFERED_TIMES = 4
"""The service rate: the most that the search offers."""
_SHARE = 0.01
"""By how much dutperf's figure may be above what the device and its ring take."""


class Pairing(NamedTuple):
    """The same device: dropping, and withholding while the tester's ports wait."""

    dropping: Point
    waiting: Point


def pairings(extent: Extent) -> list[Pairing]:
    """A pair for each rate."""
    return [_pairing(rate, extent) for rate in RATES[: 1 if extent.quick else None]]


def _pairing(rate: int, extent: Extent) -> Pairing:
    queue = queue_frames(rate)
    spec = {
        "procedure": "throughput",
        "trial_duration_s": _DURATION_S,
        "max_rate_fps": _OFFERED_TIMES * rate,
        "resolution": "0.5%",
        "early_stop": False,  # as a classic tester's trials go on to their end
    }

    def point(*, withhold: bool) -> Point:
        service = {"rate_fps": rate, "queue_frames": queue, "withhold": withhold}
        wait = (queue + _RING_FRAMES) / rate + 0.2 if withhold else 0.2
        return Point(
            name=f"flow-control-{rate}-{'on' if withhold else 'off'}",
            quantity="flow-control",
            lab=MEMORY_LAB,
            words=f"{rate:,} fps served, {'withheld' if withhold else 'dropped'}",
            behaviour={"forward": {"service": service}},
            specs=(
                extent.keys | SMALL.keys | spec | {"residual_wait_s": round(wait, 3)},
            ),
            figures=("throughput",),
            expected={"throughput": rate + (queue + 1) / _DURATION_S},
            queue_frames=queue,
            waits=withhold,
        )

    return Pairing(point(withhold=False), point(withhold=True))


def compared(
    pairing: Pairing,
    dropping: Row,
    without: Sequence[Witnessed],
    cell: CellResult,
    waiting: Sequence[Witnessed],
) -> FlowControl:
    """What the search found where the tester had to wait, beside where it had not."""
    service = pairing.waiting.behaviour["forward"]["service"]
    told = [each.account for each in without if each.account]
    served = served_per_s(told, "forward", pairing.dropping.queue_frames)
    ring = _RING_FRAMES / _DURATION_S
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
