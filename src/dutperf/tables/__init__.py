"""Tables of results, made once: the terminal and the report only render them."""

from dutperf.tables.all_tables import result_tables, tables
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
from dutperf.tables.table_model import (
    Column,
    Entry,
    Row,
    Span,
    State,
    Style,
    Table,
    Value,
    Verdict,
    state_word,
)

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
