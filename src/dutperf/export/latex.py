"""A table as LaTeX: booktabs, a head line of names and one of units."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dutperf.report.text import STYLE
from dutperf.tables import Entry, Table, Verdict, state_word
from dutperf.visible import visible

_SIGNS = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "%": r"\%",
        "_": r"\_",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\textquotedbl{}",
        "'": r"\textquotesingle{}",
        "`": r"\textasciigrave{}",
        "[": "{[}",
        "]": "{]}",
        "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$",
        "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
        "\N{MINUS SIGN}": "$-$",
        "\N{INFINITY}": r"$\infty$",
        "\N{MICRO SIGN}": r"\textmu{}",
        "\N{MULTIPLICATION SIGN}": r"$\times$",
        "\N{EN DASH}": r"\textendash{}",
        "\N{NO-BREAK SPACE}": "~",
        "\N{NARROW NO-BREAK SPACE}": r"\,",
        "\n": " ",
    }
)
"""Text that is only text: ``[`` behind ``\\`` would be its argument."""
_DASH = re.compile("-(?=-)")
"""Two hyphens would be one."""


def latex(table: Table) -> str:
    r"""A ``table`` environment; needs ``\usepackage{booktabs,textcomp}``.

    Where RFC 9693 6 has a column for each experiment, the table has one for each row.
    """
    heads, rows = _sideways(table) if table.sideways else _upright(table)
    if table.sideways:
        kinds = "l" + "r" * len(table.rows)
    else:
        kinds = "".join("l" if column.words else "r" for column in table.columns)
        kinds = kinds.rjust(len(heads[0]), "l")
    lines = [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{escaped(table.title)}}}",
        rf"  \begin{{tabular}}{{{kinds}}}",
        r"    \toprule",
        *(f"    {_line(head)}" for head in heads if any(head)),
        r"    \midrule",
        *(f"    {_line(row)}" for row in rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        *(rf"  \par\footnotesize {escaped(note)}" for note in table.notes),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """``text`` as LaTeX that prints just that."""
    return _DASH.sub("-{}", visible(text).translate(_SIGNS))


Lines = list[list[str]]


def _upright(table: Table) -> tuple[Lines, Lines]:
    """A line of names and one of units; and the rows, with their names in front."""
    named = any(row.name for row in table.rows)
    heads = [column.head(STYLE) for column in table.columns]
    names = [head[0] for head in heads]
    units = [head[1] if len(head) > 1 else "" for head in heads]
    rows = [
        [*([row.name] if named else []), *map(_text, row.entries)] for row in table.rows
    ]
    front = ["cell"] if named else []
    return [front + names, [""] * len(front) + units], rows


def _sideways(table: Table) -> tuple[Lines, Lines]:
    """The names of the rows above, and a line for each column."""
    rows = [
        [", ".join(column.head(STYLE)), *(_text(row.entries[at]) for row in table.rows)]
        for at, column in enumerate(table.columns)
    ]
    return [["", *(row.name for row in table.rows)]], rows


def _text(entry: Entry) -> str:
    if isinstance(entry, Verdict):
        return state_word(entry.state)
    return entry if isinstance(entry, str) else entry.text(STYLE)


def _line(texts: Iterable[str]) -> str:
    return " & ".join(map(escaped, texts)) + r" \\"
