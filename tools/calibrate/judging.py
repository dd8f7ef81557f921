"""A point of the grid judged: what was found against what the device says.

Nothing is left out: a repeat that was not measured, one of which the device has no
account, and a trial whose counts are not the device's are MISSED as a wrong figure is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from dutperf import stats
from dutperf.catalogue import ProcedureName
from dutperf.results import CellResult
from tools.calibrate.grid import FLOW_CONTROL_S, RING_FRAMES, Pairing
from tools.calibrate.model import UNITS, Figure, FlowControl, Pair, Point, Row
from tools.calibrate.truth import (
    TRUTHS,
    Witnessed,
    contradictions,
    latency_error_ns,
    served_per_s,
    variation_error_ns,
)

PROCEDURES: Mapping[Figure, ProcedureName] = {
    "throughput": "throughput",
    "TL": "latency",
    "PDV": "pdv",
    "lost": "frame-loss",
    "connection rate": "connection-rate",
    "capacity": "table-capacity",
    "burst": "back-to-back",
}
"""Whose result each figure is."""
_NOT_TRIALS = {"first_frames", "probe", "damage", "cache"}
_ONE_STEP = 1.0
"""Of a search among whole frames."""
_FLOW_CONTROL_SHARE = 0.01
"""By how much dutperf's figure may be above what the device and its ring take."""


class Target(NamedTuple):
    """How far a figure may be off: a share of the account, or its unit."""

    words: str
    share: float = 0.0
    least: float = 0.0


TARGETS: Mapping[Figure, Target] = {
    "throughput": Target("1 %", share=0.01),
    "TL": Target("stated error"),
    "PDV": Target("stated error"),
    "lost": Target("exact"),
    "connection rate": Target("2 %", share=0.02),
    "capacity": Target("exact"),
    "burst": Target("1 % or 1 frame", share=0.01, least=_ONE_STEP),
}


def judged(
    point: Point,
    figure: Figure,
    cell: CellResult,
    trials: Sequence[Witnessed],
    run: str,
    handover_ns: int = 0,
) -> Row:
    """The row of ``figure``: ``cell`` is what was found, ``trials`` all of its run."""
    own = [each for each in trials if each.record.cell == cell.id]
    pairs = list(_pairs(point, figure, cell, own, handover_ns))
    disagreeing = [text for each in own for text in contradictions(each)]
    reasons = list(_reasons(cell, pairs, own, disagreeing))
    errors = [pair.error for pair in pairs if pair.error is not None]
    worst = max(errors, key=abs, default=None)
    found = _median([p.found for p in pairs])
    account = _median([p.account for p in pairs])
    error = _median(errors)
    return Row(
        **_named(point, figure, run),
        pairs=pairs,
        found=found,
        bound=cell.bound,
        account=account,
        error=error,
        worst=worst,
        error_percent=_percent(error, account),
        worst_percent=_percent(worst, account),
        spread_percent=_spread(pairs),
        trials=sum(each.account is not None for each in own),
        contradictions=disagreeing,
        verdict=_verdict(reasons, pairs),
        reasons=reasons,
    )


def unmeasured(point: Point, figure: Figure, reason: str, run: str) -> Row:
    """The row of a figure for which there is no result at all: it is no less MISSED."""
    return Row(**_named(point, figure, run), verdict="MISSED", reasons=[reason])


def _named(point: Point, figure: Figure, run: str) -> dict[str, Any]:
    """What a row is of, whatever was found."""
    return {
        "point": point.name,
        "quantity": point.quantity,
        "path": point.path,
        "figure": figure,
        "unit": UNITS[figure],
        "setting": point.words,
        "expected": point.expected.get(figure),
        "target": TARGETS[figure].words,
        "run": run,
    }


def _pairs(
    point: Point,
    figure: Figure,
    cell: CellResult,
    trials: Sequence[Witnessed],
    handover_ns: int,
) -> Iterator[Pair]:
    for number, found in enumerate(_found(figure, cell, trials), 1):
        own = _of_repeat(trials, number)
        account = TRUTHS[figure](point, own)
        allowed = _allowed(figure, account, own, handover_ns)
        yield Pair(found=found, account=account, allowed=allowed)


def _of_repeat(trials: Sequence[Witnessed], number: int) -> list[Witnessed]:
    return [
        each
        for each in trials
        if each.record.repeat == number and each.record.role not in _NOT_TRIALS
    ]


