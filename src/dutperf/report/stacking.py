"""Which columns of a table stand below each other, as a page is only so wide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from dutperf.report.text import STYLE
from dutperf.tables import Column

_HEAD_WIDTH = 13
"""Characters of a line; one that is longer would make its column wider than figures."""
Stack = list[tuple[int, Column]]
"""Columns that share one, with their places in the table."""


def stacked(columns: Sequence[Column]) -> list[Stack]:
    """All columns in their order; what may stand below another one does."""
    found: list[Stack] = []
    for place, column in enumerate(columns):
        if column.below and found:
            found[-1].append((place, column))
        else:
            found.append([(place, column)])
    return found


def head_lines(stack: Stack) -> Iterator[str]:
    """Names and units, the first with a capital letter."""
    for place, (_, column) in enumerate(stack):
        for line, part in enumerate(column.head(STYLE)):
            first = place == line == 0
            told = part[:1].upper() + part[1:] if first else part
            yield from wrap(told, _HEAD_WIDTH, break_long_words=False)
