"""The card of one cell in the summary: one big figure and what belongs to it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dutperf.charts.cells import (
    FAILED,
    INVALID,
    MEASURED,
    CellView,
)
from dutperf.charts.text import (
    AT_LEAST,
    INFINITE,
    NBSP,
    decimal,
    delay_ns,
    percent,
    plural,
    sentence,
    shown,
    whole,
)
from dutperf.procedures.measurements import METHODS
from dutperf.results import (
    GoalResult,
    LoadPoint,
    Measure,
    Spread,
    SpreadFigure,
    highest_clean,
    limit_words,
)
from dutperf.results.closing_words import DOUBTS
from dutperf.results.details import Soak
from dutperf.results.rate_results import Finding
from dutperf.results.words import RECEIVED, drift_words
from dutperf.tables.table_model import delay, derived

_SURE_PERCENT = 95
_SEVERAL = 2
_NAMES = {
    "TL": "typical latency (TL)",
    "WCL": "worst-case latency (WCL)",
    "PDV": "packet delay variation (PDV)",
}
"""What the RFC's letters stand for, where one meets them first."""


@dataclass(frozen=True)
class Headline:
    """One figure in the reader's words.

    Attributes:
        value: a number where ``unit`` is not empty, otherwise why there is none.
        caption: what the figure says of the device, in a sentence.
        interval: within which it is known.
        limit: what a lower bound ended at; empty where it is none.
        lines: what else belongs to it, for those who ask.
    """

    value: str
    unit: str
    caption: str
    interval: str = ""
    limit: str = ""
    lines: tuple[str, ...] = ()


def headline(cell: CellView) -> Headline:
    """What a reader in a hurry must know of ``cell``."""
    if not cell.measured:
        return _without_result(cell)
    if cell.doubt:
        return _doubtful(cell)
    if cell.family == "load sweep":
        return _frame_loss(cell)
    if cell.family == "fixed load":
        return _delay(cell)
    if cell.family == "load over time":
        return _time(cell)
    return _rate(cell)


def _rate(cell: CellView) -> Headline:
    """A rate, a burst, a number of connections, or how long one is kept."""
    value, unit = cell.figure_text, str(cell.unit)
    if unit in ("ns", "percent"):
        value, _, unit = value.rpartition(NBSP)
    return Headline(
        value,
        unit,
        _meaning(cell),
        interval_words(cell),
        cell.limit,
        tuple(_more(cell)),
    )


def _doubtful(cell: CellView) -> Headline:
    """No figure for all repeats: why, and from where to where they lie."""
    why = sentence(cell.doubt)
    if cell.family == "fixed load":
        worst, where = _worst(cell)
        told = plural(worst.count, "repeat")
        if worst.spread:
            told += f": {_ends(worst.spread, 'minimum', 'maximum')}"
        return Headline(why, "", f"{where}.", told)
    repeats = plural(len(cell.values), "repeat")
    return Headline(why, "", "", f"{sentence(repeats)}: {cell.range_words}")


def _meaning(cell: CellView) -> str:
    """What the figure says of the device, and how far that goes."""
    known = METHODS[cell.procedure].meaning if cell.procedure else None
    said = known(cell) if known else sentence(cell.name)
    if cell.beside:
        said += f", with {cell.beside} in the load"
    if cell.at_least:
        return f"{said}. A lower bound: the device may do more."
    return f"{said}."


def interval_words(cell: CellView) -> str:
    """Within which the median is known; of a single search its bounds."""
    spread, values = cell.spread, cell.values
    if spread and spread.interval_lower is not None:
        low, high = cell.of_spread("interval_lower"), cell.of_spread("interval_upper")
        sure = f"{spread.interval_percent or _SURE_PERCENT:.3g}{NBSP}%"
        return (
            f"{sentence(cell.statistic)} of {plural(len(values), 'repeat')}, "
            f"{sure} interval {shown(low)} to {shown(high)}"
        )
    if len(values) > 1:
        low, high = cell.of_spread("minimum"), cell.of_spread("maximum")
        ends = f", {shown(low)} to {shown(high)}" if shown(low) != shown(high) else ""
        same = "" if ends else ", all the same"
        return f"{sentence(cell.statistic)} of {len(values)} repeats{ends}{same}"
    return f"One repeat{_bounds(cell)}"


