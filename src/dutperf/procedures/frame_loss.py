"""Frame loss rate (RFC 2544 26.3, 8219 7.4): loss over the whole range of loads.

From the maximum rate downwards in steps of 10 % of it or finer, until two successive
loads are lossless. What a software tester calls the media's maximum it often cannot
offer; then 100 % is what it can offer (maximum offered load, RFC 2285 3.5.3), and the
result says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dutperf import stats
from dutperf.config.campaign import Cell
from dutperf.config.load_steps import ends_when_lossless
from dutperf.engine.protocol import TrialResult
from dutperf.procedures.describe import cell_deviations, cell_parameters
from dutperf.procedures.findings import loss_findings
from dutperf.procedures.judgement import judged_by, loss_percent, timeout_losses
from dutperf.procedures.limits import MaxRate
from dutperf.procedures.runner import Trials
from dutperf.procedures.searching import outcome
from dutperf.procedures.verdicts import ATTEMPTS, distinct, is_final, no_rate_helps
from dutperf.results.model import CellResult, Deviation, LoadPoint, RepeatResult
from dutperf.results.spread import spread_of

MAX_LOWERINGS = 5
"""How often the tester's own limit is lowered at most."""
TESTER_MARGIN = 0.95
"""All of what a struggling sender managed is too much for a steady one."""


def measure_frame_loss(runner: Trials, cell: Cell, limit: MaxRate) -> CellResult:
    """Measure the loss at each load; the result is the loss at the highest.

    Raises:
        EngineError, SetupError: see ``TrialRunner.run``.
    """
    highest, *lower = cell.load_percent
    may_end_early = ends_when_lossless(cell.load_percent)
    reached, first = _reach_maximum(runner, cell, limit, highest)
    points = [_point(runner, cell, reached, highest, first)]
    for load_percent in lower:
        if may_end_early and _two_lossless(points):
            break
        if no_rate_helps(points[-1].repeats[-1].reasons):
            break
        points.append(_point(runner, cell, reached, load_percent))
    return _cell_result(cell, limit, reached, points)


def _reach_maximum(
    runner: Trials, cell: Cell, limit: MaxRate, load_percent: float
) -> tuple[MaxRate, TrialResult]:
    """Lower the maximum until the tester can offer the highest load.

    Returns:
        The maximum, and the result of the first trial at it.
    """
    for lowering in range(MAX_LOWERINGS + 1):
        result = runner.run(cell, _load_fps(limit, load_percent)).result
        offered_fps = outcome(result).offered_fps
        if not offered_fps or lowering == MAX_LOWERINGS:
            break
        limit = MaxRate(max(1, int(offered_fps * TESTER_MARGIN)), "tester")
    return limit, result


def _point(
    runner: Trials,
    cell: Cell,
    limit: MaxRate,
    load_percent: float,
    first: TrialResult | None = None,
) -> LoadPoint:
    """One load, ``cell.repeats`` times; ``first`` was measured already."""
    load_fps = _load_fps(limit, load_percent)
    repeats: list[RepeatResult] = []
    counted: list[TrialResult | None] = []
    for repeat in range(1, cell.repeats + 1):
        told, valid = _repeat(runner, cell, load_fps, repeat, first)
        repeats.append(told)
        counted.append(valid)
        first = None
        if no_rate_helps(repeats[-1].reasons):
            break
    values = [r.value for r in repeats if r.value is not None]
    return LoadPoint(
        load_percent=load_percent,
        load_fps=load_fps,
        loss_percent=stats.median(values) if values else None,
        repeats=repeats,
        timeouts=timeout_losses(cell, counted),
        spread=spread_of(values),
    )


def _repeat(
    runner: Trials,
    cell: Cell,
    load_fps: int,
    repeat: int,
    first: TrialResult | None,
) -> tuple[RepeatResult, TrialResult | None]:
    """The repeat, and its trial that counts, if there is one."""
    results = [first or runner.run(cell, load_fps, repeat=repeat).result]
    while results[-1].verdict.kind == "invalid" and len(results) < ATTEMPTS:
        if is_final(results[-1].verdict.reasons):
            break
        results.append(runner.run(cell, load_fps, repeat=repeat).result)
    last, trials = results[-1], len(results)
    if last.verdict.kind == "invalid":
        reasons = last.verdict.reasons
        told = RepeatResult(
            value=None, verdict="invalid", reasons=reasons, trials=trials
        )
        return told, None
    return RepeatResult(value=loss_percent(last), verdict="pass", trials=trials), last


def _load_fps(limit: MaxRate, load_percent: float) -> int:
    return max(1, int(limit.rate_fps * Fraction(str(load_percent)) / 100))


def _two_lossless(points: Sequence[LoadPoint]) -> bool:
    return len(points) > 1 and all(
        r.value == 0 for point in points[-2:] for r in point.repeats
    )


def _cell_result(
    cell: Cell, limit: MaxRate, reached: MaxRate, points: list[LoadPoint]
) -> CellResult:
    repeats = [r for point in points for r in point.repeats]
    highest = points[0]
    invalid = any(r.verdict == "invalid" for r in repeats)
    named = judged_by(cell)
    deviations = cell_deviations(cell)
    if reached.kind == "tester":
        deviations.append(_tester_limit(limit, reached))
    if len(points) > 1 and not ends_when_lossless(cell.load_percent):
        deviations += _open_end(points)
    return CellResult(
        id=cell.id,
        procedure="frame-loss",
        quantity=f"frame loss at {highest.load_percent:g} % of {reached.words}, "
        f"{reached.rate_fps:,} fps per direction"
        f"{f', {named}' if named else ' (RFC 2544 26.3)'}",
        parameters=cell_parameters(cell, reached),
        median=highest.loss_percent,
        unit="percent",
        repeats=highest.repeats,
        verdict="invalid" if invalid else "pass",
        reasons=distinct(reason for r in repeats for reason in r.reasons),
        deviations=deviations,
        points=points,
        spread=highest.spread,
        findings=loss_findings(points),
    )


def _open_end(points: Sequence[LoadPoint]) -> list[Deviation]:
    """A list of loads may end before the device loses nothing."""
    if _two_lossless(points):
        return []
    ends = ", ".join(f"{point.load_percent:g} %" for point in points[-2:])
    return [
        Deviation(
            rfc="RFC 2544 26.3",
            requirement="down to two successive loads without loss",
            actual=f"the lowest loads, {ends}, are not both without loss",
            level="SHOULD",
        )
    ]


def _tester_limit(limit: MaxRate, reached: MaxRate) -> Deviation:
    return Deviation(
        rfc="RFC 2544 26.3",
        requirement=f"100 % is {limit.words}, {limit.rate_fps:,} fps per direction",
        actual=f"100 % is {reached.rate_fps:,} fps, {TESTER_MARGIN:.0%} of what the "
        "tester could offer (maximum offered load, RFC 2285 3.5.3)",
        level="SHOULD",
    )