def _found(
    figure: Figure, cell: CellResult, trials: Sequence[Witnessed]
) -> list[float | None]:
    """What each repeat gave, as the result has it; a loss in frames, by its trial."""
    if figure in ("TL", "PDV"):
        measures = [m for m in cell.measures if m.name == figure]
        return [each.value for m in measures[:1] for each in m.repeats]
    if figure == "lost":
        (point,) = cell.points
        return [
            None if repeat.value is None else _lost(_of_repeat(trials, number))
            for number, repeat in enumerate(point.repeats, 1)
        ]
    return [repeat.value for repeat in cell.repeats]


def _lost(trials: Sequence[Witnessed]) -> float | None:
    if not trials:
        return None
    directions = trials[-1].record.result.directions
    return sum(stream.lost for d in directions for stream in d.streams)


def _allowed(
    figure: Figure,
    account: float | None,
    trials: Sequence[Witnessed],
    handover_ns: int,
) -> tuple[float, float]:
    """Least and largest error; of a delay what the tester and the device state."""
    if figure == "TL":
        return latency_error_ns(trials, handover_ns)
    if figure == "PDV":
        return variation_error_ns(trials, handover_ns)
    target = TARGETS[figure]
    most = max(target.share * abs(account or 0), target.least)
    return -most, most


def _reasons(
    cell: CellResult,
    pairs: Sequence[Pair],
    trials: Sequence[Witnessed],
    disagreeing: Sequence[str],
) -> Iterator[str]:
    if not pairs:
        yield "nothing was measured"
    for number, pair in enumerate(pairs, 1):
        if not pair.within:
            yield f"repeat {number}: {_off(pair)}"
    if cell.bound and not all(pair.within for pair in pairs):
        yield f"the result is only a lower bound ({cell.bound_cause})"
    if disagreeing:
        yield f"{len(disagreeing)} counts are not the device's: {disagreeing[0]}"
    failed = sum(_failures(each) for each in trials)
    if failed:
        yield f"the device lost {failed:,} frames that it was not told to lose"
    if cell.verdict != "pass":
        yield "; ".join(dict.fromkeys(r.message for r in cell.reasons))


def _off(pair: Pair) -> str:
    if pair.found is None:
        return "not measured"
    if pair.error is None:
        return "the device has no account of it"
    return f"off by {pair.error:+,.1f}, allowed {_range(pair.allowed)}"


def _range(allowed: tuple[float, float]) -> str:
    return f"{allowed[0]:+,.1f} to {allowed[1]:+,.1f}"


def _failures(each: Witnessed) -> int:
    if each.account is None:
        return 0
    directions = each.account.directions.values()
    return sum(c.failures for d in directions for c in d.classes)


def _verdict(
    reasons: Sequence[str], pairs: Sequence[Pair]
) -> Literal["within", "coarse", "MISSED"]:
    """Coarse: nothing would be within as well, as more may be wrong than there is."""
    if reasons:
        return "MISSED"
    return "coarse" if any(pair.is_coarse for pair in pairs) else "within"


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return stats.median(known) if known else None


def _percent(error: float | None, account: float | None) -> float | None:
    return 100 * error / account if error is not None and account else None


def _spread(pairs: Sequence[Pair]) -> float | None:
    found = [pair.found for pair in pairs if pair.found is not None]
    middle = stats.median(found) if found else 0
    return 100 * (max(found) - min(found)) / middle if middle else None


def compared(
    pairing: Pairing,
    dropping: Row,
    without: Sequence[Witnessed],
    cell: CellResult,
    waiting: Sequence[Witnessed],
) -> FlowControl:
    """What the search found where the tester had to wait, beside where it had not."""
    service = pairing.dropping.behaviour["forward"]["service"]
    told = [each.account for each in without if each.account]
    served = served_per_s(told, "forward", pairing.dropping.queue_frames)
    ring = RING_FRAMES[pairing.dropping.path] / FLOW_CONTROL_S
    most = (dropping.account or service["rate_fps"]) + ring
    trials = [each for each in waiting if each.record.role == "trial"]
    classic = _classic(trials)
    reasons = list(dropping.reasons)
    if served is None:
        reasons.append("the device has no account of how fast it was")
    if cell.median is not None and cell.median > most * (1 + _FLOW_CONTROL_SHARE):
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
    lossless = [each for each in trials if not _lost([each])]
    return max(lossless, key=lambda each: each.record.load_fps, default=None)


def _offered_fps(each: Witnessed) -> float:
    rates = [d.offered_rate_fps for d in each.record.result.directions]
    return round(stats.median(rates), 1)


def _is_held_back(each: Witnessed) -> bool:
    return any(r.code == "held_back" for r in each.record.result.verdict.reasons)
