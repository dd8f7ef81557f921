"""Frames beside the stream, in a result: what it is called, and how many came."""

from __future__ import annotations

from collections.abc import Iterable

from dutperf.config.cell import Cell
from dutperf.protocol import DirectionName
from dutperf.results.model import CellResult
from dutperf.results.rate_results import BesideCount
from dutperf.results.trial_record import TrialRecord


def with_beside(
    result: CellResult, cell: Cell, records: Iterable[TrialRecord]
) -> CellResult:
    """``result`` with what it says of them, if ``cell`` has any.

    Counted in the trials that passed: the device was not overloaded there, so what did
    not come was not forwarded on purpose. If none passed, in all valid ones.

    Args:
        result: of the cell.
        cell: what was measured.
        records: trials, the cell's among them.
    """
    beside = cell.traffic.beside
    if beside is None:
        return result
    own = [r for r in records if r.cell == result.id and r.role == "trial"]
    passed = [r for r in own if r.result.verdict.kind == "pass"]
    valid = [r for r in own if r.result.verdict.kind != "invalid"]
    counts: dict[DirectionName, BesideCount] = {}
    for record in passed or valid:
        for each in record.result.directions:
            if each.beside:
                before = counts.get(each.name)
                counts[each.name] = BesideCount(
                    direction=each.name,
                    sent=each.beside.sent + (before.sent if before else 0),
                    received=each.beside.received + (before.received if before else 0),
                )
    return result.model_copy(
        update={
            "quantity": f"{result.quantity}, {beside.words} in the load ({beside.rfc})",
            "beside": list(counts.values()),
        }
    )
