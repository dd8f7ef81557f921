"""A run in a few sentences: what was found, how sure it is, and what limits it.

What a reader must know who reads nothing else: in the terminal below the tables, in the
report above all. Why something has no result stands first and is never left out; the
rest is chosen by importance over all cells. Everything else is in the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import chain
from operator import attrgetter
from typing import Any

from dutperf.model.procedure_keys import TimedStreamKeys
from dutperf.protocol.result_messages import Reason
from dutperf.results.details import Measure
from dutperf.results.figures import cell_figure
from dutperf.results.model import CellResult, NotMeasured
from dutperf.results.rate_results import (
    Bound,
    BoundCause,
    FindingKind,
    LoadPoint,
    Spread,
)
from dutperf.results.units import about, duration, in_unit
from dutperf.results.words import (
    beside_sentence,
    damage_sentence,
    drift_words,
    highest_clean,
    management_sentence,
    named,
    settled_words,
    shortened,
)

MOST = 5
"""Sentences at the end of a run."""
_FEW = 3
_WITH_INTERVAL = 6
_DELAY_DIGITS = 4
"""As fine as delays are recorded."""
_TRIAL_DURATION = "RFC 2544 24"


class _Rank(IntEnum):
    """What is left out first has the highest."""

    PROBLEM = 0
    DOUBT = 1
    BOUND = 2
    DEVIATIONS = 3
    FOUND = 4
    REMARK = 5
    SURE = 6


_PLACES = (
    _Rank.PROBLEM,
    _Rank.FOUND,
    _Rank.DOUBT,
    _Rank.BOUND,
    _Rank.REMARK,
    _Rank.SURE,
    _Rank.DEVIATIONS,
)
"""Their order for a reader."""

DOUBTS: dict[FindingKind, str] = {
    "contradiction": "contradicted by another result of this run, or by the device",
    "modes": "repeats lie in groups with nothing between them: no single figure",
    "shift": "the device changed during the run: no single figure",
    "drift": "figures rise or fall from repeat to repeat: no stable figure",
    "unstable": "repeats are too far apart to have one value",
    "outliers": "a few repeats are far from all others",
    "tester": "much of these delays may be the tester's own: upper bounds",
    "altered": "the device altered TTL, DSCP or payload of frames",
    "unanswered": "the device did not answer all SNMP queries",
    "routing_fell": "the device lost its routing neighbour in trials",
    "misdirected": "received frames addressed to other ports or hosts",
    "proxied": "the device answers SYNs itself (SYN proxy)",
    "unusual": "unusual beside another result of this run",
    "near_limit": "load above 90 % of the tester's own limit",
}
_OF_SEVERAL: tuple[FindingKind, ...] = ("contradiction", "unusual")
"""What one result says of another: the same words at each of them."""
_BOUNDS: dict[BoundCause, str] = {
    "tester": "the tester could not offer more",
    "disturbed": "every faster trial was disturbed",
    "held_back": "something behind a port stopped the tester",
    "set": "the maximum rate that was set was reached",
    "nominal": "a virtual link's nominal rate was reached",
    "short_tests": "tests were too short to prove more",
    "kept": "no connection was forgotten (--hold)",
    None: "more was not proven",
}


@dataclass(frozen=True)
class Words:
    """How the sentences are worded where they stand.

    ``titles`` of cells stand for their ids; without ``figures`` it is not said what was
    found, because that stands beside it. ``lister`` is what lists the deviations, where
    they are not ``where``.
    """

    at_least: str = ">= "
    where: str = "in the report"
    titles: Mapping[str, str] = field(default_factory=dict)
    figures: bool = True
    lister: str = ""


@dataclass(frozen=True)
class _Sentence:
    rank: _Rank
    text: str


def closing(
    cells: Sequence[CellResult],
    *,
    not_measured: Sequence[NotMeasured] = (),
    complete: bool = True,
    words: Words = Words(),
) -> list[str]:
    """At most ``MOST`` sentences.

    Args:
        cells: all that have a result, valid or not.
        not_measured: those that have none because of their testbed.
        complete: whether the run came to its end.
        words: for where they are shown.
    """
    cells = [
        cell.model_copy(update={"id": words.titles.get(cell.id, cell.id)})
        for cell in cells
    ]
    problems = [
        *_invalid(cells),
        *_absent(not_measured),
        *_incomplete(complete, not_measured),
        *_failed(cells),
    ]
    if len(problems) > MOST:
        more = len(problems) - MOST + 1
        return [*problems[: MOST - 1], f"{more} more such reasons are {words.where}"]
    measured = [cell for cell in cells if cell.verdict == "pass"]
    found = [
        *_ranked(_Rank.PROBLEM, problems),
        *_ranked(_Rank.DOUBT, _doubts(measured)),
        *_ranked(_Rank.DOUBT, _damaged(cells, words)),
        *_ranked(_Rank.BOUND, _bounds(measured)),
        *_ranked(_Rank.DEVIATIONS, deviations_words(cells, words)),
        *_ranked(_Rank.FOUND, _found(measured, words) if words.figures else []),
        *_ranked(_Rank.REMARK, _remarks(measured)),
        *_ranked(_Rank.REMARK, _beside(measured)),
        *_ranked(_Rank.SURE, _sureness(measured)),
    ]
    chosen = sorted(found, key=attrgetter("rank"))[:MOST]
    chosen.sort(key=lambda sentence: _PLACES.index(sentence.rank))
    return [sentence.text for sentence in chosen]


def _ranked(rank: _Rank, texts: Iterable[str]) -> list[_Sentence]:
    return [_Sentence(rank, text) for text in texts]


# --- what has no result


def _invalid(cells: Sequence[CellResult]) -> Iterator[str]:
    """Cells that are invalid for the same reasons are told together."""
    for alike in _grouped([c for c in cells if c.verdict == "invalid"], _codes):
        yield f"{_ids(alike)}: invalid: {_why(alike)}"


def _failed(cells: Sequence[CellResult]) -> Iterator[str]:
    for alike in _grouped([c for c in cells if c.verdict == "fail"], _codes):
        yield f"{_ids(alike)}: failed: {_why(alike)}"


def _codes(cell: CellResult) -> tuple[str, ...]:
    return tuple(reason.code for reason in cell.reasons)


def _why(alike: Sequence[CellResult]) -> str:
    """The reasons of the first, and that others have other figures in them."""
    first = alike[0].reasons
    if not first:
        return "no reason is stored"
    told = "; ".join(reason.message for reason in first)
    hints = list(dict.fromkeys(reason.hint for reason in first if reason.hint))
    example = "for example, " if any(c.reasons != first for c in alike) else ""
    return example + told + (f" ({'; '.join(hints)})" if hints else "")


def _absent(cells: Sequence[NotMeasured]) -> Iterator[str]:
    """Each testbed and reason once, with the cells that it concerns."""
    for alike in _grouped(cells, lambda cell: (cell.place, cell.message)):
        first = alike[0]
        remedy = f" ({first.hint})" if first.hint else ""
        ids = named([cell.id for cell in alike])
        yield f"not measured at {first.place}: {ids}: {first.message}{remedy}"


def _incomplete(complete: bool, not_measured: Sequence[NotMeasured]) -> list[str]:
    """Where a testbed was not measured, that says it."""
    if complete or not_measured:
        return []
    return ["incomplete: the run ended before its last cell"]


# --- what limits it


def _doubts(cells: Sequence[CellResult]) -> Iterator[str]:
    """Of one cell in its own words, of several in common ones; outliers last."""
    for kind, words in DOUBTS.items():
        concerned = [c for c in cells if kind in {f.kind for f in c.findings}]
        if concerned and kind in _OF_SEVERAL:
            yield _of_several(kind, concerned)
        elif len(concerned) == 1:
            first = next(f for f in concerned[0].findings if f.kind == kind)
            yield f"{concerned[0].id}: {first.message}"
        elif concerned:
            yield f"{_ids(concerned)}: {words}"


def _of_several(kind: FindingKind, cells: Sequence[CellResult]) -> str:
    """The first in full, with both figures."""
    every = {f.message: None for c in cells for f in c.findings if f.kind == kind}
    first, *others = every
    more = f"; {len(others)} more such findings" if others else ""
    return f"{kind}: {first}{more}"


def _damaged(cells: Sequence[CellResult], words: Words) -> Iterator[str]:
    """The slowest in full, the others by name."""
    limited = [cell for cell in cells if cell.damage]
    if limited:
        first = min(limited, key=lambda cell: cell.median or 0.0)
        yield f"{first.id}: {damage_sentence(first, words.at_least)}"
    others = [cell for cell in limited if cell is not first]
    if others:
        yield f"{_ids(others)}: damaged frames alone limited them, too"


def _bounds(cells: Sequence[CellResult]) -> Iterator[str]:
    bounded = [cell for cell in cells if cell.bound]
    for alike in _grouped(bounded, attrgetter("bound_cause")):
        why = _BOUNDS[alike[0].bound_cause]
        one = len(alike) == 1
        is_one = why.replace("they passed", "it passed") if one else why
        yield f"{_ids(alike)}: {'a lower bound' if one else 'lower bounds'}: {is_one}"
    exact = [c for c in cells if not c.bound]
    partly = [c for c in exact if any(r.bound for r in c.repeats)]
    if partly:
        yield f"{_ids(partly)}: some repeats are lower bounds, the median is not"
    fast = [c for c in exact if c not in partly and "max_rate" in _codes(c)]
    if fast:
        yield f"{_ids(fast)}: as fast as the media: nothing faster can be tested"


def _remarks(cells: Sequence[CellResult]) -> Iterator[str]:
    """Of results that count nevertheless; lower bounds and line rates are told."""
    told = {"max_rate", "sender_behind", "held_back", "unstable"}
    pairs = [(c, r) for c in cells for r in c.reasons if r.code not in told]
    for alike in _grouped(pairs, lambda pair: pair[1].code):
        concerned = list({id(cell): cell for cell, _ in alike}.values())
        example = "for example, " if len(alike) > 1 else ""
        yield f"{_ids(concerned)}: {example}{_first(alike).message}"


def _beside(cells: Sequence[CellResult]) -> Iterator[str]:
    """How many came of those that need not, of cells with the same ones; queries."""
    told = [cell for cell in cells if cell.beside]
    for alike in _grouped(told, lambda cell: str(cell.cell.traffic.beside)):
        yield f"{_ids(alike)}: {beside_sentence(*alike)}"
    asked = [cell for cell in cells if cell.management]
    if sentence := management_sentence(*asked):
        yield f"{_ids(asked)}: {sentence}"


def _first(alike: Sequence[tuple[CellResult, Reason]]) -> Reason:
    return alike[0][1]


def deviations_words(cells: Sequence[CellResult], words: Words) -> Iterator[str]:
    """How many, and whether one may speak of the RFCs' results at all."""
    points = {point for cell in cells for point in cell.deviations}
    if not points:
        return
    number = f"{len(points)} deviation{'' if len(points) == 1 else 's'}"
    count = (
        f"{words.lister} lists {number}" if words.lister else f"{number} {words.where}"
    )
    short = short_trials_s(cells)
    beside = "; " if words.lister else ", "
    statuses = {c.conformance.status for c in cells if c.conformance and not c.bound}
    if short:
        spans = " to ".join(dict.fromkeys((f"{short[0]:g}", f"{short[-1]:g}")))
        once = ", 1 repeat" if {len(cell.repeats) for cell in cells} == {1} else ""
        told = f"short trials ({spans} s){once}"
        yield f"{told}: exploratory, not RFC results{beside}{count}"
    elif statuses & {"none", "other_measure"}:
        yield f"not RFC results: {count}"
    elif "conditional" in statuses:
        yield f"conditionally compliant with the RFCs: {count}"
    else:
        yield count


