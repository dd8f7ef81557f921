"""What counts as lost: frames that never arrived, late ones, and how much of it passes.

RFC 2544 waits two seconds for the last frame and lets none be lost. A frame timeout
and a tolerated loss are other measures, and are never called by its name (paper 004).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dutperf import stats
from dutperf.protocol.base import DirectionName
from dutperf.protocol.result_messages import DirectionResult, PortReport, TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results.rate_results import DirectionLoss, TimeoutLoss

if TYPE_CHECKING:  # compat has no use for them, and its commands start fast
    from dutperf.model.cell import Cell
    from dutperf.model.fields import GoalSpec


def throughput_quantity(cell: Cell) -> str:
    """What a throughput search finds, in words.

    RFC 2544's is named only where no frame is lost, however late it is.
    """
    conditions = judged_by(cell)
    told = f", {conditions}" if conditions else " (RFC 2544 26.1)"
    return f"throughput per direction{told}"


def judged_by(cell: Cell, goal: GoalSpec | None = None) -> str:
    """How the cell's trials are judged otherwise than by RFC 2544; may be empty.

    By several goals they are judged in several ways: of ``goal``, else of the first.
    """
    conditions = []
    criterion = cell.spec.loss_criterion
    if criterion.frame_timeout_ms is not None:
        conditions.append(f"frames within {criterion.frame_timeout_ms:.12g} ms")
    if criterion.tolerance_percent:
        conditions.append(f"losing up to {criterion.tolerance_percent:.12g} %")
    if criterion.verify_trials is not None:
        conditions.append(f"losses verified by {criterion.verify_trials} trials")
    chosen = (goal,) if goal else criterion.goals[:1]
    conditions += [goal_words(g.loss_percent, g.exceed_percent) for g in chosen]
    return ", ".join(filter(None, conditions))


def goal_words(loss_percent: float, exceed_percent: float) -> str:
    """What a goal of MLRsearch tolerates; empty: nothing."""
    if not exceed_percent:
        return f"losing up to {loss_percent:.12g} %" if loss_percent else ""
    lost = f"up to {loss_percent:.12g} %" if loss_percent else "nothing"
    return f"losing {lost} in all but {exceed_percent:.12g} % of the time"


def loss_percent(result: TrialResult, *, damaged_is_lost: bool = True) -> float:
    """(input - output) * 100 / input over all directions (RFC 2544 26.3).

    Late frames are no output where there is a frame timeout, nor are damaged ones. What
    the tester's own ports dropped on receive had left the device.
    """
    absent = missing if damaged_is_lost else missing_but_damaged
    return _loss_percent(result, result.directions, absent)


def _loss_percent(
    result: TrialResult,
    directions: Sequence[DirectionResult],
    absent: Callable[[DirectionResult], int],
) -> float:
    lost = sum(max(absent(d) - own_drops(result, d), 0) for d in directions)
    return lost * 100 / sum(s.sent for d in directions for s in d.streams)


def direction_losses(results: Sequence[TrialResult | None]) -> list[DirectionLoss]:
    """The loss of each direction in the same trials; empty: there is only one."""
    valid = [result for result in results if result is not None]
    names = [d.name for d in valid[0].directions] if valid else []
    return [_direction_loss(name, results) for name in names] if names[1:] else []


def _direction_loss(
    name: DirectionName, results: Sequence[TrialResult | None]
) -> DirectionLoss:
    repeats = [_loss_of(result, name) if result else None for result in results]
    known = [value for value in repeats if value is not None]
    return DirectionLoss(
        direction=name, loss_percent=stats.median(known), repeats=repeats
    )


def missing_but_damaged(direction: DirectionResult) -> int:
    """Lost and late frames, if those that arrived damaged had been received."""
    return missing(direction) - sum(
        min(stream.corrupt, stream.lost) for stream in direction.streams
    )


def missing(direction: DirectionResult) -> int:
    """Lost and late frames."""
    return sum(stream.lost + stream.late for stream in direction.streams)


def own_drops(result: TrialResult, direction: DirectionResult) -> int:
    """Frames that the tester may have dropped of ``direction``, before it counted them.

    By the port that receives it for want of room or buffer, below that port, below
    the one that sends it, or in the machine's input queues.
    """
    receiver = "right" if direction.name == "forward" else "left"
    return result.input_queue_drops + sum(
        dropped_on_receive(port) if port.name == receiver else port.send_drops
        for port in result.ports
    )


def dropped_on_receive(port: PortReport) -> int:
    """For want of room or buffer: by the port, below it, or by workers behind it."""
    missed = port.after.rx_missed - port.before.rx_missed
    without_buffer = port.after.rx_nombuf - port.before.rx_nombuf
    return missed + without_buffer + port.interface_drops + port.not_taken_over


def damage_fails(request: TrialRequest, result: TrialResult) -> bool:
    """Whether so many frames are damaged that the trial fails for these alone."""
    return any(
        sum(min(stream.corrupt, stream.lost) for stream in direction.streams) * 10**9
        > request.loss_tolerance_ppb * sum(s.intended for s in direction.streams)
        for direction in result.directions
    )


def _loss_of(result: TrialResult, name: DirectionName) -> float:
    directions = [d for d in result.directions if d.name == name]
    return _loss_percent(result, directions, missing)


def timeout_losses(
    cell: Cell, results: Sequence[TrialResult | None]
) -> list[TimeoutLoss]:
    """The loss by each timeout of the sweep, in the same trials; null: none valid."""
    return [
        _timeout_loss(place, timeout_ns, results)
        for place, timeout_ns in enumerate(cell.spec.timeout_sweep_ns)
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
