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

    Args:
        result: of the cell.
        cell: what was measured.
        records: trials, the cell's valid ones among them.
    """
    beside = cell.traffic.beside
    if beside is None:
        return result
    counts: dict[DirectionName, BesideCount] = {}
    for record in records:
        valid = record.result.verdict.kind != "invalid"
        if not valid or record.cell != result.id or record.role != "trial":
            continue
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