def short_trials_s(cells: Sequence[CellResult]) -> list[float]:
    """Durations of trials that are shorter than the RFC's, the shortest first."""
    return sorted(
        cell.cell.spec.trial_duration_s
        for cell in cells
        if any(point.rfc == _TRIAL_DURATION for point in cell.deviations)
        and isinstance(cell.cell.spec, TimedStreamKeys)
    )


# --- what was found


def _found(cells: Sequence[CellResult], words: Words) -> Iterator[str]:
    """A sentence for each procedure; of cells without one figure nothing is said."""
    certain = [cell for cell in cells if not cell.doubts()]
    for alike in _grouped(certain, attrgetter("procedure")):
        if len(alike) <= _FEW:
            yield _told([(cell.id, _value(cell, words)) for cell in alike])
        else:
            yield from _range(alike, words)


def _told(values: Sequence[tuple[str, str]]) -> str:
    """Each value with the cells that have it."""
    short = dict(
        zip([i for i, _ in values], shortened([i for i, _ in values]), strict=True)
    )
    return "; ".join(
        f"{' and '.join(short[i] for i, _ in alike)}: {alike[0][1]}"
        for alike in _grouped(values, lambda value: value[1])
    )


def _range(cells: Sequence[CellResult], words: Words) -> Iterator[str]:
    known = sorted(
        (cell for cell in cells if cell.median is not None), key=attrgetter("median")
    )
    if not known:
        return
    low, high = known[0], known[-1]
    yield (
        f"{len(cells)} test cases of {low.procedure}: from {_figure(low, words)} "
        f"({low.id}) to {_figure(high, words)} ({high.id})"
    )


