"""Results for other programs: CSV, LaTeX and OpenMetrics, one renderer a format.

The tables are those of the report and the terminal (``dutperf.tables``); Markdown is
rendered beside them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC

from dutperf.catalogue import PROCEDURES, Procedure
from dutperf.charts.text import STYLE
from dutperf.errors import InputError
from dutperf.procedures.measurements import tables
from dutperf.query.rows import moment, stored_cells
from dutperf.report.page import cells_of
from dutperf.report.source import Source
from dutperf.results.figures import Figure, figures_of
from dutperf.tables import (
    Column,
    Entry,
    Row,
    Span,
    Style,
    Subject,
    Table,
    Value,
    Verdict,
    state_word,
)
from dutperf.visible import csv_lines, visible

# A table as CSV: figures with all digits, each column in one unit.


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
    if not _named(table):
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


# A table as LaTeX: booktabs, a head line of names and one of units.


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


def latex(table: Table, caption: str = "", label: str = "") -> str:
    r"""A ``table`` environment; needs ``\usepackage{booktabs,textcomp}``.

    Where RFC 9693 6 has a column for each experiment, the table has one for each row.
    ``caption``: instead of the title; ``label``: for ``\ref``.
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
        rf"  \caption{{{escaped(caption or table.title)}}}",
        *([rf"  \label{{{label}}}"] if label else []),
        rf"  \begin{{tabular}}{{{kinds}}}",
        r"    \toprule",
        *(f"    {_line(head)}" for head in heads if any(head)),
        *([r"    \midrule"] if any(map(any, heads)) else []),
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
    named = _named(table)
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


# Which columns a reader wants.


_IDS = "cell"
"""What the column of the cells' ids is called."""


def with_columns(table: Table, names: Sequence[str]) -> Table:
    """Only those with ``names``, in that order; ids are one of them.

    Raises:
        InputError: it has no such column.
    """
    heads = [column.head(_PLAIN)[0] for column in table.columns]
    known = [_IDS, *heads] if _named(table) else heads
    places: list[int] = []
    for name in names:
        own = [at for at, head in enumerate(heads) if name in _called(head)]
        if not own and (name != _IDS or _IDS not in known):
            raise InputError(
                f"--columns {name}: the table {table.key} has no such column",
                f"it has: {', '.join(dict.fromkeys(_called(h)[-1] for h in known))}",
            )
        places += own
    return replace(
        table,
        columns=tuple(replace(table.columns[at], below=False) for at in places),
        rows=tuple(
            Row(
                row.name if _IDS in names else "",
                tuple(row.entries[at] for at in places),
            )
            for row in table.rows
        ),
    )


def for_readers(table: Table) -> Table:
    """Without the cells' ids, where its rows tell in words what they are of."""
    told = any(column.name == "traffic" for column in table.columns)
    return _without_ids(table) if told else table


def _without_ids(table: Table) -> Table:
    return replace(table, rows=tuple(replace(row, name="") for row in table.rows))


def _named(table: Table) -> bool:
    return any(row.name for row in table.rows)


def _called(head: str) -> tuple[str, str]:
    """Its names: the whole, and without what a figure is of its repeats."""
    return head, head.partition(",")[0]


def _text(entry: Entry) -> str:
    if isinstance(entry, Verdict):
        return state_word(entry.state)
    return entry if isinstance(entry, str) else entry.text(STYLE)


def _line(texts: Iterable[str]) -> str:
    return " & ".join(map(escaped, texts)) + r" \\"


# Figures of a run as OpenMetrics, for the textfile collector of a node exporter.
#
# The text is of the subset that Prometheus' own, older format has as well.


