"""Tables on standard output; a narrow terminal leaves out what matters less."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from rich.table import Table as Shown

from dutperf.cli.failures import PatientConsole
from dutperf.tables import Column, Entry, Row, Style, Table, Verdict, state_word

STYLE = Style(
    absent={None: "-", "lost": "> lost", "undefined": "-", "invalid": "invalid"},
    bounds={None: "", "lower": ">= ", "upper": "<= ", "below": "< "},
    minus="-",
    space=" ",
    micro="u",
)
_SIDEWAYS_COLUMNS = 4
"""As many cells as a terminal shows side by side."""
_NAME_WIDTH = 32
"""A cell's id is folded only if it is longer than this."""
_WORDS_WIDTH = 24
"""The same of other words."""


def show_table(console: PatientConsole, table: Table) -> None:
    """Print it; with a column for each row where the RFC has it so."""
    if table.sideways:
        for first in range(0, len(table.rows), _SIDEWAYS_COLUMNS):
            rows = table.rows[first : first + _SIDEWAYS_COLUMNS]
            console.print(_sideways(table, rows))
        return
    console.print(_upright(table, console.width))


def _upright(table: Table, width: int) -> Shown:
    named = any(row.name for row in table.rows)
    kept = _kept(table, width, named=named)
    shown = _empty(table)
    if named:
        shown.add_column("cell", overflow="fold")
    for place in kept:
        column = table.columns[place]
        head = _wrapped(column, _column_width(table, place))
        if column.words:
            shown.add_column(head, overflow="fold")
        else:
            shown.add_column(head, justify="right", no_wrap=True)
    for row in table.rows:
        name = [row.name] if named else []
        shown.add_row(*name, *(entry_text(row.entries[n]) for n in kept))
    return shown


def _sideways(table: Table, rows: Sequence[Row]) -> Shown:
    shown = _empty(table)
    shown.add_column("")
    for row in rows:
        shown.add_column(row.name, justify="right", overflow="fold")
    for place, column in enumerate(table.columns):
        told = (entry_text(row.entries[place]) for row in rows)
        shown.add_row(", ".join(column.head(STYLE)), *told)
    return shown


def _empty(table: Table) -> Shown:
    notes = "\n".join(table.notes)
    return Shown(
        title=table.title, caption=notes or None, title_style="", caption_style=""
    )


def _wrapped(column: Column, width: int) -> str:
    """Name and unit in lines that are no wider than the figures below them."""
    lines = (wrap(part, width, break_long_words=False) for part in column.head(STYLE))
    return "\n".join(line for part in lines for line in part)


def entry_text(entry: Entry) -> str:
    """As it stands on a terminal."""
    if isinstance(entry, Verdict):
        return state_word(entry.state)
    return entry if isinstance(entry, str) else entry.text(STYLE)


def _kept(table: Table, width: int, *, named: bool) -> list[int]:
    """Places of the columns that there is room for."""
    widths = [_column_width(table, place) for place in range(len(table.columns))]
    name = max(len(row.name) for row in table.rows) if named else 0
    kept = list(range(len(widths)))
    room = width - 1 - (min(name, _NAME_WIDTH) + 3 if named else 0)
    for spared in sorted({c.spared for c in table.columns}, reverse=True):
        if not spared or sum(widths[n] + 3 for n in kept) <= room:
            break
        kept = [n for n in kept if table.columns[n].spared != spared]
    return kept


def _column_width(table: Table, place: int) -> int:
    """Figures stay in one piece, words may be folded."""
    column = table.columns[place]
    texts = [entry_text(row.entries[place]) for row in table.rows]
    longest = max(map(len, texts), default=0)
    words = (len(word) for part in column.head(STYLE) for word in part.split())
    return max(min(longest, _WORDS_WIDTH) if column.words else longest, *words)
