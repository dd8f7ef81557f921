"""A table of results: what stands in it and what it means, not how it looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from dutperf.tables.figures import Entry, Style, Value

T = TypeVar("T")


@dataclass(frozen=True)
class Column:
    """What its entries are.

    ``meaning``: one plain sentence. ``spared``: a narrow terminal leaves out columns
    with the highest number first, those with 0 never. ``below``: of the same thing as
    the column before it, and may stand under it. ``words``: its entries are no figures.
    ``value``: a figure that ends its name.
    """

    name: str
    meaning: str
    unit: str = ""
    spared: int = 0
    below: bool = False
    words: bool = False
    tone: Literal["", "strong", "muted", "bad"] = ""
    value: Value | None = None

    def head(self, style: Style) -> list[str]:
        """Name, with its figure if it has one, and unit."""
        value = f" {self.value.text(style)}" if self.value else ""
        return [part for part in (self.name + value, self.unit) if part]


@dataclass(frozen=True)
class Row:
    """``name``: id of the cell, if not that of the row above; an entry a column."""

    name: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Table:
    """``key``: its name for programs, of this run's tables only one has it.

    ``sideways``: RFC 9693 6 has a column for each experiment, so where lines are short,
    rows and columns change places. ``detail``: how it was measured, or what others say,
    too: for who asks for all.
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    sideways: bool = False
    detail: bool = False


Columns = Sequence[tuple[Column, Callable[[T], Entry]]]
"""Columns, and what each has of one thing, a row of the table."""


def rows(
    columns: Columns[T], things: Iterable[T], name: Callable[[T], str] = lambda _: ""
) -> tuple[Row, ...]:
    """One for each thing."""
    return tuple(
        Row(name(thing), tuple(entry(thing) for _, entry in columns))
        for thing in things
    )


def heads(columns: Columns[T]) -> tuple[Column, ...]:
    """The columns alone."""
    return tuple(column for column, _ in columns)