def _value(cell: CellResult, words: Words) -> str:
    if cell.capacity:
        eviction = f"; {cell.eviction.words}" if cell.eviction else ""
        return f"{cell.capacity[-1].words}{eviction}"
    if cell.points:
        return _curve(cell)
    if cell.measures:
        return _delays(cell.measures, cell)
    if cell.recovery:
        after = f"after {cell.recovery.overload_fps:,} fps per direction"
        known = duration(cell.recovery.within_ns, _DELAY_DIGITS)
        beside = f", known to {known}" if cell.median else ""
        return f"{_figure(cell, words)} {after}{beside}"
    if cell.soak and cell.load:
        lost = f"{_figure(cell, words)} lost at {cell.load.rate_fps:,} fps"
        return f"{lost} per direction; {drift_words(cell.soak)}"
    if cell.outage and cell.load:
        return f"{_figure(cell, words)} at {cell.load.rate_fps:,} fps per direction"
    if cell.power and cell.power.words:
        return f"{_figure(cell, words)} at full load, {cell.power.words}"
    if cell.conformance and cell.conformance.status == "other_measure":
        return f"{_figure(cell, words)}: {cell.quantity}"
    each = " per direction" if cell.unit == "fps" else ""
    media = cell.media
    share = ""
    if media and media.share_percent is not None and not media.nominal:
        sign = _sign(cell.bound, words)
        share = f", {sign}{about(media.share_percent, 3)} % of what the media carry"
    return f"{_figure(cell, words)}{each}{share}"


