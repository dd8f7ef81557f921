"""Frame loss rate (RFC 2544 26.3, 8219 7.4): loss over the whole range of loads.

From the maximum rate downwards in steps of 10 % of it or finer, until two successive
loads are lossless. What a software tester calls the media's maximum it often cannot
offer; then 100 % is what it can offer (maximum offered load, RFC 2285 3.5.3), and the
result says so.

Or around the throughput that was found: then that is 100 %, and the loads lie on both
sides of it, up to what the tester can offer, where the device begins to lose frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from dutperf import stats
from dutperf.model.cell import Cell
from dutperf.model.loads import ends_when_lossless
from dutperf.model.rate_specs import FrameLossSpec
from dutperf.procedures.cell_results import of_cell
from dutperf.procedures.conclusions import loss_findings
from dutperf.procedures.fixed_load import Repeat, load_record, run_repeats
from dutperf.procedures.loss_criterion import (
    direction_losses,
    judged_by,
    loss_percent,
    timeout_losses,
)
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.method import Method, OnStreams
from dutperf.procedures.tester_limit import MARGIN, reach_maximum
from dutperf.procedures.trials import (
    Ask,
    Trials,
    comes_and_goes,
    distinct,
    no_rate_helps,
)
from dutperf.protocol.result_messages import Reason, TrialResult
from dutperf.results.bounds import spread_of
from dutperf.results.model import CellResult
from dutperf.results.rate_results import LoadPoint, RepeatResult
from dutperf.standards import Deviation

_RFC = "RFC 2544 26.3"


def measure_frame_loss(runner: Trials, cell: Cell, limit: MaxRate) -> CellResult:
    """Measure the loss at each load; the result is the loss at the highest.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    reached, first = reach_maximum(
        runner, limit, lambda most: Ask(cell, _loads(cell, most)[0].rate_fps)
    )
    loads = _loads(cell, reached)
    tried = _try_loads(runner, cell, loads, first)
    return _cell_result(cell, reached, tried)


class _Load(NamedTuple):
    percent: float
    rate_fps: int


def _loads(cell: Cell, limit: MaxRate) -> list[_Load]:
    """From the highest down; those that cannot be offered are one that can."""
    most_fps = (limit.most or limit).rate_fps
    loads = [
        _Load(p, _load_fps(limit, p)) for p in cell.spec_of(FrameLossSpec).load_percent
    ]
    fit = [load for load in loads if load.rate_fps < most_fps]
    if len(fit) == len(loads):
        return loads
    percent = most_fps * 100 / limit.rate_fps
    return [_Load(float(f"{percent:.4g}"), most_fps), *fit]


class _Tried(NamedTuple):
    """One load, and what became of its repeats."""

    load: _Load
    repeats: list[Repeat]

    @property
    def told(self) -> list[RepeatResult]:
        """Each repeat as it is stored."""
        return [_told(repeat) for repeat in self.repeats]


def _try_loads(
    runner: Trials, cell: Cell, loads: Sequence[_Load], first: Sequence[TrialResult]
) -> list[_Tried]:
    """Each load in turn, up to the end; ``first`` were run at the highest already."""
    may_end_early = ends_when_lossless(cell.spec_of(FrameLossSpec).load_percent)
    tried: list[_Tried] = []
    for load in loads:
        repeats = run_repeats(runner, Ask(cell, load.rate_fps), no_rate_helps, first)
        tried.append(_Tried(load, repeats))
        first = ()
        if may_end_early and _two_lossless(tried):
            break
        if no_rate_helps(repeats[-1].reasons):
            break
    return tried


def _told(repeat: Repeat) -> RepeatResult:
    return RepeatResult(
        value=loss_percent(repeat.result) if repeat.result else None,
        verdict="pass" if repeat.result else "invalid",
        reasons=repeat.reasons,
        trials=repeat.trials,
    )


def _point(cell: Cell, tried: _Tried) -> LoadPoint:
    repeats = tried.told
    counted = [repeat.result for repeat in tried.repeats]
    values = [r.value for r in repeats if r.value is not None]
    return LoadPoint(
        load_percent=tried.load.percent,
        load_fps=tried.load.rate_fps,
        loss_percent=stats.median(values) if values else None,
        repeats=repeats,
        directions=direction_losses(counted),
        timeouts=timeout_losses(cell, counted),
        spread=spread_of(values),
    )


def _load_fps(limit: MaxRate, load_percent: float) -> int:
    return max(1, int(limit.rate_fps * Fraction(str(load_percent)) / 100))


