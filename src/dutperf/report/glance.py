"""The first screen: the headline figures, a card for each, or for a series of many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dutperf.report.cells import CellView
from dutperf.report.headline import Headline, headline
from dutperf.report.text import NBSP, plural, sentence

MOST_CARDS = 6
"""Cells that have a card of their own each."""
_FEW = 2
_SHORT = 8


@dataclass(frozen=True)
class Card:
    """One cell, or all cells of a procedure that differ in frame sizes alone."""

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
        measured = any(cell.measured for cell in self.cells)
        return "pass" if measured else self.cells[0].badge.kind

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
        """With what: frames and directions; of a series how many sizes."""
        first = self.cells[0]
        if len(self.cells) == 1:
            return f"{first.stream}, {first.setting}"
        return f"{first.series}, {plural(len(self.cells), 'cell')}"

    @property
    def each(self) -> list[tuple[str, str]]:
        """Of a short series: what differs, and the figure."""
        if not 1 < len(self.cells) <= _SHORT:
            return []
        told = [(cell.sizes, headline(cell)) for cell in self.cells]
        return [
            (sizes, f"{shown.value}{NBSP}{shown.unit}".rstrip())
            for sizes, shown in told
        ]

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
        return tuple(cell for cell in self.cells if not cell.measured)

    @property
    def remarks(self) -> list[tuple[str, str]]:
        """What speaks against the figure, or why there is none; and what to do."""
        told: dict[tuple[str, str], None] = {}
        for cell in self.cells:
            told |= dict.fromkeys((sentence(f.message), "") for f in cell.findings)
            told |= dict.fromkeys([] if cell.measured else cell.reasons)
        left = len(told) - _FEW
        more = [(f"{plural(left, 'more finding')} below", "")] if left > 0 else []
        return [*list(told)[:_FEW], *more]


def cards_of(cells: Sequence[CellView]) -> list[Card]:
    """Of few cells one each; of many, one for each series."""
    if len(cells) <= MOST_CARDS:
        return [Card((cell,)) for cell in cells]
    found: dict[tuple[str, str], list[CellView]] = {}
    for cell in cells:
        found.setdefault((cell.name, cell.series), []).append(cell)
    return [Card(tuple(each)) for each in found.values()]


def _range(cells: Sequence[CellView]) -> Headline:
    known = sorted(_ranked(cells), key=lambda pair: pair[0])
    if not known:
        return Headline("No result", "", "None of these cells has one.")
    low, high = (headline(known[place][1]) for place in (0, -1))
    at_low, at_high = known[0][1].frames, known[-1][1].frames
    if len(known) == 1:
        return low
    unit = "" if low.unit == high.unit else f"{NBSP}{low.unit}"
    return Headline(
        f"{low.value}{unit} to {high.value}",
        high.unit,
        f"Least with {at_low}, most with {at_high}.",
    )


def _ranked(cells: Sequence[CellView]) -> Iterator[tuple[float, CellView]]:
    """Those with a figure that counts."""
    for cell in cells:
        if cell.measured and not cell.doubt and cell.median is not None:
            yield cell.median, cell
