"""The first screen: the headline figures, a card for each, or for a kind of many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dutperf.report.cells import MEASURED, CellView
from dutperf.report.headline import Headline, headline
from dutperf.report.text import NBSP, plural, sentence
from dutperf.results.closing_words import DOUBTS
from dutperf.results.rate_results import Finding

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
        """The figure; of a series from the least to the most."""
        if len(self.cells) == 1:
            return headline(self.cells[0])
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
        return ", ".join(filter(None, (common, plural(len(self.cells), "cell"))))

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
            told = [_in_a_line(cell) for cell in self.cells]
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
        """Cells without a result that may be quoted."""
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
        more = [(f"{plural(left, 'more finding')} below", "")] if left > 0 else []
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
        return Headline("No result", "", "None of these cells has one.")
    if len({_at(cell) for _, cell in known}) > 1:
        return Headline("At different loads", "", "Losses that do not compare.")
    low, high = (headline(known[place][1]) for place in (0, -1))
    if len(known) == 1:
        only = f"One of {len(cells)} cells has a figure to quote."
        return Headline(low.value, low.unit, only, limit=low.limit)
    unit = "" if low.unit == high.unit else f"{NBSP}{low.unit}"
    return Headline(f"{low.value}{unit} to {high.value}", high.unit, "")


def _in_a_line(cell: CellView) -> str:
    """The figure; of a doubtful one why, and within what it is."""
    shown = headline(cell)
    return f"{shown.value}; {shown.interval}" if cell.doubt else _figure(shown)


def _figure(shown: Headline) -> str:
    return f"{shown.value}{NBSP}{shown.unit}".rstrip()


def _at(cell: CellView) -> str:
    """Of which load a loss is; others are compared whatever they are of."""
    if cell.procedure != "frame-loss" or not cell.curve:
        return ""
    top = cell.curve[-1]
    return f"at {top.load_percent:.5g}{NBSP}% {top.of}"


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