_END = "# EOF\n"
_UNITS: Mapping[str, tuple[str, float]] = {
    "fps": ("frames_per_second", 1),
    "percent": ("ratio", 100),
    "frames": ("frames", 1),
    "ns": ("seconds", 1e9),
    "queries/s": ("queries_per_second", 1),
    "connections/s": ("connections_per_second", 1),
    "connections": ("connections", 1),
    "ports": ("ports", 1),
    "nJ/bit": ("joules_per_bit", 1e9),
}
"""Base units, and how many of ours one is."""


@dataclass(frozen=True)
class _Metric:
    """A family of metrics: all its samples stand together."""

    name: str
    unit: str
    meaning: str


def openmetrics(source: Source) -> str:
    """Each figure of the run as a gauge; cells without one are not there.

    The label ``bound`` says of a figure that is no exact one that it is that much or
    more (lower), or less (upper, below).
    """
    families: dict[_Metric, dict[str, float]] = {}
    for metric, labels, value in [*_figures(source), *_when(source)]:
        families.setdefault(metric, {}).setdefault(_labels(labels), value)
    lines = []
    for metric, samples in families.items():
        lines += [
            f"# TYPE {metric.name} gauge",
            f"# UNIT {metric.name} {metric.unit}",
            f"# HELP {metric.name} {_escaped(metric.meaning)}",
            *(f"{metric.name}{labels} {_number(v)}" for labels, v in samples.items()),
        ]
    return "".join(f"{line}\n" for line in lines) + _END


Sample = tuple[_Metric, dict[str, str], float]


def _figures(source: Source) -> Iterator[Sample]:
    for cell in stored_cells(source):
        for figure in figures_of(cell.result) if cell.result else ():
            if figure.value is not None:
                unit, size = _UNITS[figure.unit]
                metric = _metric(PROCEDURES[figure.result.procedure], cell.judged, unit)
                yield metric, _told(cell, figure), figure.value / size


def _metric(known: Procedure, judged: str, unit: str) -> _Metric:
    """What is judged otherwise than the RFC does has another name."""
    name, meaning = known.metric, known.finds
    if judged:
        name = f"{name}_judged"
        meaning = f"{known.title}, but judged as the label says."
    return _Metric(f"dutperf_{name}_{unit}", unit, meaning)


def _told(cell: Subject, figure: Figure) -> dict[str, str]:
    load = figure.load_percent
    return {
        "cell": cell.id,
        "device": cell.testbed,
        "direction": figure.direction,
        "measure": figure.name if figure.of else "",
        "stream": figure.stream,
        "load_percent": "" if load is None else f"{load:.12g}",
        "judged": cell.judged,
        "bound": figure.limit or "",
    }


def _when(source: Source) -> Iterator[Sample]:
    if created_at := moment(source.created_at):
        metric = _Metric(
            "dutperf_run_created_timestamp_seconds", "seconds", "When the run began."
        )
        began = created_at.replace(tzinfo=UTC).timestamp()
        yield metric, {"campaign": source.name}, began


def _labels(labels: Mapping[str, str]) -> str:
    """An empty label is one that is not there."""
    told = (f'{name}="{_escaped(text)}"' for name, text in labels.items() if text)
    return "{" + ",".join(told) + "}"


def _escaped(text: str) -> str:
    plain = visible(text).replace("\\", "\\\\").replace('"', '\\"')
    return plain.replace("\n", "\\n")


def _number(value: float) -> str:
    return repr(value).replace("inf", "+Inf")


# The tables of a stored run.


def tables_of(source: Source, keys: Sequence[str] = ()) -> list[Table]:
    """Those that the report has; only those with ``keys``, in that order, if any.

    Raises:
        InputError: the run has no such table, or none at all.
    """
    found = {
        t.key: t for t in tables(cells_of(source), source.scalability, source.sweeps)
    }
    if not found:
        raise InputError(f"{source.name}: there is no result yet")
    missing = [key for key in keys if key not in found]
    if missing:
        raise InputError(
            f"--table {missing[0]}: the run has no such table",
            f"it has: {', '.join(found)}",
        )
    return [found[key] for key in keys or found]
