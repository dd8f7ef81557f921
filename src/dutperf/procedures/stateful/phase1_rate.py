"""How fast phase 1 opens connections: as given, or a share of the rate found before.

What was found is a function of the earlier cell's result, so a run that is resumed
comes to the same rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dutperf import stats
from dutperf.config import Cell
from dutperf.config.phase2 import check_timing, timing_at
from dutperf.config.versions import version_of
from dutperf.errors import InputError
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.reference_load import unknown, unmeasured
from dutperf.protocol import Reason
from dutperf.results.model import CellResult


def with_phase1_rate(
    cell: Cell, limit: MaxRate, done: Sequence[CellResult]
) -> Cell | CellResult:
    """``cell`` with R as a number, if it was one that was to be found.

    Or, when there is none or it does not fit, the result: invalid, without a trial.
    """
    stateful = cell.phase2
    asked = stateful.rate_reference if stateful else None
    if stateful is None or asked is None:
        return cell
    source = next(r for r in done if r.id == cell.connection_cell)
    if source.verdict != "pass" or not source.median:
        return unmeasured(cell, limit, _no_rate(source))
    values = [r.value for r in source.repeats if r.value is not None]
    found = source.median
    if asked.percentile is not None:
        found = stats.percentile(values, asked.percentile)
    rate_fps = max(1, asked.of(found))
    try:
        check_timing(cell, stateful, timing_at(cell, stateful, rate_fps))
    except InputError as error:
        return unmeasured(cell, limit, _does_not_fit(rate_fps, error))
    ready = stateful.model_copy(update={"phase1_rate": rate_fps})
    return cell.model_copy(update={"stateful": ready})


def too_fast(cell: Cell, done: Sequence[CellResult]) -> Iterator[str]:
    """Whether R is not below the connection rate that was found, if one was."""
    rate_fps = cell.phase2.phase1_rate if cell.phase2 else None
    if not isinstance(rate_fps, int):
        return
    for source in done:
        if not source.median or source.bound or not _is_of(source, cell):
            continue
        if rate_fps > source.median:
            yield (
                f"{cell.id}: phase 1 at {rate_fps:,} fps is faster than the maximum "
                f"connection establishment rate, {source.median:,.0f} "
                f"({source.id}): it will lose frames; lower stateful.phase1_rate"
            )


def _is_of(source: CellResult, cell: Cell) -> bool:
    """Whether it is the rate of as many connections, opened in the same way."""
    stateful, known = cell.phase2, source.parameters
    if source.procedure != "connection-rate" or stateful is None:
        return False
    wanted = {
        "connections": stateful.connections,
        "initiator": stateful.initiator,
        "ip_left": version_of(cell.ip, "left"),
        "ip_right": version_of(cell.ip, "right"),
    }
    return all(known.get(key) == value for key, value in wanted.items())


def _no_rate(source: CellResult) -> Reason:
    return Reason(
        code="no_connection_rate",
        message=f"nothing was sent: {unknown(source, 'connection rate')}",
        hint=f"see why in {source.id}; or give phase1_rate in frames per second",
    )


def _does_not_fit(rate_fps: int, error: InputError) -> Reason:
    return Reason(
        code="no_connection_rate",
        message=f"nothing was sent: with phase 1 at {rate_fps:,} fps, {error.message}",
        hint=error.hint,
    )