def _two_lossless(tried: Sequence[_Tried]) -> bool:
    return len(tried) > 1 and all(
        repeat.value == 0 for each in tried[-2:] for repeat in each.told
    )


def _cell_result(cell: Cell, reached: MaxRate, tried: Sequence[_Tried]) -> CellResult:
    points = [_point(cell, each) for each in tried]
    repeats = [r for point in points for r in point.repeats]
    told = [point for point in points if point.loss_percent is not None]
    highest = told[0] if told else points[0]
    gaps = [gap for gap in map(_gap, points) if gap]
    named = judged_by(cell)
    short: list[Deviation] = []
    if reached.kind == "tester":
        short.append(_tester_limit(reached))
    if reached.most:
        short.append(_around(reached, reached.most))
    missing = (
        [] if reached.most or not cell.spec.rate_reference else [_not_around(reached)]
    )
    if len(points) > 1 and not ends_when_lossless(
        cell.spec_of(FrameLossSpec).load_percent
    ):
        short += _open_end(tried)
    if gaps:
        short.append(_gaps(gaps))
    return CellResult(
        **of_cell(cell, reached, short),
        quantity=f"frame loss at {highest.load_percent:g} % of {reached.words}, "
        f"{reached.rate_fps:,} fps per direction"
        f"{f', {named}' if named else ' (RFC 2544 26.3)'}",
        median=highest.loss_percent,
        repeats=highest.repeats,
        verdict="pass" if _stands(points) else "invalid",
        reasons=[*missing, *distinct(reason for r in repeats for reason in r.reasons)],
        points=points,
        load=load_record(cell, reached) if reached.most else None,
        spread=highest.spread,
        findings=loss_findings(points),
    )


def _stands(points: Sequence[LoadPoint]) -> bool:
    """Whether most loads were told, and but for what comes and goes all were."""
    spoilt = [r for point in points for r in point.repeats if r.verdict == "invalid"]
    told = sum(point.loss_percent is not None for point in points)
    return 2 * told > len(points) and all(comes_and_goes(r.reasons) for r in spoilt)


def _gap(point: LoadPoint) -> str | None:
    """The load, where not all of its repeats were told."""
    spoilt = [r for r in point.repeats if r.verdict == "invalid"]
    if not spoilt:
        return None
    trials = sum(r.trials for r in spoilt)
    repeats = len(point.repeats)
    share = f" in {len(spoilt)} of {repeats} repeats" if repeats > 1 else ""
    tried = "1 trial" if trials == 1 else f"{trials} trials"
    load = f"{point.load_percent:g} % ({point.load_fps:,} fps)"
    return f"{load}{share}, {tried}"


def _gaps(gaps: Sequence[str]) -> Deviation:
    actual = f"not reported at {'; '.join(gaps)}: none of them was valid"
    return Deviation(_RFC, "the loss at every load", actual, "SHOULD")


def _open_end(tried: Sequence[_Tried]) -> list[Deviation]:
    """A list of loads may end before the device loses nothing."""
    if _two_lossless(tried):
        return []
    ends = ", ".join(f"{each.load.percent:g} %" for each in tried[-2:])
    rule = "down to two successive loads without loss"
    actual = f"the lowest loads, {ends}, are not both without loss"
    return [Deviation(_RFC, rule, actual, "SHOULD")]


def _tester_limit(reached: MaxRate) -> Deviation:
    above = reached.above
    wanted = "the maximum rate of the media"
    if above:
        wanted = f"{above.words}, {above.rate_fps:,} fps per direction"
    actual = (
        f"100 % is {reached.rate_fps:,} fps, {MARGIN:.0%} of what the tester could "
        "offer (maximum offered load, RFC 2285 3.5.3)"
    )
    return Deviation(_RFC, f"100 % is {wanted}", actual, "SHOULD")


def _around(found: MaxRate, most: MaxRate) -> Deviation:
    rule = "100 % is the maximum rate of the media"
    actual = (
        f"100 % is {found.words}, {found.rate_fps:,} fps per direction; the most that "
        f"may be offered is {most.words}, {most.rate_fps:,} fps"
    )
    return Deviation(_RFC, rule, actual, "SHOULD")


def _not_around(reached: MaxRate) -> Reason:
    """The loads were to lie around a throughput that nobody knows."""
    return Reason(
        code="no_throughput",
        message=f"100 % is {reached.words}, {reached.rate_fps:,} fps, because "
        f"{reached.shortfall}",
    )


METHOD = Method("frame-loss", OnStreams(measure_frame_loss))
