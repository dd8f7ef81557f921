"""A table as CSV: figures with all digits, each column in one unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dutperf.csv_text import csv_lines
from dutperf.tables import Column, Entry, Span, Style, Table, Value, Verdict, state_word

_PLAIN = Style(
    absent={None: "", "lost": "", "undefined": "", "invalid": ""},
    bounds={None: "", "lower": "", "upper": "", "below": ""},
    minus="-",
    space=" ",
    micro="u",
)
_MARKS = {
    "lower": "at least",
    "upper": "at most",
    "below": "below",
    "lost": "infinite: frames were lost",
    "undefined": "nothing arrived",
    "invalid": "invalid",
    None: "",
}
"""What makes a figure none, or no plain one."""


def csv_tables(tables: Sequence[Table]) -> str:
    """One after another, each below a line with its key and title."""
    return "\n".join(
        csv_lines([[f"# {table.key}: {table.title}"]]) + csv_table(table)
        for table in tables
    )


def csv_table(table: Table) -> str:
    """A line of heads and one for each row.

    A time is in nanoseconds. Where figures are bounds, or missing for a reason, a
    column beside them says so.
    """
    parts = list(_parts(table))
    names = _names(table)
    heads = [*(["cell"] if names else []), *(part.head for part in parts)]
    lines: list[list[object]] = [[*heads]]
    for place, row in enumerate(table.rows):
        told = [part.told(row.entries[part.place]) for part in parts]
        lines.append([*(names[place : place + 1]), *told])
    return csv_lines(lines)


@dataclass(frozen=True)
class _Part:
    """One column of the CSV, of one of the table's."""

    head: str
    place: int
    told: Callable[[Entry], object]


def _names(table: Table) -> list[str]:
    """Of all rows; one without a name is of the same cell as the one above."""
    if not any(row.name for row in table.rows):
        return []
    names: list[str] = []
    for row in table.rows:
        names.append(row.name or names[-1] if names else row.name)
    return names


def _parts(table: Table) -> Iterator[_Part]:
    names = [column.name for column in table.columns]
    for place, column in enumerate(table.columns):
        entries = [row.entries[place] for row in table.rows]
        head, name = _head(column, entries), column.name
        if names.count(column.name) > 1 and column.below:
            above = max(n for n in range(place) if not table.columns[n].below)
            head, name = f"{names[above]}, {head}", f"{names[above]}, {name}"
        if any(isinstance(entry, Span) for entry in entries):
            yield _Part(f"{head}, from", place, lambda entry: _figure(_end(entry, 0)))
            yield _Part(f"{head}, to", place, lambda entry: _figure(_end(entry, 1)))
        else:
            yield _Part(head, place, _figure)
        if any(_mark(entry) for entry in entries):
            yield _Part(f"{name}, mark", place, _mark)


def _head(column: Column, entries: Sequence[Entry]) -> str:
    """Name and unit, with the unit of the figures themselves."""
    name, *unit = column.head(_PLAIN)
    values = [value for entry in entries for value in _values(entry) if value.digits]
    own = {"ns" if value.is_time else value.unit for value in values}
    told = " ".join([*(own if len(own) == 1 else ()), *unit]).strip()
    return f"{name} [{told}]" if told else name


def _values(entry: Entry) -> tuple[Value, ...]:
    if isinstance(entry, Span):
        return (entry.low, entry.high)
    return (entry,) if isinstance(entry, Value) else ()


def _end(entry: Entry, which: int) -> Entry:
    values = _values(entry)
    return values[which] if len(values) > which else entry


def _figure(entry: Entry) -> object:
    if isinstance(entry, Verdict):
        return state_word(entry.state)
    if isinstance(entry, Value):
        return entry.digits if entry.exact is None else entry.exact
    return entry.text(_PLAIN) if isinstance(entry, Span) else entry


def _mark(entry: Entry) -> str:
    found = (_MARKS[value.bound or value.absent] for value in _values(entry))
    return " to ".join(dict.fromkeys(mark for mark in found if mark))
