"""Tables of results, made once: the terminal and the report only render them."""

from dutperf.tables.all_tables import result_tables, tables
from dutperf.tables.figures import (
    Entry,
    Span,
    State,
    Style,
    Value,
    Verdict,
    state_word,
)
from dutperf.tables.subject import (
    BURSTS,
    CONNECTIONS,
    DELAYS,
    DOUBTS,
    OVER_TIME,
    SEARCHES,
    Subject,
    full_length,
    subjects,
)
from dutperf.tables.table_model import Column, Row, Table

__all__ = [
    "BURSTS",
    "CONNECTIONS",
    "DELAYS",
    "DOUBTS",
    "OVER_TIME",
    "SEARCHES",
    "Column",
    "Entry",
    "Row",
    "Span",
    "State",
    "Style",
    "Subject",
    "Table",
    "Value",
    "Verdict",
    "full_length",
    "result_tables",
    "state_word",
    "subjects",
    "tables",
]
