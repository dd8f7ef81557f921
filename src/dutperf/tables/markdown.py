"""A table as Markdown, of the kind that code hosts render (GFM)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dutperf.tables.figures import Entry, Style, Verdict, state_word
from dutperf.tables.table_model import Table
from dutperf.visible import visible

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
