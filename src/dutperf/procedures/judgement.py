"""What counts as lost: frames that never arrived, late ones, and how much of it passes.

RFC 2544 waits two seconds for the last frame and lets none be lost. A frame timeout
and a tolerated loss are other measures, and are never called by its name (paper 004).
"""

from __future__ import annotations

from collections.abc import Sequence

from dutperf import stats
from dutperf.config.campaign import Cell
from dutperf.config.searching import GoalSpec
from dutperf.engine.protocol import DirectionResult, TrialResult
from dutperf.results.model import TimeoutLoss

PLAIN_THROUGHPUT = "throughput per direction (RFC 2544 26.1)"
"""What alone may be called so: no frame is lost, however late it is."""


def throughput_quantity(cell: Cell) -> str:
    """What a throughput search finds, in words."""
    conditions = judged_by(cell)
    return f"throughput per direction, {conditions}" if conditions else PLAIN_THROUGHPUT


def judged_by(cell: Cell, goal: GoalSpec | None = None) -> str:
    """How the cell's trials are judged otherwise than by RFC 2544; may be empty.

    By several goals they are judged in several ways: of ``goal``, else of the first.
    """
    conditions = []
    if cell.frame_timeout_ms is not None:
        conditions.append(f"frames within {cell.frame_timeout_ms:.12g} ms")
    if cell.loss_tolerance_percent:
        conditions.append(f"losing up to {cell.loss_tolerance_percent:.12g} %")
    if cell.verify_trials is not None:
        conditions.append(f"losses verified by {cell.verify_trials} trials")
    chosen = [goal] if goal else cell.goals[:1]
    conditions += [goal_words(g.loss_percent, g.exceed_percent) for g in chosen]
    return ", ".join(filter(None, conditions))


def goal_words(loss_percent: float, exceed_percent: float) -> str:
    """What a goal of MLRsearch tolerates; empty: nothing."""
    if not exceed_percent:
        return f"losing up to {loss_percent:.12g} %" if loss_percent else ""
    lost = f"up to {loss_percent:.12g} %" if loss_percent else "nothing"
    return f"losing {lost} in all but {exceed_percent:.12g} % of the time"


def loss_percent(result: TrialResult) -> float:
    """(input - output) * 100 / input over all directions (RFC 2544 26.3).

    Late frames are no output where there is a frame timeout. What the tester's own
    ports dropped on receive had left the device.
    """
    lost = sum(max(_missing(d) - own_drops(result, d), 0) for d in result.directions)
    return lost * 100 / sum(s.sent for d in result.directions for s in d.streams)


def _missing(direction: DirectionResult) -> int:
    return sum(stream.lost + stream.late for stream in direction.streams)


def own_drops(result: TrialResult, direction: DirectionResult) -> int:
    """Frames for which the port that receives ``direction`` had no room or buffer."""
    receiver = "right" if direction.name == "forward" else "left"
    return sum(
        getattr(port.after, key) - getattr(port.before, key)
        for port in result.ports
        for key in ("rx_missed", "rx_nombuf")
        if port.name == receiver
    )


def timeout_losses(
    cell: Cell, results: Sequence[TrialResult | None]
) -> list[TimeoutLoss]:
    """The loss by each timeout of the sweep, in the same trials; null: none valid."""
    return [
        _timeout_loss(place, timeout_ns, results)
        for place, timeout_ns in enumerate(cell.timeout_sweep_ns)
    ]


def _timeout_loss(
    place: int, timeout_ns: int, results: Sequence[TrialResult | None]
) -> TimeoutLoss:
    repeats = [_loss_within(place, result) if result else None for result in results]
    values = [value for value in repeats if value is not None]
    return TimeoutLoss(
        timeout_ns=timeout_ns,
        loss_percent=stats.median(values) if values else None,
        repeats=repeats,
    )


def _loss_within(place: int, result: TrialResult) -> float:
    streams = [s for d in result.directions for s in d.streams]
    lost = sum(s.lost + s.slower[place].frames for s in streams)
    return lost * 100 / sum(s.sent for s in streams)