def _figure(cell: CellResult, words: Words) -> str:
    found = cell_figure(cell)
    if found.value is None:
        return "infinite"
    if found.limit == "below":
        return f"less than {duration(found.value, _DELAY_DIGITS)}"
    return f"{_sign(cell.bound, words)}{in_unit(found.value, cell.unit)}"


def _sign(bound: Bound, words: Words) -> str:
    return words.at_least if bound else ""


def _curve(cell: CellResult) -> str:
    """Up to where nothing is lost, and how much is at the highest load."""
    rising = sorted(cell.points, key=attrgetter("load_fps"))
    top, clean = rising[-1], highest_clean(rising)
    if clean is top:
        return f"no loss up to {top.load_fps:,} fps, the highest load"
    least = _even_at(rising) if clean is None else f"none up to {clean.load_fps:,} fps"
    lost = "?" if top.loss_percent is None else about(top.loss_percent, 3)
    if top.loss_percent == 0:
        lost, least = "0", f"but frames in {_lossy(top)}"
    return f"{lost} % lost at {top.load_fps:,} fps, {least}"


def _even_at(rising: Sequence[LoadPoint]) -> str:
    """Of a curve whose lowest load is not clean."""
    lowest = rising[0]
    if all(point.loss_percent for point in rising):
        return "loss at every load"
    if lowest.loss_percent is None:
        return f"not known at {lowest.load_fps:,} fps, the lowest"
    which = "" if lowest.loss_percent else f" in {_lossy(lowest)}"
    return f"some{which} even at {lowest.load_fps:,} fps, the lowest"