def _bounds(cell: CellView) -> str:
    """What the only search passed and failed at, if it found both."""
    found = cell.bounds
    failed = found and any(
        step.trial.result.verdict.kind == "fail" and step.tried == found.upper
        for step in found.steps
    )
    if found is None or not failed or cell.at_least or cell.settled:
        return ""
    return f": passed at {whole(found.lower)}, failed at {whole(found.upper)}"


def _more(cell: CellView) -> Iterator[str]:
    """What the RFC calculates of it, its share of the medium, other measures."""
    if cell.result and cell.result.capacity:
        yield sentence(cell.result.capacity[-1].words)
        if cell.result.eviction:
            yield sentence(cell.result.eviction.words)
    if cell.result and cell.result.power and cell.result.power.words:
        yield cell.result.power.words
    for name, figure in cell.derived.items():
        yield f"{sentence(name)}: {shown(derived(figure, unit=True))}"
    if cell.family == "rate search":
        yield from _throughput_lines(cell)


def _throughput_lines(cell: CellView) -> Iterator[str]:
    sign = cell.at_least
    if cell.received_figure:
        yield f"{cell.received_figure}, {RECEIVED}"
    if cell.bidirectional:
        yield f"{sign}{whole(cell.sum_fps)}{NBSP}fps, sum of both directions"
    if cell.wire:
        yield _wire(cell)
    if cell.media and cell.media.share_percent is not None:
        nominal = ", nominal" if cell.media.nominal else ""
        yield (
            f"{sign}{percent(cell.media.share_percent)} of the theoretical maximum, "
            f"{whole(cell.media.rate_fps)}{NBSP}fps per direction "
            f"({cell.media.of_ports}{whole(cell.media.link_speed_mbps)}{NBSP}Mbit/s"
            f"{nominal})"
        )
    yield from (_goal(goal) for goal in cell.goals[1:])
    if cell.settled:
        yield sentence(cell.settled)


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


def _goal(goal: GoalResult) -> str:
    irregular = "" if goal.regular else ", irregular"
    sign = AT_LEAST if goal.bound else ""
    return f"{sentence(goal.name)}: {sign}{whole(goal.lower_fps)}{NBSP}fps{irregular}"


def _without_result(cell: CellView) -> Headline:
    """What did pass is a bound also where the tester cannot vouch for more."""
    result = cell.result
    if cell.badge is INVALID and result and result.bound and result.median is not None:
        return Headline(
            f"{AT_LEAST}{whole(result.median)}",
            result.unit,
            "So much did pass; the tester cannot vouch for more.",
            limit=limit_words(result.bound_cause),
        )
    if cell.badge is INVALID:
        return Headline("No result", "", "The tester cannot vouch for a figure.")
    if cell.badge is FAILED:
        received = cell.received_figure
        lines = (f"{received}, {RECEIVED}",) if received else ()
        return Headline("No result", "", "No load that was tried passed.", lines=lines)
    tried = f"{plural(len(cell.trials), 'trial')} stored"
    return Headline("Not finished", "", f"The run ended here, {tried}.")


def _frame_loss(cell: CellView) -> Headline:
    curve = cell.curve
    at = f"Lost at {_load(cell, curve[-1])}" if curve else "Lost at the highest load"
    value, unit = percent(cell.median).split(NBSP)
    return Headline(value, unit, "; ".join((at, *_clean_part(cell))) + ".")


def _time(cell: CellView) -> Headline:
    """A recovery or an outage, or what it is shorter than."""
    value, _, unit = cell.figure_text.rpartition(NBSP)
    recovery = cell.result.recovery if cell.result else None
    said = f"The device forwarded nothing for so long, at {whole(cell.load_fps)}"
    if recovery:
        said = (
            f"Frames were still lost for so long after {whole(recovery.overload_fps)}"
        )
    if cell.result and cell.result.soak:
        return _over_hours(cell.result.soak, cell, value, unit)
    longer = ", the longer one of both directions" if cell.bidirectional else ""
    return Headline(
        value,
        unit,
        f"{said}{NBSP}fps{longer}.",
        interval_words(cell),
        cell.limit,
        (f"Known to {delay_ns(cell.within_ns)}",) if cell.within_ns else (),
    )


