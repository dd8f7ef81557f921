"""A table of results: what stands in it and what it means, not how it looks."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Context
from typing import Literal, TypeVar

from dutperf.catalogue import Unit
from dutperf.results import MeasuredValue, result_word
from dutperf.results import units as words
from dutperf.results.details import Absent
from dutperf.results.figures import Figure, Limit
from dutperf.results.rate_results import Derived, Spread, SpreadFigure
from dutperf.visible import visible

# Figures as tables tell them: digits and units are chosen here, once.
#
# What is left to a renderer is its ``Style``: how it writes signs and what is no
# figure.


State = Literal["pass", "unstable", "doubtful", "fail", "invalid", "open"]
_NEARLY_ALL_PERCENT = 99.9
_UNITS = (("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9))
_NEXT_UNIT_FROM = 1000
TIME_DIGITS = 4
"""As fine as the buckets of a histogram."""


@dataclass(frozen=True)
class Style:
    """How a renderer writes what is neither letter nor digit.

    ``absent``: what stands where there is no figure, by the reason.
    """

    absent: Mapping[Absent | None, str]
    bounds: Mapping[Limit, str]
    minus: str
    space: str
    micro: str


@dataclass(frozen=True)
class Value:
    """One figure: its digits, with an ASCII minus, and its unit (us: microseconds).

    Without digits there is none; ``absent`` says why, null that it does not apply or
    was not measured. ``exact``: the same with all its digits, a time in nanoseconds;
    null: it is more than one number.
    """

    digits: str = ""
    unit: str = ""
    bound: Limit = None
    absent: Absent | None = None
    exact: float | None = field(default=None, compare=False)

    @property
    def is_time(self) -> bool:
        """Whether it is one, in whatever unit."""
        return any(self.unit == unit for unit, _ in _UNITS)

    def text(self, style: Style) -> str:
        """As ``style`` has it."""
        if not self.digits:
            return style.absent[self.absent]
        told = style.bounds[self.bound] + self.digits.replace("-", style.minus)
        unit = self.unit.replace("us", f"{style.micro}s")
        return f"{told}{style.space}{unit}" if unit else told


@dataclass(frozen=True)
class Span:
    """From one figure to another."""

    low: Value
    high: Value

    def text(self, style: Style) -> str:
        """As ``style`` has it; twice the same is one figure."""
        ends = (self.low.text(style), self.high.text(style))
        return " to ".join(dict.fromkeys(ends))


@dataclass(frozen=True)
class Verdict:
    """On a cell; open: the run ended in it."""

    state: State


def state_word(state: State) -> str:
    """What the verdict on a cell is called, wherever it is shown."""
    match state:
        case "unstable" | "doubtful":
            return state
        case "open":
            return "not finished"
        case _:
            return result_word(state)


Entry = Value | Span | Verdict | str
"""What stands in one place of a table."""
NONE = Value()


def count(value: float | None, bound: Limit = None, unit: str = "") -> Value:
    """A rate or a number of things: thousands separated, no decimals unless small."""
    if value is None:
        return NONE
    return Value(words.whole(value), unit, bound, exact=value)


def number(value: object, digits: int = 6) -> Value:
    """A setting; whole numbers in full, others with so many digits."""
    if isinstance(value, int):
        return Value(f"{value:,}", exact=value)
    if isinstance(value, float):
        return Value(words.about(value, digits), exact=value)
    return NONE


def percent(value: float | None, bound: Limit = None, digits: int = 6) -> Value:
    """A share: frames are counted, so a small loss never reads as none.

    Nor does what is below 100 % ever read as all.
    """
    if value is None:
        return NONE
    rounding = ROUND_DOWN if value > _NEARLY_ALL_PERCENT else ROUND_HALF_EVEN
    told = Context(prec=digits, rounding=rounding).create_decimal(repr(value))
    return Value(f"{told.normalize():f}", "%", bound, exact=value)


def duration(value_ns: float | None, digits: int = 6) -> Value:
    """In the unit that leaves one to three digits before the point."""
    if value_ns is None:
        return NONE
    for unit, size in _UNITS:
        shown = float(f"{value_ns / size:.{digits}g}")
        if abs(shown) < _NEXT_UNIT_FROM:
            return Value(f"{shown:g}", unit, exact=value_ns)
    return replace(count(value_ns / 1e9, unit="s"), exact=value_ns)


def derived(figure: Derived | None, *, unit: bool = False) -> Value:
    """A time in the unit that fits; a rate or a number, with its ``unit`` if asked."""
    if figure is None or figure.value is None:
        return NONE
    if figure.unit == "s":
        return replace(duration(figure.value * 1e9, 4), bound=figure.bound)
    return count(figure.value, figure.bound, figure.unit if unit else "")


def delay(figure: MeasuredValue) -> Value:
    """Four digits, as fine as the buckets of a histogram; or why there is none."""
    if figure.value is None:
        return Value(absent=figure.absent)
    if figure.below_ns is not None:
        return in_unit(figure.below_ns, "ns", "below")
    return in_unit(figure.value, "ns", "upper" if figure.at_most else None)


def in_unit(value: float, unit: Unit | Literal[""], bound: Limit = None) -> Value:
    """A rate, a share, a time, an energy or a number of connections."""
    if math.isinf(value):
        return Value(absent="lost")
    if unit == "ns":
        return replace(duration(value, TIME_DIGITS), bound=bound)
    if unit == "nJ/bit":
        return replace(number(float(value), 4), bound=bound)
    return percent(value, bound) if unit == "percent" else count(value, bound)


def of_figure(figure: Figure) -> Value | Span:
    """As its unit wants it; without a value that all repeats have their range."""
    if figure.doubts and figure.spread:
        low, high = (
            of_spread(figure.spread, end, figure.unit) for end in ("minimum", "maximum")
        )
        return Span(low, high)
    if figure.value is None:
        return Value(absent=figure.absent)
    return in_unit(figure.value, figure.unit, figure.limit)


def of_spread(spread: Spread, name: SpreadFigure, unit: Unit | Literal[""]) -> Value:
    """One figure of all repeats; an end that is not known is that of what was lost."""
    value: float | None = getattr(spread, name)
    if value is None:
        return Value(absent="lost") if name in ("minimum", "maximum") else NONE
    return in_unit(value, unit, "lower" if name in spread.lower_bounds else None)


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


# A table as Markdown, of the kind that code hosts render (GFM).


STYLE = Style(
    absent={None: "-", "lost": "> lost", "undefined": "-", "invalid": "invalid"},
    bounds={None: "", "lower": ">= ", "upper": "<= ", "below": "< "},
    minus="-",
    space=" ",
    micro="u",
)
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>|~#&$]")
"""What would be more than text somewhere."""


def markdown(table: Table) -> str:
    """Title, the whole table, and its notes; ends with a line feed.

    All text is shown as it is, whatever it holds.
    """
    named = any(row.name for row in table.rows)
    head = ["cell"] if named else []
    head += [", ".join(column.head(STYLE)) for column in table.columns]
    rule = ["---"] if named else []
    rule += ["---" if column.words else "--:" for column in table.columns]
    lines = [f"### {escaped(table.title)}", "", _line(map(escaped, head)), _line(rule)]
    for row in table.rows:
        texts = [row.name] if named else []
        texts += map(_text, row.entries)
        lines.append(_line(map(escaped, texts)))
    for note in table.notes:
        lines += ["", escaped(note)]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """``text`` in one line that stays text."""
    plain = " ".join(visible(text).split())
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", plain)


def _text(entry: Entry) -> str:
    if isinstance(entry, Verdict):
        return state_word(entry.state)
    return entry if isinstance(entry, str) else entry.text(STYLE)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