def _lossy(point: LoadPoint) -> str:
    return f"{point.lossy_repeats} of {len(point.repeats)} repeats"


def _delays(measures: Sequence[Measure], cell: CellResult) -> str:
    """Each quantity where it is worst, of the foreground."""
    own = [m for m in measures if m.stream == "foreground"]
    told = [f"{alike[0].name} {_worst(alike)}" for alike in _grouped(own, _name)]
    at = f" at {cell.load.rate_fps:,} fps" if cell.load else ""
    return f"{', '.join(told)}{at}"


def _name(measure: Measure) -> str:
    return measure.name


def _worst(measures: Sequence[Measure]) -> str:
    known = [m.result for m in measures if m.result.value is not None]
    if any(measure.result.absent == "lost" for measure in measures):
        return "infinite: too much was lost"
    if not known:
        return "not known"
    largest = max(known, key=lambda figure: figure.value or 0)
    told = duration(largest.value or 0, _DELAY_DIGITS)
    return f"{'at most ' if largest.at_most else ''}{told}"


# --- how sure it is


def _sureness(cells: Sequence[CellResult]) -> Iterator[str]:
    counts = sorted({len(cell.repeats) for cell in cells if cell.repeats})
    if not counts:
        return
    unsettled = [
        c for c in cells if c.settled and not c.settled.reached and not c.bound
    ]
    if len(unsettled) == 1:
        yield f"{unsettled[0].id}: {settled_words(unsettled[0])}"
    elif unsettled:
        yield f"{_ids(unsettled)}: not settled after {counts[-1]} repeats"
    elif counts[-1] == 1:
        each = " each" if len(cells) > 1 else ""
        yield f"one repeat{each}: another run may differ"
    else:
        yield _intervals(cells, counts)


def _intervals(cells: Sequence[CellResult], counts: Sequence[int]) -> str:
    span = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    if counts[-1] < _WITH_INTERVAL:
        return f"{span} repeats: too few for an interval of the median"
    widths = [
        width
        for spread in chain.from_iterable(map(_spreads, cells))
        if (width := _width_percent(spread)) is not None
    ]
    if not widths:
        return f"{span} repeats; {_without_width(cells)}"
    widest = "" if len(widths) == 1 else "widest "
    most = f"{about(max(widths))} % wide"
    return f"{span} repeats: the {widest}interval of a median is {most}"


def _without_width(cells: Sequence[CellResult]) -> str:
    """What there is of an interval that is not so many percent wide."""
    every = [*chain.from_iterable(map(_spreads, cells))]
    if any("interval_upper" in spread.lower_bounds for spread in every):
        return "the interval of the median has no upper end"
    if any(spread.interval_lower is not None for spread in every):
        return "the interval of the median is around 0"
    return "no interval of the median is known"


def _spreads(cell: CellResult) -> Iterator[Spread]:
    every: list[Spread | None] = [cell.spread]
    every += [measure.spread for measure in cell.measures]
    yield from filter(None, every)


def _width_percent(spread: Spread) -> float | None:
    low, high, middle = spread.interval_lower, spread.interval_upper, spread.median
    if low is None or high is None or not middle:
        return None
    if "interval_upper" in spread.lower_bounds:
        return None
    return (high - low) * 100 / abs(middle)


# --- tools


def _grouped(items: Iterable[Any], key: Callable[[Any], Any]) -> list[list[Any]]:
    """Items with the same key together, in the order of their first appearance."""
    found: dict[Any, list[Any]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return list(found.values())


def _ids(cells: Sequence[CellResult]) -> str:
    return named([cell.id for cell in cells])