def _over_hours(soak: Soak, cell: CellView, value: str, unit: str) -> Headline:
    """What was lost in all of it, and what drifted meanwhile."""
    hours = f"{soak.under_load_s / 3600:.4g}{NBSP}h"
    said = f"Lost in {hours} at {whole(cell.load_fps)}{NBSP}fps"
    spoilt = soak.trials - soak.valid
    told = f"{plural(soak.lossy, 'trial')} of {whole(soak.valid)} lost frames"
    left_out = f"{plural(spoilt, 'trial')} more told nothing" if spoilt else ""
    lines = (sentence(drift_words(soak)), left_out)
    return Headline(value, unit, f"{said}.", told, lines=tuple(filter(None, lines)))


def _delay(cell: CellView) -> Headline:
    """The first quantity where it is worst, and all of them stream by stream."""
    streams = cell.measures
    several = any(stream.stream != "foreground" for stream in streams)
    worst, where = _worst(cell)
    value, _, unit = shown(delay(worst.result)).partition(NBSP)
    return Headline(
        value,
        unit,
        f"{where}, at {whole(cell.load_fps)}{NBSP}fps{_source(cell)}.",
        _delay_interval(worst),
        lines=tuple(
            f"{stream.named(several)}: "
            + ", ".join(f"{m.name} {shown(delay(m.result))}" for m in stream.measures)
            for stream in streams
        ),
    )


def _worst(cell: CellView) -> tuple[Measure, str]:
    """The first quantity where it is worst, what it is and where."""
    foreground = [s for s in cell.measures if s.stream == "foreground"]
    worst = max((s.measures[0] for s in foreground), key=_rank)
    where = "the larger of both directions" if len(foreground) > 1 else cell.ways
    return worst, f"{sentence(_NAMES.get(worst.name, worst.name))}, {where}"


def _delay_interval(measure: Measure) -> str:
    """Of the repeats' median where six of them tell one, else from least to most."""
    spread = measure.spread
    if measure.count < _SEVERAL:
        return "One repeat"
    of = f"{sentence(measure.summary)} of {measure.count} repeats"
    if spread is None:
        return of
    if spread.interval_lower is not None:
        sure = f"{spread.interval_percent or _SURE_PERCENT:.3g}{NBSP}%"
        return (
            f"{of}, {sure} interval {_ends(spread, 'interval_lower', 'interval_upper')}"
        )
    return f"{of}, {_ends(spread, 'minimum', 'maximum')}"


def _ends(spread: Spread, low: SpreadFigure, high: SpreadFigure) -> str:
    """A delay without an end is that of frames that were lost."""
    ends = (getattr(spread, name) for name in (low, high))
    return " to ".join(INFINITE if ns is None else delay_ns(ns) for ns in ends)


def _source(cell: CellView) -> str:
    """Where a load is from that nobody gave."""
    load = cell.result.load if cell.result else None
    return f", {load.words}" if load and load.cell else ""


def _rank(measure: Measure) -> float:
    """Lost is more than any number, undefined less."""
    result = measure.result
    if result.value is not None:
        return result.value
    return math.inf if result.absent == "lost" else -math.inf


def _clean_part(cell: CellView) -> tuple[str, ...]:
    """Nothing is said where the lowest load is not valid: it might be clean."""
    curve = cell.curve
    clean = highest_clean(curve)
    if clean:
        return (f"no loss up to {_load(cell, clean)}",)
    if not curve:
        return ()
    lowest = curve[0]
    if all(point.loss_percent for point in curve):
        return ("loss at every load tried",)
    if lowest.lossy_repeats and not lowest.loss_percent:
        share = f"{lowest.lossy_repeats} of {len(lowest.repeats)} repeats"
        return (f"loss in {share} even at {_load(cell, lowest)}, the lowest tried",)
    if lowest.loss_percent:
        return (f"loss even at {_load(cell, lowest)}, the lowest tried",)
    return ()


