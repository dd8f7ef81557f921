"""How many trials a campaign takes and how long: pure, nothing is opened or sent.

What a search needs depends on the device, which is not known yet. Assumed is one that
does half of the maximum rate, on links of 10 Gbit/s where no maximum was set, and no
trial that has to be repeated. A slower device takes a few trials more: one for each
halving of its rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dutperf.config import Cell, media_rate_fps
from dutperf.config.sizes import mean_frame_size
from dutperf.procedures.frame_loss import STANDARD_LOADS
from dutperf.results.model import ProcedureName
from dutperf.search import Resolution

ASSUMED_LINK_MBPS = 10_000
ASSUMED_SHARE_PERCENT = 50
ASSUMPTION = (
    f"expected of a device that does {ASSUMED_SHARE_PERCENT} % of the maximum rate, "
    "without trials that have to be repeated"
)


@dataclass(frozen=True)
class Estimate:
    """What one cell is expected to take; ``duration_s`` includes all waits."""

    cell: Cell
    trials: int
    duration_s: float


def estimate(cells: Sequence[Cell]) -> list[Estimate]:
    """One estimate for each of ``cells``, in their order."""
    return [_estimate(cell) for cell in cells]


def _estimate(cell: Cell) -> Estimate:
    trials = cell.repeats * _TRIALS[cell.procedure](cell)
    return Estimate(cell, trials, trials * _trial_s(cell))


def _trial_s(cell: Cell) -> float:
    """One trial from its learning frames to the next trial's (RFC 2544 23)."""
    sending_s = cell.settle_wait_s + cell.trial_duration_s + cell.residual_wait_s
    return sending_s + cell.restabilise_wait_s


def _of_throughput(cell: Cell) -> int:
    """The maximum rate first, then each trial halves what is left."""
    limit_fps = _limit_fps(cell)
    resolution = Resolution.parse(cell.resolution)
    width_fps = float(resolution.value)
    if resolution.relative:
        width_fps *= limit_fps * ASSUMED_SHARE_PERCENT / 100
    widths = limit_fps / max(1.0, width_fps)
    return 1 + math.ceil(math.log2(max(1.0, widths)))


def _limit_fps(cell: Cell) -> int:
    if cell.max_rate_fps is not None:
        return cell.max_rate_fps
    sizes = (mean_frame_size(cell, "left"), mean_frame_size(cell, "right"))
    return min(media_rate_fps(ASSUMED_LINK_MBPS, size) for size in sizes)


def _of_frame_loss(cell: Cell) -> int:
    """RFC 2544 26.3: its own list of loads ends at the second lossless one."""
    if cell.load_percent != STANDARD_LOADS:
        return len(cell.load_percent)
    lossy = [load for load in cell.load_percent if load > ASSUMED_SHARE_PERCENT]
    return min(len(cell.load_percent), len(lossy) + 2)


def _of_fixed_load(_cell: Cell) -> int:
    return 1


_TRIALS: dict[ProcedureName, Callable[[Cell], int]] = {
    "throughput": _of_throughput,
    "frame-loss": _of_frame_loss,
    "latency": _of_fixed_load,
    "pdv": _of_fixed_load,
    "ipdv": _of_fixed_load,
}
"""Trials of one repeat."""
