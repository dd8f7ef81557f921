"""The card of one cell in the summary: one big figure and what belongs to it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dutperf.report.cells import FAILED, INVALID, CellView, CurvePoint
from dutperf.report.stream_measures import MeasureView
from dutperf.report.text import (
    AT_LEAST,
    NBSP,
    decimal,
    percent,
    plural,
    sentence,
    shown,
    whole,
)
from dutperf.results import GoalResult, highest_clean
from dutperf.results.damage_words import RECEIVED
from dutperf.tables import CONNECTIONS, DELAYS
from dutperf.tables.figures import derived

_FEW = 2


@dataclass(frozen=True)
class Headline:
    """``value`` is a number only if the result is valid."""

    value: str
    unit: str
    caption: str
    lines: tuple[str, ...] = ()


def headline(cell: CellView) -> Headline:
    """What a reader in a hurry must know of ``cell``."""
    if not cell.measured:
        return _without_number(cell)
    if cell.procedure == "frame-loss":
        return _frame_loss(cell)
    if cell.procedure in DELAYS:
        return _delay(cell)
    if cell.procedure in CONNECTIONS:
        return _connections(cell)
    if cell.derived:
        return _with_derived(cell)
    return _throughput(cell)


def _with_derived(cell: CellView) -> Headline:
    """What the RFC calculates of a result stands below it."""
    summed = f"{cell.statistic} of " if cell.several else ""
    each = f"per direction, {summed}{plural(len(cell.values), 'repeat')}{_limit(cell)}"
    told = [
        f"{sentence(name)}: {shown(derived(figure, unit=True))}"
        for name, figure in cell.derived.items()
    ]
    return Headline(cell.figure_text, cell.unit, each, (*told, *_remarks(cell)))


def _connections(cell: CellView) -> Headline:
    value = cell.figure_text
    if cell.procedure == "table-capacity":
        return _capacity(cell, value)
    if cell.procedure == "teardown-rate":
        return Headline(
            value, "connections/s", f"{whole(cell.connections)} connections deleted"
        )
    validated = " validated" if cell.validated else ", not validated"
    return Headline(
        value,
        "connections/s",
        f"{whole(cell.connections)} connections{validated}{_limit(cell)}",
        tuple(_remarks(cell)),
    )


def _wire(cell: CellView) -> str:
    """What it takes of the medium; behind a translator directions differ."""
    sign, each = cell.at_least, cell.wire
    equal = len(set(each.values())) == 1
    parts = [
        f"{sign}{decimal(mbps)}{NBSP}Mbit/s{'' if equal else f' {name}'}"
        for name, mbps in each.items()
    ]
    told = f"{parts[0]} on the wire per direction"
    if not equal:
        told = f"{' and '.join(parts)} on the wire"
    both = f", {sign}{decimal(sum(each.values()))} in sum" if len(each) > 1 else ""
    return told + both


def _limit(cell: CellView) -> str:
    """What a lower bound ends at."""
    return f" ({cell.limit})" if cell.limit else ""


def _capacity(cell: CellView, value: str) -> Headline:
    searches = cell.result.capacity if cell.result else []
    eviction = cell.result.eviction if cell.result else None
    lines = [sentence(search.words) for search in searches[-1:]]
    lines += [sentence(eviction.words)] if eviction else []
    held = f"held{_limit(cell)}"
    return Headline(value, "connections", held, (*lines, *_remarks(cell)))


def _without_number(cell: CellView) -> Headline:
    tried = f"{plural(len(cell.trials), 'trial')} stored"
    if cell.badge is INVALID:
        vouch = "the tester cannot vouch for a figure"
        return Headline("No result", "", vouch, tuple(_proven(cell)))
    if cell.badge is FAILED:
        none = "no load that was tried passed"
        return Headline("No result", "", none, tuple(_received(cell)))
    return Headline("Not finished", "", f"the run ended here, {tried}")


def _proven(cell: CellView) -> list[str]:
    """What passed before it went wrong; that is no result yet."""
    result = cell.result
    if result is None or not result.bound or result.median is None:
        return []
    return [f"{AT_LEAST}{whole(result.median)}{NBSP}{result.unit} did pass"]


def _throughput(cell: CellView) -> Headline:
    sign = cell.at_least
    lines = _received(cell)
    if cell.bidirectional:
        total = f"{sign}{whole(cell.sum_fps)}"
        lines.append(f"{total}{NBSP}fps, sum of both directions")
    if cell.wire:
        lines.append(_wire(cell))
    if cell.media and cell.media.share_percent is not None:
        nominal = ", nominal" if cell.media.nominal else ""
        lines.append(
            f"{sign}{percent(cell.media.share_percent)} of the theoretical maximum, "
            f"{whole(cell.media.rate_fps)}{NBSP}fps per direction "
            f"({whole(cell.media.link_speed_mbps)}{NBSP}Mbit/s{nominal})"
        )
    lines += [_goal(goal) for goal in cell.goals[1:]]
    if cell.settled:
        lines.append(sentence(cell.settled))
    if cell.doubt:
        middle = f"median, for what it is worth: {cell.figure_text}{NBSP}fps"
        return Headline(sentence(cell.doubt), "", middle, tuple(_remarks(cell)))
    each = f"per direction{_limit(cell)}"
    return Headline(cell.figure_text, "fps", each, (*lines, *_remarks(cell)))


def _received(cell: CellView) -> list[str]:
    """Another measure, where damaged frames are all that limits this one."""
    figure = cell.received_figure
    return [f"{figure}, {RECEIVED}"] if figure else []


def _goal(goal: GoalResult) -> str:
    irregular = "" if goal.regular else ", irregular"
    sign = AT_LEAST if goal.bound else ""
    return f"{sentence(goal.name)}: {sign}{whole(goal.lower_fps)}{NBSP}fps{irregular}"


def _frame_loss(cell: CellView) -> Headline:
    curve = cell.curve
    at = f"lost at {_load(curve[-1])}" if curve else "lost at the highest load"
    value, unit = percent(cell.median).split(NBSP)
    return Headline(value, unit, at, (*_clean_part(curve), *_remarks(cell)))


def _delay(cell: CellView) -> Headline:
    """The first quantity where it is worst, and all of them stream by stream."""
    streams = cell.measures
    foreground = [s for s in streams if s.stream == "foreground"]
    worst = max((s.measures[0] for s in foreground), key=_rank)
    value, _, unit = worst.result.partition(NBSP)
    where = "the larger of both directions" if len(foreground) > 1 else cell.ways
    several = len(streams) > len(foreground)
    return Headline(
        value,
        unit,
        f"{worst.name}, {where}, at {whole(cell.load_fps)}{NBSP}fps{_source(cell)}",
        (
            *(
                f"{stream.named(several)}: "
                + ", ".join(f"{view.name} {view.result}" for view in stream.measures)
                for stream in streams
            ),
            *_remarks(cell),
        ),
    )


def _remarks(cell: CellView) -> list[str]:
    """What speaks against one figure; the panel of the cell has it in full."""
    return [sentence(f.message) for f in cell.findings[:_FEW]] + (
        [f"{plural(len(cell.findings) - _FEW, 'more finding')} below"]
        if len(cell.findings) > _FEW
        else []
    )


def _source(cell: CellView) -> str:
    """Where a load is from that nobody gave."""
    load = cell.result.load if cell.result else None
    return f", {load.words}" if load and load.cell else ""


def _rank(view: MeasureView) -> float:
    """Lost is more than any number, undefined less."""
    result = view.measure.result
    if result.value is not None:
        return result.value
    return math.inf if result.absent == "lost" else -math.inf


def _clean_part(curve: list[CurvePoint]) -> tuple[str, ...]:
    """Nothing is said where the lowest load is not valid: it might be clean."""
    clean = highest_clean(curve)
    if clean:
        return (f"no loss up to {_load(clean)}",)
    if curve and all(point.loss_percent for point in curve):
        return ("loss at every load tried",)
    if curve and curve[0].loss_percent:
        return (f"loss even at {_load(curve[0])}, the lowest tried",)
    return ()


def _load(point: CurvePoint) -> str:
    return (
        f"{percent(point.load_percent)} {point.of} ({whole(point.load_fps)}{NBSP}fps)"
    )