def _load(cell: CellView, point: LoadPoint) -> str:
    load = f"{percent(point.load_percent)} {cell.of_load}"
    return f"{load} ({whole(point.load_fps)}{NBSP}fps)"


# The first screen: the headline figures, a card for each, or for a kind of many.


_SIZES = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9, "%": 1.0}
_PARTS = re.compile(rf"(?P<sign>\D*)(?P<digits>[\d.,]+){NBSP}(?P<unit>ns|µs|ms|s|%)")
_FAR = 10
"""Times apart: the least of them would lose more than a digit."""
MOST_CARDS = 6
"""Cells that have a card of their own each."""
_FEW = 2
_SHORT = 12


@dataclass(frozen=True)
class Card:
    """One cell, or all cells of a procedure."""

    cells: tuple[CellView, ...]

    @property
    def shown(self) -> Headline:
        """The figure; of a series at one device from the least to the most."""
        if len(self.cells) == 1:
            return headline(self.cells[0])
        if len({(cell.testbed, cell.versions) for cell in self.cells}) > 1:
            return Headline("", "", "")  # no range of unlike things: see ``each``
        return _range(self.cells)

    @property
    def kind(self) -> str:
        """Its look: that of the only cell, or of a result if the series has one."""
        badges = [cell.badge for cell in self.cells]
        return (MEASURED if MEASURED in badges else badges[0]).kind

    @property
    def target(self) -> str:
        """What says more: the cell's panel, or the table of all."""
        return self.cells[0].id if len(self.cells) == 1 else "summary"

    @property
    def heading(self) -> str:
        """What was measured."""
        return self.cells[0].name

    @property
    def setting(self) -> str:
        """With what: frames and directions; of many how many."""
        first = self.cells[0]
        if len(self.cells) == 1:
            return f"{first.stream}, {first.setting}"
        common = first.series if self._one_series else ""
        return ", ".join(filter(None, (common, plural(len(self.cells), "test case"))))

    @property
    def _one_series(self) -> bool:
        """Whether they differ in frame sizes alone."""
        return len({cell.series for cell in self.cells}) == 1

    @property
    def each(self) -> list[tuple[str, str]]:
        """Of several cells what differs, and the figure; of very many by series."""
        if len(self.cells) == 1:
            return []
        if len(self.cells) <= _SHORT:
            names = [c.sizes if self._one_series else _short(c) for c in self.cells]
            told = _in_lines(self.cells)
            places = [_at(cell) for cell in self.cells]
            if len(set(places)) > 1:
                names = [
                    f"{name}, {place}"
                    for name, place in zip(names, places, strict=True)
                ]
        else:
            by_series: dict[str, list[CellView]] = {}
            for cell in self.cells:
                by_series.setdefault(cell.series, []).append(cell)
            names = list(by_series)
            told = [_figure(_range(cells)) for cells in by_series.values()]
        return list(zip(names, told, strict=True))

    @property
    def lines(self) -> list[str]:
        """What else belongs to the figure: for those who ask."""
        if len(self.cells) > 1:
            return []
        cell = self.cells[0]
        told = (*self.shown.lines, cell.passport, cell.conformance)
        return [line for line in told if line]

    @property
    def doubtful(self) -> tuple[CellView, ...]:
        """Cells without a figure to quote, where no line of theirs says so."""
        if 1 < len(self.cells) <= _SHORT:
            return ()
        return tuple(cell for cell in self.cells if cell.badge is not MEASURED)

    @property
    def remarks(self) -> list[tuple[str, str]]:
        """What speaks against the figure, or why there is none; and what to do."""
        told: dict[tuple[str, str], None] = {}
        for cell in self.cells:
            found = sorted(cell.findings, key=lambda each: [*DOUBTS].index(each.kind))
            told |= dict.fromkeys((_doubt(each), "") for each in found)
            told |= dict.fromkeys([] if cell.measured else cell.reasons)
        left = len(told) - _FEW
        more = [(f"{plural(left, 'more finding')}", "")] if left > 0 else []
        return [*list(told)[:_FEW], *more]


