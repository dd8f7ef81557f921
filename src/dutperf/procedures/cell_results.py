"""What every cell's result has: what follows from the cell, and from its repeats.

    CellResult(**of_cell(cell, limit), **of_repeats(repeats), quantity=..., ...)

What is particular to a procedure it gives itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from dutperf.catalogue import PROCEDURES, ProcedureName, Unit
from dutperf.config.cell import Cell
from dutperf.config.deviating import deviations
from dutperf.procedures.describe import Parameters, cell_parameters
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.trial_verdicts import distinct
from dutperf.protocol import Reason, VerdictKind
from dutperf.results.bounds import Overall, overall
from dutperf.results.rate_results import (
    Bound,
    BoundCause,
    GoalResult,
    RepeatResult,
    Spread,
)
from dutperf.standards import Deviation


class OfCell(TypedDict):
    """Fields of a ``CellResult``, by its cell."""

    id: str
    procedure: ProcedureName
    unit: Unit
    parameters: Parameters
    deviations: list[Deviation]


def of_cell(cell: Cell, limit: MaxRate, beside: Iterable[Deviation] = ()) -> OfCell:
    """What a cell's result has by its settings; ``beside``: what else falls short."""
    return {
        "id": cell.id,
        "procedure": cell.procedure,
        "unit": PROCEDURES[cell.procedure].unit,
        "parameters": cell_parameters(cell, limit),
        "deviations": [*deviations(cell), *beside],
    }


class OfRepeats(TypedDict):
    """Fields of a ``CellResult``, by its repeats."""

    repeats: list[RepeatResult]
    median: float | None
    bound: Bound
    bound_cause: BoundCause
    spread: Spread | None
    verdict: VerdictKind
    reasons: list[Reason]


def of_repeats(
    repeats: list[RepeatResult],
    found: Overall | None = None,
    judged: Sequence[RepeatResult] | Sequence[GoalResult] = (),
    beside: Iterable[Reason] = (),
) -> OfRepeats:
    """What a cell's result has by its repeats: the median is the result.

    Args:
        repeats: those that count.
        found: what they say together, where that is known already.
        judged: what verdict and reasons are of, if not of the repeats.
        beside: further reasons.
    """
    found = found or overall(repeats)
    judged = judged or repeats
    verdicts = {each.verdict for each in judged}
    valid: VerdictKind = "pass" if "pass" in verdicts else "fail"
    reasons = [reason for each in judged for reason in each.reasons]
    return {
        "repeats": repeats,
        "median": found.median,
        "bound": found.bound,
        "bound_cause": found.bound_cause,
        "spread": found.spread,
        "verdict": "invalid" if "invalid" in verdicts else valid,
        "reasons": [*distinct(reasons), *beside],
    }