def cards_of(cells: Sequence[CellView]) -> list[Card]:
    """Of few cells one each; of many, one for each procedure."""
    if len(cells) <= MOST_CARDS:
        return [Card((cell,)) for cell in cells]
    found: dict[str, list[CellView]] = {}
    for cell in cells:
        found.setdefault(cell.name, []).append(cell)
    return [Card(tuple(each)) for each in found.values()]


def _range(cells: Sequence[CellView]) -> Headline:
    known = sorted(_ranked(cells), key=lambda pair: pair[0])
    if not known:
        return Headline("No result", "", "None of these test cases has one.")
    if len({_at(cell) for _, cell in known}) > 1:
        return Headline("At different loads", "", "Losses that do not compare.")
    low, high = (headline(known[place][1]) for place in (0, -1))
    if len(known) == 1:
        only = f"One of {len(cells)} test cases has a figure to quote."
        return Headline(low.value, low.unit, only, limit=low.limit)
    unit = "" if low.unit == high.unit else f"{NBSP}{low.unit}"
    return Headline(f"{low.value}{unit} to {high.value}", high.unit, "")


def _in_lines(cells: Sequence[CellView]) -> list[str]:
    """The figure of each; times and losses in one unit and with as many decimals.

    Where they are too far apart for that, each has its own.
    """
    told = [_in_a_line(cell) for cell in cells]
    split = [_PARTS.fullmatch(line) for line in told]
    exact = [_exact(cell) for cell in cells]
    known = [
        (value, match["digits"], match["unit"])
        for value, match in zip(exact, split, strict=True)
        if value and match
    ]
    if not known:
        return told
    least, (most, _, unit) = min(known)[0], max(known)
    size = _SIZES[unit]
    if least < most / _FAR:
        return told
    places = max(len(digits.partition(".")[2]) for _, digits, of in known if of == unit)
    return [
        f"{match['sign']}{value / size:,.{places}f}{NBSP}{unit}"
        if value and match
        else line
        for line, value, match in zip(told, exact, split, strict=True)
    ]


def _exact(cell: CellView) -> float | None:
    """In nanoseconds or percent: with all its digits; None: it has no such figure."""
    if not cell.measured or cell.doubt:
        return None
    if cell.family == "fixed load":
        found = _worst(cell)[0].result
        return found.value if found.below_ns is None else found.below_ns
    return cell.median if cell.unit in ("ns", "percent") else None


def _in_a_line(cell: CellView) -> str:
    """The figure; of one in doubt why, and within what it is."""
    if cell.state == "unstable":
        return cell.badge.label
    shown = headline(cell)
    return f"{shown.value}; {shown.interval}" if cell.doubt else _figure(shown)


def _figure(shown: Headline) -> str:
    return f"{shown.value}{NBSP}{shown.unit}".rstrip()


def _at(cell: CellView) -> str:
    """Of which load a loss is; others are compared whatever they are of."""
    if cell.family != "load sweep" or not cell.curve:
        return ""
    top = cell.curve[-1]
    return f"at {top.load_percent:.5g}{NBSP}% {cell.of_load}"


def _doubt(finding: Finding) -> str:
    """Of which delay, where the card has another one: TL, WCL, PDV; or both figures."""
    if finding.kind in ("contradiction", "unusual"):
        return sentence(finding.message)
    quantity, words = finding.of.partition(",")[0], DOUBTS[finding.kind]
    return f"{quantity}: {words}" if quantity.isupper() else sentence(words)


def _short(cell: CellView) -> str:
    """What tells it from others of its procedure; both directions are the rule."""
    return cell.stream if cell.bidirectional else f"{cell.stream}, {cell.ways}"


def _ranked(cells: Sequence[CellView]) -> Iterator[tuple[float, CellView]]:
    """Those with a figure that counts."""
    for cell in cells:
        if cell.measured and not cell.doubt and cell.median is not None:
            yield cell.median, cell
